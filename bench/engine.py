"""The in-process instrument: llama-bench's protocol over llama-cpp-python's low-level API.

It runs in a child process (`python -m bench.engine`), so that a crash inside llama.cpp costs the test
under way and nothing else. Like llama-bench, the child keeps a model for the tests that share it. It reads
Jobs (JSON lines on stdin) and writes events (JSON lines on stdout):

    {"event": "ready", ...}                                        once, see `bench.llama.installed`
    {"event": "loaded", ...facts}                                  once a job, see `bench.llama`
    {"event": "progress", "done_tokens": n, "total_tokens": m}     never inside the clock
    {"event": "sample", "ns": n}                                   one a repetition
    {"event": "done"}, and the next job; or {"event": "error", "reason": "..."}, and it ends

A job of no repetitions only has its model loaded, without an event: the next job says whether that went well.

Source: llama.cpp tools/llama-bench/llama-bench.cpp.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    import ctypes

    from bench.llama import Weights


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


class Engine:
    """The child process and what is asked of it: started when first needed, and anew after one that died.

    It ends with `close`, with this process however that ends, and with any test that does not end well.

    Args:
        env: variables to set for it
        module: the child's; see `serve`
    """

    def __init__(self, env: Mapping[str, str] | None = None, module: str = "bench.engine") -> None:
        self._env, self._module = dict(env or {}), module
        self._child: subprocess.Popen | None = None
        self._stderr: IO[bytes] | None = None
        self._heard = 0  # bytes of stderr from before the test under way
        self._installed: dict = {}

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the child, which loads the library meanwhile; nothing if it runs."""
        if self._child is not None and self._child.poll() is None:
            return
        self.close()
        self._stderr, self._heard = tempfile.TemporaryFile(), 0
        self._child = subprocess.Popen(
            [sys.executable, "-m", self._module], cwd=Path(__file__).resolve().parents[1], env={**os.environ, **self._env},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr)  # fmt: skip

    def close(self) -> None:
        """End the child, and free all it holds."""
        child, self._child, self._installed = self._child, None, {}
        if child is None:
            return
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout, self._stderr):
            pipe.close()

    def installed(self) -> dict:
        """What the installed library is and whether it sees a GPU: python, build, system, gpu.

        Raises:
            EngineFailed: it is not installed or does not load.
        """
        self.start()
        if not self._installed:
            event = next(self._events(), {})
            if event.pop("event", "") != "ready":
                reason = event.get("reason") or self._why()
                self.close()
                raise EngineFailed(reason)
            self._installed = event
        return self._installed

    def preload(self, job: Job) -> None:
        """Let the child load a job's model while this process goes on; whether that went well is for `run` to say."""
        self.start()
        self._send(replace(job, reps=0))

    def _send(self, job: Job) -> None:
        job = replace(job, model_path=os.path.abspath(job.model_path))
        with contextlib.suppress(BrokenPipeError):  # it died at once; its exit code says more
            # stdin stays open: its end tells the child that we are gone.
            os.write(self._child.stdin.fileno(), json.dumps(asdict(job)).encode() + b"\n")

    def run(self, job: Job, on_event: Callable[[dict], None] | None = None, timeout_s: float | None = None) -> Outcome:
        """Run one test.

        Raises:
            EngineFailed: the child crashed, was killed, overran, or llama.cpp refused.
        """
        self.start()  # one that died between two tests is neither's fault
        self._heard = os.fstat(self._stderr.fileno()).st_size
        child, samples_ns, facts, reason, well = self._child, [], {}, "", False
        overran = threading.Event()
        timer = threading.Timer(timeout_s or 0, lambda: (overran.set(), child.kill()))
        try:
            if timeout_s is not None:
                timer.start()
            self._send(job)
            for event in self._events():
                kind = event.pop("event")
                if kind == "ready":
                    self._installed = event
                    continue
                if kind == "loaded":
                    facts = event
                elif kind == "sample":
                    samples_ns.append(event["ns"])
                elif kind == "error":
                    reason = event["reason"]
                if on_event is not None:
                    on_event({"event": kind, **event})
                if kind == "done":
                    well = True
                    return Outcome(samples_ns, facts)
            if not reason and not overran.is_set():
                reason = self._why()
            raise EngineFailed(f"took longer than {timeout_s:g} s" if overran.is_set() else reason)
        finally:
            timer.cancel()
            if not well:
                self.close()  # also after Ctrl-C or a failing on_event

    def _events(self) -> Iterator[dict]:
        for line in self._child.stdout:
            yield json.loads(line)

    def _why(self) -> str:
        code = self._child.wait()
        self._stderr.seek(self._heard)
        return why(code, self._stderr.read().decode(errors="replace"))


