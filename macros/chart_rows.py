"""Horizontal charts: a row a quantity, its label and words above, its marks below."""

from __future__ import annotations

from collections.abc import Callable, Iterable


from macros import chart_layout
from macros.chart_kit import DOT, FONT_PX, HOLLOW, NARROW, having, labels, layer, linear, log, place, spec, told, words
from macros.chart_svg import COLOURS

STEP_PX = 48  # one row
RATIO_KEY = [("predicted", "○ predicted = 1"), ("measured", "● measured ± σ")]
BARS_KEY = [("measured", "■ measured"), ("muted", "¦ memory roof")]
ACROSS = {"y": place("top", scale=None), "y2": "bottom"}  # a line as high as a row
Marks = Callable[..., dict]  # (kind, column, style, **channels) -> a layer of the rows that have the column, placed along x by it


def ratios(rows: list[dict], width: int, log_axis: bool) -> dict:
    """Measurement over prediction; rows as `charts.predicted_measured`."""
    values = chart_layout.ratio_rows(rows)
    ends, ticks = chart_layout.ratio_axis(values, log_axis)
    x = {"scale": log(*ends) if log_axis else linear(*ends), "axis": {"values": ticks, "title": "measured ÷ predicted", "format": ",.2~f"}}
    said = ["not measured" if v["ratio"] is None else f"× {v['ratio']:.2f}" for v in values]
    ink, rust = COLOURS["predicted"], COLOURS["measured"]
    shown = told(quantity="quantity", ratio="measured ÷ predicted|.3f", low="inked from|.3f", high="inked to|.3f")

    def layers(at: Marks) -> list[dict]:
        return [
            at("rule", "low", {"color": ink, "strokeWidth": 7, "strokeOpacity": 0.35}, x2="high"),
            at("rule", "ratio", {"color": COLOURS["roof"], "strokeWidth": 1}, x2="one"),
            at("point", "one", {"fill": COLOURS["paper"], "stroke": ink, **HOLLOW}),
            at("rule", "from", {"color": rust, "strokeWidth": 2}, x2="to"),
            at("circle", "ratio", DOT, tooltip=shown),
        ]

    return stacked([v["quantity"] for v in values], said, values, width, x, layers, RATIO_KEY)


def bars(rows: list[dict], width: int) -> dict:
    """Bandwidth pulled against the roof; rows as `charts.backend_bars`."""
    short = width <= NARROW  # the labels need the room; the axis has the GB/s
    values = [{"roof": r["roof_gb_s"], "got": r["achieved_gb_s"], "zero": 0.0, "label": r["label"]} for r in rows]
    said = ["not measured" if v["got"] is None else chart_layout.of_roof(v["got"], v["roof"], short) for v in values]
    ticks = chart_layout.ticks_from_zero(max(n for v in values for n in (v["roof"], v["got"]) if n is not None))
    x = {"scale": linear(0, ticks[-1]), "axis": {"values": ticks, "title": "GB/s"}}
    shown = told(label="what", got="measured [GB/s]|.1f", roof="memory roof [GB/s]|.1f")

    def layers(at: Marks) -> list[dict]:
        return [
            at("rule", "zero", {"strokeWidth": 9, "color": COLOURS["measured"]}, x2="got", tooltip=shown),
            at("rule", "roof", {"color": COLOURS["roof"], "strokeWidth": 1.5, "strokeDash": [4, 3]}, **ACROSS),
        ]

    return stacked([v["label"] for v in values], said, values, width, x, layers, BARS_KEY)


def stacked(
    names: list, said: list[str], values: list[dict], width: int, x: dict, marks: Callable[[Marks], list[dict]], key: list[tuple[str, str]]
) -> dict:
    """A horizontal chart.

    Args:
        names, said: what stands above a row, at its left and at its right
        values: what the marks may encode, a row each
        x: scale and axis
        marks: layers, given what makes one
        key: colour and words that explain a mark
    """
    explained = chart_layout.flowed(dict(enumerate(text for _, text in key)), width - 8, FONT_PX)
    top, padding = 12 + 18 * len(explained), {"left": 10, "right": 14, "top": 8, "bottom": 46}
    plot, height = width - padding["left"] - padding["right"], top + STEP_PX * len(values) + 6
    lines = [top + STEP_PX * i + 33 for i in range(len(values))]
    placed = [{**v, "y": y, "top": y - 9, "bottom": y + 9} for v, y in zip(values, lines, strict=True)]

    def at(kind: str, column: str, style: dict, **channels: object) -> dict:
        return layer(kind, having(placed, column), style, **{"x": place(column, **x), "y": place("y", scale=None, axis=None), **channels})

    def column(texts: Iterable, x: float) -> list[dict]:
        return [{"text": str(t), "x": x, "y": y - 21} for t, y in zip(texts, lines, strict=True)]

    keys = labels([(*key[i], x, 8 + 18 * n) for n, line in enumerate(explained) for i, x in line.items()])
    texts = [
        words(column(names, 0), "text", limit=plot - 8 * max(map(len, said))),
        words(column(said, plot), "muted", align="right"),
    ]
    return spec([*marks(at), *keys, *texts], plot, height, padding)
