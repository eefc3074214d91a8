"""Charts on two log axes: predicted against measured, and the roofline."""

from __future__ import annotations

import math

import altair as alt
import numpy as np
import pandas as pd

from macros import chart_layout
from macros.chart_kit import FONT_PX, NARROW, chart, hollow, spec, told, words
from macros.chart_svg import COLOURS

MOST_NAMES = 6  # labels beside dots; more would hide each other
LEFT, RIGHT, BOTTOM = 64, 16, 46  # [px] around the plot
INK, RUST = COLOURS["predicted"], COLOURS["measured"]


def _log(ends: list[float]) -> alt.Scale:
    return alt.Scale(type="log", domain=ends, nice=False)


def _x(field: str, ends: list[float], title: str) -> alt.X:
    return alt.X(f"{field}:Q", scale=_log(ends)).axis(values=chart_layout.log_ticks(*ends), title=title, format=",~g")


def _y(field: str, ends: list[float]) -> alt.Y:
    return alt.Y(f"{field}:Q", scale=_log(ends)).axis(values=chart_layout.log_ticks(*ends), title=None, format=",~g")


def _agreement(ends: list[float], low: float, high: float) -> list[alt.Chart]:
    """The line where predicted and measured agree, and the band between two shares of it."""
    corners = chart(chart_layout.band(ends, low, high)).encode(x=alt.X("at:Q", scale=_log(ends)))
    line = chart([{"at": e, "to": e} for e in ends]).mark_line(color=INK, strokeWidth=1.5)
    return [
        corners.mark_area(color=INK, opacity=0.13).encode(y=alt.Y("from:Q", scale=_log(ends)), y2="to:Q"),
        line.encode(x=alt.X("at:Q", scale=_log(ends)), y=alt.Y("to:Q", scale=_log(ends))),
    ]


def _named(labels: list[str], width: int) -> tuple[list[str], list[tuple[str, str]]]:
    """What stands beside each dot, and what the key says of it: on a phone, and where they are many, a number."""
    if width > NARROW and len(labels) <= MOST_NAMES:
        return labels, []
    return [str(i) for i, _ in enumerate(labels, 1)], [("text", f"{i} {label}") for i, label in enumerate(labels, 1)]


def _framed(layers: list, key: list[tuple[str, str]], unit: str, width: int, height: float) -> dict:
    """Layers with the unit of y and the key over the plot, the key's words one after another."""
    lines = [{0: 0.0}, *chart_layout.flowed(dict(enumerate(text for _, text in key)), width - 8, FONT_PX)]
    over = [("muted", unit), *key]
    texts, first = [words([{"text": unit, "x": 4 - LEFT, "y": -18.0 * len(lines)}], "muted")], 1
    for i, line in enumerate(lines[1:], 1):
        texts += [words([{"text": over[first + n][1], "x": 4 - LEFT + x, "y": -18.0 * (len(lines) - i)}], over[first + n][0]) for n, x in enumerate(line.values())]
        first += len(line)
    padding = {"left": LEFT, "right": RIGHT, "top": 18 * len(lines) + 12, "bottom": BOTTOM}
    return spec([*layers, *texts], width - LEFT - RIGHT, height, padding)


def scatter(rows: pd.DataFrame, width: int) -> dict:
    """Measured against predicted rate; rows as `charts.predicted_scatter`."""
    seen = rows[["predicted_tok_s", "measured_tok_s"]].to_numpy(dtype=float)
    ends = [float(seen.min() / 1.3), float(seen.max() * 1.3)]
    plot = width - LEFT - RIGHT
    x, y = _x("predicted_tok_s", ends, "predicted, chip never seen [tok/s]"), _y("measured_tok_s", ends)
    low, high = ((rows[name] / rows["predicted_tok_s"]).median() for name in ("low80_tok_s", "high80_tok_s"))
    layers = _agreement(ends, low, high)
    shown = told(chip="chip", model="model", quant="format", test="test", predicted_tok_s="predicted [tok/s]|,.1f",
                 low80_tok_s="interval from|,.1f", high80_tok_s="interval to|,.1f", measured_tok_s="measured [tok/s]|,.1f")  # fmt: skip
    for inside, mark in ((True, {"opacity": 0.45, "size": 26, "color": RUST}),
                         (False, {"opacity": 1, "size": 34, "stroke": RUST, "fill": COLOURS["paper"], "strokeWidth": 1.5})):  # fmt: skip
        dots = rows[rows["inside"] == inside]
        if len(dots):
            base = chart(dots).encode(x=x, y=y, tooltip=shown)
            layers.append(base.mark_circle(**mark) if inside else base.mark_point(**mark))
    height = min(plot, 420)
    named = rows[rows["number"] != ""]
    everywhere = np.column_stack([chart_layout.on_log(seen[:, 0], ends, plot), height - chart_layout.on_log(seen[:, 1], ends, height)])
    places = everywhere[rows["number"] != ""]
    found = chart_layout.beside([place[None] for place in places], named["number"].tolist(), [chart_layout.boxed(everywhere, 0, 3)], plot, height, FONT_PX)
    for i, ((left, middle), place) in enumerate(zip(found, places, strict=True)):  # each at its dot, so that it moves with it
        beside = {"dx": round(left - place[0], 1), "dy": round(middle - place[1], 1)}
        number = chart(named.iloc[i : i + 1]).mark_text(color=COLOURS["text"], align="left", baseline="middle", fontSize=FONT_PX, **beside)
        layers.append(number.encode(x=x, y=y, text="number:N"))
    key = [("measured", "● in its interval"), ("measured", "○ outside"), ("predicted", "— predicted = measured"), ("predicted", "■ 80\u202f% interval, median")]
    return _framed(layers, key, "measured [tok/s]", width, height)


