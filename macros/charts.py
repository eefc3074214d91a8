"""Charts: rows in, Vega-Lite out, then one inline SVG that follows the page's colours.

The only module that knows vl_convert, and loads it only for pixels and for what Explore runs.
Each chart is laid out twice, for the column and for a phone: one drawing scaled to both has
tiny or huge text. The phone's spec travels in the first one's usermeta.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from html import escape

from pydantic_core import to_json

from macros import chart_depth, chart_draw, chart_growth, chart_log, chart_rows, chart_spread, fonts
from macros.chart_kit import CONFIG, SCHEMA, both
from macros.chart_svg import COLOURS

__all__ = ["COLOURS", "CONFIG"]


def decode_depth(rows: list[dict], size: tuple[int, int] | None = None) -> dict:
    """Decode rate against context depth, with its memory roof [tok/s].

    Args:
        rows: depth_tokens, measured_tok_s, sigma_tok_s, predicted_tok_s, roof_tok_s;
            a series may be missing or hold NaN
        size: of one drawing, for a picture: its width and the plot's height [px];
            without it, one for the column and one for a phone
    """
    return both(rows, lambda values, *size: chart_depth.depth(values, "memory roof", *size), size)


def prefill_depth(rows: list[dict], size: tuple[int, int] | None = None) -> dict:
    """Prefill rate against context depth, with its compute roof [tok/s]; rows and size as decode_depth."""
    return both(rows, lambda values, *size: chart_depth.depth(values, "compute roof", *size), size)


def predicted_measured(rows: list[dict], *, log: bool = False) -> dict:
    """Measurement over prediction, one line a quantity [1].

    Args:
        rows: quantity, predicted, measured, and where known sigma, predicted_low,
            predicted_high; one unit within a row. An interval without a predicted
            value is divided by its middle
        log: ratios on a log axis, for misses of several times
    """
    return both(rows, lambda values, width: chart_rows.ratios(values, width, log))


def backend_bars(rows: list[dict], size: tuple[int, int] | None = None) -> dict:
    """Bandwidth really pulled, a bar for each label, achieved_gb_s, roof_gb_s [GB/s].

    Args:
        size: as decode_depth; a row has its own height, so only the width counts
    """
    return both(rows, lambda values, width, *_: chart_rows.bars(values, width), size)


def predicted_scatter(rows: list[dict]) -> dict:
    """Measured against predicted rate on log axes, where they agree, the median interval as a band [tok/s].

    Args:
        rows: chip, model, quant, test, predicted_tok_s, low80_tok_s, high80_tok_s, measured_tok_s,
            inside (in its interval), number ("" or the mark beside the dot)
    """
    return both(rows, chart_log.scatter, zoom=True)


def inked_scatter(rows: list[dict]) -> dict:
    """An ink's rates against their measurements on log axes, with the band that counts as held [tok/s].

    Args:
        rows: label, quantity, as_written, predicted or predicted_low and predicted_high, measured, sigma, verdict,
            tolerance (the band's half width, fraction)
    """
    return both(rows, chart_log.inked)


def roofline(rows: list[dict]) -> dict:
    """A machine's two roofs on log axes, with what prefill and decode reached under them [FLOP/B, FLOP/s].

    Args:
        rows: label, flops_per_byte, measured_flops_s, sigma_flops_s, predicted_flops_s, predicted_low_flops_s,
            predicted_high_flops_s (NaN where nothing was inked), bandwidth_bytes_s, peak_flops_s (one value; NaN: not known)
    """
    return both(rows, chart_log.roofline)


def format_shares(rows: list[dict]) -> dict:
    """Share of the memory roof that decode reached by weight format, many machines and one [1].

    Args:
        rows: label, n, low, q1, median, q3, high (10th, 25th, 50th, 75th, 90th percentile), own, own_sigma
    """
    return both(rows, chart_spread.shares)


def residual_spread(rows: list[dict]) -> dict:
    """Measured over predicted by class on a log axis [1]; rows: label, n, low, q1, median, q3, high."""
    return both(rows, chart_spread.residuals)


def backend_ratios(rows: list[dict]) -> dict:
    """CPU rate over GPU rate beside what was inked in words [1].

    Args:
        rows: quantity, as_written, low, high (what the words allow), measured, sigma, verdict
    """
    return both(rows, chart_spread.backends)


def growth(rows: list[dict]) -> dict:
    """What commands take by the size of the lab, log axes, a line each [s].

    Args:
        rows: what, machines, wall_s
    """
    return both(rows, chart_growth.growth)


def to_svg(spec: dict, label: str) -> str:
    """The chart as inline SVG on one line, in the page's colours: one drawing for the column, one for a phone.

    Args:
        label: what the chart shows, in a sentence, for those who cannot see it

    Raises: ValueError for what cannot be drawn, or a colour without a CSS variable.
    """
    narrow = spec.get("usermeta", {}).get("narrow")
    drawings = {"wide": spec} | ({"narrow": narrow} if narrow else {})
    name = escape(" ".join(label.split()))
    return "".join(chart_draw.drawing(part, f'class="{css}" role="img" aria-label="{name}"', chart_draw.VARIABLES) for css, part in drawings.items())


def standing(spec: dict) -> str:
    """One drawing as an SVG of its own, in the light colours."""
    return chart_draw.drawing(spec, 'xmlns="http://www.w3.org/2000/svg"', chart_draw.LIGHT)


def published(spec: dict, label: str) -> str:
    """The spec as others may use it: JSON with its description; what may be zoomed says how."""
    meta = spec["usermeta"]
    drawings = [_named({k: v for k, v in part.items() if k != "usermeta"} | {"description": label}) for part in (spec, meta["narrow"])]
    if meta["zoom"]:
        # A plain wheel scrolls the page.
        select = {"type": "interval", "zoom": "wheel![event.ctrlKey]"}
        for part in drawings:
            part["layer"] = [{**part["layer"][0], "params": [{"name": "view", "select": select, "bind": "scales"}]}, *part["layer"][1:]]
    wide, narrow = drawings
    return to_json(wide | {"usermeta": {"narrow": narrow, "zoom": meta["zoom"]}}).decode()  # a quarter of what json takes


def _named(spec: dict) -> dict:
    """A spec in which rows that several layers draw are written once."""
    lists = [layer["data"]["values"] for layer in spec["layer"]]
    uses = Counter(map(id, lists))
    names = {key: f"rows{i}" for i, key in enumerate((key for key, n in uses.items() if n > 1), 1)}
    layers = [layer | {"data": {"name": names[id(rows)]}} if id(rows) in names else layer for layer, rows in zip(spec["layer"], lists, strict=True)]
    return spec | {"layer": layers, "datasets": {names[id(rows)]: rows for rows in lists if id(rows) in names}}


def bundle() -> str:
    """Vega, Vega-Lite and vega-embed as one script, of the version whose specs these are."""
    import vl_convert

    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=_version())


def _version() -> str:
    return ".".join(SCHEMA.rpartition("/v")[2].split(".")[:2])


def to_png(svg: str) -> bytes:
    """An SVG's pixels, one for each of its units, in Inter and the faces of pictures."""
    import vl_convert

    _register_fonts()
    vl_convert.register_font_directory(str(fonts.PICTURE_FACES))
    return vl_convert.svg_to_png(svg)


@cache
def _register_fonts() -> None:
    import vl_convert

    # Text is set in the face the reader will see.
    vl_convert.register_font_directory(str(fonts.package_dir("fontpkg_inter") / "files"))


