"""What commands take by the size of the lab."""

from __future__ import annotations

import numpy as np

from macros.chart_kit import DOT, labels, layer, log, place, spec, told
from macros.chart_svg import COLOURS

APART = 17  # a name under the one above it [px]


def growth(rows: list[dict], width: int) -> dict:
    """Seconds against machines on log axes, the command's name at the end of its line; rows as `charts.growth`."""
    sizes = sorted({float(r["machines"]) for r in rows})
    times = [r["wall_s"] for r in rows]
    decades = [10.0**e for e in range(-3, 5)]
    ends = [max(d for d in decades if d <= min(times)), min(d for d in decades if d > max(times))]
    padding = {"left": 52, "right": 108, "top": 30, "bottom": 46}
    plot, height = width - padding["left"] - padding["right"], 260
    x = place("machines", scale=log(sizes[0], sizes[-1]), axis={"values": sizes, "title": "machines in the lab, ten runs each", "grid": False, "format": ",d"})
    y = place("wall_s", scale=log(*ends), axis={"values": [d for d in decades if ends[0] <= d <= ends[1]], "title": None, "domain": False, "format": ",~g"})
    layers, taken, said = [], [], [("muted", "s", 4 - padding["left"], -18)]
    lines = {what: sorted((r for r in rows if r["what"] == what), key=lambda r: r["machines"]) for what in sorted({r["what"] for r in rows})}
    shown = told(what="command", machines="machines|,d", wall_s="time [s]|,.2f")
    for what, values in sorted(lines.items(), key=lambda line: -line[1][-1]["wall_s"]):
        layers += [
            layer("line", values, {"color": COLOURS["measured"], "strokeWidth": 2}, x=x, y=y),
            layer("circle", values, {**DOT, "clip": False}, x=x, y=y, tooltip=shown),
        ]
        at = (1 - np.log(values[-1]["wall_s"] / ends[0]) / np.log(ends[1] / ends[0])) * height
        taken.append(float(max([at, *(t + APART for t in taken)])))
        said.append(("measured", what, plot + 10, taken[-1]))
    return spec([*layers, *labels(said)], plot, height, padding)
