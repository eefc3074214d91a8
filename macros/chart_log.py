"""Charts on two log axes: predicted against measured, and the roofline."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from macros import chart_layout
from macros.chart_kit import DOT, FONT_PX, NARROW, having, hollow, labels, layer, log, place, spec, told
from macros.chart_layout import Point
from macros.chart_svg import COLOURS

Said = tuple[str, str, float, float]  # see `labels`
MOST_NAMES = 6  # labels beside dots; more would hide each other
LEFT, RIGHT, BOTTOM = 64, 16, 46  # [px] around the plot
INK, RUST = COLOURS["predicted"], COLOURS["measured"]
SPAN = {"color": INK, "strokeWidth": 7, "strokeOpacity": 0.35}  # an inked interval
ALONG = (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8)  # where on a roof its name may stand, best first


def _x(field: str, ends: list[float], title: str) -> dict:
    return place(field, scale=log(*ends), axis={"values": chart_layout.log_ticks(*ends), "title": title, "format": ",~g"})


def _y(field: str, ends: list[float]) -> dict:
    return place(field, scale=log(*ends), axis={"values": chart_layout.log_ticks(*ends), "title": None, "format": ",~g"})


def _bar(rows: list[dict], low: float) -> list[dict]:
    """Measured rows with the ends of their error bars; one that reaches 0 or below ends where the axis begins."""
    return [{**r, "from": max(r["measured"] - (r["sigma"] or 0), low), "to": r["measured"] + (r["sigma"] or 0)} for r in rows]


def _agreement(ends: list[float], low: float, high: float) -> list[dict]:
    """The line where predicted and measured agree, and the band between two shares of it."""
    scale = log(*ends)
    at, to = place("at", scale=scale), place("to", scale=scale)
    return [
        layer("area", chart_layout.band(ends, low, high), {"color": INK, "opacity": 0.13}, x=at, y=place("from", scale=scale), y2="to"),
        layer("line", [{"at": e, "to": e} for e in ends], {"color": INK, "strokeWidth": 1.5}, x=at, y=to),
    ]


def _named(labels: list[str], width: int) -> tuple[list[str], list[tuple[str, str]]]:
    """What stands beside each dot, and what the key says of it: on a phone, and where they are many, a number."""
    if width > NARROW and len(labels) <= MOST_NAMES:
        return labels, []
    return [str(i) for i, _ in enumerate(labels, 1)], [("text", f"{i} {label}") for i, label in enumerate(labels, 1)]


def _framed(layers: list[dict], said: list[Said], key: list[tuple[str, str]], unit: str, width: int, height: float) -> dict:
    """Layers with what is said in the plot, and the unit of y and the key over it, the key's words one after another."""
    lines = [{0: 0.0}, *chart_layout.flowed(dict(enumerate(text for _, text in key)), width - 8, FONT_PX)]
    places = [(4 - LEFT + x, -18.0 * (len(lines) - i)) for i, line in enumerate(lines) for x in line.values()]
    over = [(*words, *at) for words, at in zip([("muted", unit), *key], places, strict=True)]
    padding = {"left": LEFT, "right": RIGHT, "top": 18 * len(lines) + 12, "bottom": BOTTOM}
    return spec([*layers, *labels([*said, *over])], width - LEFT - RIGHT, height, padding)


