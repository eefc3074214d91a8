"""The predictor's score: every corpus row as a chip never seen, beside naive baselines on the same rows.

Held-out predictions come with the fit and are refused when anything they rest on has changed since.
"""

from __future__ import annotations

import hashlib
import math
import statistics
from collections import Counter
from functools import cache

import numpy as np

from macros import calibration, chip_names, corpus, diagnose, labdata, noise
from macros.corpus_models import GIB

BASELINES = {
    "naive": "spec sheet: bandwidth over active bytes, fp16 peak over 2 × active parameters",
    "flat": "spec sheet × one factor, the other chips' median",
    "groups": "spec sheet × the other chips' median by backend and format",
}
OTHERS = {"backend": "other backends", "quant": "other formats", "arch": "other architectures", "depth": "deep"}
LEAST_ROWS = 30  # classes smaller than this are listed together


_read = ""  # hash of what the caches below rest on


def forget_what_changed() -> None:
    """Drop what was read from the corpus, the fit and the chips where a file of theirs is another than before: a server builds many times."""
    global _read
    files = [corpus.MEASUREMENTS, calibration.FIT, *sorted((labdata.ROOT / "chips").glob("*.yml"))]
    found = hashlib.sha256(b"".join(hashlib.sha256(path.read_bytes()).digest() for path in files if path.is_file())).hexdigest()
    if found != _read:
        chip_names.forget()
        for kept in (calibration.fitted, calibration.rows, calibration.cases, scored, by_class, headline, worst):
            kept.cache_clear()
    _read = found


@cache
def scored() -> list[dict]:
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
        measured = float(row["tok_s"])
        found.append(
            {
                "id": row["id"], "chip": row["chip"], "machine": row["machine"], "model": row["model"], "quant": load.quant,
                "test": row["test"], "phase": case.kind, "backend": row["backend"].split(",")[0], "arch": load.arch,
                "kind": "MoE" if load.moe else "dense", "depth": "deep" if case.deep else "at 0", "flash_attn": case.setup.flash_attn,
                "build": case.setup.build, "measured_tok_s": measured, "predicted_tok_s": predicted,
                "low80_tok_s": low, "high80_tok_s": high, "spec_tok_s": _spec(row, case), "notes": row["notes"],
                "source_url": row["source_url"], "ngl": row["ngl"], "threads": row["n_threads"], "family": case.device.backend,
                "ratio": measured / predicted, "error": abs(1 / (measured / predicted) - 1), "inside": low <= measured <= high,
            }
        )  # fmt: skip
    return _with_baselines(found)


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


def _with_baselines(rows: list[dict]) -> list[dict]:
    """The naive rates beside each row; factors are medians over the other chips' rows of a phase, or of a phase, backend and format."""
    pools: dict[tuple[str, ...], list[tuple[str, float]]] = {}
    for r in rows:
        for key in ((r["phase"],), (r["phase"], r["backend"], r["quant"])):
            pools.setdefault(key, []).append((r["chip"], r["measured_tok_s"] / r["spec_tok_s"]))

    @cache
    def factor(chip: str, *key: str) -> float:
        others = [share for other, share in pools[key] if other != chip and not math.isnan(share)]
        return statistics.median(others) if others else math.nan

    def beside(r: dict) -> dict:
        spec, flat, group = r["spec_tok_s"], factor(r["chip"], r["phase"]), factor(r["chip"], r["phase"], r["backend"], r["quant"])
        naive = {"naive": spec, "flat": spec * flat, "groups": spec * (flat if math.isnan(group) else group)}
        return {**r, **naive, **({"flat": math.nan, "groups": math.nan} if r["phase"] == "mixed" else {})}

    return [beside(r) for r in rows]


def summary(rows: list[dict]) -> dict[str, float]:
    """Rows, chips, the largest chip's share of the rows, median and p90 error, bias, coverage with its 95 % interval, the baselines' median errors [1]."""
    error, inside, of_chip = [r["error"] for r in rows], sum(r["inside"] for r in rows), Counter(r["chip"] for r in rows)
    plain = [r for r in rows if r["phase"] != "mixed"]
    return {
        "rows": len(rows),
        "chips": len(of_chip),
        "one_chip": max(of_chip.values()) / len(rows),
        "median": statistics.median(error),
        "p90": float(np.quantile(error, 0.9)),
        "bias": 1 / statistics.median(r["ratio"] for r in rows) - 1,
        "coverage": inside / len(rows),
        **dict(zip(("coverage_low", "coverage_high"), noise.share_interval(inside, len(rows)))),
        **{name: _median([abs(r[name] / r["measured_tok_s"] - 1) for r in plain]) for name in BASELINES},
    }


def _median(values: list[float]) -> float:
    """Median of what is known; NaN where nothing is."""
    known = [x for x in values if not math.isnan(x)]
    return statistics.median(known) if known else math.nan


