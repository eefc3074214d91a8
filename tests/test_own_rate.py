"""`python -m macros.predict … --own`: a rate far below the prediction is answered with what may be the cause."""

from __future__ import annotations

import json

import pytest

from macros import predict_cli


def asked(capsys: pytest.CaptureFixture, *own: str) -> dict:
    assert predict_cli.main(["RTX 3090", "qwen3-8b-q4_k_m", *own, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_rate_far_below_the_prediction_moves_it_and_names_causes(capsys: pytest.CaptureFixture):
    before, after = asked(capsys), asked(capsys, "--own", "tg128=19.8")
    rates = [next(t for t in found["tests"] if t["test"] == "tg128")["tok_s"] for found in (before, after)]
    assert rates[1] < rates[0] / 2  # what was measured is a fifth of what was predicted
    (told,) = [v for v in after.values() if isinstance(v, list) and v and "cause" in v[0]]
    assert all(c["cause"] and c["check"] for c in told)