def scatter(rows: list[dict], width: int) -> dict:
    """Measured against predicted rate; rows as `charts.predicted_scatter`."""
    seen = np.array([(v["predicted_tok_s"], v["measured_tok_s"]) for v in rows], dtype=float)
    ends = [float(seen.min() / 1.3), float(seen.max() * 1.3)]
    plot = width - LEFT - RIGHT
    x, y = _x("predicted_tok_s", ends, "predicted, chip never seen [tok/s]"), _y("measured_tok_s", ends)
    low, high = (float(np.median([v[name] / v["predicted_tok_s"] for v in rows])) for name in ("low80_tok_s", "high80_tok_s"))
    layers = _agreement(ends, low, high)
    shown = told(chip="chip", model="model", quant="format", test="test", predicted_tok_s="predicted [tok/s]|,.1f",
                 low80_tok_s="interval from|,.1f", high80_tok_s="interval to|,.1f", measured_tok_s="measured [tok/s]|,.1f")  # fmt: skip
    for inside, kind, mark in ((True, "circle", {"opacity": 0.45, "size": 26, "color": RUST}),
                               (False, "point", {"opacity": 1, "size": 34, "stroke": RUST, "fill": COLOURS["paper"], "strokeWidth": 1.5})):  # fmt: skip
        if dots := [v for v in rows if v["inside"] == inside]:
            layers.append(layer(kind, dots, mark, x=x, y=y, tooltip=shown))
    height = min(plot, 420)
    named = [i for i, v in enumerate(rows) if v["number"]]
    everywhere = _pixels(seen.tolist(), ends, ends, plot, height)
    places = [everywhere[i] for i in named]
    texts = [rows[i]["number"] for i in named]
    found = chart_layout.beside([[at] for at in places], texts, [chart_layout.boxed(everywhere, 3)], plot, height, FONT_PX)
    for i, (left, middle), at in zip(named, found, places, strict=True):  # each at its dot, so that it moves with it
        beside = {"dx": round(left - at[0], 1), "dy": round(middle - at[1], 1)}
        style = {"color": COLOURS["text"], "align": "left", "baseline": "middle", "fontSize": FONT_PX, **beside}
        layers.append(layer("text", [rows[i]], style, x=x, y=y, text={"field": "number", "type": "nominal"}))
    key = [("measured", "● in its interval"), ("measured", "○ outside"), ("predicted", "— predicted = measured"), ("predicted", "■ 80\u202f% interval, median")]
    return _framed(layers, [], key, "measured [tok/s]", width, height)


def inked(rows: list[dict], width: int) -> dict:
    """Measured against inked rates; rows as `charts.inked_scatter`."""
    values = [{**r, "at": (r["predicted_low"] * r["predicted_high"]) ** 0.5 if r["predicted"] is None else r["predicted"]} for r in rows]
    seen = [v for r in values for v in (r["at"], r["predicted_low"], r["predicted_high"], r["measured"] - (r["sigma"] or 0), r["measured"] + (r["sigma"] or 0)) if v is not None and v > 0]
    ends = [min(seen) / 1.7, max(seen) * 1.7]
    values = _bar(values, ends[0])
    plot = width - LEFT - RIGHT
    height = min(plot, 360)
    x, y, scale = _x("at", ends, "inked [tok/s]"), _y("measured", ends), log(*ends)
    tolerance = rows[0]["tolerance"]
    spans = having(values, "predicted_low")
    shown = told(quantity="quantity", as_written="as inked", measured="measured [tok/s]|,.2f", sigma="σ [tok/s]|,.2f", verdict="verdict")
    layers = [
        *_agreement(ends, 1 - tolerance, 1 + tolerance),
        layer("rule", spans, SPAN, x=place("predicted_low", scale=scale), x2="predicted_high", y=y),
        layer("rule", values, {"color": RUST, "strokeWidth": 2}, x=x, y=place("from", scale=scale), y2="to"),
        layer("circle", values, DOT, x=x, y=y, tooltip=shown),
    ]

    def pixels(field: str, rows: list[dict]) -> list[Point]:
        return _pixels([(r[field], r["measured"]) for r in rows], ends, ends, plot, height)

    places = pixels("at", values)
    lines = [(0, height), (plot, 0)], *map(list, zip(pixels("predicted_low", spans), pixels("predicted_high", spans), strict=True))
    blocked = [chart_layout.dotted(*lines), chart_layout.boxed(places, 5)]
    names, listed = _named([v["label"] for v in values], width)
    said = _labelled([([at], text, "text") for at, text in zip(places, names, strict=True)], blocked, plot, height)
    key = [("measured", "● measured ± σ"), ("predicted", "— inked = measured"), ("predicted", f"■ ± {100 * tolerance:.0f}\u202f%"), *listed]
    return _framed(layers, said, key, "measured [tok/s]", width, height)


