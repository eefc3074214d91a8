"""Ink against measurement: statistics of a result, and the one place verdicts are decided."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from macros import noise, units
from macros.inks import DIRECTIONS, Prediction, Target
from macros.labdata import Lab, LabError, same_setting
from macros.records import Result, Run

# The rules, stated on the method page from these very numbers.
NOISE_SIGMAS = 2.0  # two numbers closer than this many sigma are not said to differ
TOLERANCE = 0.10  # a point or a ratio this close to the measurement held
NOISY_SIGMA = 0.10  # sigma over the mean from which a test is called noisy (pyperf's rule)
BUSY_LOAD = 0.5  # share of the cores in use from which a machine is called busy
STOLEN = 0.02  # share of the cores its host gave to others from which a virtual machine's test says so
ASKED_AGAIN = 2000  # results: a machine's page, its summary, the comparison and the downloads ask of the same few hundred

SAME = "not distinguishable"  # said where two numbers differ by less than the noise

VERDICTS: dict[str, str] = {
    "unbroken": "the measurement stayed under the ceiling",
    "broken": "the measurement passed the ceiling beyond noise",
    "held": "the measurement bore the prediction out",
    "missed": "the measurement contradicts the prediction beyond noise",
    "undecided": "the noise is wider than the distance between the two, or one repetition leaves it unknown",
    "not measured": "the test did not run, or failed",
}


@dataclass(frozen=True)
class Measured:
    """A measured number with its sample standard deviation [same unit; NaN: not known] and repetitions (None: not told)."""

    mean: float
    sigma: float
    n: int | None

    @property
    def relative_sigma(self) -> float:
        """Sigma over the mean (fraction)."""
        return self.sigma / self.mean


def rate(result: Result) -> Measured | None:
    """Rate of a test [tok/s]; None where it failed.

    The mean is the mean of the repetitions' rates and sigma their sample standard deviation
    (n - 1), as llama-bench computes them. It prints 0 for one repetition, which is not known here.
    """
    if result.published:
        p = result.published
        return Measured(p.mean_tok_s, math.nan if p.sigma_tok_s is None else p.sigma_tok_s, p.n)
    if result.samples_ns is None:
        return None
    return _of_samples(result.n_tokens, tuple(result.samples_ns))


@lru_cache(maxsize=ASKED_AGAIN)
def _of_samples(n_tokens: int, samples_ns: tuple[int, ...]) -> Measured:
    rates = [n_tokens / (ns / 1e9) for ns in samples_ns]
    return Measured(math.fsum(rates) / len(rates), noise.deviation(rates), len(rates))


def ratio(a: Measured, b: Measured) -> Measured:
    """a / b with the uncertainties of both (first order, independent).

    >>> r = ratio(Measured(15.97, 0.06, 5), Measured(19.82, 0.38, 5))   # Day 1: 8k over 0
    >>> round(r.mean, 3), round(r.sigma, 3)
    (0.806, 0.016)
    """
    mean = a.mean / b.mean
    return Measured(mean, mean * math.hypot(a.relative_sigma, b.relative_sigma), min((n for n in (a.n, b.n) if n is not None), default=None))


def differ(a: Measured, b: Measured) -> bool | None:
    """Whether two measured numbers differ beyond noise; None: the noise of one is not known.

    >>> differ(Measured(20.80, 0.05, 5), Measured(19.82, 0.38, 5))       # Day 1: quiet and loaded
    True
    >>> differ(Measured(228.94, 0.10, 5), Measured(226.70, 7.47, 5))     # Day 1: prefill, two formats
    False
    """
    reach = NOISE_SIGMAS * math.hypot(a.sigma, b.sigma)
    return None if math.isnan(reach) else abs(a.mean - b.mean) > reach


def gap(measured: float, predicted: float) -> float:
    """measured / predicted - 1 (fraction).

    >>> round(gap(228.94, 360), 2)              # Day 1: the prefill folklore
    -0.36
    """
    return measured / predicted - 1


@dataclass(frozen=True)
class Score:
    """One prediction against what was measured."""

    ink: str
    prediction: Prediction
    measured: Measured | None
    verdict: str
    run: Run | None = None

    @property
    def gap(self) -> float | None:
        """Signed distance (fraction): from the point, or from the nearer end of an interval."""
        return gap(self.measured.mean, self._nearest) if self._has_gap else None  # type: ignore[union-attr]

    @property
    def _has_gap(self) -> bool:
        return self.measured is not None and self.prediction.kind not in ("direction", "ordering")

    @property
    def gap_sigma(self) -> float | None:
        """Sigma of the gap (fraction): the measurement's own, the ink has none. NaN: not known."""
        return self.measured.sigma / self._nearest if self._has_gap else None  # type: ignore[union-attr]

    @property
    def _nearest(self) -> float:
        """The inked number nearest to the measurement; 1 for a direction or an ordering."""
        p = self.prediction
        if p.kind == "interval":
            return min(max(self.measured.mean, p.low), p.high)  # type: ignore[type-var, union-attr, return-value]
        return p.value or 1.0

    @property
    def distance_sigmas(self) -> float | None:
        """Distance from the ink in sigmas of the measurement; None where one repetition, or none, leaves it unknown."""
        if self.measured is None or math.isnan(self.measured.sigma):
            return None
        away = abs(self.measured.mean - self._nearest)
        return away / self.measured.sigma if self.measured.sigma else math.inf if away else 0.0

    @property
    def same(self) -> bool:
        """Whether measurement and ink (or, for a direction and an ordering, the two measurements) do not differ beyond noise."""
        away = self.distance_sigmas
        return away is not None and away <= NOISE_SIGMAS

    @property
    def utilisation(self) -> float | None:
        """Measured over a ceiling (fraction): MBU for decode, MFU for prefill."""
        if self.measured is None or self.prediction.kind != "ceiling":
            return None
        return self.measured.mean / self.prediction.value  # type: ignore[operator]


