"""The engine's child from one test to the next: what it keeps, what it frees, and who it ends with."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("llama_cpp")
psutil = pytest.importorskip("psutil")

from bench import host, instruments, plan, prepare, session, surroundings, weights  # noqa: E402
from bench.engine import Engine, EngineFailed, Job, Outcome  # noqa: E402
from bench.options import Options  # noqa: E402
from bench.schedule import Schedule  # noqa: E402
from macros import labdata  # noqa: E402
from macros.inks import Target  # noqa: E402
from macros.shapes import Shape  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
TINY = Shape("qwen3", 2, 256, 512, 1024, 4, 2, 64, tied=True)
WIDE = Shape("qwen3", 2, 512, 1024, 32768, 8, 2, 64, tied=True)  # 20 MB, so that one kept too many shows


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return weights.ensure(tmp_path_factory.mktemp("models"), "tiny", TINY, "Q8_0")


@pytest.fixture
def engine():
    with Engine() as child:
        yield child
    assert not children()


def job(path: Path, **values: object) -> Job:
    return Job(model_path=str(path), **{"n_prompt": 0, "n_gen": 0, "n_threads": 1, "n_gpu_layers": 0, "reps": 1, **values})


def children() -> list:
    """Those alive: what one wrote before it was killed is read after."""
    return [c for c in psutil.Process().children() if c.status() != psutil.STATUS_ZOMBIE and "bench.engine" in c.cmdline()]


def crash(event: dict) -> None:
    for child in children() if event["event"] == "sample" else []:
        child.send_signal(signal.SIGSEGV)


def test_tests_of_one_model_share_its_weights(engine: Engine, model: Path, tmp_path: Path):
    path = tmp_path / "once.gguf"
    path.write_bytes(model.read_bytes())
    first = engine.run(job(path, n_prompt=32, reps=2))
    (child,) = children()
    path.unlink()  # what is read a second time is not there
    second = engine.run(job(path, n_gen=4, reps=3, type_k="q8_0", type_v="q8_0", flash_attn="on"))
    assert children() == [child]
    assert [len(o.samples_ns) for o in (first, second)] == [2, 3]
    # A context is each test's own: llama.cpp rounds its cells up to 256.
    assert first.facts["n_ctx"] == 256 and second.facts["flash_attn_used"] is True
    assert engine.run(job(path, n_gen=1, depth=600)).facts["n_ctx"] == 768
    with pytest.raises(EngineFailed, match="could not load the model: .*once.gguf"):
        engine.run(job(path, n_prompt=8, n_gpu_layers=-1))  # loaded otherwise is another load
    assert not children()


def depth_tokens(engine: Engine, test: Job) -> list[int]:
    """Tokens reported done before the first sample, after the warm-up's."""
    events: list[dict] = []
    engine.run(test, events.append)
    until = [e["event"] for e in events].index("sample")
    done = [e["done_tokens"] for e in events[:until] if e["event"] == "progress"]
    assert [e for e in events if e["event"] == "progress"][-1]["done_tokens"] == events[-2]["total_tokens"]
    return [b - a for a, b in zip(done, done[1:], strict=False)]


def test_a_depth_is_prefilled_once_for_the_tests_at_it(engine: Engine, model: Path):
    assert depth_tokens(engine, job(model, n_prompt=16, depth=300)) == [300]
    assert depth_tokens(engine, job(model, n_gen=4, depth=300)) == []
    assert depth_tokens(engine, job(model, n_gen=4, depth=200)) == [200]
    assert depth_tokens(engine, job(model, n_gen=4, depth=200, type_k="q8_0", flash_attn="on")) == [200]  # another cache
    engine.run(job(model, n_gen=1))
    assert depth_tokens(engine, job(model, n_gen=4, depth=200, type_k="q8_0", flash_attn="on")) == [200]  # not held on to meanwhile


def test_a_model_is_freed_before_the_next_is_loaded(engine: Engine, model: Path, tmp_path: Path):
    big = weights.ensure(tmp_path, "wide", WIDE, "Q8_0")
    size = big.stat().st_size
    assert size > 15e6

    def after(path: Path, **more: object) -> tuple[set[str], int]:
        engine.run(job(path, **{"n_prompt": 8, **more}))
        (child,) = children()
        with open(f"/proc/{child.pid}/maps", encoding="utf-8") as maps:
            return {Path(line.split()[-1]).name for line in maps if ".gguf" in line}, child.memory_full_info().uss

    if not Path("/proc/self/maps").exists():
        pytest.skip("this system does not tell what a process has mapped")
    assert after(big)[0] == {big.name}
    names, at_first = after(model)
    assert names == {model.name}
    for _ in range(4):
        after(big, depth=64, n_gen=4)
        names, now = after(model)
    assert names == {model.name}
    assert now - at_first < size, "grows by less than one model over four"


def test_a_crash_costs_the_test_under_way_only(engine: Engine, model: Path):
    assert len(engine.run(job(model, n_prompt=16, reps=2)).samples_ns) == 2
    (first,) = children()
    os.write(engine._stderr.fileno(), b"error: of an earlier test\n")  # explains no later one's end
    with pytest.raises(EngineFailed, match="killed by SIGSEGV; last words: it said nothing"):
        engine.run(job(model, n_gen=64, reps=10_000), crash)
    assert len(engine.run(job(model, n_gen=4, reps=3)).samples_ns) == 3
    (second,) = children()
    assert second != first
    second.kill()  # between two tests, it is neither's fault
    psutil.wait_procs([second], timeout=60)
    assert len(engine.run(job(model, n_gen=4, reps=2)).samples_ns) == 2