def inked(rows: pd.DataFrame, width: int) -> dict:
    """Measured against inked rates; rows as `charts.inked_scatter`."""
    frame = rows.assign(at=rows["predicted"].fillna((rows["predicted_low"] * rows["predicted_high"]) ** 0.5))
    frame["from"], frame["to"] = frame["measured"] - frame["sigma"].fillna(0), frame["measured"] + frame["sigma"].fillna(0)
    seen = frame[["at", "predicted_low", "predicted_high", "from", "to"]].to_numpy(dtype=float)
    ends = [float(np.nanmin(seen) / 1.7), float(np.nanmax(seen) * 1.7)]
    plot = width - LEFT - RIGHT
    height = min(plot, 360)
    x, y = _x("at", ends, "inked [tok/s]"), _y("measured", ends)
    tolerance = float(rows["tolerance"].iloc[0])
    layers = _agreement(ends, 1 - tolerance, 1 + tolerance)
    bar = chart(frame.dropna(subset=["predicted_low"])).mark_rule(color=INK, strokeWidth=7, strokeOpacity=0.35)
    dots = chart(frame)
    shown = told(quantity="quantity", as_written="as inked", measured="measured [tok/s]|,.2f", sigma="σ [tok/s]|,.2f", verdict="verdict")
    layers += [
        bar.encode(x=alt.X("predicted_low:Q", scale=_log(ends)), x2="predicted_high:Q", y=y),
        dots.mark_rule(color=RUST, strokeWidth=2).encode(x=x, y=alt.Y("from:Q", scale=_log(ends)), y2="to:Q"),
        dots.mark_circle(color=RUST, size=60, opacity=1).encode(x=x, y=y, tooltip=shown),
    ]
    places = np.column_stack([chart_layout.on_log(frame["at"], ends, plot), height - chart_layout.on_log(frame["measured"], ends, height)])
    blocked = [chart_layout.along(np.array([[0, height], [plot, 0]])), chart_layout.boxed(places, 0, 5)]
    spans = frame.dropna(subset=["predicted_low"])
    across = [chart_layout.on_log(spans[end], ends, plot) for end in ("predicted_low", "predicted_high")]
    blocked += [chart_layout.along(np.array([[a, y], [b, y]])) for a, b, y in zip(*across, places[frame["predicted_low"].notna(), 1], strict=True)]
    names, listed = _named(rows["label"].tolist(), width)
    layers += _labelled([(place[None], text, "text") for place, text in zip(places, names, strict=True)], blocked, plot, height)
    key = [("measured", "● measured ± σ"), ("predicted", "— inked = measured"), ("predicted", f"■ ± {100 * tolerance:.0f}\u202f%"), *listed]
    return _framed(layers, key, "measured [tok/s]", width, height)


