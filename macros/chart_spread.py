"""Horizontal charts of many machines at once, and of one machine's two backends."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from macros import chart_layout
from macros.chart_kit import DOT, linear, log, records, told
from macros.chart_rows import ACROSS, Marks, stacked
from macros.chart_svg import COLOURS

INK, RUST, ROOF = COLOURS["predicted"], COLOURS["measured"], COLOURS["roof"]


def _known(values: list[dict], *fields: str) -> list[float]:
    return [v[f] for v in values for f in fields if v[f] is not None]


def shares(rows: pd.DataFrame, width: int) -> dict:
    """Share of the memory roof by format; rows as `charts.format_shares`."""
    values = records(rows)
    ends = max(1.0, *_known(values, "high", "own")) * 1.05
    ticks = [t for t in chart_layout.ticks_from_zero(ends) if t <= ends]
    x = {"scale": linear(0, ends), "axis": {"values": ticks, "title": "share of the memory roof", "format": ".0%"}}
    return _spread(values, width, x, ROOF, lambda m: f"{100 * m:.0f}\u202f%", [("measured", "● this machine"), ("measured", "■ public rows"), ("muted", "¦ roof")])


def residuals(rows: pd.DataFrame, width: int) -> dict:
    """Measured over predicted by class; rows as `charts.residual_spread`."""
    values = records(rows)
    seen = _known(values, "low", "high")
    ends = [min(*seen, 0.9) / 1.1, max(*seen, 1.1) * 1.1]
    axis = {"values": [t for t in chart_layout.LOG_TICKS if ends[0] <= t <= ends[1]], "title": "measured ÷ predicted", "format": ",.2~f"}
    return _spread(values, width, {"scale": log(*ends), "axis": axis}, INK, lambda m: f"× {m:.2f}", [("measured", "■ measured"), ("predicted", "¦ predicted = 1")])


def _spread(values: list[dict], width: int, x: dict, one: str, middle: Callable[[float], str], key: list[tuple[str, str]]) -> dict:
    """The middle half of each row thick, its middle eighty per cent thin, a dot where one machine lies."""
    values = [{**v, "one": 1.0, **(_around(v["own"], v["own_sigma"]) if "own" in v else {})} for v in values]
    said = [f"{v['n']:,.0f} rows" if v["median"] is None else f"{v['n']:,.0f} rows, median {middle(v['median'])}" for v in values]
    shown = told(label="what", n="rows|,.0f", low="10th percentile|.3f", q1="quarter|.3f", median="median|.3f", q3="three quarters|.3f", high="90th percentile|.3f")

    def layers(at: Marks) -> list[dict]:
        found = [
            at("rule", "low", {"color": RUST, "strokeWidth": 2, "strokeOpacity": 0.45}, x2="high"),
            at("rule", "q1", {"color": RUST, "strokeWidth": 9, "strokeOpacity": 0.45}, x2="q3", tooltip=shown),
            at("rule", "median", {"color": RUST, "strokeWidth": 2}, **ACROSS),
            at("rule", "one", {"color": one, "strokeWidth": 1.5, "strokeDash": [4, 3]}, **ACROSS),
        ]
        if any(v.get("own") is not None for v in values):
            found += [
                at("rule", "from", {"color": RUST, "strokeWidth": 2}, x2="to"),
                at("circle", "own", DOT, tooltip=told(label="what", own="this machine|.3f", own_sigma="σ|.3f")),
            ]
        return found

    return stacked([v["label"] for v in values], said, values, width, x, layers, key)


def _around(value: float | None, sigma: float | None) -> dict:
    """The ends of an error bar."""
    return {"from": None, "to": None} if value is None else {"from": value - (sigma or 0), "to": value + (sigma or 0)}


def backends(rows: pd.DataFrame, width: int) -> dict:
    """CPU over GPU beside the words inked for it; rows as `charts.backend_ratios`."""
    values = [{**v, **_around(v["measured"], v["sigma"]), "one": 1.0} for v in records(rows)]
    ticks = chart_layout.ticks_from_zero(max(1.0, *_known(values, "to", "high")))
    values = [{**v, "until": ticks[-1] if v["high"] is None else min(v["high"], ticks[-1])} for v in values]  # words without an end: to the axis' end
    x = {"scale": linear(0, ticks[-1]), "axis": {"values": ticks, "title": "CPU ÷ GPU", "format": ",.2~f"}}
    said = [f"“{v['as_written']}”: × {v['measured']:.2f}" for v in values]

    def layers(at: Marks) -> list[dict]:
        return [
            at("rule", "low", {"color": INK, "strokeWidth": 9, "strokeOpacity": 0.35}, x2="until"),
            at("rule", "one", {"color": ROOF, "strokeWidth": 1.5, "strokeDash": [4, 3]}, **ACROSS),
            at("rule", "from", {"color": RUST, "strokeWidth": 2}, x2="to"),
            at("circle", "measured", DOT, tooltip=told(quantity="what", as_written="inked", measured="measured|.3f", sigma="σ|.3f", verdict="verdict")),
        ]

    return stacked([v["quantity"] for v in values], said, values, width, x, layers, [("predicted", "■ inked words"), ("measured", "● measured ± σ"), ("muted", "¦ as the GPU")])
