"""Horizontal charts of many machines at once, and of one machine's two backends."""

from __future__ import annotations

from collections.abc import Callable

import altair as alt
import numpy as np
import pandas as pd

from macros import chart_layout
from macros.chart_kit import told
from macros.chart_rows import stacked
from macros.chart_svg import COLOURS

INK, RUST, ROOF = COLOURS["predicted"], COLOURS["measured"], COLOURS["roof"]


def shares(rows: pd.DataFrame, width: int) -> dict:
    """Share of the memory roof by format; rows as `charts.format_shares`."""
    ends = max(1.0, float(np.nanmax(rows[["high", "own"]].to_numpy(dtype=float)))) * 1.05
    ticks = [t for t in chart_layout.ticks_from_zero(ends) if t <= ends]
    x = {"scale": alt.Scale(domain=[0, ends], nice=False), "axis": alt.Axis(values=ticks, title="share of the memory roof", format=".0%")}
    return _spread(rows, width, x, ROOF, lambda m: f"{100 * m:.0f}\u202f%", [("measured", "● this machine"), ("measured", "■ public rows"), ("muted", "¦ roof")])


def residuals(rows: pd.DataFrame, width: int) -> dict:
    """Measured over predicted by class; rows as `charts.residual_spread`."""
    seen = rows[["low", "high"]].to_numpy(dtype=float)
    ends = [float(min(np.nanmin(seen), 0.9) / 1.1), float(max(np.nanmax(seen), 1.1) * 1.1)]
    axis = alt.Axis(values=[t for t in chart_layout.LOG_TICKS if ends[0] <= t <= ends[1]], title="measured ÷ predicted", format=",.2~f")
    x = {"scale": alt.Scale(type="log", domain=ends, nice=False), "axis": axis}
    return _spread(rows, width, x, INK, lambda m: f"× {m:.2f}", [("measured", "■ measured"), ("predicted", "¦ predicted = 1")])


def _spread(rows: pd.DataFrame, width: int, x: dict, one: str, middle: Callable[[float], str], key: list[tuple[str, str]]) -> dict:
    """The middle half of each row thick, its middle eighty per cent thin, a dot where one machine lies."""
    frame = rows.assign(one=1.0)
    if "own" in rows:
        frame["from"], frame["to"] = rows["own"] - rows["own_sigma"].fillna(0), rows["own"] + rows["own_sigma"].fillna(0)
    said = [f"{n:,.0f} rows, median {middle(m)}" for n, m in zip(rows["n"], rows["median"], strict=True)]
    shown = told(label="what", n="rows|,.0f", low="10th percentile|.3f", q1="quarter|.3f", median="median|.3f", q3="three quarters|.3f", high="90th percentile|.3f")

    def layers(at: Callable[[str], alt.Chart]) -> list:
        line = {"y": alt.Y("top:Q", scale=None), "y2": "bottom:Q"}
        found = [
            at("low").mark_rule(color=RUST, strokeWidth=2, strokeOpacity=0.45).encode(x2="high:Q"),
            at("q1").mark_rule(color=RUST, strokeWidth=9, strokeOpacity=0.45).encode(x2="q3:Q", tooltip=shown),
            at("median").mark_rule(color=RUST, strokeWidth=2).encode(**line),
            at("one").mark_rule(color=one, strokeWidth=1.5, strokeDash=[4, 3]).encode(**line),
        ]
        if "own" in rows and rows["own"].notna().any():
            found += [at("from").mark_rule(color=RUST, strokeWidth=2).encode(x2="to:Q"),
                      at("own").mark_circle(color=RUST, size=60, opacity=1).encode(tooltip=told(label="what", own="this machine|.3f", own_sigma="σ|.3f"))]  # fmt: skip
        return found

    return stacked(rows["label"], said, frame, width, x, layers, key)


def backends(rows: pd.DataFrame, width: int) -> dict:
    """CPU over GPU beside the words inked for it; rows as `charts.backend_ratios`."""
    sigma = rows["sigma"].fillna(0)
    top = max(1.0, float((rows["measured"] + sigma).max()), float(rows["high"].replace(np.inf, 0).max()))
    ticks = chart_layout.ticks_from_zero(top)
    frame = rows.assign(**{"from": rows["measured"] - sigma, "to": rows["measured"] + sigma, "one": 1.0, "until": rows["high"].clip(upper=ticks[-1])})
    x = {"scale": alt.Scale(domain=[0, ticks[-1]], nice=False), "axis": alt.Axis(values=ticks, title="CPU ÷ GPU", format=",.2~f")}
    said = [f"“{word}”: × {m:.2f}" for m, word in zip(rows["measured"], rows["as_written"], strict=True)]

    def layers(at: Callable[[str], alt.Chart]) -> list:
        dashed = {"color": ROOF, "strokeWidth": 1.5, "strokeDash": [4, 3]}
        return [
            at("low").mark_rule(color=INK, strokeWidth=9, strokeOpacity=0.35).encode(x2="until:Q"),
            at("one").mark_rule(**dashed).encode(y=alt.Y("top:Q", scale=None), y2="bottom:Q"),
            at("from").mark_rule(color=RUST, strokeWidth=2).encode(x2="to:Q"),
            at("measured").mark_circle(color=RUST, size=60, opacity=1).encode(
                tooltip=told(quantity="what", as_written="inked", measured="measured|.3f", sigma="σ|.3f", verdict="verdict")),
        ]

    return stacked(rows["quantity"], said, frame, width, x, layers, [("predicted", "■ inked words"), ("measured", "● measured ± σ"), ("muted", "¦ as the GPU")])
