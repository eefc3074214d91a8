"""The rows behind every table and chart. Every page, figure and CSV is a view of these."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from macros import compare, predict
from macros.cards import Machine
from macros.compare import Measured, Score, rate
from macros.labdata import Lab, LabError
from macros.latency import Latency
from macros.records import IMPORTED, Check, Result, Run
from macros.roofline import achieved_bandwidth_bytes_s

RESAMPLES = 4000  # of a check's pairs


def results(lab: Lab, runs: list[Run]) -> list[dict]:
    """Every test of some runs: setting, statistics recomputed from the samples, conditions.

    Keys: run, experiment, model, weights, test, depth_tokens, backend, n_threads,
    mean_tok_s, sigma_tok_s, n (NaN and 0 where the test failed; None where a log does not tell), load_before, note,
    origin (the instrument, where the run was imported), settings (what was told of the rest).
    """
    weights = {model: lab.models[model].weights for model in {r.model for run in runs for r in run.results}}
    return [_result(run, r, weights[r.model]) for run in runs for r in run.results]


def _result(run: Run, r: Result, weights: str) -> dict:
    m = rate(r) or Measured(math.nan, math.nan, 0)
    note = [f"failed: {r.failed}"] if r.failed else compare.conditions(r, m)
    return {
        "run": run.id,
        "experiment": r.experiment,
        "model": r.model,
        "weights": weights,
        "test": r.test,
        "depth_tokens": r.depth,
        "backend": r.backend,
        "n_threads": r.n_threads,
        "mean_tok_s": m.mean,
        "sigma_tok_s": m.sigma,
        "n": m.n,
        "load_before": r.load_before,
        "note": "; ".join(note),
        "origin": f"imported: {run.instrument.name}" if run.profile == IMPORTED else "",
        "settings": _settings(r),
    }


def _settings(r: Result) -> str:
    """A result's settings in llama-bench's words, what is not told left out."""
    told = {"ngl": r.n_gpu_layers, "threads": r.n_threads, "n_batch": r.n_batch, "n_ubatch": r.n_ubatch, "type_k": r.type_k, "type_v": r.type_v, "fa": r.flash_attn}
    return ", ".join([f"{name} {value}" for name, value in {**told, **r.settings}.items() if value is not None])


def ink(scores: list[Score]) -> list[dict]:
    """An ink, scored, one row a prediction; numbers in the prediction's unit.

    Keys: prediction, quantity, kind, unit, as_written, predicted, predicted_low,
    predicted_high, measured, sigma, n, gap, gap_sigma, verdict, distinguishable, run.
    """
    return [
        {
            "prediction": s.prediction.id,
            "quantity": s.prediction.quantity,
            "kind": s.prediction.kind,
            "unit": s.prediction.unit,
            "as_written": s.prediction.as_written,
            "predicted": s.prediction.value,
            "predicted_low": s.prediction.low,
            "predicted_high": s.prediction.high,
            "measured": s.measured.mean if s.measured else None,
            "sigma": s.measured.sigma if s.measured else None,
            "n": s.measured.n if s.measured else 0,
            "gap": s.gap,
            "gap_sigma": s.gap_sigma,
            "verdict": s.verdict,
            "distinguishable": None if s.distance_sigmas is None else not s.same,
            "run": s.run.id if s.run else None,
        }
        for s in scores
    ]


def anchor(run: Run, result: Result) -> Result | None:
    """The result a depth is anchored on: same test, model and backend at depth 0.

    The experiment's own comes first (it shares the conditions), else any of the run.
    """
    alike = [
        r for r in run.results
        if not r.depth and r.failed is None and (r.test, r.model, r.backend) == (result.test, result.model, result.backend)
    ]  # fmt: skip
    own = [r for r in alike if r.experiment == result.experiment]
    return (own + alike + [None])[0]


def sweep(lab: Lab, run: Run, test: str, model: str, anchor_on: Result | None = None) -> list[dict]:
    """A depth sweep: measured, the first-order prediction anchored at depth 0, and the roof.

    Args:
        test: "pp<N>" or "tg<N>"
        anchor_on: a result at depth 0 of another run, where this run has none

    Keys: run, depth_tokens, step_bytes (decode only), measured_tok_s, sigma_tok_s, predicted_tok_s, roof_tok_s, gap.

    Raises:
        LabError: the run has no such sweep.
    """
    machine, card = lab.machines[run.machine], lab.models[model]
    deep = [r for r in run.results if r.depth and r.failed is None and r.model == model and r.test == test]
    if not deep:
        raise LabError([f"labdata/runs/{run.machine}/{run.id}.yml: results: no depth sweep of {test} with {model}"])
    base = anchor_on or anchor(run, deep[0])
    deep = [r for r in deep if r.experiment == deep[0].experiment]
    base_rate = rate(base) if base else None
    rows = []
    for r in ([base] if base else []) + deep:
        m = rate(r)
        assert m is not None
        ratio, roof = _first_order(machine, card, r)
        predicted = base_rate.mean * ratio if base_rate else math.nan
        rows.append(
            {
                "run": run.id if r is not anchor_on else next(x.id for x in [run, *lab.runs_of(run.machine)] if r in x.results),
                "depth_tokens": r.depth,
                **({"step_bytes": predict.step_bytes(card, r.depth, r.kv_types)} if r.n_gen else {}),
                "measured_tok_s": m.mean,
                "sigma_tok_s": m.sigma,
                "predicted_tok_s": predicted,
                "roof_tok_s": roof,
                "gap": compare.gap(m.mean, predicted),
            }
        )
    return rows


def _first_order(machine: Machine, card: predict.Model, r: Result) -> tuple[float, float]:
    """Ratio to depth 0 (fraction) and roof [tok/s] at a result's depth."""
    if r.n_gen:
        return predict.decode_depth_ratio(card, r.depth, r.kv_types), predict.decode_ceiling_tok_s(machine, card, r.depth, r.kv_types)
    ratio = predict.prefill_depth_ratio(card, r.depth)
    roof = predict.prefill_ceiling_tok_s(machine, card)
    return ratio, roof * ratio if roof else math.nan


