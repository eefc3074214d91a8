"""Learn the predictor's coefficients from the public measurements: `python -m macros.fit`.

A maximum a posteriori fit in log time: residuals and the chips' and machines' own offsets enter through
a Cauchy loss (scipy's trust-exact solver), so that a misconfigured machine is outvoted and cannot drag the
rest; coefficients have Gaussian priors (`macros.calibrated.PRIORS`). Offsets of chips and machines are
fitted and thrown away: they keep seventy rows of one machine from counting as seventy machines. The
inverse of the curvature at the end is the coefficients' covariance (`macros.uncertainty`).

Knows numpy, scipy and scikit-learn; nothing else of the project imports it at page or prediction time.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from macros import calibrated, calibration, corpus, labdata, spread, uncertainty
from macros.calibrated import BINDING_NORM, prior
from macros.corpus_models import NotPredictable

# Log standard deviations: of one repetition of a test elsewhere, of a chip, of a machine with that chip.
NOISE = {"decode": 0.08, "prefill": 0.10}
CHIP = {"decode": 0.08, "prefill": 0.12}
MACHINE = {"decode": 0.06, "prefill": 0.10}
CAUCHY = 1.5  # residuals beyond this many standard deviations lose their say
STEPS, GRADIENT = 200, 0.01


@dataclass(frozen=True)
class Known:
    """A corpus row that can be fitted: its case, who made it, and what was measured [tok/s]."""

    id: str
    chip: str
    machine: str
    case: corpus.Case
    tok_s: float


def known_rows(rows: Sequence[dict[str, str]]) -> list[Known]:
    """Rows with a case, and their measurement."""
    found = []
    for row in rows:
        try:
            case = corpus.case(row)
        except NotPredictable:
            continue
        found.append(Known(row["id"], row["chip"], f"{row['chip']} {row['machine']}", case, float(row["tok_s"])))
    return found


class Learnt(NamedTuple):
    """Coefficients by name, and the lower triangle of their covariance, a row a name [uncertainty.UNIT]."""

    coefficients: dict[str, float]
    covariance: dict[str, list[int]]


def learn(rows: Sequence[Known], phase: str) -> Learnt:
    """Fitted coefficients of one phase.

    Args:
        rows: only rows of this phase
        phase: "decode" or "prefill"
    """
    parts = [calibrated.terms(r.case.loads[0], r.case.device, r.case.setup) for r in rows]
    names = sorted({name for p in parts for t in p.values() for name in t.features})
    place = {name: i for i, name in enumerate(names)}
    kinds = list(parts[0])
    features = np.zeros((len(kinds), len(rows), len(names)))
    roofs = np.zeros((len(kinds), len(rows)))
    for i, part in enumerate(parts):
        for k, kind in enumerate(kinds):
            roofs[k, i] = part[kind].roof_s
            for name, x in part[kind].features.items():
                features[k, i, place[name]] = -x if part[kind].divide else x
    measured = np.log([r.case.loads[0].tokens / r.tok_s for r in rows])
    groups, sizes = _offsets(rows, phase)
    mean, width = np.array([prior(n) for n in names]).T
    solved, covariance = _solve(features, roofs, kinds, measured, groups, sizes, mean, width, NOISE[phase])
    triangle = {name: [round(float(c) / uncertainty.UNIT) for c in row[: i + 1]] for i, (name, row) in enumerate(zip(names, covariance))}
    return Learnt({name: round(float(x), 6) for name, x in zip(names, solved)}, triangle)


def _offsets(rows: Sequence[Known], phase: str) -> tuple[np.ndarray, np.ndarray]:
    """Which chip and which machine each row is of (one column each), and how far those may stand off."""
    chips = sorted({(r.chip, r.case.device.backend) for r in rows})
    machines = sorted({(r.machine, r.case.device.backend) for r in rows})
    groups = np.zeros((len(rows), len(chips) + len(machines)))
    for i, r in enumerate(rows):
        groups[i, chips.index((r.chip, r.case.device.backend))] = 1
        groups[i, len(chips) + machines.index((r.machine, r.case.device.backend))] = 1
    return groups, np.array([CHIP[phase]] * len(chips) + [MACHINE[phase]] * len(machines))


def _solve(features, roofs, kinds, measured, groups, sizes, mean, width, noise) -> tuple[np.ndarray, np.ndarray]:
    n, m = features.shape[1:]

    def seconds(x: np.ndarray) -> np.ndarray:
        return roofs * np.exp(np.clip(features @ x[:m], -30, 30))

    def total(part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Whole time, and its change with the log of each part."""
        if "matmul" not in kinds:
            return part.sum(0), part
        both = [kinds.index("matmul"), kinds.index("streaming")]
        joint = (part[both] ** BINDING_NORM).sum(0) ** (1 / BINDING_NORM)
        change = part.copy()
        change[both] *= (part[both] / joint) ** (BINDING_NORM - 1)
        return part.sum(0) - part[both].sum(0) + joint, change

    def residuals(x: np.ndarray) -> np.ndarray:
        whole, _ = total(seconds(x))
        return np.concatenate([(np.log(whole) + groups @ x[m:] - measured) / noise, (x[:m] - mean) / width, x[m:] / sizes])

    def jacobian(x: np.ndarray) -> np.ndarray:
        whole, change = total(seconds(x))
        rows = np.hstack([np.einsum("kn,knm->nm", change / whole, features), groups]) / noise
        return np.vstack([rows, np.diag(np.concatenate([1 / width, 1 / sizes]))])

    robust = np.r_[0:n, n + m : n + m + len(sizes)]

    def half_sum(x: np.ndarray) -> float:
        """Half the sum of Cauchy losses of rows and offsets and of the priors' squares."""
        square = residuals(x) ** 2
        square[robust] = CAUCHY**2 * np.log1p(square[robust] / CAUCHY**2)
        return float(square.sum() / 2)

    def slope(x: np.ndarray) -> np.ndarray:
        r = residuals(x)
        return jacobian(x).T @ (_say(r, robust) * r)

    def curvature(x: np.ndarray) -> np.ndarray:
        """Gauss-Newton: never negative, so every step goes downhill."""
        j = jacobian(x)
        return j.T @ (_say(residuals(x), robust)[:, None] * j)

    start = np.concatenate([mean, np.zeros(len(sizes))])
    end = minimize(half_sum, start, jac=slope, hess=curvature, method="trust-exact", options={"gtol": GRADIENT, "maxiter": STEPS}).x
    return end[:m], np.linalg.inv(curvature(end))[:m, :m]


