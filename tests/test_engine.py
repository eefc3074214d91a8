"""The engine on a real llama.cpp and a tiny synthetic model: its protocol and its endings."""

import os
import signal
import subprocess
import sys

import pytest

pytest.importorskip("llama_cpp")
psutil = pytest.importorskip("psutil")

from bench import weights  # noqa: E402
from bench.engine import EngineFailed, Job, run  # noqa: E402
from macros.work import Shape, recipe, total_bytes, total_params  # noqa: E402

TINY = Shape("qwen3", 4, 256, 512, 1024, 4, 2, 64, tied=True)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return weights.ensure(tmp_path_factory.mktemp("models"), "tiny", TINY, "Q4_K_M")


def job(model, **values):
    """One thread: a busy test machine ruins threads that spin while they wait."""
    defaults = dict(n_prompt=0, n_gen=0, n_threads=1, n_gpu_layers=0)
    return Job(model_path=str(model), **defaults | values)


def engine_children():
    """Those at work: what one wrote before it was killed is read after."""
    return [c for c in psutil.Process().children() if c.status() != psutil.STATUS_ZOMBIE and "bench.engine" in c.cmdline()]


def test_prefill_gives_one_sample_a_repetition_and_the_facts(model):
    outcome = run(job(model, n_prompt=300, reps=3, n_batch=128))
    assert len(outcome.samples_ns) == 3 and min(outcome.samples_ns) > 0
    facts, table = outcome.facts, recipe(TINY, "Q4_K_M")
    assert facts["n_params"] == total_params(table)
    assert facts["model_bytes"] == total_bytes(table)
    assert facts["backend"] == "CPU" and facts["layers_offloaded"] == 0
    assert facts["devices"] == []
    assert facts["layers"] == TINY.n_layer + 1


def test_depth_is_prefilled_once_and_outside_the_samples(model):
    events = []
    run(job(model, n_gen=8, depth=600, reps=4, n_batch=256), on_event=events.append)
    kinds = [event["event"] for event in events]
    assert kinds[0] == "loaded" and kinds[-1] == "done" and kinds.count("sample") == 4
    done = [event["done_tokens"] for event in events if event["event"] == "progress"]
    warm_up = 1
    chunks = [256, 512, 600]  # of n_batch; only in the first repetition
    assert done == [warm_up, *(warm_up + c for c in chunks), *(warm_up + 600 + 8 * i for i in (1, 2, 3, 4))]
    assert events[-2]["total_tokens"] == done[-1]


def test_restored_depth_is_the_computed_one(model):
    # In a process of its own, like everything that imports llama_cpp.
    script = f"""
import ctypes, math
import llama_cpp
from bench.engine import Job
from bench.llama import Llama
llama = Llama(Job(model_path={str(model)!r}, n_prompt=0, n_gen=2, depth=300, n_threads=1, n_gpu_layers=0))
def logits_after(token):
    llama.decode((ctypes.c_int32 * 1)(token))
    return llama_cpp.llama_get_logits(llama.context)[:llama.n_vocab]
llama.prefill(llama.chunks(llama.tokens(300)))
state = llama.save()
computed = logits_after(7)
llama.clear()
assert llama_cpp.llama_memory_seq_pos_max(llama.memory, 0) == -1
assert llama.restore(state)
assert llama_cpp.llama_memory_seq_pos_max(llama.memory, 0) == 299
assert logits_after(7) == computed
assert all(map(math.isfinite, computed)) and max(computed) > min(computed)
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_killed_child_is_named_and_the_parent_lives(model):
    def kill(event):
        if event["event"] == "sample":
            for child in engine_children():
                child.send_signal(signal.SIGKILL)

    with pytest.raises(EngineFailed, match=r"killed \(SIGKILL\), most likely by the out-of-memory"):
        run(job(model, n_gen=64, reps=10_000), on_event=kill)
    assert not engine_children()


def test_crash_names_its_signal(model):
    def crash(event):
        if event["event"] == "sample":
            for child in engine_children():
                child.send_signal(signal.SIGSEGV)

    with pytest.raises(EngineFailed, match="killed by SIGSEGV"):
        run(job(model, n_gen=64, reps=10_000), on_event=crash)


def test_ctrl_c_ends_the_child(model):
    def interrupt(event):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(job(model, n_gen=64, reps=10_000), on_event=interrupt)
    assert not engine_children()


def test_overrun_is_ended(model):
    with pytest.raises(EngineFailed, match="took longer than 2 s"):
        run(job(model, n_gen=64, reps=1_000_000), timeout_s=2)
    assert not engine_children()


def test_child_ends_with_its_parent(model):
    script = f"from bench.engine import *; run({job(model, n_gen=64, reps=1_000_000)!r}, print)"
    command = [sys.executable, "-u", "-c", script]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE)
    parent.stdout.readline()
    (child,) = psutil.Process(parent.pid).children()
    os.kill(parent.pid, signal.SIGKILL)
    parent.communicate()
    psutil.wait_procs([child], timeout=60)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (None, "could not load the model: .*broken.gguf"),
        (b"not a model at all, only a line of text", "could not load the model: .*broken.gguf: .*magic"),
        (500_000, "could not load the model: .*broken.gguf: "),
    ],
)
def test_broken_model_is_one_line(model, tmp_path, content, line):
    path = tmp_path / "broken.gguf"
    if isinstance(content, int):
        path.write_bytes(model.read_bytes()[:content])
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(EngineFailed, match=line) as failure:
        run(job(path, n_prompt=16))
    assert "\n" not in str(failure.value)


def test_unknown_cache_type_is_one_line(model):
    with pytest.raises(EngineFailed, match="GGML_TYPE_NONSENSE"):
        run(job(model, n_prompt=16, type_k="nonsense"))