def run(
    job: Job, on_event: Callable[[dict], None] | None = None, timeout_s: float | None = None,
    env: Mapping[str, str] | None = None, module: str = "bench.engine",
) -> Outcome:  # fmt: skip
    """Run one test in a child process of its own; see `Engine`.

    Raises:
        EngineFailed: the child crashed, was killed, overran, or llama.cpp refused.
    """
    with Engine(env, module) as engine:
        return engine.run(job, on_event, timeout_s)


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


class Protocol:
    """The protocol: warm up, then `reps` times depth, clock, prefill and decode; in the child.

    As in llama-bench, a model stays for the next test of it, and the state at a depth for the next
    repetition at it, also of the next test. A context is each test's own.
    """

    def __init__(self) -> None:
        self._weights: Weights | None = None
        self._state: ctypes.Array | None = None
        self._filled: Job | None = None  # what the state is of

    def __call__(self, job: Job, emit: Callable[..., None]) -> None:
        from bench.llama import Llama, Weights  # needs llama_cpp, which the parent does without

        if self._weights is not None and not self._weights.fit(job):
            self._forget()
            self._weights.close()  # before the next one's memory is asked for
            self._weights = None
        filled = replace(job, n_prompt=0, n_gen=0, n_threads=0, reps=0)
        if filled != self._filled:
            self._forget()
        if not job.reps:
            with contextlib.suppress(RuntimeError):  # the job itself will say it, of its own attempt
                self._weights = self._weights or Weights(job)
            return
        self._weights = self._weights or Weights(job)
        llama = Llama(job, self._weights)
        emit("loaded", **llama.facts())
        depth = job.depth if self._state is None else 0
        total = depth + (job.reps + 1) * job.n_prompt + job.reps * job.n_gen + bool(job.n_gen)
        done = 0

        def advance(n_tokens: int) -> None:
            nonlocal done
            done += n_tokens
            emit("progress", done_tokens=done, total_tokens=max(done, total))

        llama.clear()
        llama.prefill(llama.chunks(llama.tokens(job.n_prompt)))
        llama.decode(llama.tokens(min(job.n_gen, 1)))
        advance(job.n_prompt + min(job.n_gen, 1))
        for _ in range(job.reps):
            llama.clear()
            if job.depth and not llama.restore(self._state):
                self._forget()
                llama.prefill(llama.chunks(llama.tokens(job.depth)), advance)
                self._state, self._filled = llama.save(), filled
            prompt, generated = llama.chunks(llama.tokens(job.n_prompt)), llama.tokens(job.n_gen)
            start_ns = time.perf_counter_ns()
            if prompt:
                llama.prefill(prompt)
            if generated:
                llama.decode(generated)
            emit("sample", ns=time.perf_counter_ns() - start_ns)
            advance(job.n_prompt + job.n_gen)
        emit("done")  # before the teardown: a crash in it must not cost the samples
        llama.close()

    def _forget(self) -> None:
        self._state = self._filled = None


def serve(kind: type[Job], measure: Callable[[Job, Callable[..., None]], None]) -> None:
    """The child: jobs from stdin one after the other, events to stdout, until stdin ends or `measure`, which says "done", fails."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever llama.cpp prints goes to stderr
    jobs: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def emit(event: str, **values: object) -> None:
        out.write(json.dumps({"event": event, **values}) + "\n")
        out.flush()

    def listen() -> None:
        for line in open(0, "rb", closefd=False):
            jobs.put(line)
        os._exit(1)  # the parent has closed the pipe, or died: no teardown, also in the middle of a test

    threading.Thread(target=listen, daemon=True).start()
    try:
        from bench.llama import installed

        emit("ready", **installed())
        while True:
            measure(kind(**json.loads(jobs.get())), emit)
    except Exception as error:
        emit("error", reason=f"{type(error).__name__}: {error}".removeprefix("RuntimeError: "))
    os._exit(1)  # no teardown: a crash in it must not cost what was said


if __name__ == "__main__":
    serve(Job, Protocol())
