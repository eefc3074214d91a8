"""Rate against context depth: measured with sigma, predicted, the roof."""

from __future__ import annotations

from macros import chart_layout
from macros.chart_kit import DOT, FONT_PX, hollow, labels, layer, linear, place, spec, told
from macros.chart_svg import COLOURS

WORDS = {"predicted": "predicted", "measured": "measured ± σ"}
MARKS = {"predicted": "○", "measured": "●", "roof": "- -"}
SHOWN = {name: told(x="depth [tokens]|,.0f", y=f"{name} [tok/s]|,.2f", **more) for name, more in (("predicted", {}), ("measured", {"s": "σ [tok/s]|,.2f"}))}


def depth(rows: list[dict], roof: str, width: int, height: int = 230) -> dict:
    """One drawing of rates against depth [tok/s].

    Args:
        rows: as `charts.decode_depth`
        roof: what the roof is called
        width: of the whole drawing [px]
        height: of the plot alone [px]
    """
    series = chart_layout.depth_series(rows)
    depths = sorted({point["x"] for points in series.values() for point in points})
    x_max = depths[-1] or 1.0
    ticks = chart_layout.ticks_from_zero(max(point["y"] + point["s"] for points in series.values() for point in points))
    padding = {"left": 22 + 8 * len(f"{ticks[-1]:,.0f}"), "right": 22, "top": 30, "bottom": 46}
    plot = width - padding["left"] - padding["right"]
    axis = {"values": depths, "title": "tokens already in the context", "grid": False, "labelOverlap": "greedy", "labelSeparation": 10}
    x = place("x", scale=linear(0, x_max), axis=axis)
    shown = chart_layout.thinned(ticks, height)
    y = place("y", scale=linear(0, ticks[-1]), axis={"values": shown, "title": None, "domain": False})
    unit, layers, pixels, taken = -18, [], {}, []
    for name, points in series.items():
        colour = COLOURS[name]
        pixels[name] = [(point["x"] / x_max * plot, (1 - point["y"] / ticks[-1]) * height) for point in points]
        if name == "roof":
            dashed = {"color": colour, "strokeDash": [6, 4], "strokeWidth": 1.5}
            at = pixels[name][0][0]
            ends = {"x": {"value": max(at - 30, 0)}, "x2": {"value": min(at + 30, plot)}}
            # A line needs two points, a roof is never a dot.
            layers.append(layer("rule", points, dashed, **ends, y=y) if len(points) == 1 else layer("line", points, dashed, x=x, y=y))
        elif name == "predicted":
            layers += [layer("line", points, {"color": colour, "strokeWidth": 2}, x=x, y=y), hollow(points, x=x, y=y, tooltip=SHOWN[name])]
            taken.append(chart_layout.boxed(pixels[name], 6))
        else:
            ends = {"low": "datum.y - datum.s", "high": "datum.y + datum.s"}
            layers += [
                layer("rule", points, {"color": colour, "strokeWidth": 2}, calculate=ends, x=x, y={**y, "field": "low"}, y2="high"),
                layer("circle", points, DOT, x=x, y=y, tooltip=SHOWN[name]),
            ]
            taken.append(chart_layout.boxed(pixels[name], 5, [point["s"] / ticks[-1] * height for point in points]))
    shown = {n: w for n, w in {**WORDS, "roof": roof}.items() if n in series}
    found = chart_layout.place_labels(shown, pixels, plot, height, FONT_PX, taken)
    if len(found) < len(shown):  # no room beside every line: a key above the plot, as wide as it may be
        shown = {n: f"{MARKS[n]} {w}" for n, w in shown.items()}
        lines = chart_layout.flowed({"unit": "tok/s", **shown}, width - 8, FONT_PX)
        found = {n: (x + 4 - padding["left"], -18 * (len(lines) - i)) for i, line in enumerate(lines) for n, x in line.items()}
        _, unit = found.pop("unit")
        padding["top"] = 12 + 18 * len(lines)
    said = [("muted", "tok/s", 4 - padding["left"], unit), *(("muted" if name == "roof" else name, shown[name], *at) for name, at in found.items())]
    return spec([*layers, *labels(said)], plot, height, padding)
