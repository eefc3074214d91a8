"""What the in-process loop itself adds to a token: `Llama.decode` with its two library calls replaced by empty ones.

A child process of its own (`python -m bench.overhead`), since it bends the binding it loads. Writes one JSON line.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
import time
from pathlib import Path

from bench.engine import EngineFailed

TOKENS, ROUNDS = 2000, 9


def loop_ns() -> list[float]:
    """Time of the loop for one token, one entry a round [ns], measured in a child process.

    Raises:
        EngineFailed: the binding does not load.
    """
    done = subprocess.run([sys.executable, "-m", "bench.overhead"], capture_output=True, text=True, cwd=Path(__file__).resolve().parents[1])
    if done.returncode:
        raise EngineFailed((done.stderr.strip().splitlines() or ["it said nothing"])[-1])
    return json.loads(done.stdout)


def _measure() -> list[float]:
    """The rounds, in this process."""
    from bench import llama as engine

    libc, library = ctypes.CDLL(None), engine.llama_cpp
    # `ffs` of 0 is 0, which is llama_decode's "done"; what it is not asked for it does not read.
    decode, wait = libc["ffs"], libc["ffs"]
    decode.argtypes, wait.argtypes = [ctypes.c_void_p, library.llama_batch], [ctypes.c_void_p]
    library.llama_decode, library.llama_synchronize = decode, wait
    llama = engine.Llama.__new__(engine.Llama)  # no model: none is asked for anything
    llama.context = None
    ids = (ctypes.c_int32 * TOKENS)()
    llama.decode(ids)
    taken = []
    for _ in range(ROUNDS):
        start_ns = time.perf_counter_ns()
        llama.decode(ids)
        taken.append(round((time.perf_counter_ns() - start_ns) / TOKENS, 1))
    return taken


if __name__ == "__main__":
    print(json.dumps(_measure()))