def bandwidth(lab: Lab, entries: list[tuple[str, Run, Result]]) -> list[dict]:
    """Bandwidth decode really pulled, first order (rate x bytes per step) [GB/s].

    Keys: label, achieved_gb_s, roof_gb_s, share.
    """
    rows = []
    for label, run, r in entries:
        card, m = lab.models[r.model], rate(r)
        if m is None:
            continue
        read = predict.step_bytes(card, r.depth, r.kv_types)
        achieved = achieved_bandwidth_bytes_s(m.mean, read)
        roof = lab.machines[run.machine].specs.memory_bandwidth.si
        rows.append({"label": label, "achieved_gb_s": achieved / 1e9, "roof_gb_s": roof / 1e9, "share": achieved / roof})
    return rows


def explained(lab: Lab, run: Run, r: Result) -> bool:
    """Whether the machine's roofs say anything about a result.

    Not where a log alone knows the model, prefill and decode share a clock, the clock is not llama-bench's, or several
    devices shared the work; nor, on a log's word, where only part of the layers may have been on the GPU.
    """
    card = lab.models[r.model]
    if card.shape is None or r.mixed or r.n_devices > 1 or run.instrument.protocol != "llama-bench":
        return False
    if run.profile != IMPORTED:
        return True
    on_cpu = bool(run.host.gpus) and r.backend.split(",")[0] in ("CPU", "BLAS")
    return not on_cpu and (r.n_gpu_layers is None or not 0 <= r.n_gpu_layers < card.shape.n_layer)


def at_rest(lab: Lab, runs: list[Run], explained_only: bool = True) -> list[tuple[Run, Result]]:
    """The newest (explained) result at depth 0 of each test, model and backend; a depth sweep's own only where there is no other."""
    swept: dict[tuple, tuple[Run, Result]] = {}
    others: dict[tuple, tuple[Run, Result]] = {}
    for run in runs:
        deep = {r.experiment for r in run.results if r.depth}
        for r in run.results:
            if r.depth == 0 and r.failed is None and (not explained_only or explained(lab, run, r)):
                (swept if r.experiment in deep else others)[r.test, r.model, r.backend] = run, r
    return list((swept | others).values())