def test_ctrl_c_in_the_second_test_ends_the_child(engine: Engine, model: Path):
    def interrupt(_: dict) -> None:
        raise KeyboardInterrupt

    engine.run(job(model, n_prompt=8))
    assert children()
    with pytest.raises(KeyboardInterrupt):
        engine.run(job(model, n_gen=64, reps=10_000), interrupt)
    assert not children()


@pytest.mark.parametrize("then", ["time.sleep(600)", "engine.run(replace(one, n_gen=64, reps=1_000_000))"])
def test_a_killed_parent_leaves_no_child(model: Path, then: str):
    script = f"import time\nfrom bench.engine import *\none = {job(model, n_prompt=8)!r}\nengine = Engine()\nengine.run(one)\nprint('on', flush=True)\n{then}"
    parent = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE)
    assert parent.stdout.readline() == b"on\n"
    (child,) = psutil.Process(parent.pid).children()
    os.kill(parent.pid, signal.SIGKILL)
    parent.communicate()
    psutil.wait_procs([child], timeout=60)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


# A run: which process a test is in


def planned(*labels: str) -> list[plan.Test]:
    return [plan.Test(Target(experiment=name, model="m", test="tg8", depth=0), 0, 8, False) for name in labels]


def sat(monkeypatch: pytest.MonkeyPatch, schedule: Schedule, samples) -> list[str]:
    """What a run asks of its instrument, in order: a test's name, or "new" for a new process."""
    log: list[str] = []
    tests = planned("a", "b")
    monkeypatch.setattr(session, "save", lambda run: None)
    monkeypatch.setattr(surroundings, "look", lambda *_: surroundings.Moment(0.0, 0.0))
    run = next(iter(labdata.load().runs.values())).model_copy(update={"planned": [t.target.label for t in tests], "notes": [], "results": []})

    def measure(asked: Job, _: object) -> Outcome:
        return Outcome(samples(len(log), asked.reps), {"backend": "CPU"})

    one = session.one

    def named(test: plan.Test, *rest: object) -> object:
        log.append(test.target.experiment)
        return one(test, *rest)

    monkeypatch.setattr(session, "one", named)
    instrument = instruments.Instrument(run.instrument, False, measure, renew=lambda: log.append("new"))
    held = prepare.Weights({"Q8_0": SimpleNamespace(id="m")}, {"Q8_0": Path("m.gguf")})
    session.perform(run, tests, held, Options(reps=schedule.reps), 1, instrument, schedule, lambda *_: None, lambda *_: None, lambda _: None)
    return log


def steady(_: int, reps: int) -> list[int]:
    return [10**9] * reps


def test_one_round_is_one_process_and_each_further_round_another(monkeypatch: pytest.MonkeyPatch):
    assert sat(monkeypatch, Schedule(5), steady) == ["a", "b"]


def test_rounds_still_turn_their_order(monkeypatch: pytest.MonkeyPatch):
    assert sat(monkeypatch, Schedule(3, rounds=3), steady) == ["a", "b", "new", "b", "a", "new", "a", "b"]


def test_added_repetitions_still_take_turns(monkeypatch: pytest.MonkeyPatch):
    wild = lambda n, reps: [10**9, 2 * 10**9] * (reps // 2)  # noqa: E731
    log = sat(monkeypatch, Schedule(10, auto=True), wild)
    assert log == ["a", "b", "new", "b", "a", "new", "a", "b"]  # to the cap of 30


# Who uses the cores


def test_the_benchs_own_use_of_the_cores_is_no_load(monkeypatch: pytest.MonkeyPatch):
    """Two cores over a second: 0.5 s idle, 0.1 s of waiting for a disk, 0.3 s ours and 0.7 s a child's leave 0.4 s of 2 s."""
    counted = iter([SimpleTimes(10, 0, 0), SimpleTimes(11.4, 0.5, 0.1)])
    ours = iter([(1.0, 0.0, 0.0, 0.0, 9.0), (1.2, 0.0, 0.1, 0.0, 9.5)])
    child = SimpleNamespace(cpu_times=iter([(3.0, 1.0, 0.0, 0.0, 0.0), (3.5, 1.2, 0.0, 0.0, 0.0)]).__next__)
    monkeypatch.setattr(host.time, "sleep", lambda _: None)
    monkeypatch.setattr(host.os, "times", ours.__next__)
    monkeypatch.setattr(psutil, "cpu_times", counted.__next__)
    monkeypatch.setattr(psutil, "Process", lambda: SimpleNamespace(children=lambda recursive: [child]))
    assert host.busy_share() == 0.2


class SimpleTimes(tuple):
    """As psutil's: user (with a guest's in it), idle, iowait and guest [s]."""

    def __new__(cls, user: float, idle: float, iowait: float) -> SimpleTimes:
        made = super().__new__(cls, (user + 1, idle, iowait, 1.0))
        made.idle, made.iowait, made.guest = idle, iowait, 1.0
        return made


def test_a_look_does_not_take_long_and_says_a_share():
    assert 0 <= surroundings.look().load <= 1


def test_a_file_once_read_is_still_held_against_the_recipes(tmp_path: Path):
    """What is kept of a labdata/ was whole; a file that is not is named at every load, not at its first only."""
    root = tmp_path / "labdata"
    root.mkdir()
    path = root / "gguf_files.yml"
    path.write_text((ROOT / "labdata" / path.name).read_text(encoding="utf-8").replace("mix: Q4_K_M", "mix: Q4_K_X", 1), encoding="utf-8")
    for _ in range(2):
        with pytest.raises(labdata.LabError, match="labdata/gguf_files.yml: .*Q4_K_X"):
            labdata.load(root)
