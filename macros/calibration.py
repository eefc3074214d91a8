"""The fitted predictor: coefficients from labdata, a case in, a rate with its 80 % interval out.

Standard library only, so that one prediction costs milliseconds. `macros.fit` writes what this reads.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from macros import calibrated, corpus
from macros.calibrated import Load
from macros.corpus_models import NotPredictable

FIT = corpus.FOLDER / "fit.json"
CODE = ("fit.py", "spread.py")
LEVEL = 0.80  # what the intervals promise


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
        raise corpus.CorpusError([f"{FIT}: file: cannot be read; {error}; write it with `make fit`"]) from None


def inputs_sha256() -> str:
    """Hash of all that decides the fit: rates, work over roofs, features, classes, priors, and the code that fits.

    Line ends do not count, so a checkout on another system is the same input.
    """
    digest = hashlib.sha256()
    for name in CODE:
        digest.update((Path(__file__).parent / name).read_bytes().replace(b"\r\n", b"\n"))
    digest.update(repr((sorted(calibrated.PRIORS.items()), calibrated.BINDING_NORM)).encode())
    for row in corpus.measurements():
        try:
            case = corpus.case(row)
        except NotPredictable:
            continue
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


def classes(load: Load, backend: str, deep: bool) -> dict[str, float]:
    """What an interval's width depends on: indicators of the classes a load belongs to."""
    group = backend if backend in ("CUDA", "Metal") else "other"
    quant = load.quant if load.quant in ("F16", "Q8_0", "Q4_0", "Q4_K_M") else "other"
    names = [group, quant + " format", *["MoE"] * load.moe]
    if load.phase == "prefill":
        names += [f"prefill, {name}" for name in names] + ["prefill"]
    elif quant == "Q4_K_M":  # the one format whose spread differs much between backends
        names.append(f"decode, {group}, Q4_K_M")
    return dict.fromkeys(["all", *names, *["deep"] * deep], 1.0)


def case_classes(case: corpus.Case) -> dict[str, float]:
    """The classes of a case."""
    return classes(case.loads[0], case.device.backend, case.deep)


def interval(case_or_classes: Mapping[str, float], intervals: Mapping[str, Mapping[str, float]]) -> tuple[float, float]:
    """Measured over predicted at both ends of the 80 % interval [1]; it always holds the prediction."""
    low, high = (sum(intervals[end].get(name, 0.0) * x for name, x in case_or_classes.items()) for end in ("low", "high"))
    return math.exp(min(low, -0.01)), math.exp(max(high, 0.01))


def predict(case: corpus.Case) -> Predicted:
    """A case's rate and 80 % interval from the committed fit."""
    return predicted(case, fitted()["coefficients"], fitted()["intervals"])


def predicted(case: corpus.Case, coefficients: Mapping[str, float], intervals: Mapping[str, Mapping[str, float]]) -> Predicted:
    """A case's rate and 80 % interval."""
    rate = case_rate_tok_s(case, coefficients)
    low, high = interval(case_classes(case), intervals)
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
