"""What commands take by the size of the lab."""

from __future__ import annotations

import numpy as np
import pandas as pd

from macros.chart_kit import DOT, layer, log, place, records, spec, told, words
from macros.chart_svg import COLOURS

APART = 17  # a name under the one above it [px]


def growth(rows: pd.DataFrame, width: int) -> dict:
    """Seconds against machines on log axes, the command's name at the end of its line; rows as `charts.growth`."""
    sizes = sorted({float(n) for n in rows["machines"]})
    decades = [10.0**e for e in range(-3, 5)]
    ends = [max(d for d in decades if d <= rows["wall_s"].min()), min(d for d in decades if d > rows["wall_s"].max())]
    padding = {"left": 52, "right": 108, "top": 30, "bottom": 46}
    plot, height = width - padding["left"] - padding["right"], 260
    x = place("machines", scale=log(sizes[0], sizes[-1]), axis={"values": sizes, "title": "machines in the lab, ten runs each", "grid": False, "format": ",d"})
    y = place("wall_s", scale=log(*ends), axis={"values": [d for d in decades if ends[0] <= d <= ends[1]], "title": None, "domain": False, "format": ",~g"})
    layers, taken = [words([{"text": "s", "x": 4 - padding["left"], "y": -18}], "muted")], []
    lines = {str(what): part.sort_values("machines") for what, part in rows.groupby("what")}
    shown = told(what="command", machines="machines|,d", wall_s="time [s]|,.2f")
    for what, part in sorted(lines.items(), key=lambda line: -line[1]["wall_s"].iloc[-1]):
        values = records(part)
        layers += [
            layer("line", values, {"color": COLOURS["measured"], "strokeWidth": 2}, x=x, y=y),
            layer("circle", values, {**DOT, "clip": False}, x=x, y=y, tooltip=shown),
        ]
        at = (1 - np.log(part["wall_s"].iloc[-1] / ends[0]) / np.log(ends[1] / ends[0])) * height
        taken.append(float(max([at, *(t + APART for t in taken)])))
        layers.append(words([{"text": what, "x": plot + 10, "y": taken[-1]}], "measured"))
    return spec(layers, plot, height, padding)