def token_work(card: predict.Model, r: Result) -> tuple[float, float]:
    """What a token of a result at depth 0 costs by both models of the work, first order and exact: bytes of a decode step [B],
    FLOPs of a prompt's token [FLOP]."""
    if r.n_gen:
        return predict.step_bytes(card), predict.exact_decode_bytes(card)
    return 2 * predict.token_params(card), predict.exact_prefill_flops_per_token(card, r.n_prompt)


def shares(lab: Lab, resting: list[tuple[Run, Result]]) -> list[dict]:
    """Share of the roof at depth 0 by both models of the work, of what `at_rest` found.

    Keys: run, test, model, backend, rate_tok_s, first_order, exact (fractions; NaN where no compute roof is known).
    """
    found = []
    for run, r in resting:
        machine, card, m = lab.machines[run.machine], lab.models[r.model], rate(r)
        assert m is not None
        roof = machine.specs.memory_bandwidth if r.n_gen else machine.specs.peak_compute
        first, exact = (m.mean * work / roof.si for work in token_work(card, r)) if roof else (math.nan, math.nan)
        found.append({"run": run.id, "test": r.test, "model": r.model, "backend": r.backend, "rate_tok_s": m.mean, "first_order": first, "exact": exact})
    return found


def check(document: Check) -> list[dict]:
    """A check's pairs: medians of both ways [unit of the check], their ratio b / a and its 95 % interval.

    The interval resamples whole pairs (percentile bootstrap, fixed seed), so that a slow minute
    which hit both ways of a pair does not count as a difference between them.

    Keys: test, median_a, median_b, ratio, ratio_low, ratio_high, pairs.
    """
    found = []
    for p in document.pairs:
        a, b, low, high = _resampled(tuple(p.a), tuple(p.b))
        found.append({"test": p.test, "median_a": a, "median_b": b, "ratio": b / a, "ratio_low": low, "ratio_high": high, "pairs": len(p.a)})
    return found


@lru_cache(maxsize=8)  # most checks have as many pairs as another
def _drawn(n: int) -> np.ndarray:
    """How often each of n pairs is in each resample."""
    drawn = np.random.default_rng(0).integers(0, n, (RESAMPLES, n)) + n * np.arange(RESAMPLES)[:, None]
    return np.ascontiguousarray(np.bincount(drawn.ravel(), minlength=n * RESAMPLES).reshape(RESAMPLES, n).T.astype(np.int32))


@lru_cache(maxsize=64)  # a rebuild asks for the same ones again
def _resampled(a: tuple[float, ...], b: tuple[float, ...]) -> tuple[float, float, float, float]:
    """Medians of both ways, and the interval of their ratio."""
    pairs, n = np.array([a, b]), len(a)
    times = _drawn(n)

    def medians(values: np.ndarray) -> np.ndarray:
        order = values.argsort()
        upto, ordered = times[order].cumsum(axis=0, dtype=np.int32), values[order]  # no sorting: the middle is where the count passes half
        return (ordered[(upto <= (n - 1) // 2).sum(axis=0)] + ordered[(upto <= n // 2).sum(axis=0)]) / 2

    low, high = np.percentile(medians(pairs[1]) / medians(pairs[0]), (2.5, 97.5))
    return float(np.median(pairs[0])), float(np.median(pairs[1])), float(low), float(high)


def waits(document: Latency) -> list[dict]:
    """Time to first token by prompt length. Keys: n_prompt, mean_s, sigma_s, n, rate_tok_s (prompt tokens over the mean wait)."""
    found = []
    for w in document.waits:
        seconds = np.array(w.samples_ns) / 1e9
        sigma = float(seconds.std(ddof=1)) if len(seconds) > 1 else math.nan
        found.append({"n_prompt": w.n_prompt, "mean_s": float(seconds.mean()), "sigma_s": sigma, "n": len(seconds), "rate_tok_s": w.n_prompt / seconds.mean()})
    return found


def pairs(document: Check) -> list[dict]:
    """A check's pairs as they were run. Keys: test, pair, a, b [unit of the check]."""
    return [{"test": p.test, "pair": i, "a": a, "b": b} for p in document.pairs for i, (a, b) in enumerate(zip(p.a, p.b, strict=True), 1)]
