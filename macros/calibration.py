"""The fitted predictor: coefficients from labdata, a case in, a rate with its 80 % interval out.

Loads no numpy, pandas or solver, so that one prediction costs milliseconds. `macros.fit` writes what this reads.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from macros import calibrated, corpus, uncertainty
from macros.calibrated import Load
from macros.corpus_models import NotPredictable

FIT = corpus.FOLDER / "fit.json"
CODE = ("fit.py", "spread.py", "uncertainty.py")
LEVEL = 0.80  # what the intervals promise
LEAST = 0.01  # neither end comes closer to the prediction, in log: no rate is known better


@dataclass(frozen=True)
class Predicted:
    """A predicted rate and its 80 % interval [tok/s]."""

    tok_s: float
    low_tok_s: float
    high_tok_s: float


@cache
def fitted() -> dict:
    """The committed fit.

    Raises:
        corpus.CorpusError: not there, or not what the fit writes.
    """
    try:
        document = json.loads(FIT.read_text(encoding="utf-8"))
        return {key: document[key] for key in ("inputs", "coefficients", "intervals", "own_row", "held_out", "own_held_out")}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise corpus.CorpusError([f"{corpus.shown(FIT)}: file: cannot be read; {error}; write it with `make fit`"]) from None


@cache
def rows() -> list[dict[str, str]]:
    """The corpus, read and checked once. Raises corpus.CorpusError."""
    return corpus.measurements()


@cache
def cases() -> list[tuple[dict[str, str], corpus.Case]]:
    """The corpus's rows that can be predicted, each with its case."""
    found = []
    for row in rows():
        try:
            found.append((row, corpus.case(row)))
        except NotPredictable:
            continue
    return found


def inputs_sha256() -> str:
    """Hash of all that decides the fit: rates, work over roofs, features, classes, priors, and the code that fits.

    Line ends do not count, so a checkout on another system is the same input.
    """
    digest = hashlib.sha256()
    for name in CODE:
        digest.update((Path(__file__).parent / name).read_bytes().replace(b"\r\n", b"\n"))
    digest.update(repr((sorted(calibrated.PRIORS.items()), calibrated.BINDING_NORM)).encode())
    for row, case in cases():
        parts = [{name: (f"{t.roof_s:.6e}", t.divide, _rounded(t.features)) for name, t in calibrated.terms(load, case.device, case.setup).items()}
                 for load in case.loads]  # fmt: skip
        digest.update(repr((row["id"], row["chip"], row["machine"], row["tok_s"], case.steps, parts, case_classes(case))).encode())
    return digest.hexdigest()


def _rounded(features: Mapping[str, float]) -> list[tuple[str, str]]:
    """Features as text that does not depend on a machine's last bits."""
    return [(name, f"{x:.6e}") for name, x in features.items()]


def seconds(case: corpus.Case, coefficients: Mapping[str, float]) -> list[dict[str, float]]:
    """Time by part, a dict for each load [s]; a mixed test's decode part is all its steps."""
    found = []
    for load in case.loads:
        parts = calibrated.terms(load, case.device, case.setup)
        found.append({name: t.seconds(coefficients) for name, t in parts.items()})
    return found


def case_rate_tok_s(case: corpus.Case, coefficients: Mapping[str, float]) -> float:
    """Predicted rate of a case, a mixed one's over both parts [tok/s]."""
    whole, tokens = 0.0, 0
    for load, parts, steps in zip(case.loads, seconds(case, coefficients), case.steps, strict=True):
        whole += steps * calibrated.total_s(parts)
        tokens += steps * load.tokens
    return tokens / whole


# Classes with fewer public rows than the accuracy page lists by name share an interval.
NAMED = {"backend": ("CUDA", "Metal"), "quant": ("F16", "Q8_0", "Q4_0", "Q4_K_M"), "arch": ("llama",)}


def classes(load: Load, backend: str, deep: bool) -> tuple[str, ...]:
    """The classes whose intervals must hold what they promise, and to which a load belongs.

    >>> classes(Load("decode", 1, {}, {}, 1, 32, 7e9, 128, 4.0, "qwen3", "Q4_K_M", 5.0), "CUDA", deep=False)
    ('decode', 'decode, dense', 'decode, CUDA', 'decode, Q4_K_M', 'decode, other arch', 'decode, at 0')
    """
    each = {"backend": backend, "quant": load.quant, "arch": load.arch}
    named = [value if value in NAMED[what] else f"other {what}" for what, value in each.items()]
    return load.phase, *(f"{load.phase}, {name}" for name in ("MoE" if load.moe else "dense", *named, "deep" if deep else "at 0"))


def case_classes(case: corpus.Case) -> tuple[str, ...]:
    """The classes of a case."""
    return classes(case.loads[0], case.device.backend, case.deep)


def sigma(case: corpus.Case, coefficients: Mapping[str, float], intervals: Mapping[str, Mapping]) -> float:
    """Standard deviation that the fit itself gives a case's log rate: its coefficients', a chip's and machine's own, noise [1]."""
    parts = calibrated.terms(case.loads[0], case.device, case.setup)
    return math.sqrt(intervals["rest"][case.loads[0].phase] + uncertainty.variance(parts, coefficients, intervals["covariance"]))


def interval(of: Sequence[str], sigma: float, intervals: Mapping[str, Mapping]) -> tuple[float, float]:
    """Measured over predicted at both ends of the 80 % interval of a row's classes [1]; it always holds the prediction.

    Args:
        sigma: of the row's log rate, from `sigma`
    """
    wider = sigma * math.exp(sum(intervals["widen"].get(name, 0.0) for name in of))
    low, high = (intervals[end][of[0]] * wider for end in ("low", "high"))
    return math.exp(min(low, -LEAST)), math.exp(max(high, LEAST))


def predict(case: corpus.Case) -> Predicted:
    """A case's rate and 80 % interval from the committed fit."""
    return predicted(case, fitted()["coefficients"], fitted()["intervals"])


def predicted(case: corpus.Case, coefficients: Mapping[str, float], intervals: Mapping[str, Mapping]) -> Predicted:
    """A case's rate and 80 % interval."""
    rate = case_rate_tok_s(case, coefficients)
    low, high = interval(case_classes(case), sigma(case, coefficients, intervals), intervals)
    return Predicted(rate, rate * low, rate * high)


def shared(case: corpus.Case, own: corpus.Case) -> str:
    """What two tests on one machine share: a key of the fit's own_row."""
    if case.kind != own.kind:
        return "other phase"
    same = case.loads[0].quant == own.loads[0].quant and case.loads[0].moe == own.loads[0].moe
    return "same phase, same format" if same else "same phase, other format"


def after_own_row(case: corpus.Case, own: corpus.Case, measured_tok_s: float) -> Predicted:
    """A prediction for a machine on which one other test has been measured.

    The own row's miss is passed on in the share that public machines' tests pass on to each other.

    Args:
        own: the case that was measured, same machine
        measured_tok_s: what it gave [tok/s]
    """
    fit = fitted()
    share, low, high = fit["own_row"][shared(case, own)]
    miss = measured_tok_s / case_rate_tok_s(own, fit["coefficients"])
    moved = case_rate_tok_s(case, fit["coefficients"]) * miss**share
    return Predicted(moved, moved * low, moved * high)
