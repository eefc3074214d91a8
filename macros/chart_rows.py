"""Horizontal charts: a row a quantity, its label and words above, its marks below."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import altair as alt
import numpy as np
import pandas as pd

from macros import chart_layout
from macros.chart_kit import FONT_PX, NARROW, chart, hollow, spec, told, words
from macros.chart_svg import COLOURS

STEP_PX = 48  # one row
RATIO_KEY = [("predicted", "○ predicted = 1"), ("measured", "● measured ± σ")]
BARS_KEY = [("measured", "■ measured"), ("muted", "¦ memory roof")]


def ratios(rows: pd.DataFrame, width: int, log: bool) -> dict:
    """Measurement over prediction; rows as `charts.predicted_measured`."""
    frame = chart_layout.ratio_frame(rows)
    ends, ticks = chart_layout.ratio_axis(frame, log)
    scale = alt.Scale(type="log" if log else "linear", domain=ends, nice=False)
    x = {"scale": scale, "axis": alt.Axis(values=ticks, title="measured ÷ predicted", format=",.2~f")}
    said = [f"× {r:.2f}" if pd.notna(r) else "not measured" for r in frame["ratio"]]
    ink, rust = COLOURS["predicted"], COLOURS["measured"]
    frame = frame.assign(quantity=rows["quantity"])
    told_here = told(quantity="quantity", ratio="measured ÷ predicted|.3f", low="inked from|.3f", high="inked to|.3f")

    def layers(at: Callable[[str], alt.Chart]) -> list:
        return [
            at("low").mark_rule(color=ink, strokeWidth=7, strokeOpacity=0.35).encode(x2="high:Q"),
            at("ratio").mark_rule(color=COLOURS["roof"], strokeWidth=1).encode(x2="one:Q"),
            hollow(at("one")),
            at("from").mark_rule(color=rust, strokeWidth=2).encode(x2="to:Q"),
            at("ratio").mark_circle(color=rust, size=60, opacity=1).encode(tooltip=told_here),
        ]

    return stacked(rows["quantity"], said, frame, width, x, layers, RATIO_KEY)


def bars(rows: pd.DataFrame, width: int) -> dict:
    """Bandwidth pulled against the roof; rows as `charts.backend_bars`."""
    pairs = list(zip(rows["achieved_gb_s"], rows["roof_gb_s"], strict=True))
    short = width <= NARROW  # the labels need the room; the axis has the GB/s
    said = [chart_layout.of_roof(got, roof, short) if pd.notna(got) else "not measured" for got, roof in pairs]
    frame = pd.DataFrame({"roof": rows["roof_gb_s"], "got": rows["achieved_gb_s"], "zero": 0.0, "label": rows["label"]})
    ticks = chart_layout.ticks_from_zero(float(np.nanmax(frame[["roof", "got"]].to_numpy())))
    scale = alt.Scale(domain=[0, ticks[-1]], nice=False)
    x = {"scale": scale, "axis": alt.Axis(values=ticks, title="GB/s")}
    told_here = told(label="what", got="measured [GB/s]|.1f", roof="memory roof [GB/s]|.1f")

    def layers(at: Callable[[str], alt.Chart]) -> list:
        dashed = {"color": COLOURS["roof"], "strokeWidth": 1.5, "strokeDash": [4, 3]}
        return [
            at("zero").mark_rule(strokeWidth=9, color=COLOURS["measured"]).encode(x2="got:Q", tooltip=told_here),
            at("roof").mark_rule(**dashed).encode(y=alt.Y("top:Q", scale=None), y2="bottom:Q"),
        ]

    return stacked(rows["label"], said, frame, width, x, layers, BARS_KEY)


def stacked(
    labels: pd.Series,
    said: list[str],
    frame: pd.DataFrame,
    width: int,
    x: dict,
    marks: Callable[[Callable[[str], alt.Chart]], list],
    key: list[tuple[str, str]],
) -> dict:
    """A horizontal chart.

    Args:
        labels, said: what stands above a row, at its left and at its right
        frame: what the marks may encode, a row each
        marks: layers, given what makes a chart of the rows that have a column, placed along x by it
        key: colour and words that explain a mark
    """
    explained = chart_layout.flowed(dict(enumerate(text for _, text in key)), width - 8, FONT_PX)
    top, padding = 12 + 18 * len(explained), {"left": 10, "right": 14, "top": 8, "bottom": 46}
    plot, height = width - padding["left"] - padding["right"], top + STEP_PX * len(frame) + 6
    lines = [top + STEP_PX * i + 33 for i in range(len(frame))]
    values = frame.assign(y=lines, top=[y - 9 for y in lines], bottom=[y + 9 for y in lines])

    def at(column: str) -> alt.Chart:
        return chart(values.dropna(subset=[column])).encode(x=alt.X(f"{column}:Q", **x), y=alt.Y("y:Q", scale=None, axis=None))

    def column(texts: Iterable[str], x: float) -> list[dict]:
        return [{"text": str(t), "x": x, "y": y - 21} for t, y in zip(texts, lines, strict=True)]

    keys = [words([{"text": key[i][1], "x": x, "y": 8 + 18 * n}], key[i][0]) for n, line in enumerate(explained) for i, x in line.items()]
    texts = [
        words(column(labels, 0), "text", limit=plot - 8 * max(map(len, said))),
        words(column(said, plot), "muted", align="right"),
    ]
    return spec([*marks(at), *keys, *texts], plot, height, padding)