def roofline(rows: list[dict], width: int) -> dict:
    """Both roofs, and what prefill and decode reached under them; rows as `charts.roofline`."""
    peak_flops_s = rows[0]["peak_flops_s"]
    rates = [r["measured_flops_s"] for r in rows]
    scale, unit = (1e12, "TFLOP/s") if max([*rates, peak_flops_s or 0]) >= 1e12 else (1e9, "GFLOP/s")
    bandwidth, peak = rows[0]["bandwidth_bytes_s"] / 1e9, peak_flops_s and peak_flops_s / scale
    slant = bandwidth * 1e9 / scale  # [unit a FLOP/B]
    values = [{**v, **{name: v[f"{name}_flops_s"] and v[f"{name}_flops_s"] / scale for name in ("measured", "sigma", "predicted", "predicted_low", "predicted_high")}} for v in rows]
    reached = [v[name] for v in values for name in ("measured", "predicted", "predicted_low", "predicted_high") if v[name] is not None]
    ridge = peak and peak / slant  # None where no compute roof is known
    at = [*(v["flops_per_byte"] for v in values), *([ridge] if ridge else [])]
    plot = width - LEFT - RIGHT
    x_ends = [min(at) / 3, max(at) * 3]
    names, listed = _named([v["label"] for v in values], width)
    room = min(chart_layout.CHARACTER * FONT_PX * max(map(len, names)) + 14, 0.45 * plot)
    x_ends[1] = max(x_ends[1], x_ends[0] * (max(at) / x_ends[0]) ** (plot / (plot - room)))  # the last label stands right of its dot
    high = max([*reached, peak or 0]) * 3
    y_ends = [min(min(reached), slant * x_ends[0]) / 1.5, high]
    values = _bar(values, y_ends[0])
    height = min(plot, 330)
    x, y, y_scale = _x("flops_per_byte", x_ends, "FLOPs per byte read"), _y("measured", y_ends), log(*y_ends)

    def pixels(points: list[Point]) -> list[Point]:
        return _pixels(points, x_ends, y_ends, plot, height)

    def known(field: str) -> list[Point]:
        return pixels([(v["flops_per_byte"], v[field]) for v in having(values, field)])

    def line(points: list[Point]) -> dict:
        style = {"color": COLOURS["roof"], "strokeWidth": 1.5, "strokeDash": [6, 4]}
        return layer("line", [{"flops_per_byte": a, "measured": b} for a, b in points], style, x=x, y=y)

    top = min(ridge, x_ends[1]) if ridge else min(x_ends[1], high / slant)
    slope = [(x_ends[0], slant * x_ends[0]), (top, slant * top)]
    flat = [(ridge, peak), (x_ends[1], peak)] if ridge else []
    shown = told(label="what", flops_per_byte="FLOPs per byte|,.2f", measured=f"measured [{unit}]|,.3~f", sigma=f"σ [{unit}]|,.3~f")
    inked_there = told(label="what", predicted=f"inked [{unit}]|,.3~f")
    layers = [
        *(line(part) for part in (slope, flat) if part),
        layer("rule", having(values, "predicted_low"), SPAN, x=x, y=place("predicted_low", scale=y_scale), y2="predicted_high"),
        hollow(having(values, "predicted"), x=x, y=place("predicted", scale=y_scale), tooltip=inked_there),
        layer("rule", values, {"color": RUST, "strokeWidth": 2}, x=x, y=place("from", scale=y_scale), y2="to"),
        layer("circle", values, DOT, x=x, y=y, tooltip=shown),
    ]
    places, inked, roofs = known("measured"), known("predicted"), [pixels(slope), pixels(flat)]
    spans = map(list, zip(known("predicted_low"), known("predicted_high"), strict=True))
    blocked = [chart_layout.boxed(places, 5), chart_layout.boxed(inked, 6), chart_layout.dotted(*filter(None, roofs), *spans)]
    around = [([at], text, "text") for at, text in zip(places, names, strict=True)]
    for ends, text in zip(roofs, (f"memory roof {bandwidth:,.4g} GB/s", f"compute roof {peak or 0:,.4g} {unit}"), strict=True):
        if ends:
            (x1, y1), (x2, y2) = ends
            around.append(([(x1 + share * (x2 - x1), y1 + share * (y2 - y1)) for share in ALONG], text, "muted"))
    said = _labelled(around, blocked, plot, height)
    key = [("measured", "● measured ± σ"), *([("predicted", "○ inked")] if inked else []), *listed]
    return _framed(layers, said, key, unit, width, height)


def _pixels(points: Sequence[Point], x_ends: list[float], y_ends: list[float], plot: float, height: float) -> list[Point]:
    """Where points lie in a plot of two log axes [px]."""
    across, up = chart_layout.on_log((x for x, _ in points), x_ends, plot), chart_layout.on_log((y for _, y in points), y_ends, height)
    return [(x, height - y) for x, y in zip(across, up, strict=True)]


def _labelled(around: list[tuple[list[Point], str, str]], blocked: list[list[Point]], plot: float, height: float) -> list[Said]:
    """Words (where they may stand, text, colour) beside their places, clear of what is drawn."""
    found = chart_layout.beside([place for place, _, _ in around], [text for _, text, _ in around], blocked, plot, height, FONT_PX)
    return [(colour, text, *at) for (_, text, colour), at in zip(around, found, strict=True)]
