"""How far measurements lie from held-out predictions: 80 % intervals, and what one own row tells.

Intervals are group-conditional conformal (Gibbs, Cherian, Candès 2023, Conformal Prediction With Conditional
Guarantees): a quantile regression (scikit-learn's QuantileRegressor) of each row's score on the classes it belongs
to, which overlap. The score is a held-out miss over the sigma that the fit gave the row (normalised conformal: a
chip unlike the others is held wider for a reason known beforehand), as a multiple of its phase's 10 % or 90 %
tail, the side it fell to. Such a regression holds its own rows; the rows of a chip it has not seen miss together,
and more of them. So its level is raised, for each phase, until chips left out one by one hold 80 %: for a chip
being scored, the others alone decide.

What is kept is a table of numbers, which a prediction reads without scikit-learn. MAPIE's conformal regressors
refit the estimator they calibrate, without regard to chips, and a prediction would have to load them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from sklearn.linear_model import QuantileRegressor

from macros import calibration

PHASES = ("decode", "prefill")
TAILS = (0.10, 0.90)
LEVELS = (0.80, 0.82, 0.84, 0.86, 0.88)
SHRINK = 0.002  # L1 penalty: a class must earn its own width
SMALL = 0.02  # scores below this multiple of a tail are alike


def intervals(rows: Sequence, off: Mapping[str, float], sigma: Mapping[str, float], level: float) -> dict[str, dict[str, float]]:
    """Both tails by phase, and by class the log of what widens them, of log(measured / predicted) over sigma.

    Args:
        off: log(measured / predicted) of each row, held out
        sigma: what the fit gave each row's log rate, held out
        level: of the regression; above what it shall hold on chips it has not seen
    """
    rows = [r for r in rows if r.case.kind != "mixed"]
    far = {r.id: off[r.id] / sigma[r.id] for r in rows}
    low, high = ({phase: float(np.quantile([far[r.id] for r in rows if r.case.kind == phase], tail)) for phase in PHASES} for tail in TAILS)
    each = [calibration.case_classes(r.case) for r in rows]
    names = sorted({n for c in each for n in c})
    x = np.array([[n in c for n in names] for c in each], dtype=float)
    score = [far[r.id] / (high if far[r.id] > 0 else low)[r.case.kind] for r in rows]
    model = QuantileRegressor(quantile=level, alpha=SHRINK, solver="highs").fit(x, np.log(np.maximum(score, SMALL)))
    widen = {n: float(c) + (model.intercept_ if n in PHASES else 0.0) for n, c in zip(names, model.coef_)}
    return {"low": {p: round(v, 4) for p, v in low.items()}, "high": {p: round(v, 4) for p, v in high.items()},
            "widen": {n: round(c, 4) for n, c in widen.items() if abs(c) > 1e-4}}  # fmt: skip


class HeldOut:
    """Intervals at every level for every chip left out, and the level of each phase that the others' rows choose."""

    def __init__(self, rows: Sequence, off: Mapping[str, float], sigma: Mapping[str, float]):
        self.rows, self.off, self.sigma = rows, off, sigma
        self.ends: dict[tuple[str, float], dict] = {}
        for chip in sorted({r.chip for r in rows}):
            for level in LEVELS:
                self.ends[chip, level] = intervals([r for r in rows if r.chip != chip], off, sigma, level)

    def ratio(self, row, level: float) -> tuple[float, float]:
        """Measured over predicted at both ends, learnt without the row's chip [1]."""
        return calibration.interval(calibration.case_classes(row.case), self.sigma[row.id], self.ends[row.chip, level])

    def level(self, phase: str, but: str | None = None) -> float:
        """The level at which a phase's held-out intervals come nearest to 80 %, over all chips but one."""
        others = [r for r in self.rows if r.chip != but and r.case.kind == phase]

        def held(level: float) -> float:
            ends = ((self.ratio(r, level), math.exp(self.off[r.id])) for r in others)
            return sum(low <= miss <= high for (low, high), miss in ends) / max(1, len(others))

        return min(LEVELS, key=lambda level: abs(held(level) - calibration.LEVEL))

    def chosen(self) -> dict[str, dict[str, float]]:
        """Intervals from all rows, each phase's at its level."""
        found: dict[str, dict[str, float]] = {}
        for phase in PHASES:
            for key, part in intervals(self.rows, self.off, self.sigma, self.level(phase)).items():
                found.setdefault(key, {}).update({name: x for name, x in part.items() if name.partition(",")[0] == phase})
        return found

    def table(self, without: Mapping[str, float]) -> dict[str, list[float]]:
        """Per row: predicted rate and both ends [tok/s], and sigma [1]; fits, intervals and levels saw no row of its chip."""
        levels = {(chip, phase): self.level(phase, chip) for chip in {r.chip for r in self.rows} for phase in PHASES}
        found = {}
        for r in self.rows:
            low, high = self.ratio(r, levels[r.chip, r.case.loads[0].phase])
            found[r.id] = [float(f"{x:.5g}") for x in (*(without[r.id] * x for x in (1.0, low, high)), self.sigma[r.id])]
        return dict(sorted(found.items()))


def own_row(rows: Sequence, off: Mapping[str, float]) -> dict[str, list[float]]:
    """By what two tests on one machine share: part of the one's miss to pass on, and the ends of what is left [1].

    Each machine counts once, however many tests it ran.
    """
    found = {}
    for kind, pairs in own_pairs(rows).items():
        a, b = (np.array([off[pair[i].id] for pair in pairs]) for i in (0, 1))
        machines = [pair[0].machine for pair in pairs]
        count = Counter(machines)
        weight = np.array([1 / count[m] for m in machines])
        known = np.abs(a) > 1e-6
        # Least absolute misses through the origin: the median of b / a, weighted by |a|.
        share = float(np.clip(_quantile(b[known] / a[known], 0.5, (weight * np.abs(a))[known]), 0, 1))
        low, high = (math.exp(_quantile(b - share * a, tail, weight)) for tail in TAILS)
        found[kind] = [round(v, 4) for v in (share, min(low, 0.99), max(high, 1.01))]
    return found


def own_pairs(rows: Sequence) -> dict[str, list[tuple]]:
    """(measured, to predict) pairs of tests on one machine and backend, by `calibration.shared`."""
    machines: dict[tuple, list] = {}
    for r in rows:
        if r.case.kind != "mixed":
            machines.setdefault((r.machine, r.case.device.backend), []).append(r)
    found: dict[str, list[tuple]] = {}
    for tests in machines.values():
        for a in tests:
            for b in tests:
                if a is not b:
                    found.setdefault(calibration.shared(b.case, a.case), []).append((a, b))
    return found


def own_misses(rows: Sequence, off: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Median |miss| of a machine's other tests after one of its own, by kind and machine [1].

    The shares passed on were learnt without any row of the chip scored.
    """
    found: dict[str, dict[str, float]] = {}
    chips = sorted({r.chip for r in rows})
    for chip in chips:
        shares = own_row([r for r in rows if r.chip != chip], off)
        for kind, pairs in own_pairs([r for r in rows if r.chip == chip]).items():
            by_machine: dict[str, list[float]] = {}
            for a, b in pairs:
                miss = abs(math.expm1(shares[kind][0] * off[a.id] - off[b.id]))
                by_machine.setdefault(f"{a.machine} {a.case.device.backend}", []).append(miss)
            found.setdefault(kind, {}).update({m: float(np.median(v)) for m, v in by_machine.items()})
    return found


def _quantile(values: np.ndarray, tail: float, weight: np.ndarray) -> float:
    return float(np.quantile(values, tail, weights=weight, method="inverted_cdf"))
