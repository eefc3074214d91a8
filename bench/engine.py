"""The in-process instrument: llama-bench's protocol over llama-cpp-python's low-level API.

One child process a test (`python -m bench.engine`), so that a crash inside llama.cpp costs
that test and nothing else. The child reads one Job (a JSON line on stdin) and writes events
(JSON lines on stdout):

    {"event": "loaded", ...facts}                                  once, see `bench.llama`
    {"event": "progress", "done_tokens": n, "total_tokens": m}     never inside the clock
    {"event": "sample", "ns": n}                                   one a repetition
    {"event": "done"} or {"event": "error", "reason": "..."}

Source: llama.cpp tools/llama-bench/llama-bench.cpp.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Job:
    """One test: `n_prompt` tokens of prefill, then `n_gen` of decode, on top of `depth`."""

    model_path: str
    n_prompt: int
    n_gen: int
    n_threads: int
    n_gpu_layers: int  # -1: all; 0: no GPU at all, not even for the large matmuls of prefill
    depth: int = 0
    reps: int = 5
    n_batch: int = 2048
    n_ubatch: int = 512
    type_k: str = "f16"
    type_v: str = "f16"
    flash_attn: str = "auto"
    seed: int = 0


@dataclass(frozen=True)
class Outcome:
    """What a finished test leaves: one sample a repetition [ns], and how it truly ran."""

    samples_ns: list[int]
    facts: dict[str, object]


class EngineFailed(Exception):
    """The test ended without all its samples; the message is one line."""


def installed() -> dict:
    """What the installed engine is and whether it sees a GPU, asked in a child process: python, build, system, gpu.

    Raises:
        EngineFailed: it is not installed or does not load.
    """
    code = ("import json, llama_cpp as l; l.llama_backend_init(); print(json.dumps({'python': l.__version__, "
            "'build': l.llama_version().decode(), 'system': l.llama_print_system_info().decode(), 'gpu': bool(l.llama_supports_gpu_offload())}))")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if done.returncode != 0:
        raise EngineFailed((done.stderr.strip().splitlines() or ["it said nothing"])[-1])
    return json.loads(done.stdout.splitlines()[-1])


def run(
    job: Job, on_event: Callable[[dict], None] | None = None, timeout_s: float | None = None,
    env: Mapping[str, str] | None = None, module: str = "bench.engine",
) -> Outcome:  # fmt: skip
    """Run one test in a child process, which ends when this call or this process does.

    Args:
        env: variables to set for it
        module: the child's; see `serve`

    Raises:
        EngineFailed: the child crashed, was killed, overran, or llama.cpp refused.
    """
    job = replace(job, model_path=os.path.abspath(job.model_path))
    samples_ns: list[int] = []
    facts: dict[str, object] = {}
    reason = ""
    finished = False
    overran = threading.Event()
    with (
        tempfile.TemporaryFile() as stderr,
        subprocess.Popen(
            [sys.executable, "-m", module],
            cwd=Path(__file__).resolve().parents[1],
            env={**os.environ, **(env or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
        ) as child,
    ):
        timer = threading.Timer(timeout_s or 0, lambda: (overran.set(), child.kill()))
        try:
            if timeout_s is not None:
                timer.start()
            try:
                # stdin stays open: its end tells the child that we are gone.
                os.write(child.stdin.fileno(), json.dumps(asdict(job)).encode() + b"\n")
            except BrokenPipeError:
                pass  # it died at once; its exit code says more
            for line in child.stdout:
                event = json.loads(line)
                kind = event.pop("event")
                if kind == "loaded":
                    facts = event
                elif kind == "sample":
                    samples_ns.append(event["ns"])
                elif kind == "error":
                    reason = event["reason"]
                elif kind == "done":
                    finished = True
                if on_event is not None:
                    on_event({"event": kind, **event})
            code = child.wait()
        finally:
            timer.cancel()
            child.kill()  # Ctrl-C or a failing on_event; nothing if it ended
        stderr.seek(0)
        said = stderr.read().decode(errors="replace")
    if finished:
        return Outcome(samples_ns, facts)
    if overran.is_set():
        raise EngineFailed(f"took longer than {timeout_s:g} s")
    raise EngineFailed(reason or why(code, said))


def why(code: int, stderr: str) -> str:
    """One line for a child that ended without saying why itself."""
    if code == -signal.SIGKILL:
        return "killed (SIGKILL), most likely by the out-of-memory killer"
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"GGML_ASSERT|error|failed", line, re.I)]
    last = (telling or lines or ["it said nothing"])[-1]
    if code < 0:
        return f"killed by {signal.Signals(-code).name}; last words: {last}"
    return f"ended with exit code {code}; last words: {last}"


def _measure(job: Job, emit: Callable[..., None]) -> None:
    """The protocol: warm up, then `reps` times depth, clock, prefill and decode."""
    from bench.llama import Llama  # needs llama_cpp, which the parent does without

    llama = Llama(job)
    emit("loaded", **llama.facts())
    total = job.depth + (job.reps + 1) * job.n_prompt + job.reps * job.n_gen + bool(job.n_gen)
    done = 0

    def advance(n_tokens: int) -> None:
        nonlocal done
        done += n_tokens
        emit("progress", done_tokens=done, total_tokens=max(done, total))

    llama.clear()
    llama.prefill(llama.chunks(llama.tokens(job.n_prompt)))
    llama.decode(llama.tokens(min(job.n_gen, 1)))
    advance(job.n_prompt + min(job.n_gen, 1))
    state = None
    for _ in range(job.reps):
        llama.clear()
        if job.depth and not llama.restore(state):
            llama.prefill(llama.chunks(llama.tokens(job.depth)), advance)
            state = llama.save()
        prompt, generated = llama.chunks(llama.tokens(job.n_prompt)), llama.tokens(job.n_gen)
        start_ns = time.perf_counter_ns()
        if prompt:
            llama.prefill(prompt)
        if generated:
            llama.decode(generated)
        emit("sample", ns=time.perf_counter_ns() - start_ns)
        advance(job.n_prompt + job.n_gen)


def serve(kind: type[Job], measure: Callable[[Job, Callable[..., None]], None]) -> None:
    """The child: one job from stdin, events to stdout, exit code 0 when `measure` is done."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever llama.cpp prints goes to stderr

    def emit(event: str, **values: object) -> None:
        out.write(json.dumps({"event": event, **values}) + "\n")
        out.flush()

    def end_with_parent() -> None:
        os.read(0, 1)  # returns when the parent closes the pipe or dies
        os._exit(1)

    job = kind(**json.loads(open(0, closefd=False).readline()))
    threading.Thread(target=end_with_parent, daemon=True).start()
    code = 1
    try:
        measure(job, emit)
        emit("done")
        code = 0
    except Exception as error:
        emit("error", reason=f"{type(error).__name__}: {error}".removeprefix("RuntimeError: "))
    os._exit(code)  # no teardown: a crash in it must not cost the samples


if __name__ == "__main__":
    serve(Job, _measure)