def verdict(p: Prediction, m: Measured | None) -> str:
    """The verdict word, by kind of prediction.

    A ceiling is broken, and a point, ratio, interval or direction missed, only beyond noise;
    noise alone never earns a "held". Noise that is not known passes no limit: nothing compares with NaN.
    """
    if m is None:
        return "not measured"
    noise = NOISE_SIGMAS * m.sigma
    if p.kind == "ceiling":
        if m.mean > p.value and math.isnan(noise):  # type: ignore[operator]
            return "undecided"
        return "broken" if m.mean - noise > p.value else "unbroken"  # type: ignore[operator]
    if p.kind in ("direction", "ordering"):
        low, high = DIRECTIONS["rises" if p.slower else p.direction]  # type: ignore[index]
        if low <= m.mean - noise and m.mean + noise <= high:
            return "held"
    elif p.kind == "interval":
        low, high = p.low, p.high  # type: ignore[assignment]
        if low <= m.mean <= high:
            return "held"
    else:
        low, high = p.value * (1 - TOLERANCE), p.value * (1 + TOLERANCE)  # type: ignore[operator]
        if low <= m.mean <= high:
            return "held"
    return "missed" if m.mean + noise < low or m.mean - noise > high else "undecided"


def weakest(falling: list[Measured]) -> Measured:
    """Faster over slower of the pair of neighbours that bears an ordering out least, in sigmas of its ratio.

    >>> round(weakest([Measured(20.8, 0.05, 5), Measured(12.69, 1.36, 5), Measured(12.52, 0.08, 5)]).mean, 2)
    1.01
    """

    def sigmas(r: Measured) -> float:
        if math.isnan(r.sigma) or r.mean == 1:
            return 0.0  # not known, or no difference: weaker than any clear one, stronger than a contradiction
        return (r.mean - 1) / r.sigma if r.sigma else math.copysign(math.inf, r.mean - 1)

    return min((ratio(a, b) for a, b in zip(falling, falling[1:], strict=False)), key=sigmas)


Found = dict[tuple[str, str, int, str], tuple[Run, Result]]


def newest(runs: list[Run]) -> Found:
    """The newest result among some runs, oldest first, of each experiment, test, depth and model."""
    return {(r.experiment, r.test, r.depth, r.model): (run, r) for run in runs for r in run.results}


def find(found: Found, target: Target) -> tuple[Run, Result] | None:
    """The newest result that is what a prediction is about; None where none is."""
    return found.get((target.experiment, target.test, target.depth, target.model))


def measure(lab: Lab, found: Found, target: Target) -> tuple[Measured | None, Run | None]:
    """What a target came to (rate in tok/s, or a file's size in B), and the run that says so."""
    if target.test == "file_size":
        return Measured(lab.models[target.model].file_bytes(), 0.0, 1), None
    hit = find(found, target)
    return (rate(hit[1]), hit[0]) if hit else (None, None)


def score(lab: Lab, ink: str, name: str) -> Score:
    """One prediction of an ink scored on the runs made on it.

    Raises:
        LabError: no such ink or prediction.
    """
    return _score(lab, ink, lab.prediction(ink, name), newest(lab.runs_on(ink)))


