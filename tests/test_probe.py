"""The probes: a result with its samples; how fast is for the machine to say."""

import shutil
import subprocess

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


def test_threads_are_swept_from_one_to_all():
    assert probe.sweep(4, 4) == [1, 2, 4]
    assert probe.sweep(10, 10) == [1, 2, 4, 8, 10]
    assert probe.sweep(8, 16) == [1, 2, 4, 8, 16]
    assert probe.sweep(1, 1) == [1]


def test_the_c_loop_reads_what_it_says(tmp_path, monkeypatch):
    """Its reads are not optimised away: no memory gives 10 TB/s to two threads,."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("no C compiler")
    reader = probe.compiled_reader(compiler, tmp_path)
    monkeypatch.setattr(probe, "_array_bytes", lambda: 64 * 10**6)
    assert all(1e6 < probe.c_read_bandwidth(reader, n) < 1e13 for n in (1, 2))
    done = subprocess.run([str(reader), "2", "64000000", "3"], capture_output=True, text=True, check=True)
    assert len(done.stdout.split()) == 3
    with pytest.raises(probe.ProbeFailed, match="does not compile"):
        monkeypatch.setattr(probe, "READ_C", tmp_path / "gone.c")
        probe.compiled_reader(compiler, tmp_path)


def test_a_probe_that_dies_is_one_line():
    with pytest.raises(probe.ProbeFailed, match=r"probe nonsense: ended with exit code 1; .*nonsense"):
        probe._in_child("nonsense", 1)
