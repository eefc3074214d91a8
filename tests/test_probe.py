"""The probes: a result with its samples; how fast is for the machine to say."""

import pytest

pytest.importorskip("numpy")

from bench import probe  # noqa: E402


@pytest.mark.parametrize(
    ("measure", "unit"), [(probe.read_bandwidth, "B/s"), (probe.matmul_flops, "FLOP/s")]
)
def test_result_keeps_its_samples_and_its_method(measure, unit):
    result = measure(1)
    assert result.unit == unit and result.n_threads == 1
    assert result.samples and result.value == max(result.samples) > 0
    assert "numpy" in result.method and result.numpy and result.blas


def test_a_probe_that_dies_is_one_line():
    with pytest.raises(probe.ProbeFailed, match=r"probe nonsense: ended with exit code 1; .*nonsense"):
        probe._in_child("nonsense", 1)
