"""Rate against context depth: measured with sigma, predicted, the roof."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from macros import chart_layout
from macros.chart_kit import FONT_PX, chart, hollow, spec, told, words
from macros.chart_svg import COLOURS

WORDS = {"predicted": "predicted", "measured": "measured ± σ"}
MARKS = {"predicted": "○", "measured": "●", "roof": "- -"}


def depth(rows: pd.DataFrame, roof: str, width: int, height: int = 230) -> dict:
    """One drawing of rates against depth [tok/s].

    Args:
        rows: as `charts.decode_depth`
        roof: what the roof is called
        width: of the whole drawing [px]
        height: of the plot alone [px]
    """
    series = chart_layout.depth_series(rows)
    depths = sorted({x for points in series.values() for x in points["x"]})
    x_max = depths[-1] or 1.0
    ticks = chart_layout.ticks_from_zero(max((points["y"] + points["s"]).max() for points in series.values()))
    padding = {"left": 22 + 8 * len(f"{ticks[-1]:,.0f}"), "right": 22, "top": 30, "bottom": 46}
    plot = width - padding["left"] - padding["right"]
    x = alt.X("x:Q", scale=alt.Scale(domain=[0, x_max], nice=False)).axis(
        values=depths, title="tokens already in the context", grid=False, labelOverlap="greedy", labelSeparation=10,
    )  # fmt: skip
    y = alt.Y("y:Q", scale=alt.Scale(domain=[0, ticks[-1]], nice=False)).axis(values=ticks, title=None, domain=False)
    layers, pixels, taken = [words([{"text": "tok/s", "x": 4 - padding["left"], "y": -18}], "muted")], {}, []
    for name, points in series.items():
        base = chart(points).encode(x=x, y=y)
        colour = COLOURS[name]
        pixels[name] = np.column_stack((points["x"] / x_max * plot, (1 - points["y"] / ticks[-1]) * height))
        if name == "roof":
            dashed = {"color": colour, "strokeDash": [6, 4], "strokeWidth": 1.5}
            at = pixels[name][0, 0]
            ends = {"x": alt.value(max(at - 30, 0)), "x2": alt.value(min(at + 30, plot))}
            one = len(points) == 1  # a line needs two points, a roof is never a dot
            layers.append(base.mark_rule(**dashed).encode(**ends) if one else base.mark_line(**dashed))
        elif name == "predicted":
            at_mark = base.encode(tooltip=told(x="depth [tokens]|,.0f", y="predicted [tok/s]|,.2f"))
            layers += [base.mark_line(color=colour, strokeWidth=2), hollow(at_mark)]
            taken.append(chart_layout.boxed(pixels[name], 0, 6))
        else:
            at_mark = base.encode(tooltip=told(x="depth [tokens]|,.0f", y="measured [tok/s]|,.2f", s="σ [tok/s]|,.2f"))
            bar = base.transform_calculate(low="datum.y - datum.s", high="datum.y + datum.s")
            bar = bar.mark_rule(color=colour, strokeWidth=2).encode(y="low:Q", y2="high:Q")
            layers += [bar, at_mark.mark_circle(color=colour, size=60, opacity=1)]
            taken.append(chart_layout.boxed(pixels[name], points["s"].to_numpy() / ticks[-1] * height, 5))
    shown = {n: w for n, w in {**WORDS, "roof": roof}.items() if n in series}
    labels = chart_layout.place_labels(shown, pixels, plot, height, FONT_PX, taken)
    if len(labels) < len(shown):  # no room beside every line: a key above the plot, as wide as it may be
        shown = {n: f"{MARKS[n]} {w}" for n, w in shown.items()}
        lines = chart_layout.flowed({"unit": "tok/s", **shown}, width - 8, FONT_PX)
        labels = {n: (x + 4 - padding["left"], -18 * (len(lines) - i)) for i, line in enumerate(lines) for n, x in line.items()}
        layers[0] = words([{"text": "tok/s", "x": 4 - padding["left"], "y": labels.pop("unit")[1]}], "muted")
        padding["top"] = 12 + 18 * len(lines)
    for name, place in labels.items():
        layers.append(words([{"text": shown[name], "x": place[0], "y": place[1]}], "muted" if name == "roof" else name))
    return spec(layers, plot, height, padding)