def _score(lab: Lab, ink: str, p: Prediction, found: Found) -> Score:
    m, run = measure(lab, found, p.of)
    if p.over and m:
        base, _ = measure(lab, found, p.over)
        m = ratio(m, base) if base else None
    if p.slower and m:
        rest = [measure(lab, found, t)[0] for t in p.slower]
        m = weakest([m, *rest]) if all(rest) else None  # type: ignore[list-item]
    if m and p.of.test == "file_size":
        unit = units.to_si(1.0, p.unit)
        m = Measured(m.mean / unit, 0.0, 1)
    return Score(ink, p, m, verdict(p, m), run)


def scores(lab: Lab, ink: str, runs: list[Run] | None = None) -> list[Score]:
    """Every prediction of an ink, scored on the runs made on it (or on `runs`), in the order it was written."""
    document = lab.get("inks", ink)
    found = newest(lab.runs_on(ink) if runs is None else runs)
    return [_score(lab, ink, p, found) for p in document.predictions]


def tally(all_scores: list[Score]) -> dict[str, int]:
    """How many predictions got each verdict, in the order of VERDICTS, zeros left out."""
    words = [s.verdict for s in all_scores]
    return {word: words.count(word) for word in VERDICTS if word in words}


def result_of(lab: Lab, machine: str, run: str, test: str, depth: int = 0, model: str | None = None) -> Result:
    """One result of one run.

    Raises:
        LabError: no such run, no such test in it, or more than one; the known ones are named.
    """
    document = lab.get("runs", f"{machine}/{run}")
    hits = [r for r in document.results if same_setting(r, r.experiment, test, depth, model)]
    if len(hits) != 1:
        known = ", ".join(f"{r.test} @ {r.depth} ({r.model})" for r in document.results)
        found = "no such test" if not hits else f"{len(hits)} such tests, name the model"
        raise LabError([f"labdata/runs/{machine}/{run}.yml: results: {found}; got {test} @ {depth}; known: {known}"])
    return hits[0]


def share(fraction: float) -> str:
    """A fraction in whole percent, as pages write it.

    >>> share(0.114)
    '11\\u202f%'
    """
    return f"{100 * fraction:.0f}\u202f%"


def conditions(result: Result, measured: Measured | None = None) -> list[str]:
    """What a reader must know beside this number: busy or hot machine, noise, an outlier, a trend; empty when calm. `measured` is its `rate`, where that is at hand."""
    words = []
    if result.load_before is not None and result.load_before > BUSY_LOAD:
        words.append(f"busy machine: {share(result.load_before)} of the cores in use before the test")
    words += surroundings(result)
    measured = measured or rate(result)
    if measured and measured.relative_sigma > NOISY_SIGMA:
        words.append(f"noisy: σ is {share(measured.relative_sigma)} of the mean")
    return [*words, *_unsteady(tuple(result.samples_ns or ()))]


@lru_cache(maxsize=ASKED_AGAIN)
def _unsteady(times: tuple[int, ...]) -> tuple[str, ...]:
    """What stands out among a test's repetitions."""
    words = []
    odd = noise.outlier(times)
    if odd is not None:
        words.append(f"outlier: repetition {odd + 1} of {len(times)} took {1 + noise.from_others(times, odd):.2f} times as long as the others")
    change = noise.trend(times)
    if change is not None:
        words.append(f"trend: {share(abs(change))} {'slower' if change > 0 else 'faster'} from the first to the last repetition")
    return tuple(words)


def surroundings(result: Result) -> list[str]:
    """What the machine did to a test meanwhile: heat, a host that gave its cores to others, rounds that failed."""
    throttled, limit, stolen, failed = False, 1.0, 0.0, []
    for s in result.sittings:
        throttled = throttled or bool(s.throttled)
        limit = min([limit, *[x for x in s.speed_limit if x is not None]])
        stolen = max(stolen, s.steal or 0.0)
        failed += [s.failed] if s.failed else []
    words = []
    if throttled:
        words.append("hot: the CPU slowed itself down meanwhile")
    if limit < 1:
        words.append(f"hot: the CPU was held to {share(limit)} of its speed")
    if stolen > STOLEN:
        words.append(f"shared host: {share(stolen)} of the cores' time went to others")
    if failed and not result.failed:
        words.append(f"{len(failed)} of {len(result.sittings)} rounds failed: {failed[0]}")
    return words
