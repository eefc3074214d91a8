"""Charts: rows in, Vega-Lite out, then one inline SVG that follows the page's colours.

The only module that knows Altair and vl_convert. Each chart is laid out twice,
for the column and for a phone: one drawing scaled to both has tiny or huge text.
The phone's spec travels in the first one's usermeta.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache

import altair as alt
import numpy as np
import pandas as pd
import vl_convert

from macros import chart_layout
from macros.chart_svg import COLOURS, inline
from macros.fonts import package_dir

WIDE, NARROW = 640, 350  # [px]: the column, and a phone of 390 less its margins
FONT_PX = 13
STEP_PX = 48  # one row of a horizontal chart: words, then marks under them
HOLLOW = {"size": 110, "opacity": 1, "strokeWidth": 1.75}
CONFIG = {
    "font": "Inter, Arial, sans-serif",
    "background": "transparent",
    "numberFormat": ",~f",
    "view": {"stroke": None},
    "axis": {
        "labelColor": COLOURS["muted"], "labelFontSize": FONT_PX, "labelPadding": 8,
        "titleColor": COLOURS["muted"], "titleFontSize": FONT_PX, "titlePadding": 8,
        "titleFontWeight": 400, "labelFlush": False, "ticks": False,
        "gridColor": COLOURS["rule"], "gridDash": [1, 3], "domainColor": COLOURS["rule"],
    },
}  # fmt: skip
RATIO_KEY = {"predicted": "○ predicted = 1", "measured": "● measured ± σ"}
BARS_KEY = {"measured": "■ measured", "muted": "┆ memory roof"}


def decode_depth(rows: pd.DataFrame) -> dict:
    """Decode rate against context depth, with its memory roof [tok/s].

    Args:
        rows: depth_tokens, measured_tok_s, sigma_tok_s, predicted_tok_s, roof_tok_s;
            a series may be missing or hold NaN
    """
    return _both(lambda width: _depth(rows, width, "memory roof"))


def prefill_depth(rows: pd.DataFrame) -> dict:
    """Prefill rate against context depth, with its compute roof [tok/s]; rows as decode_depth."""
    return _both(lambda width: _depth(rows, width, "compute roof"))


def predicted_measured(rows: pd.DataFrame, *, log: bool = False) -> dict:
    """Measurement over prediction, one line a quantity [1].

    Args:
        rows: quantity, predicted, measured, and where known sigma, predicted_low,
            predicted_high; one unit within a row. An interval without a predicted
            value is divided by its middle
        log: ratios on a log axis, for misses of several times
    """
    return _both(lambda width: _ratios(rows, width, log))


def backend_bars(rows: pd.DataFrame) -> dict:
    """Bandwidth really pulled, a bar for each label, achieved_gb_s, roof_gb_s [GB/s]."""
    return _both(lambda width: _bars(rows, width))


def predicted_scatter(rows: pd.DataFrame) -> dict:
    """Measured against predicted rate on log axes, the line where they agree, the furthest rows numbered [tok/s].

    Args:
        rows: predicted_tok_s, measured_tok_s, inside (in its interval), number ("" or the mark beside the dot)
    """
    return _both(lambda width: _scatter(rows, width))


def growth(rows: pd.DataFrame) -> dict:
    """What commands take by the size of the lab, log axes, a line each [s].

    Args:
        rows: what, machines, wall_s; each command in order of size
    """
    return _both(lambda width: _growth(rows, width))


def to_svg(spec: dict, figure_id: str, label: str) -> str:
    """The chart as inline SVG on one line: one drawing for the column, one for a phone.

    Args:
        figure_id: id of the figure, unique on the page; clip ids start with it
        label: what the chart shows, in a sentence, for those who cannot see it

    Raises: ValueError for an id that is not one, or a colour without a CSS variable.
    """
    if not re.fullmatch(r"[A-Za-z][\w-]*", figure_id):
        raise ValueError(f"charts: figure id: letters, digits and hyphens only; got {figure_id!r}")
    narrow = spec.get("usermeta", {}).get("narrow")
    drawings = {"wide": spec} | ({"narrow": narrow} if narrow else {})
    return "".join(
        inline(_render(drawing), css, f"{figure_id}-{css}", label)
        for css, drawing in drawings.items()
    )


def _render(spec: dict) -> str:
    _register_inter()
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    return vl_convert.vegalite_to_svg(spec, vl_version=version)


@cache
def _register_inter() -> None:
    # Text is measured with the face the reader will see.
    vl_convert.register_font_directory(str(package_dir("fontpkg_inter") / "files"))


def _both(layout: Callable[[int], dict]) -> dict:
    return layout(WIDE) | {"usermeta": {"narrow": layout(NARROW)}}


def _spec(layers: list, width: float, height: float, padding: dict) -> dict:
    size = {"width": width, "height": height, "padding": padding, "autosize": "none"}
    return alt.layer(*layers).to_dict(validate=False) | size | {"config": CONFIG}


def _chart(values: list[dict]) -> alt.Chart:
    return alt.Chart(alt.Data(values=values))


def _text(values: list[dict], colour: str, align: str = "left", **mark) -> alt.Chart:
    """Words at places given in px: text, x, y."""
    return (
        _chart(values)
        .mark_text(color=COLOURS[colour], align=align, baseline="middle", fontSize=FONT_PX, **mark)
        .encode(text="text:N", y=alt.Y("y:Q", scale=None, axis=None), x=alt.value(values[0]["x"]))
    )


def _hollow(base: alt.Chart) -> alt.Chart:
    return base.mark_point(fill=COLOURS["paper"], stroke=COLOURS["predicted"], **HOLLOW)


def _depth(rows: pd.DataFrame, width: int, roof: str) -> dict:
    series = chart_layout.depth_series(rows)
    depths = sorted({x for points in series.values() for x in points["x"]})
    x_max = depths[-1] or 1.0
    ticks = chart_layout.ticks_from_zero(
        max((points["y"] + points["s"]).max() for points in series.values())
    )
    padding = {"left": 22 + 8 * len(f"{ticks[-1]:,.0f}"), "right": 22, "top": 30, "bottom": 46}
    plot, height = width - padding["left"] - padding["right"], 230
    x = alt.X("x:Q", scale=alt.Scale(domain=[0, x_max], nice=False)).axis(
        values=depths, title="tokens already in the context", grid=False,
        labelOverlap="greedy", labelSeparation=10,
    )  # fmt: skip
    y = alt.Y("y:Q", scale=alt.Scale(domain=[0, ticks[-1]], nice=False)).axis(
        values=ticks, title=None, domain=False
    )  # fmt: skip
    unit = _text([{"text": "tok/s", "x": 4 - padding["left"], "y": -18}], "muted")
    layers, pixels = [unit], {}
    for name, points in series.items():
        base = _chart(points.to_dict("records")).encode(x=x, y=y)
        colour = COLOURS[name]
        pixels[name] = np.column_stack(
            (points["x"] / x_max * plot, (1 - points["y"] / ticks[-1]) * height)
        )
        if name == "roof":
            dashed = {"color": colour, "strokeDash": [6, 4], "strokeWidth": 1.5}
            at = pixels[name][0, 0]
            ends = {"x": alt.value(max(at - 30, 0)), "x2": alt.value(min(at + 30, plot))}
            one = len(points) == 1  # a line needs two points, a roof is never a dot
            layers.append(
                base.mark_rule(**dashed).encode(**ends) if one else base.mark_line(**dashed)
            )
        elif name == "predicted":
            layers += [base.mark_line(color=colour, strokeWidth=2), _hollow(base)]
        else:
            bar = base.transform_calculate(low="datum.y - datum.s", high="datum.y + datum.s")
            bar = bar.mark_rule(color=colour, strokeWidth=2).encode(y="low:Q", y2="high:Q")
            layers += [bar, base.mark_circle(color=colour, size=60, opacity=1)]
    words = {"predicted": "predicted", "measured": "measured ± σ", "roof": roof}
    labels = chart_layout.place_labels({n: w for n, w in words.items() if n in series}, pixels, plot, height, FONT_PX)
    for name, place in labels.items():
        value = {"text": words[name], "x": place[0], "y": place[1]}
        layers.append(_text([value], "muted" if name == "roof" else name))
    return _spec(layers, plot, height, padding)


def _scatter(rows: pd.DataFrame, width: int) -> dict:
    seen = rows[["predicted_tok_s", "measured_tok_s"]].to_numpy(dtype=float)
    ends = [float(seen.min() / 1.3), float(seen.max() * 1.3)]
    decades = [10.0**e for e in range(-2, 6) if ends[0] <= 10.0**e <= ends[1]]
    padding = {"left": 64, "right": 16, "top": 46, "bottom": 46}
    plot = width - padding["left"] - padding["right"]
    height = min(plot, 420)
    scale = alt.Scale(type="log", domain=ends, nice=False)
    x = alt.X("predicted_tok_s:Q", scale=scale).axis(values=decades, title="predicted, chip never seen [tok/s]", format=",~g")
    y = alt.Y("measured_tok_s:Q", scale=scale).axis(values=decades, title=None, format=",~g")
    agree = _chart([{"predicted_tok_s": e, "measured_tok_s": e} for e in ends])
    layers = [agree.mark_line(color=COLOURS["predicted"], strokeWidth=1.5).encode(x=x, y=y)]
    values = rows.to_dict("records")
    for inside, mark in ((True, {"opacity": 0.45, "size": 26}), (False, {"opacity": 1, "size": 34})):
        dots = [v for v in values if bool(v["inside"]) is inside]
        if dots:
            base = _chart(dots).encode(x=x, y=y)
            drawn = base.mark_circle(color=COLOURS["measured"], **mark) if inside else base.mark_point(stroke=COLOURS["measured"], fill=COLOURS["paper"], strokeWidth=1.5, **mark)
            layers.append(drawn)
    named = [v for v in values if v["number"]]
    if named:
        words = _chart(named).mark_text(color=COLOURS["text"], align="left", dx=7, dy=1, fontSize=FONT_PX, baseline="middle")
        layers.append(words.encode(x=x, y=y, text="number:N"))
    at = -padding["left"] + 4
    layers += [_text([{"text": "measured [tok/s]", "x": at, "y": -34}], "muted"),
               _text([{"text": "● in its interval   ○ outside", "x": at, "y": -14}], "measured"),
               _text([{"text": "— predicted = measured", "x": at + (230 if width > NARROW else 205), "y": -14 if width > NARROW else -34}], "predicted")]  # fmt: skip
    return _spec(layers, plot, height, padding)


def _growth(rows: pd.DataFrame, width: int) -> dict:
    sizes = sorted({float(n) for n in rows["machines"]})
    decades = [10.0**e for e in range(-3, 5)]
    low, high = rows["wall_s"].min(), rows["wall_s"].max()
    ends = [max(d for d in decades if d <= low), min(d for d in decades if d > high)]
    padding = {"left": 52, "right": 118, "top": 30, "bottom": 46}
    plot, height = width - padding["left"] - padding["right"], 260
    x = alt.X("machines:Q", scale=alt.Scale(type="log", domain=[sizes[0], sizes[-1]], nice=False)).axis(
        values=sizes, title="machines in the lab, ten runs each", grid=False, format=",d")
    y = alt.Y("wall_s:Q", scale=alt.Scale(type="log", domain=ends, nice=False)).axis(
        values=[d for d in decades if ends[0] <= d <= ends[1]], title=None, domain=False, format=",~g")
    layers = [_text([{"text": "s", "x": 4 - padding["left"], "y": -18}], "muted")]
    lines = [(str(what), part.sort_values("machines")) for what, part in rows.groupby("what")]
    taken: list[float] = []
    for what, part in sorted(lines, key=lambda line: -line[1]["wall_s"].iloc[-1]):
        base = _chart(part.to_dict("records")).encode(x=x, y=y)
        layers += [base.mark_line(color=COLOURS["measured"], strokeWidth=2), base.mark_circle(color=COLOURS["measured"], size=60, opacity=1)]
        at = (1 - np.log(part["wall_s"].iloc[-1] / ends[0]) / np.log(ends[1] / ends[0])) * height
        taken.append(max([at, *(t + 17 for t in taken)]))  # under the name above it
        layers.append(_text([{"text": what, "x": plot + 10, "y": float(taken[-1])}], "measured"))
    return _spec(layers, plot, height, padding)


def _ratios(rows: pd.DataFrame, width: int, log: bool) -> dict:
    frame = chart_layout.ratio_frame(rows)
    ends, ticks = chart_layout.ratio_axis(frame, log)
    scale = alt.Scale(type="log" if log else "linear", domain=ends, nice=False)
    x = {"scale": scale, "axis": alt.Axis(values=ticks, title="measured ÷ predicted", format=",.2~f")}
    words = [f"× {r:.2f}" if pd.notna(r) else "not measured" for r in frame["ratio"]]
    ink, rust = COLOURS["predicted"], COLOURS["measured"]

    def layers(at: Callable[[str], alt.Chart]) -> list:
        return [
            at("low").mark_rule(color=ink, strokeWidth=7, strokeOpacity=0.35).encode(x2="high:Q"),
            at("ratio").mark_rule(color=COLOURS["roof"], strokeWidth=1).encode(x2="one:Q"),
            _hollow(at("one")),
            at("from").mark_rule(color=rust, strokeWidth=2).encode(x2="to:Q"),
            at("ratio").mark_circle(color=rust, size=60, opacity=1),
        ]

    return _rows(rows["quantity"], words, frame, width, x, layers, RATIO_KEY)


def _bars(rows: pd.DataFrame, width: int) -> dict:
    pairs = list(zip(rows["achieved_gb_s"], rows["roof_gb_s"], strict=True))
    short = width == NARROW  # the labels need the room; the axis has the GB/s
    words = [
        chart_layout.of_roof(got, roof, short) if pd.notna(got) else "not measured" for got, roof in pairs
    ]
    frame = pd.DataFrame({"roof": rows["roof_gb_s"], "got": rows["achieved_gb_s"], "zero": 0.0})
    ticks = chart_layout.ticks_from_zero(float(np.nanmax(frame.to_numpy())))
    scale = alt.Scale(domain=[0, ticks[-1]], nice=False)
    x = {"scale": scale, "axis": alt.Axis(values=ticks, title="GB/s")}

    def layers(at: Callable[[str], alt.Chart]) -> list:
        dashed = {"color": COLOURS["roof"], "strokeWidth": 1.5, "strokeDash": [4, 3]}
        return [
            at("zero").mark_rule(strokeWidth=9, color=COLOURS["measured"]).encode(x2="got:Q"),
            at("roof").mark_rule(**dashed).encode(y=alt.Y("top:Q", scale=None), y2="bottom:Q"),
        ]

    return _rows(rows["label"], words, frame, width, x, layers, BARS_KEY)


def _rows(
    labels: pd.Series,
    words: list[str],
    frame: pd.DataFrame,
    width: int,
    x: dict,
    marks: Callable[[Callable[[str], alt.Chart]], list],
    key: dict[str, str],
) -> dict:
    """A horizontal chart: each row its label and words above, its marks below."""
    top, padding = 30, {"left": 10, "right": 14, "top": 8, "bottom": 46}
    plot, height = width - padding["left"] - padding["right"], top + STEP_PX * len(frame) + 6
    lines = [top + STEP_PX * i + 33 for i in range(len(frame))]
    values = frame.assign(y=lines, top=[y - 9 for y in lines], bottom=[y + 9 for y in lines])

    def at(column: str) -> alt.Chart:
        known = values.dropna(subset=[column]).to_dict("records")
        return _chart(known).encode(
            x=alt.X(f"{column}:Q", **x), y=alt.Y("y:Q", scale=None, axis=None)
        )

    def column(texts: Iterable[str], x: float) -> list[dict]:
        return [{"text": str(t), "x": x, "y": y - 21} for t, y in zip(texts, lines, strict=True)]

    key = [_text([{"text": t, "x": 140 * i, "y": 8}], c) for i, (c, t) in enumerate(key.items())]
    texts = [
        _text(column(labels, 0), "text", limit=plot - 8 * max(map(len, words))),
        _text(column(words, plot), "muted", align="right"),
    ]
    return _spec([*marks(at), *key, *texts], plot, height, padding)