@cache
def by_class() -> list[dict]:
    """The score by phase and kind, and by backend, format, architecture and depth within a phase."""
    found = []

    def add(what: str, name: str, part: list[dict]) -> None:
        if part:
            found.append({"by": what, "class": name, **summary(part)})

    for phase in ("decode", "prefill"):
        rows = of_phase(phase)
        add("phase", phase, rows)
        for kind in ("dense", "MoE"):
            add("kind", f"{phase}, {kind}", [r for r in rows if r["kind"] == kind])
        for what in ("backend", "quant", "arch", "depth"):
            sizes = Counter(r[what] for r in rows).most_common()
            for name, size in sizes:
                if size >= LEAST_ROWS:
                    add(what, f"{phase}, {name}", [r for r in rows if r[what] == name])
            small = {name for name, size in sizes if size < LEAST_ROWS}
            add(what, f"{phase}, {OTHERS[what]}", [r for r in rows if r[what] in small])
    return found


def of_phase(*phases: str) -> list[dict]:
    """The scored rows of some phases."""
    return [r for r in scored() if r["phase"] in phases]


@cache
def headline() -> dict[str, dict[str, float]]:
    """The figures the predictor is judged by."""
    decode = of_phase("decode")
    return {
        "all": summary(of_phase("decode", "prefill")),
        "decode_dense": summary([r for r in decode if r["kind"] == "dense"]),
        "decode_moe": summary([r for r in decode if r["kind"] == "MoE"]),
        "prefill": summary(of_phase("prefill")),
        "mixed": summary(of_phase("mixed")),
    }


def by_chip() -> dict[str, float]:
    """Median over chips of each one's median error, by phase [1]: a chip with seventy rows counts once."""
    found = {}
    for phase in ("decode", "prefill"):
        chips: dict[str, list[float]] = {}
        for r in of_phase(phase):
            chips.setdefault(r["chip"], []).append(r["error"])
        found[phase] = statistics.median(map(statistics.median, chips.values()))
    return found


def widths() -> dict[str, float]:
    """Upper over lower end of the intervals by phase, as medians over rows [1]."""
    return {phase: statistics.median(r["high80_tok_s"] / r["low80_tok_s"] for r in of_phase(phase)) for phase in ("decode", "prefill")}


def noise_floor() -> dict[str, float]:
    """How far two posts of one test on one chip lie apart by phase, and the σ they print, as medians [1].

    Pairs agree in chip, backend, model, format, test and flash attention, not in machine or build.
    """
    apart: dict[str, list[float]] = {}
    for phase in ("decode", "prefill"):
        same: dict[tuple, list[float]] = {}
        for r in of_phase(phase):
            same.setdefault(tuple(r[c] for c in ("chip", "backend", "model", "quant", "test", "flash_attn")), []).append(r["measured_tok_s"])
        apart[phase] = [max(a / b, b / a) - 1 for rates in same.values() for i, a in enumerate(rates) for b in rates[i + 1 :]]
    sigmas = [float(r["tok_s_sigma"]) / float(r["tok_s"]) for r in calibration.rows() if r["tok_s_sigma"]]
    return {**{phase: statistics.median(a) for phase, a in apart.items()}, "pairs": sum(map(len, apart.values())), "with_sigma": len(sigmas), "sigma": statistics.median(sigmas)}


@cache
def worst(count: int = 12) -> list[dict]:
    """The rows furthest from their prediction, one a machine, with the likeliest cause and what the poster said."""
    machines: dict[str, dict] = {}
    for row in sorted(scored(), key=lambda r: -abs(math.log(r["ratio"]))):
        machines.setdefault(row["machine"], row)
    return [{**row, "cause": likely(scored(), row)} for row in list(machines.values())[:count]]


def likely(rows: list[dict], row: dict) -> str:
    """The first cause the diagnosis names for a slow row; for a fast one, what that would mean."""
    if row["measured_tok_s"] > row["high80_tok_s"]:
        above = any(r["measured_tok_s"] > r["spec_tok_s"] for r in rows if (r["machine"], r["phase"], r["kind"]) == (row["machine"], "decode", "dense"))
        return "decodes above its memory roof: another chip than named" if above else "faster than its kind: better kernels than its neighbours'"
    found = diagnose.causes(symptom(rows, row))
    return found[0].cause if found else "not explained"


def symptom(rows: list[dict], row: dict) -> diagnose.Symptom:
    """What the diagnosis may see of a row: its ratios and how it was run, never what its poster noted."""
    ratios: dict[str, list[float]] = {}
    for r in rows:
        if all(r[k] == row[k] for k in ("machine", "chip", "family", "model", "quant")):
            ratios.setdefault(r["phase"], []).append(r["ratio"])
    ratio = {**{phase: statistics.median(found) for phase, found in ratios.items()}, row["phase"]: row["ratio"]}

    def count(text: str) -> int | None:
        return int(text) if text.isdigit() else None

    return diagnose.Symptom(ratio.get("decode"), ratio.get("prefill"), f"{row['machine']}, {row['chip']}", row["family"], row["build"],
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
