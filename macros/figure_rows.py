"""The rows of the figures that place results under roofs and against ink."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from macros import compare, predict, rows
from macros.compare import Score, rate
from macros.inks import DIRECTIONS
from macros.labdata import Lab
from macros.records import Result, Run

UBATCH = 512  # llama.cpp's default, where a record does not tell: tokens that share one read of the weights
PERCENTILES = {"low": 0.1, "q1": 0.25, "median": 0.5, "q3": 0.75, "high": 0.9}


def on_cpu(result: Result) -> bool:
    """Whether the CPU alone computed a result."""
    return result.backend.split(",")[0].strip() in ("CPU", "BLAS")


def roofline(lab: Lab, runs: list[Run], scores: list[Score]) -> list[dict]:
    """What prefill and decode reached at depth 0 on the roofline, first order, and where the ink had put them.

    Keys: label, test, model, run, flops_per_byte, measured_flops_s, sigma_flops_s, predicted_flops_s,
    predicted_low_flops_s, predicted_high_flops_s (NaN where nothing was inked), bandwidth_bytes_s,
    peak_flops_s (NaN: not known). A CPU's results are left out beside a GPU's: its roofs are others.
    """
    found = rows.at_rest(lab, runs)
    if not all(on_cpu(r) for _, r in found):
        found = [(run, r) for run, r in found if not on_cpu(r)]
    inked = [s.prediction for s in scores if s.prediction.unit == "tok/s" and s.prediction.kind in ("point", "interval", "ceiling")]
    placed = []
    for run, r in found:
        machine, card, m = lab.machines[run.machine], lab.models[r.model], rate(r)
        assert m is not None
        flops = 2 * predict.token_params(card)
        tokens = 1 if r.n_gen else min(r.n_prompt, r.n_ubatch or UBATCH)
        about = [p for p in inked if (p.of.test, p.of.model, p.of.depth) == (r.test, r.model, 0)]
        peak = machine.specs.peak_compute

        def first(field: str) -> float:
            return next((getattr(p, field) * flops for p in about if getattr(p, field) is not None), math.nan)

        placed.append(
            {
                "label": f"{'decode' if r.n_gen else 'prefill'}, {card.name.removesuffix(', synthetic weights')}",
                "test": r.test,
                "model": r.model,
                "run": run.id,
                "flops_per_byte": tokens * flops / predict.step_bytes(card),
                "measured_flops_s": m.mean * flops,
                "sigma_flops_s": m.sigma * flops,
                "predicted_flops_s": first("value"),
                "predicted_low_flops_s": first("low"),
                "predicted_high_flops_s": first("high"),
                "bandwidth_bytes_s": machine.specs.memory_bandwidth.si,
                "peak_flops_s": peak.si if peak else math.nan,
            }
        )
    return placed


def inked_rates(scores: list[Score]) -> list[dict]:
    """The rates of an ink that were measured. Keys: those of `rows.ink`, label and tolerance (what counts as held, fraction)."""
    kept = [s for s in scores if s.measured and s.prediction.unit == "tok/s" and s.prediction.kind in ("point", "interval", "ceiling")]
    quantities = [(s.prediction.quantity, s.prediction.kind == "ceiling") for s in kept]
    labels = [f"{words} (ceiling)" if bound and "ceiling" not in words else words for words, bound in quantities]
    return [{**row, "label": label, "tolerance": compare.TOLERANCE} for row, label in zip(rows.ink(kept), labels, strict=True)]


def without_gpu(lab: Lab, scores: list[Score]) -> list[dict]:
    """The directions an ink gave for the CPU alone over the GPU. Keys: those of `rows.ink`, with low and high (what the words allow)."""
    found = []
    for s in scores:
        p = s.prediction
        if s.measured is None or p.kind != "direction" or p.over is None:
            continue
        measured = compare.newest(lab.runs_on(s.ink))
        hits = [compare.find(measured, target) for target in (p.of, p.over)]
        if all(hits) and on_cpu(hits[0][1]) and not on_cpu(hits[1][1]):  # type: ignore[index]
            found.append(s)
    limits = [DIRECTIONS[str(s.prediction.direction)] for s in found]
    return [{**row, "low": low, "high": high} for row, (low, high) in zip(rows.ink(found), limits, strict=True)]


def spread(values: Iterable[float], by: Iterable[str], least: int) -> list[dict]:
    """How values lie within classes of at least so many rows, in order of their names. Keys: label, n, low, q1, median, q3, high (percentiles)."""
    classes: dict[str, list[float]] = {}
    for value, name in zip(values, by, strict=True):
        classes.setdefault(name, []).append(value)
    return [
        {"label": name, "n": len(part), **dict(zip(PERCENTILES, np.quantile(part, list(PERCENTILES.values())).tolist(), strict=True))}
        for name, part in sorted(classes.items())
        if len(part) >= least
    ]
