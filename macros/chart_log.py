"""Charts on two log axes: predicted against measured, and the roofline."""

from __future__ import annotations

import math

import altair as alt
import numpy as np
import pandas as pd

from macros import chart_layout
from macros.chart_kit import FONT_PX, NARROW, chart, hollow, spec, told, words
from macros.chart_svg import COLOURS

PADDING = {"left": 64, "right": 16, "top": 46, "bottom": 46}
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


def scatter(rows: pd.DataFrame, width: int) -> dict:
    """Measured against predicted rate; rows as `charts.predicted_scatter`."""
    seen = rows[["predicted_tok_s", "measured_tok_s"]].to_numpy(dtype=float)
    ends = [float(seen.min() / 1.3), float(seen.max() * 1.3)]
    plot = width - PADDING["left"] - PADDING["right"]
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
    named = rows[rows["number"] != ""]
    if len(named):
        numbers = chart(named).mark_text(color=COLOURS["text"], align="left", dx=7, dy=1, fontSize=FONT_PX, baseline="middle")
        layers.append(numbers.encode(x=x, y=y, text="number:N"))
    layers += _key(["measured [tok/s]", "— predicted = measured   ▒ 80\u202f% interval, median"], "● in its own interval   ○ outside", width)
    return spec(layers, plot, min(plot, 420), PADDING)


def _key(first: list[str], second: str, width: int) -> list[alt.Chart]:
    """Two lines over the plot: the axis and the ink's marks, then the measurement's."""
    left = -PADDING["left"] + 4
    if width <= NARROW:
        return [words([{"text": first[0], "x": left, "y": -34}], "muted"),
                words([{"text": first[1], "x": left, "y": -17}], "predicted"),
                words([{"text": second, "x": left, "y": 0}], "measured")]  # fmt: skip
    return [words([{"text": first[0], "x": left, "y": -34}], "muted"),
            words([{"text": second, "x": left, "y": -14}], "measured"),
            words([{"text": first[1], "x": left + 250, "y": -14}], "predicted")]  # fmt: skip


def inked(rows: pd.DataFrame, width: int) -> dict:
    """Measured against inked rates; rows as `charts.inked_scatter`."""
    frame = rows.assign(at=rows["predicted"].fillna((rows["predicted_low"] * rows["predicted_high"]) ** 0.5))
    frame["from"], frame["to"] = frame["measured"] - frame["sigma"].fillna(0), frame["measured"] + frame["sigma"].fillna(0)
    seen = frame[["at", "predicted_low", "predicted_high", "from", "to"]].to_numpy(dtype=float)
    ends = [float(np.nanmin(seen) / 1.7), float(np.nanmax(seen) * 1.7)]
    plot = width - PADDING["left"] - PADDING["right"]
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
    layers += _beside(places, rows["quantity"].tolist(), [chart_layout.along(np.array([[0, height], [plot, 0]]))], plot, height, "text")
    layers += _key(["measured [tok/s]", f"— inked = measured   ▒ ± {100 * tolerance:.0f}\u202f%"], "● measured ± σ", width)
    return spec(layers, plot, height, PADDING)


