"""Is a series of repetitions calm? Interval of its mean, an outlier in it, a trend along it.

Standard library only; numbers in, numbers out. The three rules are textbook ones, chosen because
they hold for five repetitions as for fifty.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
import statistics
from collections.abc import Sequence

ALPHA = 0.02  # false alarms of each test on calm repetitions; the rarest a trend over five can be is 1 in 60
MATTERS = 0.01  # of the mean: less than what the interval aims at is not worth a word
CONFIDENCE = 0.95


@functools.cache
def t_quantile(p: float, df: int) -> float:
    """Quantile of Student's t distribution, p >= 0.5.

    With t = sqrt(df) tan(u) its density is cos(u)^(df - 1), smooth and bounded: Simpson's rule and bisection.
    Source: NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2 (the table in the doctest).

    >>> [round(t_quantile(0.975, df), 3) for df in (1, 4, 9, 29)]
    [12.706, 2.776, 2.262, 2.045]
    """
    whole = math.sqrt(math.pi) * math.exp(math.lgamma(df / 2) - math.lgamma((df + 1) / 2))
    low, high = 0.0, math.pi / 2
    for _ in range(50):
        middle = (low + high) / 2
        step = middle / 200
        terms = (math.cos(i * step) ** (df - 1) * (1 if i in (0, 200) else 4 if i % 2 else 2) for i in range(201))
        low, high = (middle, high) if 0.5 + sum(terms) * step / 3 / whole < p else (low, middle)
    return math.sqrt(df) * math.tan(low)


def deviation(values: Sequence[float]) -> float:
    """Sample standard deviation, n - 1; NaN for one value.

    The standard library reckons it in fractions: a hundred times as long, and most of a build of many machines.

    >>> round(deviation([4.0, 5.0, 6.0]), 12)
    1.0
    """
    n = len(values)
    mean = math.fsum(values) / n
    return math.sqrt(math.fsum([(v - mean) ** 2 for v in values]) / (n - 1)) if n > 1 else math.nan


def half_width(values: Sequence[float]) -> float:
    """Half the 95 % interval of the mean, relative to the mean (fraction); infinite for one value.

    Assumes: values drawn alike and independently, which a trend breaks.
    Source: NIST/SEMATECH e-Handbook, 1.3.5.2.

    >>> round(half_width([4.0, 5.0, 6.0]), 3)            # 4.303 x 1 / sqrt(3) / 5
    0.497
    """
    n = len(values)
    if n < 2:
        return math.inf
    sigma = deviation(values)
    return t_quantile((1 + CONFIDENCE) / 2, n - 1) * sigma / math.sqrt(n) / statistics.fmean(values)


def share_interval(hits: int, n: int) -> tuple[float, float]:
    """95 % interval of a share of which `hits` of n were seen (fraction).

    Assumes: n independent draws; where they come in clusters that go together, the truth is wider.
    Source: Wilson 1927; the doctest's cases are Newcombe's (1998, Statistics in Medicine 17, table I, method 3).

    >>> [[round(end, 4) for end in share_interval(*case)] for case in ((81, 263), (15, 148), (0, 20))]
    [[0.2553, 0.3662], [0.0624, 0.1605], [0.0, 0.1611]]
    """
    z = statistics.NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    centre, reach = hits + z * z / 2, z * math.sqrt(hits * (n - hits) / n + z * z / 4)
    return max(0.0, (centre - reach) / (n + z * z)), (centre + reach) / (n + z * z)


def share_within(n: int, share: float, apart: float) -> float:
    """How likely a share that is truly `share` comes out within `apart` of it among n (fraction).

    Assumes: n independent draws, as `share_interval` does.
    Source: the binomial distribution; the doctest adds three entries of its table for n = 20, p = 0.8 (0.175 + 0.218 + 0.205).

    >>> round(share_within(20, 0.8, 0.05), 3)
    0.598
    """
    return sum(math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1) if abs(k / n - share) <= apart + 1e-12)


@functools.cache
def grubbs_critical(n: int, alpha: float) -> float:
    """Grubbs' two-sided limit on the largest distance from the mean in sigmas, n values.

    Source: NIST/SEMATECH e-Handbook, 1.3.5.17.1.
    """
    t = t_quantile(1 - alpha / (2 * n), n - 2)
    return (n - 1) / math.sqrt(n) * math.sqrt(t * t / (n - 2 + t * t))


def outlier(values: Sequence[float]) -> int | None:
    """Index of the one value that does not belong (Grubbs' test, and over 1 % from the others' mean); None: all do.

    Assumes: the others scatter normally, and one value at most is off.
    """
    n = len(values)
    sigma = deviation(values) if n > 2 else 0.0
    if not sigma:
        return None
    mean = math.fsum(values) / n
    far = [abs(v - mean) for v in values]
    worst = far.index(max(far))
    if far[worst] / sigma <= grubbs_critical(n, ALPHA):
        return None
    return worst if abs(from_others(values, worst)) > MATTERS else None


def from_others(values: Sequence[float], index: int) -> float:
    """One value over the mean of the others, minus 1 (fraction)."""
    others = [v for i, v in enumerate(values) if i != index]
    return values[index] / statistics.fmean(others) - 1


@functools.cache
def kendall_tail(n: int, s: int) -> float:
    """Chance that n values in random order have a Mann-Kendall S of at least s >= 0.

    Exact, by counting permutations by their inversions; over 20 values by the normal distribution. Source: Kendall 1975, Rank Correlation Methods,
    table of S; as reprinted in Gilbert 1987, table A18.

    >>> [round(kendall_tail(n, s), 4) for n, s in ((4, 6), (5, 10), (10, 23), (10, 27))]
    [0.0417, 0.0083, 0.0233, 0.0083]
    """
    if n > 20:
        return 1 - statistics.NormalDist(0, math.sqrt(n * (n - 1) * (2 * n + 5) / 18)).cdf(s - 1)
    counts = [1]  # permutations of k values by inversions
    for k in range(2, n + 1):
        counts = [sum(counts[max(0, i - k + 1) : i + 1]) for i in range(len(counts) + k - 1)]
    pairs = n * (n - 1) // 2
    return sum(counts[: (pairs - s) // 2 + 1]) / math.factorial(n)


def trend(values: Sequence[float]) -> float | None:
    """Change from the first to the last value over the median (fraction); None: no trend, or one under 1 %.

    A trend is said where the Mann-Kendall test finds one; its size is Theil and Sen's, the median of
    all slopes. Source: Mann 1945; Kendall 1975; Sen 1968.
    """
    n = len(values)
    if n < 3:
        return None
    pairs = list(itertools.combinations(values, 2))
    s = sum(itertools.starmap(operator.lt, pairs)) - sum(itertools.starmap(operator.gt, pairs))
    if 2 * kendall_tail(n, abs(s)) > ALPHA:
        return None
    slope = statistics.median((values[j] - values[i]) / (j - i) for i, j in itertools.combinations(range(n), 2))
    change = slope * (n - 1) / statistics.median(values)
    return change if abs(change) > MATTERS else None
