"""The predictor's score: every corpus row as a chip never seen, beside naive baselines on the same rows.

Held-out predictions come with the fit and are refused when anything they rest on has changed since.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from functools import cache

import numpy as np
import pandas as pd

from macros import calibration, chip_names, corpus, diagnose, noise
from macros.corpus_models import GIB

BASELINES = {
    "naive": "spec sheet: bandwidth over active bytes, fp16 peak over 2 × active parameters",
    "flat": "spec sheet × one factor, the other chips' median",
    "groups": "spec sheet × the other chips' median by backend and format",
}
OTHERS = {"backend": "other backends", "quant": "other formats", "arch": "other architectures", "depth": "deep"}
LEAST_ROWS = 30  # classes smaller than this are listed together


@cache
def scored() -> pd.DataFrame:
    """One row a scored measurement: what was predicted without its chip, the interval, the baselines.

    Raises:
        corpus.CorpusError: the fit is older than the measurements or the code it rests on.
    """
    fit = calibration.fitted()
    if fit["inputs"] != calibration.inputs_sha256():
        raise corpus.CorpusError([f"{corpus.shown(calibration.FIT)}: inputs: measurements or code have changed since the fit; bring it up to date with `make fit`"])
    found = []
    for row, case in calibration.cases():
        predicted, low, high, _ = fit["held_out"][row["id"]]
        load = case.loads[0]
        found.append(
            {
                "id": row["id"], "chip": row["chip"], "machine": row["machine"], "model": row["model"], "quant": load.quant,
                "test": row["test"], "phase": case.kind, "backend": row["backend"].split(",")[0], "arch": load.arch,
                "kind": "MoE" if load.moe else "dense", "depth": "deep" if case.deep else "at 0", "flash_attn": case.setup.flash_attn,
                "build": case.setup.build, "measured_tok_s": float(row["tok_s"]), "predicted_tok_s": predicted,
                "low80_tok_s": low, "high80_tok_s": high, "spec_tok_s": _spec(row, case), "notes": row["notes"],
                "source_url": row["source_url"], "ngl": row["ngl"], "threads": row["n_threads"], "family": case.device.backend,
            }
        )  # fmt: skip
    frame = pd.DataFrame(found)
    frame["ratio"] = frame["measured_tok_s"] / frame["predicted_tok_s"]
    frame["error"] = (1 / frame["ratio"] - 1).abs()
    frame["inside"] = frame["measured_tok_s"].between(frame["low80_tok_s"], frame["high80_tok_s"])
    return _with_baselines(frame).copy()  # in few blocks: rows are taken out of it a hundred times


def _spec(row: dict[str, str], case: corpus.Case) -> float:
    """First order for one row [tok/s]; NaN for a mixed test or without a peak."""
    params = float(row["n_params_b"]) * 1e9
    active = float(row["active_params_b"]) * 1e9 if case.loads[0].moe else params
    if case.kind == "decode":
        size = float(row["model_size_gib"]) * GIB if row["model_size_gib"] else case.loads[0].bits * params / 8
        return case.device.bandwidth_bytes_s / (size * active / params)
    if case.kind == "mixed" or case.device.flops_s is None:
        return float("nan")
    listed = float(row["fp16_tflops"]) * 1e12 if row["fp16_tflops"] else (chip_names.peak_of(row["chip"]) or (case.device.flops_s,))[0]
    return listed / (2 * active)


def _with_baselines(frame: pd.DataFrame) -> pd.DataFrame:
    """The naive rates beside each row; factors are medians over the other chips' rows of a phase, or of a phase, backend and format."""
    rows = list(zip(frame["chip"], frame["phase"], frame["backend"], frame["quant"], frame["spec_tok_s"], frame["measured_tok_s"] / frame["spec_tok_s"]))
    pools: dict[tuple[str, ...], list[tuple[str, float]]] = {}
    for chip, phase, backend, quant, _, share in rows:
        for key in ((phase,), (phase, backend, quant)):
            pools.setdefault(key, []).append((chip, share))

    @cache
    def factor(chip: str, *key: str) -> float:
        others = [share for other, share in pools[key] if other != chip and not math.isnan(share)]
        return statistics.median(others) if others else math.nan

    flat = [factor(chip, phase) for chip, phase, *_ in rows]
    groups = [factor(*row[:4]) for row in rows]
    spec, unscored = frame["spec_tok_s"], frame["phase"] == "mixed"
    found = frame.assign(naive=spec, flat=spec * flat, groups=spec * pd.Series(groups, frame.index).fillna(pd.Series(flat, frame.index)))
    found.loc[unscored, ["flat", "groups"]] = math.nan
    return found


