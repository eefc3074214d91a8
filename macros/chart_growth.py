"""What commands take by the size of the lab."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from macros.chart_kit import chart, spec, told, words
from macros.chart_svg import COLOURS

APART = 17  # a name under the one above it [px]


def growth(rows: pd.DataFrame, width: int) -> dict:
    """Seconds against machines on log axes, the command's name at the end of its line; rows as `charts.growth`."""
    sizes = sorted({float(n) for n in rows["machines"]})
    decades = [10.0**e for e in range(-3, 5)]
    ends = [max(d for d in decades if d <= rows["wall_s"].min()), min(d for d in decades if d > rows["wall_s"].max())]
    padding = {"left": 52, "right": 108, "top": 30, "bottom": 46}
    plot, height = width - padding["left"] - padding["right"], 260
    x = alt.X("machines:Q", scale=alt.Scale(type="log", domain=[sizes[0], sizes[-1]], nice=False)).axis(
        values=sizes, title="machines in the lab, ten runs each", grid=False, format=",d")  # fmt: skip
    y = alt.Y("wall_s:Q", scale=alt.Scale(type="log", domain=ends, nice=False)).axis(
        values=[d for d in decades if ends[0] <= d <= ends[1]], title=None, domain=False, format=",~g")  # fmt: skip
    layers, taken = [words([{"text": "s", "x": 4 - padding["left"], "y": -18}], "muted")], []
    lines = {str(what): part.sort_values("machines") for what, part in rows.groupby("what")}
    for what, part in sorted(lines.items(), key=lambda line: -line[1]["wall_s"].iloc[-1]):
        base = chart(part).encode(x=x, y=y)
        dots = base.encode(tooltip=told(what="command", machines="machines|,d", wall_s="time [s]|,.2f"))
        layers += [base.mark_line(color=COLOURS["measured"], strokeWidth=2), dots.mark_circle(color=COLOURS["measured"], size=60, opacity=1, clip=False)]
        at = (1 - np.log(part["wall_s"].iloc[-1] / ends[0]) / np.log(ends[1] / ends[0])) * height
        taken.append(float(max([at, *(t + APART for t in taken)])))
        layers.append(words([{"text": what, "x": plot + 10, "y": taken[-1]}], "measured"))
    return spec(layers, plot, height, padding)
