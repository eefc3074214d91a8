"""Orderings, gaps with their own uncertainty, and "not distinguishable"; cases worked by hand."""

from __future__ import annotations

import math

import pytest

from macros import compare, labdata
from macros.compare import Measured, Score, verdict, weakest
from macros.inks import Prediction, Target
from macros.narrative import gap_text, verdict_text
from macros.posts import differ_words
from macros.values import Value

A, B, C = (Target(experiment="e", model=m, test="tg128") for m in "abc")
NAN = math.nan


def prediction(kind: str, **given: object) -> Prediction:
    return Prediction(**{"id": "p", "quantity": "q", "kind": kind, "as_written": "w", "unit": "tok/s", "because": "b", "of": A, **given})


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ([(30, 0.1), (20, 0.1), (10, 0.1)], "held"),
        ([(30, 0.1), (10, 0.1), (20, 0.1)], "missed"),
        ([(30, 0.1), (20, 0.5), (19.5, 0.5)], "undecided"),  # the second pair: 1.026 ± 0.037
        ([(30, 0.1), (20, 0.1), (10, NAN)], "undecided"),  # one repetition leaves the second pair open
        ([(30, NAN), (20, 0.1), (25, 0.1)], "missed"),  # whatever the first pair is, the second contradicts
        ([(30, 0), (20, 0), (10, 0)], "held"),
    ],
)
def test_an_ordering_is_as_good_as_its_weakest_pair(rates: list, expected: str):
    m = weakest([Measured(mean, sigma, 5) for mean, sigma in rates])
    assert verdict(prediction("ordering", slower=[B, C], unit="1"), m) == expected


def test_an_ordering_is_scored_from_the_runs():
    """Day 1: 20.80 Metal Q4, 12.69 ± 1.36 CPU Q4, 12.52 Metal Q8: the last two cannot be told apart."""
    lab = labdata.load()
    q4, q8 = "qwen3-8b-q4_k_m", "qwen3-8b-q8_0"
    of, cpu, fmt = (Target(experiment=e, model=m, test="tg128") for e, m in (("baseline", q4), ("cpu", q4), ("format", q8)))
    ink = lab.inks["day-01"]
    for slower, expected in (([cpu], "held"), ([cpu, fmt], "undecided")):
        p = prediction("ordering", of=of, slower=slower, unit="1")
        lab.inks["day-01"] = ink.model_copy(update={"predictions": [p]})
        (s,) = compare.scores(lab, "day-01")
        assert s.verdict == expected
        assert s.same == (expected == "undecided")


@pytest.mark.parametrize(
    ("p", "mean", "sigma", "gap", "words"),
    [
        (prediction("point", value=100.0), 103.0, 2.0, "+3.0 ± 2.0 %", "held, not distinguishable"),
        (prediction("point", value=100.0), 103.0, 1.0, "+3.0 ± 1.0 %", "held"),
        (prediction("point", value=100.0), 120.0, 15.0, "+20 ± 15 %", "undecided, not distinguishable"),
        (prediction("interval", low=10.0, high=12.0), 12.6, 0.1, "+5.00 ± 0.83 %", "missed"),
        (prediction("interval", low=10.0, high=12.0), 11.0, 5.0, "", "held"),
        (prediction("ceiling", value=24.0), 18.0, 0.1, "75 % of roof (MBU)", "unbroken"),
        (prediction("ratio", value=0.8, over=B, unit="1"), 0.88, 0.02, "+10.0 ± 2.5 %", "held"),
        (prediction("direction", direction="rises", over=B, unit="1"), 1.01, 0.02, "", "undecided, not distinguishable"),
        (prediction("direction", direction="barely changes", over=B, unit="1"), 1.01, 0.02, "", "held, not distinguishable"),
        (prediction("point", value=100.0), 103.0, NAN, "+3.0 %", "held"),  # one repetition: the noise is not known
    ],
)
def test_a_gap_carries_the_measurements_sigma_and_noise_is_said(p: Prediction, mean: float, sigma: float, gap: str, words: str):
    m = Measured(mean, sigma, 5)
    s = Score("i", p, m, verdict(p, m))
    assert gap_text(s).replace("\u202f", " ").replace("\u00a0", " ") == gap
    assert verdict_text(s) == words


def test_two_values_are_said_to_differ_only_beyond_noise():
    def value(n: float, sigma: float | None) -> Value:
        return Value(n, "tok/s", "measured", sigma=sigma)

    assert differ_words(value(20.80, 0.05), value(19.82, 0.38)) == "differ beyond noise"  # 0.98 against 2 x 0.383
    assert differ_words(value(228.94, 0.10), value(226.70, 7.47)) == "are not distinguishable"
    assert "unknown" in differ_words(value(20.80, None), value(1.0, 0.1))
    with pytest.raises(ValueError, match="two units"):
        differ_words(value(1.0, 0.1), Value(1.0, "GB/s", "measured", sigma=0.1))