def roofline(rows: pd.DataFrame, width: int) -> dict:
    """Both roofs, and what prefill and decode reached under them; rows as `charts.roofline`."""
    peak = float(rows["peak_flops_s"].iloc[0])
    scale, unit = (1e12, "TFLOP/s") if np.nanmax([peak, rows["measured_flops_s"].max()]) >= 1e12 else (1e9, "GFLOP/s")
    bandwidth, peak = float(rows["bandwidth_bytes_s"].iloc[0]) / 1e9, peak / scale
    slant = bandwidth * 1e9 / scale  # [unit a FLOP/B]
    frame = rows.assign(**{name: rows[f"{name}_flops_s"] / scale for name in ("measured", "sigma", "predicted", "predicted_low", "predicted_high")})
    frame["from"], frame["to"] = frame["measured"] - frame["sigma"].fillna(0), frame["measured"] + frame["sigma"].fillna(0)
    reached = frame[["measured", "predicted", "predicted_low", "predicted_high"]].to_numpy(dtype=float)
    ridge = peak / slant  # NaN where no compute roof is known
    at = [v for v in (*frame["flops_per_byte"], ridge) if math.isfinite(v)]
    plot = width - LEFT - RIGHT
    x_ends = [min(at) / 3, max(at) * 3]
    names, listed = _named(rows["label"].tolist(), width)
    room = min(chart_layout.CHARACTER * FONT_PX * max(map(len, names)) + 14, 0.45 * plot)
    x_ends[1] = max(x_ends[1], x_ends[0] * (max(at) / x_ends[0]) ** (plot / (plot - room)))  # the last label stands right of its dot
    high = float(np.nanmax([*reached.ravel(), peak])) * 3
    y_ends = [min(float(np.nanmin(reached)), slant * x_ends[0]) / 1.5, high]
    height = min(plot, 330)
    x, y = _x("flops_per_byte", x_ends, "FLOPs per byte read"), _y("measured", y_ends)

    def pixels(points: list[tuple[float, float]] | np.ndarray) -> np.ndarray:
        points = np.array(points, dtype=float).reshape(-1, 2)
        return np.column_stack([chart_layout.on_log(points[:, 0], x_ends, plot), height - chart_layout.on_log(points[:, 1], y_ends, height)])

    def line(points: list[tuple[float, float]], **mark) -> alt.Chart:
        values = [{"flops_per_byte": a, "measured": b} for a, b in points]
        return chart(values).mark_line(color=COLOURS["roof"], strokeWidth=1.5, **mark).encode(x=x, y=y)

    top = min(ridge, x_ends[1]) if math.isfinite(ridge) else min(x_ends[1], high / slant)
    slope = [(x_ends[0], slant * x_ends[0]), (top, slant * top)]
    flat = [(ridge, peak), (x_ends[1], peak)] if math.isfinite(ridge) else []
    layers = [line(part, strokeDash=[6, 4]) for part in (slope, flat) if part]
    ink = chart(frame.dropna(subset=["predicted"])).encode(x=x, y=alt.Y("predicted:Q", scale=_log(y_ends)))
    span = chart(frame.dropna(subset=["predicted_low"])).mark_rule(color=INK, strokeWidth=7, strokeOpacity=0.35)
    dots = chart(frame)
    shown = told(label="what", flops_per_byte="FLOPs per byte|,.2f", measured=f"measured [{unit}]|,.3~f", sigma=f"σ [{unit}]|,.3~f")
    layers += [
        span.encode(x=x, y=alt.Y("predicted_low:Q", scale=_log(y_ends)), y2="predicted_high:Q"),
        hollow(ink.encode(tooltip=told(label="what", predicted=f"inked [{unit}]|,.3~f"))),
        dots.mark_rule(color=RUST, strokeWidth=2).encode(x=x, y=alt.Y("from:Q", scale=_log(y_ends)), y2="to:Q"),
        dots.mark_circle(color=RUST, size=60, opacity=1).encode(x=x, y=y, tooltip=shown),
    ]
    places = pixels(frame[["flops_per_byte", "measured"]].to_numpy())
    hollows = pixels(frame[["flops_per_byte", "predicted"]].dropna().to_numpy())
    blocked = [chart_layout.boxed(dots, 0, radius) for dots, radius in ((places, 5), (hollows, 6)) if len(dots)]
    blocked += [chart_layout.along(pixels(part)) for part in (slope, flat) if part]
    spans = frame.dropna(subset=["predicted_low"])
    up = (pixels(spans[["flops_per_byte", end]].to_numpy()) for end in ("predicted_low", "predicted_high"))
    blocked += [chart_layout.along(np.array(pair)) for pair in zip(*up, strict=True)]
    labels = [(place[None], text, "text") for place, text in zip(places, names, strict=True)]
    for part, text in ((slope, f"memory roof {bandwidth:,.4g} GB/s"), (flat, f"compute roof {peak:,.4g} {unit}")):
        if part:
            ends = pixels(part)
            labels.append((ends[0] + np.array([[share] for share in (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8)]) * (ends[1] - ends[0]), text, "muted"))
    layers += _labelled(labels, blocked, plot, height)
    key = [("measured", "● measured ± σ"), *([("predicted", "○ inked")] if frame["predicted"].notna().any() else []), *listed]
    return _framed(layers, key, unit, width, height)


def _labelled(labels: list[tuple[np.ndarray, str, str]], blocked: list[np.ndarray], plot: float, height: float) -> list[alt.Chart]:
    """Labels (where it may stand, text, colour) beside their places, clear of what is drawn."""
    found = chart_layout.beside([place for place, _, _ in labels], [text for _, text, _ in labels], blocked, plot, height, FONT_PX)
    return [words([{"text": text, "x": x, "y": y}], colour) for (_, text, colour), (x, y) in zip(labels, found, strict=True)]
