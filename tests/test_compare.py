"""Verdicts, by hand-worked cases; Day 1's come from the lab's notes."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from macros import compare, labdata, rows
from macros.compare import Measured, rate, verdict
from macros.inks import Prediction, Target
from macros.records import Check, Pairs, Result

NAN = float("nan")
OF = Target(experiment="baseline", model="m", test="tg128")


def prediction(kind: str, **given: object) -> Prediction:
    over = OF if kind in ("ratio", "direction") else None
    return Prediction(id="p", quantity="q", kind=kind, as_written="w", unit="tok/s", because="b", of=OF, over=over, **given)


@pytest.mark.parametrize(
    ("p", "mean", "sigma", "expected"),
    [
        (prediction("ceiling", value=24.0), 20.8, 0.05, "unbroken"),
        (prediction("ceiling", value=24.0), 24.5, 0.05, "broken"),
        (prediction("ceiling", value=24.0), 24.5, 0.5, "unbroken"),  # within two sigma
        (prediction("ceiling", value=24.0), 24.5, NAN, "undecided"),  # one repetition: the noise is not known
        (prediction("ceiling", value=24.0), 20.8, NAN, "unbroken"),
        (prediction("point", value=100.0), 300.0, NAN, "undecided"),
        (prediction("point", value=100.0), 101.0, NAN, "held"),
        (prediction("interval", low=11.5, high=12.0), 20.0, NAN, "undecided"),
        (prediction("direction", direction="falls"), 0.5, NAN, "undecided"),
        (prediction("point", value=100.0), 109.9, 0.1, "held"),
        (prediction("point", value=100.0), 111.0, 0.1, "missed"),
        (prediction("point", value=100.0), 111.0, 3.0, "undecided"),
        (prediction("interval", low=11.5, high=12.0), 11.7, 5.0, "held"),
        (prediction("interval", low=11.5, high=12.0), 12.52, 0.08, "missed"),
        (prediction("interval", low=11.5, high=12.0), 12.1, 0.08, "undecided"),
        (prediction("direction", direction="craters"), 0.1, 0.01, "held"),
        (prediction("direction", direction="barely changes"), 0.61, 0.065, "missed"),
        (prediction("direction", direction="falls"), 0.95, 0.04, "undecided"),
        (prediction("direction", direction="falls"), 1.2, 0.04, "missed"),
    ],
)
def test_verdicts(p: Prediction, mean: float, sigma: float, expected: str):
    assert verdict(p, Measured(mean, sigma, 5)) == expected


def test_absent_is_not_measured():
    assert verdict(prediction("point", value=1.0), None) == "not measured"


def test_day_1_scores_as_the_notes_say():
    scores = {s.prediction.id: s for s in compare.scores(labdata.load(), "day-01")}
    assert {k: s.verdict for k, s in scores.items()} == {
        "file-size": "held",
        "decode-ceiling": "unbroken",
        "prefill-guess": "missed",
        "depth-ratio": "held",
        "q8-file-size": "held",
        "q8-decode": "missed",
        "q8-prefill": "held",
        "cpu-prefill": "held",
        "cpu-decode": "missed",
    }
    assert round(scores["decode-ceiling"].utilisation, 3) == 0.867  # 20.80 / 24
    assert round(scores["prefill-guess"].gap, 3) == -0.364  # 228.94 / 360 - 1
    assert round(scores["depth-ratio"].gap, 4) == -0.0052  # (15.97 / 19.82) / 0.81 - 1
    assert round(1 / scores["cpu-prefill"].measured.mean, 1) == 10.3
    assert round(1 / scores["cpu-decode"].measured.mean, 1) == 1.6


def result(samples_ns: list[int], **more: object) -> Result:
    return Result(experiment="e", model="m", n_prompt=0, n_gen=128, depth=0, backend="CPU", samples_ns=samples_ns, **more)


def test_statistics_are_llama_benchs():
    # rates 128, 64 and 32 tok/s: mean 74.666..., sample sigma 48.881...
    m = rate(result([1_000_000_000, 2_000_000_000, 4_000_000_000]))
    assert m.mean == pytest.approx(74.6667, rel=1e-5)
    assert m.sigma == pytest.approx(48.8808, rel=1e-5)
    assert math.isnan(rate(result([1_000_000_000])).sigma)  # one repetition says nothing of the noise


def test_noise_and_load_are_said():
    noisy = result([1_000_000_000, 2_000_000_000], load_before=0.9)
    assert [w.split(":")[0] for w in compare.conditions(noisy)] == ["busy machine", "noisy"]
    assert compare.conditions(result([1_000_000_000, 1_001_000_000], load_before=0.1)) == []


def test_a_checks_interval_resamples_whole_pairs():
    """Every b is 10 % above its own a, though a itself wanders by half: nothing is left open."""
    a = [100.0, 150.0, 120.0, 90.0, 110.0]
    series = {"pp512": [1.1 * x for x in a], "tg128": a[::-1]}
    pairs = [Pairs(test=test, a=a, b=b, unit="tok/s") for test, b in series.items()]
    same = {"title": "t", "kind": "measured", "note": "n"}
    document = Check(schema=1, id="c", title="t", setting="s", date=None, a="x", b="y", pairs=pairs, source="s", sources={"s": same})
    scaled, shuffled = rows.check(document)
    assert (scaled["median_a"], scaled["pairs"]) == (110.0, 5)
    assert scaled["ratio_low"] == scaled["ratio_high"] == pytest.approx(1.1)
    assert shuffled["ratio"] == 1 and shuffled["ratio_low"] < 1 < shuffled["ratio_high"]


def test_shares_take_the_quiet_baseline_and_not_the_sweeps_own_start():
    """Day 1's napkin: 20.80 x 5.03 / 120 and 228.94 x 2 x 8.19e9 / 4.4e12."""
    lab = labdata.load()
    frame = pd.DataFrame(rows.shares(lab, rows.at_rest(lab, lab.runs_of("apple-m4-24gb")))).set_index(["test", "model", "backend"])["first_order"]
    assert frame["tg128", "qwen3-8b-q4_k_m", "Metal"] == pytest.approx(0.872, abs=5e-4)
    assert frame["pp512", "qwen3-8b-q4_k_m", "Metal"] == pytest.approx(0.852, abs=5e-4)
