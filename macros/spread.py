"""How far measurements lie from held-out predictions: 80 % intervals, and what one own row tells.

Intervals are linear quantile regressions (scikit-learn's QuantileRegressor) of the held-out log misses
on the classes a row belongs to: a table of numbers that a prediction reads without scikit-learn. MAPIE's
conformal regressors were considered and not used: they hold the estimator they calibrate and refit it
without regard to chips, and a prediction would have to load them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from sklearn.linear_model import QuantileRegressor

from macros import calibration

# The regressions' tails. Rows of one chip miss together, so tails of 10 % hold fewer than 80 % of the
# rows of a chip not seen; these hold 80 % of them, found on the same held-out rows.
TAILS = (0.065, 0.935)
OWN_TAILS = (0.10, 0.90)  # after an own row, machines are what counts
SHRINK = 0.004  # L1 penalty: a class must earn its own width


def intervals(rows: Sequence, off: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Both ends of the interval as coefficients by class, of log(measured / predicted)."""
    rows = [r for r in rows if r.case.kind != "mixed"]
    each = [calibration.case_classes(r.case) for r in rows]
    names = sorted({n for c in each for n in c} - {"all"})
    x = np.array([[c.get(n, 0.0) for n in names] for c in each])
    y = np.array([off[r.id] for r in rows])
    found = {}
    for end, tail in zip(("low", "high"), TAILS, strict=True):
        model = QuantileRegressor(quantile=tail, alpha=SHRINK, solver="highs").fit(x, y)
        found[end] = {n: round(float(c), 4) for n, c in zip(["all", *names], [model.intercept_, *model.coef_]) if abs(c) > 1e-4}
    return found


def held_out_table(rows: Sequence, without: Mapping[str, float], off: Mapping[str, float]) -> dict[str, list[float]]:
    """Per row: predicted rate and both ends, from fits and intervals that saw no row of its chip [tok/s]."""
    found = {}
    for chip in sorted({r.chip for r in rows}):
        ends = intervals([r for r in rows if r.chip != chip], off)
        for r in rows:
            if r.chip == chip:
                rate = without[r.id]
                low, high = calibration.interval(calibration.case_classes(r.case), ends)
                found[r.id] = [float(f"{v:.5g}") for v in (rate, rate * low, rate * high)]
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
        low, high = (math.exp(_quantile(b - share * a, tail, weight)) for tail in OWN_TAILS)
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
