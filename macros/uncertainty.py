"""How sure the fit is of one prediction: the variance of its logarithm, from the curvature where the fit ended.

What the measurements pin down varies little; a chip, a format or a size unlike theirs varies as its priors do.
`macros.spread` turns this into intervals that hold what they promise. Standard library only.
Source: Laplace's approximation, e.g. MacKay 2003, Information Theory, Inference and Learning Algorithms, chapter 27.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from macros.calibrated import BINDING_NORM, Term, prior

UNIT = 1e-5  # covariances are kept as whole numbers of it


def changes(seconds: Mapping[str, float]) -> dict[str, float]:
    """By part, how much the log of the whole time changes with the log of the part's [1]; see `calibrated.total_s`.

    >>> changes({"weights": 0.03, "kv": 0.01})
    {'weights': 0.75, 'kv': 0.25}
    """
    found = {**seconds}
    if "matmul" in seconds:
        both = seconds["matmul"] ** BINDING_NORM + seconds["streaming"] ** BINDING_NORM
        for name in ("matmul", "streaming"):
            found[name] = seconds[name] ** BINDING_NORM / both * both ** (1 / BINDING_NORM)
    whole = sum(found.values())
    return {name: s / whole for name, s in found.items()}


def variance(parts: Mapping[str, Term], coefficients: Mapping[str, float], covariance: Mapping[str, Sequence[float]]) -> float:
    """Variance of the log of the predicted time that comes from the coefficients [1].

    Args:
        covariance: of the fitted coefficients by name, a phase's after another's: the lower triangle, in UNIT

    Assumes: a coefficient that the fit has not is as uncertain as its prior, and independent of the others.
    """
    each = changes({name: t.seconds(coefficients) for name, t in parts.items()})
    slopes = {n: (each[name] if t.divide else -each[name]) * x for name, t in parts.items() for n, x in t.features.items()}
    new = sum((x * prior(name)[1]) ** 2 for name, x in slopes.items() if name not in covariance)
    # A row ends at its own name's place in the triangle.
    known = [(len(covariance[name]) - 1, x, covariance[name]) for name, x in slopes.items() if name in covariance]
    return new + UNIT * sum(x * (x * row[i] + 2 * sum([y * row[j] for j, y, _ in known if j < i])) for i, x, row in known)
