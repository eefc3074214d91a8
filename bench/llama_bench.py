"""An installed llama-bench as the instrument: one process a test, its jsonl row as the outcome.

The same Job in, the same Outcome out as `bench.engine`. llama-bench prints one row when a test is done
and, with --progress, a line on stderr before every repetition. Source: tools/llama-bench/README.md.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench import weights
from bench.engine import EngineFailed, Job, Outcome, why
from macros.work import Shape

BACKENDS = {"MTL": "Metal"}  # ggml's short name
NO_GPU = ("", "BLAS", "CPU", "RPC", "ZenDNN")
TINY = Shape("qwen3", 2, 256, 512, 1024, 4, 2, 64, tied=True)  # 1 MB: for asking, not for timing
NEEDED = ("-d,", "jsonl")  # April 2025 brought depth; jsonl is older
# Ends llama-bench when this process does, however that happens, and passes its end on.
GUARD = """
import os, signal, subprocess, sys, threading
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
threading.Thread(target=lambda: (os.read(0, 1), child.kill()), daemon=True).start()
signal.signal(signal.SIGINT, signal.SIG_IGN)
code = child.wait()
if code < 0:
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
    os.kill(os.getpid(), -code)
os._exit(code)
"""


class NoLlamaBench(Exception):
    """There is none, or it cannot do what a plan asks; the message is one line."""


@dataclass(frozen=True)
class LlamaBench:
    """A binary and what it says of itself."""

    path: Path
    help: str
    build: str  # "b7000 (1a2b3c4)"
    gpu: str  # its GPUs' names, "" where it sees none

    def arguments(self, job: Job) -> list[str]:
        """The command line of a test; what this build has no flag for keeps its default."""
        argv = ["-m", job.model_path, "-p", job.n_prompt, "-n", job.n_gen, "-d", job.depth, "-r", job.reps, "-t", job.n_threads,
                "-b", job.n_batch, "-ub", job.n_ubatch, "-ctk", job.type_k, "-ctv", job.type_v, "-o", "jsonl"]  # fmt: skip
        if job.n_gpu_layers != -1:  # -1 is the default now, and was 99
            argv += ["-ngl", job.n_gpu_layers]
        if job.n_gpu_layers == 0 and "-dev," in self.help:
            argv += ["-dev", "none"]  # else a GPU build still runs prefill's large matmuls there
        if "on|off|auto" in self.help:
            argv += ["-fa", job.flash_attn]
        elif job.flash_attn != "auto":
            argv += ["-fa", {"on": 1, "off": 0}[job.flash_attn]]
        if "--progress" in self.help:
            argv += ["--progress"]
        return [str(a) for a in argv]

    def run(self, job: Job, on_event: Callable[[dict], None] | None = None) -> Outcome:
        """Run one test.

        Raises:
            EngineFailed: it crashed, was killed, refused, or printed no row.
        """
        row = _row([str(self.path), *self.arguments(job)], job, on_event)
        return Outcome(row["samples_ns"], facts(row))


def find(env: Mapping[str, str] = os.environ) -> Path:
    """The binary: LLAMA_BENCH=, else the one on PATH.

    Raises:
        NoLlamaBench: neither is there.
    """
    named = env.get("LLAMA_BENCH", "").strip()
    path = shutil.which(str(Path(named).expanduser())) if named else shutil.which("llama-bench", path=env.get("PATH"))
    if not path:
        where = f"got {named!r}; not a program" if named else "not on PATH; LLAMA_BENCH=<file> names one"
        raise NoLlamaBench(f"LLAMA_BENCH: no llama-bench; {where}")
    return Path(path).absolute()


def identify(path: Path, cache: Path) -> LlamaBench:
    """A binary with its build, asked by a test on a very small model: not every build has --version.

    Args:
        cache: folder for that model

    Raises:
        NoLlamaBench: not llama-bench, too old, or it does not run.
    """
    text = _output(path, "--help")
    if "llama-bench" not in text and "--n-prompt" not in text:
        raise NoLlamaBench(f"LLAMA_BENCH: not llama-bench; got {str(path)!r}; its --help does not say so")
    missing = [flag.strip(",") for flag in NEEDED if flag not in text]
    if missing:
        raise NoLlamaBench(f"LLAMA_BENCH: too old; {path.name} knows no {' and no '.join(missing)}; a build of April 2025 or later does")
    tiny = weights.ensure(cache, "tiny", TINY, "Q4_K_M")
    job = Job(model_path=str(tiny), n_prompt=1, n_gen=0, n_threads=1, n_gpu_layers=-1, reps=1)
    try:
        row = _row([str(path), *LlamaBench(path, text, "", "").arguments(job)], job, None)
    except EngineFailed as error:
        raise NoLlamaBench(f"LLAMA_BENCH: {path.name} does not run; {error}") from None
    build = f"b{row['build_number']} ({row['build_commit']})"
    if not row["build_number"]:  # built outside a git checkout
        said = re.search(r"version: (.+)", _output(path, "--version"))
        build = said[1].strip() if said else "unknown"
    return LlamaBench(path, text, build, row.get("gpu_info") or "")


def facts(row: dict) -> dict[str, object]:
    """How a test truly ran, from its row; the keys are a Result's."""
    names = [n for n in re.split(r"[,/]", str(row.get("backends", ""))) if n not in NO_GPU]
    on_gpu = bool(row.get("gpu_info") and row["n_gpu_layers"] and row.get("devices") != "none" and names)
    attention = {-1: "auto", 0: "off", 1: "on"}[int(row["flash_attn"])]
    kept = {k: row[k] for k in ("n_threads", "n_batch", "n_ubatch", "type_k", "type_v", "n_gpu_layers")}
    return {**kept, "backend": BACKENDS.get(names[0], names[0]) if on_gpu else "CPU", "flash_attn": attention}


def _output(path: Path, flag: str) -> str:
    try:
        done = subprocess.run([str(path), flag], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoLlamaBench(f"LLAMA_BENCH: {path.name} does not start; {error}") from None
    return done.stdout.decode(errors="replace")


def _row(argv: list[str], job: Job, on_event: Callable[[dict], None] | None) -> dict:
    """The row a llama-bench prints, with one sample a repetition."""
    said: list[str] = []

    def listen(stream) -> None:
        for raw in stream:
            line = raw.decode(errors="replace")
            said.append(line)
            step = re.search(r"(?:prompt|generation) run (\d+)/(\d+)", line)
            if step and on_event is not None:
                on_event({"event": "progress", "done_tokens": int(step[1]) - 1, "total_tokens": int(step[2])})

    child = subprocess.Popen([sys.executable, "-c", GUARD, *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        listener = threading.Thread(target=listen, args=(child.stderr,), daemon=True)
        listener.start()
        lines = child.stdout.read().decode(errors="replace").splitlines()
        code = child.wait()
        listener.join()
    finally:
        child.stdin.close()  # Ctrl-C: the guard ends llama-bench
        child.wait()
        child.stdout.close()
        child.stderr.close()
    if code:
        raise EngineFailed(why(code, "".join(said)))
    rows = [json.loads(line) for line in lines if line.startswith("{")]
    if len(rows) != 1 or len(rows[0].get("samples_ns", [])) != job.reps:
        raise EngineFailed(f"printed {len(rows)} rows with {job.reps} samples; expected one")
    return rows[0]