def summary(frame: pd.DataFrame) -> dict[str, float]:
    """Rows, chips, the largest chip's share of the rows, median and p90 error, bias, coverage with its 95 % interval, the baselines' median errors [1]."""
    error, inside, plain = frame["error"].to_numpy(), frame["inside"].to_numpy(), (frame["phase"] != "mixed").to_numpy()
    measured, of_chip = frame["measured_tok_s"].to_numpy()[plain], Counter(frame["chip"])
    return {
        "rows": len(frame),
        "chips": len(of_chip),
        "one_chip": max(of_chip.values()) / len(frame),
        "median": float(np.median(error)),
        "p90": float(np.quantile(error, 0.9)),
        "bias": 1 / float(np.median(frame["ratio"].to_numpy())) - 1,
        "coverage": float(inside.mean()),
        **dict(zip(("coverage_low", "coverage_high"), noise.share_interval(int(inside.sum()), len(frame)))),
        **{name: _median(np.abs(frame[name].to_numpy()[plain] / measured - 1)) for name in BASELINES},
    }


def _median(values: np.ndarray) -> float:
    """Median of what is known; NaN where nothing is."""
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else math.nan


@cache
def by_class() -> pd.DataFrame:
    """The score by phase and kind, and by backend, format, architecture and depth within a phase."""
    frame = scored()[["phase", "chip", "kind", *OTHERS, "measured_tok_s", "ratio", "error", "inside", *BASELINES]]
    found = []

    def add(what: str, name: str, part: pd.DataFrame) -> None:
        if len(part):
            found.append({"by": what, "class": name, **summary(part)})

    for phase in ("decode", "prefill"):
        rows = frame[frame["phase"] == phase]
        add("phase", phase, rows)
        for kind in ("dense", "MoE"):
            add("kind", f"{phase}, {kind}", rows[rows["kind"] == kind])
        for what in ("backend", "quant", "arch", "depth"):
            sizes = rows[what].value_counts()
            for name in sizes[sizes >= LEAST_ROWS].index:
                add(what, f"{phase}, {name}", rows[rows[what] == name])
            small = rows[what].isin(sizes[sizes < LEAST_ROWS].index)
            add(what, f"{phase}, {OTHERS[what]}", rows[small])
    return pd.DataFrame(found)


@cache
def headline() -> dict[str, dict[str, float]]:
    """The figures the predictor is judged by."""
    frame = scored()
    decode, prefill = frame[frame["phase"] == "decode"], frame[frame["phase"] == "prefill"]
    return {
        "all": summary(frame[frame["phase"] != "mixed"]),
        "decode_dense": summary(decode[decode["kind"] == "dense"]),
        "decode_moe": summary(decode[decode["kind"] == "MoE"]),
        "prefill": summary(prefill),
        "mixed": summary(frame[frame["phase"] == "mixed"]),
    }


def by_chip() -> dict[str, float]:
    """Median over chips of each one's median error, by phase [1]: a chip with seventy rows counts once."""
    frame = scored()
    return {phase: frame[frame["phase"] == phase].groupby("chip")["error"].median().median() for phase in ("decode", "prefill")}