def roofline(rows: pd.DataFrame, width: int) -> dict:
    """Both roofs, and what prefill and decode reached under them; rows as `charts.roofline`."""
    bandwidth, peak = float(rows["bandwidth_bytes_s"].iloc[0]) / 1e9, float(rows["peak_flops_s"].iloc[0]) / 1e9
    frame = rows.assign(**{name: rows[f"{name}_flops_s"] / 1e9 for name in ("measured", "sigma", "predicted", "predicted_low", "predicted_high")})
    frame["from"], frame["to"] = frame["measured"] - frame["sigma"].fillna(0), frame["measured"] + frame["sigma"].fillna(0)
    reached = frame[["measured", "predicted", "predicted_low", "predicted_high"]].to_numpy(dtype=float)
    ridge = peak / bandwidth  # NaN where no compute roof is known
    at = [v for v in (*frame["flops_per_byte"], ridge) if math.isfinite(v)]
    x_ends = [min(at) / 3, max(at) * 3]
    high = float(np.nanmax([*reached.ravel(), peak])) * 3
    y_ends = [min(float(np.nanmin(reached)), bandwidth * x_ends[0]) / 1.5, high]
    plot = width - PADDING["left"] - PADDING["right"]
    height = min(plot, 330)
    x, y = _x("flops_per_byte", x_ends, "FLOPs per byte read"), _y("measured", y_ends)

    def pixels(points: list[tuple[float, float]] | np.ndarray) -> np.ndarray:
        points = np.array(points, dtype=float).reshape(-1, 2)
        return np.column_stack([chart_layout.on_log(points[:, 0], x_ends, plot), height - chart_layout.on_log(points[:, 1], y_ends, height)])

    def line(points: list[tuple[float, float]], **mark) -> alt.Chart:
        values = [{"flops_per_byte": a, "measured": b} for a, b in points]
        return chart(values).mark_line(color=COLOURS["roof"], strokeWidth=1.5, **mark).encode(x=x, y=y)

    top = min(ridge, x_ends[1]) if math.isfinite(ridge) else min(x_ends[1], high / bandwidth)
    slope = [(x_ends[0], bandwidth * x_ends[0]), (top, bandwidth * top)]
    flat = [(ridge, peak), (x_ends[1], peak)] if math.isfinite(ridge) else []
    layers = [line(part, strokeDash=[6, 4]) for part in (slope, flat) if part]
    ink = chart(frame.dropna(subset=["predicted"])).encode(x=x, y=alt.Y("predicted:Q", scale=_log(y_ends)))
    span = chart(frame.dropna(subset=["predicted_low"])).mark_rule(color=INK, strokeWidth=7, strokeOpacity=0.35)
    dots = chart(frame)
    shown = told(label="what", flops_per_byte="FLOPs per byte|,.2f", measured="measured [GFLOP/s]|,.1f", sigma="σ [GFLOP/s]|,.1f")
    layers += [
        span.encode(x=x, y=alt.Y("predicted_low:Q", scale=_log(y_ends)), y2="predicted_high:Q"),
        hollow(ink.encode(tooltip=told(label="what", predicted="inked [GFLOP/s]|,.1f"))),
        dots.mark_rule(color=RUST, strokeWidth=2).encode(x=x, y=alt.Y("from:Q", scale=_log(y_ends)), y2="to:Q"),
        dots.mark_circle(color=RUST, size=60, opacity=1).encode(x=x, y=y, tooltip=shown),
    ]
    lines = [chart_layout.along(pixels(part)) for part in (slope, flat) if part]
    hollows = pixels(frame[["flops_per_byte", "predicted"]].dropna().to_numpy())
    roofs = [(*_middle(pixels(slope), 0.3), f"memory roof {bandwidth:,.4g} GB/s")]
    if flat:
        roofs.append((*_middle(pixels(flat), 0.5), f"compute roof {peak:,.4g} GFLOP/s"))
    places = pixels(frame[["flops_per_byte", "measured"]].to_numpy())
    blocked = [*lines, chart_layout.boxed(hollows, 0, 6)] if len(hollows) else lines
    layers += _beside(places, rows["label"].tolist(), blocked, plot, height, "text")
    layers += _beside(np.array([r[:2] for r in roofs]), [r[2] for r in roofs], [*blocked, chart_layout.boxed(places, 0, 5)], plot, height, "muted")
    layers += _key(["GFLOP/s", "○ inked" if frame["predicted"].notna().any() else ""], "● measured ± σ", width)
    return spec(layers, plot, height, PADDING)


def _middle(points: np.ndarray, share: float) -> tuple[float, float]:
    (x0, y0), (x1, y1) = points[0], points[-1]
    return x0 + share * (x1 - x0), y0 + share * (y1 - y0)


def _beside(places: np.ndarray, texts: list[str], blocked: list[np.ndarray], plot: float, height: float, colour: str) -> list[alt.Chart]:
    """A label beside each place, clear of what else is drawn."""
    found = chart_layout.beside(places, texts, blocked, plot, height, FONT_PX)
    return [words([{"text": text, "x": left, "y": middle}], colour) for text, (left, middle) in zip(texts, found, strict=True)]
