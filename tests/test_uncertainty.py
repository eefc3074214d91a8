"""How sure the fit says it is of a prediction: against analysis, finite differences, and what must be wider."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from macros import calibrated, calibration, fit, labdata, subject_load, uncertainty
from macros.calibrated import Term


@pytest.fixture(scope="module")
def model():
    return subject_load.from_card(labdata.load().models["qwen3-8b-q4_k_m"])


def test_changes_are_the_slopes_of_the_whole_time():
    """Central differences of `total_s` in the log of each part, streaming near the matmuls' time."""
    parts = {"matmul": 0.020, "attention": 0.004, "streaming": 0.017, "fixed": 0.003}
    step = 1e-5
    for name, found in uncertainty.changes(parts).items():
        up, down = (math.log(calibrated.total_s({**parts, name: parts[name] * math.exp(s)})) for s in (step, -step))
        assert found == pytest.approx((up - down) / (2 * step), rel=1e-6)


def test_variance_by_hand():
    """Half the time from two correlated coefficients, half from one that the fit never met (prior: 0.1)."""
    parts = {"weights": Term(0.01, True, {"w": 1.0, "w.bw": 2.0}), "kv": Term(0.01, False, {"w.gen:new": 1.0})}
    covariance = {"w": [400.0], "w.bw": [-100.0, 900.0]}  # 1e-5: 0.004, -0.001, 0.009
    known = {"w": 0.0, "w.bw": 0.0, "w.gen:new": 0.0}
    by_hand = 0.25 * (0.004 + 2 * 2 * -0.001 + 4 * 0.009) + 0.25 * 0.1**2
    assert uncertainty.variance(parts, known, covariance) == pytest.approx(by_hand)


def test_the_fit_is_as_sure_as_bayes_says():
    """Nine rows of noise 0.1 on a coefficient with a prior of 0.2: variance 1 / (1 / 0.04 + 9 / 0.01), by conjugacy."""
    n = 9
    found, covariance = fit._solve(np.full((1, n, 1), -1.0), np.ones((1, n)), ["weights"], np.zeros(n), np.zeros((n, 0)), np.zeros(0),
                                   np.zeros(1), np.full(1, 0.2), 0.1)  # fmt: skip
    assert found[0] == pytest.approx(0, abs=1e-6)
    assert covariance[0, 0] == pytest.approx(1 / (1 / 0.2**2 + n / 0.1**2), rel=1e-6)


def test_the_kept_covariance_is_one():
    """Read back as a matrix for each phase: variances above zero, no negative eigenvalue beyond rounding."""
    fitted = calibration.fitted()
    rows = fitted["intervals"]["covariance"]
    assert set(rows) == set(fitted["coefficients"])
    starts = [i for i, row in enumerate(rows.values()) if len(row) == 1]
    assert len(starts) == 2  # decode, prefill
    for begin, end in zip(starts, [*starts[1:], len(rows)]):
        n = end - begin
        assert [len(row) for row in list(rows.values())[begin:end]] == list(range(1, n + 1))
        lower = np.array([row + [0] * (n - len(row)) for row in list(rows.values())[begin:end]]) * uncertainty.UNIT
        assert np.diag(lower).min() > 0
        assert np.linalg.eigvalsh(lower + np.tril(lower, -1).T).min() > -n * uncertainty.UNIT


def test_a_chip_unlike_any_other_is_held_wider(model):
    """A generation nobody measured, and a bandwidth beyond all of theirs, each widen the interval."""
    card, _, _ = subject_load.chip_device("RTX 3090")
    known = calibration.fitted()
    for phase, tokens in (("decode", 128), ("prefill", 512)):
        load = subject_load.load(model, phase, tokens, 0)

        def width(device) -> float:
            found = calibration.predicted(subject_load.case(load, device), known["coefficients"], known["intervals"])
            return math.log(found.high_tok_s / found.low_tok_s)

        assert width(replace(card, generation="never seen")) > 1.03 * width(card)
        assert width(replace(card, bandwidth_bytes_s=50e12, flops_s=50 * card.flops_s)) > 1.3 * width(card)