def widths() -> dict[str, float]:
    """Upper over lower end of the intervals by phase, as medians over rows [1]."""
    frame = scored()
    return {phase: float(np.median((part["high80_tok_s"] / part["low80_tok_s"]).to_numpy())) for phase, part in frame.groupby("phase") if phase != "mixed"}


def noise_floor() -> dict[str, float]:
    """How far two posts of one test on one chip lie apart by phase, and the σ they print, as medians [1].

    Pairs agree in chip, backend, model, format, test and flash attention, not in machine or build.
    """
    frame = scored()
    same: dict[tuple, list[float]] = {}
    for *key, rate in zip(*(frame[c] for c in ("phase", "chip", "backend", "model", "quant", "test", "flash_attn", "measured_tok_s"))):
        same.setdefault(tuple(key), []).append(rate)
    apart: dict[str, list[float]] = {"decode": [], "prefill": [], "mixed": []}
    for (phase, *_), rates in same.items():
        apart[phase] += [max(a / b, b / a) - 1 for i, a in enumerate(rates) for b in rates[i + 1 :]]
    del apart["mixed"]
    sigmas = [float(r["tok_s_sigma"]) / float(r["tok_s"]) for r in corpus.measurements() if r["tok_s_sigma"]]
    return {**{phase: pd.Series(a).median() for phase, a in apart.items()}, "pairs": sum(map(len, apart.values())), "with_sigma": len(sigmas), "sigma": pd.Series(sigmas).median()}


@cache
def worst(count: int = 12) -> pd.DataFrame:
    """The rows furthest from their prediction, one a machine, with the likeliest cause and what the poster said."""
    frame = scored()
    far = frame.assign(far=frame["ratio"].map(lambda r: abs(math.log(r)))).sort_values("far", ascending=False)
    far = far.drop_duplicates(["machine"]).head(count).copy()
    far["cause"] = [likely(frame, row) for row in far.to_dict("records")]
    return far.reset_index(drop=True)


def likely(frame: pd.DataFrame, row: dict) -> str:
    """The first cause the diagnosis names for a slow row; for a fast one, what that would mean."""
    if row["measured_tok_s"] > row["high80_tok_s"]:
        same = frame[(frame["machine"] == row["machine"]) & (frame["phase"] == "decode") & (frame["kind"] == "dense")]
        above = (same["measured_tok_s"] > same["spec_tok_s"]).any()
        return "decodes above its memory roof: another chip than named" if above else "faster than its kind: better kernels than its neighbours'"
    found = diagnose.causes(symptom(frame, row))
    return found[0].cause if found else "not explained"


def symptom(frame: pd.DataFrame, row: dict) -> diagnose.Symptom:
    """What the diagnosis may see of a row: its ratios and how it was run, never what its poster noted."""
    same = frame[np.logical_and.reduce([frame[k] == row[k] for k in ("machine", "chip", "family", "model", "quant")])]
    ratio = {p: g["ratio"].median() for p, g in same.groupby("phase")}
    ratio[row["phase"]] = row["ratio"]

    def count(text: str) -> int | None:
        return int(text) if text.isdigit() else None

    build = None if pd.isna(row["build"]) else int(row["build"])
    return diagnose.Symptom(ratio.get("decode"), ratio.get("prefill"), f"{row['machine']}, {row['chip']}", row["family"], build,
                            count(row["ngl"]), count(row["threads"]))  # fmt: skip


def age_effect() -> dict[str, float]:
    """Rate of an old build (May 2024) over a new one's as the fit has it, by phase and format, CUDA [1]."""
    c = calibration.fitted()["coefficients"]

    def factor(*names: str) -> float:
        return math.exp(-sum(c.get(name, 0.0) for name in names))

    return {
        "decode": factor("w.age", "w.age.backend:CUDA"),
        "prefill_f16": factor("l.age", "l.age.backend:CUDA"),
        "prefill_quantised": factor("l.age", "l.age.backend:CUDA", "l.quantised.age"),
    }