def _say(r: np.ndarray, robust: np.ndarray) -> np.ndarray:
    """Weight of each residual: 1 for priors, falling with distance for rows and offsets."""
    weight = np.ones_like(r)
    weight[robust] = 1 / (1 + (r[robust] / CAUCHY) ** 2)
    return weight


def both_phases(rows: Sequence[Known]) -> Learnt:
    """Coefficients of decode and of prefill; their families' names do not meet."""
    decode, prefill = (learn([r for r in rows if r.case.kind == phase], phase) for phase in ("decode", "prefill"))
    return Learnt(decode.coefficients | prefill.coefficients, decode.covariance | prefill.covariance)


def rest() -> dict[str, float]:
    """Variance of a log rate on a new machine that no coefficient accounts for, by phase [1]."""
    return {phase: round(NOISE[phase] ** 2 + CHIP[phase] ** 2 + MACHINE[phase] ** 2, 6) for phase in NOISE}


def held_out(rows: Sequence[Known], told: Callable[[str], None] = lambda _: None) -> dict[str, tuple[float, float]]:
    """Each row's rate as predicted by a fit that saw no row of its chip [tok/s], and that fit's sigma of its log [1]."""
    found = {}
    chips = sorted({r.chip for r in rows})
    for i, chip in enumerate(chips, 1):
        told(f"{i} of {len(chips)}: {chip}")
        learnt = both_phases([r for r in rows if r.chip != chip])
        known = {"rest": rest(), "covariance": learnt.covariance}
        for r in rows:
            if r.chip == chip:
                found[r.id] = calibration.case_rate_tok_s(r.case, learnt.coefficients), calibration.sigma(r.case, learnt.coefficients, known)
    return found


def main() -> None:
    """Fit, hold out chip by chip, learn the intervals, write labdata/corpus/fit.json."""
    rows = known_rows(corpus.measurements())

    def told(line: str) -> None:
        print(f"\rHeld out {line}\033[K", end="", file=sys.stderr, flush=True)

    learnt, without = both_phases(rows), held_out(rows, told)
    off = {r.id: math.log(r.tok_s / without[r.id][0]) for r in rows}
    told("the intervals, chip by chip")
    spreads = spread.HeldOut(rows, off, {id: sigma for id, (_, sigma) in without.items()})
    print(file=sys.stderr)
    document = {
        "inputs": calibration.inputs_sha256(),
        "coefficients": dict(sorted(learnt.coefficients.items())),
        "intervals": {**spreads.chosen(), "rest": rest(), "covariance": learnt.covariance},
        "own_row": spread.own_row(rows, off),
        "own_held_out": spread.own_misses(rows, off),
        "held_out": spreads.table({id: rate for id, (rate, _) in without.items()}),
    }
    labdata.write_text(calibration.FIT, _compact(document))
    print(f"{calibration.FIT}: {len(learnt.coefficients)} coefficients from {len(rows)} rows")


def _compact(document: dict) -> str:
    """JSON with one line an entry, so that a new fit shows as the numbers that moved."""
    parts = []
    for key, value in document.items():
        if isinstance(value, dict):
            lines = ",\n".join(f"  {json.dumps(k, ensure_ascii=False)}: {_line(v)}" for k, v in value.items())
            parts.append(f" {json.dumps(key)}: {{\n{lines}\n }}")
        else:
            parts.append(f" {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _line(value: object) -> str:
    if isinstance(value, dict) and any(isinstance(v, list) for v in value.values()):  # the covariance: a line a coefficient
        return "{\n" + ",\n".join(f"   {json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in value.items()) + "\n  }"
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    main()
