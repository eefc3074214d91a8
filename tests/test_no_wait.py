"""What a run no longer waits for: a look at the cores, and the first model."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

psutil = pytest.importorskip("psutil")

from bench import host, instruments, surroundings  # noqa: E402


class Times(tuple):
    """As psutil's on Linux: user, idle, iowait and steal [s]."""

    def __new__(cls, user: float, idle: float, iowait: float, steal: float) -> Times:
        made = super().__new__(cls, (user, idle, iowait, steal))
        made.idle, made.iowait, made.steal = idle, iowait, steal
        return made


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch):
    """A kernel whose counters and clock are set by hand, on two cores; and the waits asked for."""
    now = SimpleNamespace(s=100.0, all=Times(0, 0, 0, 0), own=(0.0, 0.0, 0.0, 0.0, 0.0), children=[], waits=[])

    def sleep(for_s: float) -> None:
        now.waits.append(for_s)
        now.s += for_s

    monkeypatch.setattr(host, "time", SimpleNamespace(monotonic=lambda: now.s, sleep=sleep))
    monkeypatch.setattr(host.os, "times", lambda: now.own)
    monkeypatch.setattr(psutil, "cpu_times", lambda: now.all)
    monkeypatch.setattr(psutil, "Process", lambda: SimpleNamespace(children=lambda recursive: now.children))
    return now


def test_others_share_is_counted_over_the_time_between_two_looks(kernel):
    child = SimpleNamespace(cpu_times=lambda: (kernel.used, 0.0, 0.0, 0.0))
    kernel.children, kernel.used = [child], 0.0
    watch = host.Watch()
    # Ten seconds of two cores: 20 s, of which 1 s idle, 1 s waiting for a disk, 0.5 s the host's and 17.5 s used; 15 s the child's, 0.5 s ours.
    kernel.s, kernel.all, kernel.used, kernel.own = 110.0, Times(17.5, 1, 1, 0.5), 15.0, (0.25, 0.25, 0.0, 0.0, 10.0)
    assert watch.share() == 0.1  # 2 s of 20 s
    # Another second, all of it idle: what was before the last look is not counted again.
    kernel.s, kernel.all = 111.0, Times(17.5, 3, 1, 0.5)
    assert watch.share() == 0.0
    assert not any(kernel.waits)


def test_a_child_that_ended_counts_on_with_its_parent(kernel):
    child = SimpleNamespace(cpu_times=lambda: (3.0, 0.0, 0.0, 0.0))
    kernel.children = [child]
    watch = host.Watch()
    # Three seconds before the watch and one after it, all of which the kernel gives its parent when it ends.
    kernel.s, kernel.all, kernel.own, kernel.children = 102.0, Times(2, 2, 0, 0), (0.0, 0.0, 4.0, 0.0, 2.0), []
    assert watch.share() == 0.25  # 1 s of 4 s


def test_less_than_ten_ticks_are_waited_for(kernel):
    watch = host.Watch()
    kernel.s, kernel.all = 100.04, Times(0.1, 0.1, 0, 0)
    assert watch.share() == 0.5
    assert kernel.waits == [pytest.approx(0.06)]


def test_a_moment_holds_what_its_watch_says():
    assert surroundings.look(lambda: 0.25).load == 0.25
    assert instruments.Instrument(None, False, lambda *_: None).preload(None) is None  # an installed llama-bench keeps no model


def test_a_model_loaded_ahead_is_the_next_jobs_and_one_that_does_not_load_is_its_failure(tmp_path: Path):
    pytest.importorskip("llama_cpp")
    from bench import weights
    from bench.engine import Engine, EngineFailed, Job
    from macros.shapes import Shape

    path = weights.ensure(tmp_path, "tiny", Shape("qwen3", 2, 256, 512, 1024, 4, 2, 64, tied=True), "Q8_0")
    job = Job(model_path=str(path), n_prompt=8, n_gen=0, n_threads=1, n_gpu_layers=0, reps=2)
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"GGUF but no model")
    with Engine() as engine:
        engine.preload(job)
        engine.preload(job)  # one is enough
        seen: list[str] = []
        assert len(engine.run(job, lambda e: seen.append(e["event"])).samples_ns) == 2
        assert seen.count("loaded") == seen.count("done") == 1
        engine.preload(Job(model_path=str(bad), n_prompt=8, n_gen=0, n_threads=1, n_gpu_layers=0))
        assert len(engine.run(job).samples_ns) == 2  # nobody asked for a test of it
        with pytest.raises(EngineFailed, match="could not load the model: .*bad.gguf"):
            engine.run(Job(model_path=str(bad), n_prompt=8, n_gen=0, n_threads=1, n_gpu_layers=0))
    with Engine() as engine:  # what is loaded ahead is not read again
        engine.preload(job)
        engine.installed()
        _wait_until_mapped(engine, path)
        path.unlink()
        assert len(engine.run(job).samples_ns) == 2


def _wait_until_mapped(engine, path: Path) -> None:
    import time

    maps = Path(f"/proc/{engine._child.pid}/maps")
    if not maps.exists():
        pytest.skip("this system does not tell what a process has mapped")
    for _ in range(600):
        if path.name in maps.read_text(encoding="utf-8"):
            return
        time.sleep(0.1)
    pytest.fail("the model was not loaded ahead")
