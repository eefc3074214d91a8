"""Other processes: for work on many files, as many as this one may use cores, of which none outlives it; and those that must not work at once."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


def cores() -> int:
    """Cores this process may run on: `taskset` and a container's set count, where the system tells them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def pool(count: int, method: str | None = None) -> ProcessPoolExecutor:
    """That many processes, begun by `method` (fork, spawn; None is the system's own).

    A pool's process waits for its next task for ever: killed, its parent would leave it to the system.
    """
    return ProcessPoolExecutor(count, multiprocessing.get_context(method), initializer=_end_with_parent)


def beside(work: Callable[..., T], *given: Any) -> Callable[[], T]:
    """Begin some work in another process, where the system can fork safely: what waits for it and gives what it gave.

    Where it cannot, or the process is lost, the work is done when it is waited for.
    """
    if sys.platform != "linux" or cores() == 1:  # macOS' own libraries do not survive a fork
        return partial(work, *given)
    workers = pool(1, "fork")
    begun = workers.submit(work, *given)

    def done() -> T:
        try:
            return begun.result()
        except BrokenProcessPool:
            return work(*given)
        finally:
            workers.shutdown()

    return done


def _end_with_parent() -> None:
    gc.disable()  # what it makes goes with it, and nearly all of that stays until then
    threading.Thread(target=_wait_for_end, daemon=True).start()


def _wait_for_end() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)  # nothing to tidy: what a process writes is whole or is made again


def alone(lock: Path, busy: Callable[[], None]) -> Callable[[], None]:
    """Wait until no other process holds a lock, and hold it: what gives it back. The kernel does, however this process ends.

    Args:
        lock: a file, made where there is none; where none can be, there is nothing to hold
        busy: called once if there is something to wait for
    """
    held = contextlib.ExitStack()
    with contextlib.suppress(OSError):
        lock.parent.mkdir(exist_ok=True)
        file = held.enter_context(open(lock, "a", encoding="utf-8"))  # never emptied: it may be a link
        held.callback(fcntl.flock, file, fcntl.LOCK_UN)  # forked processes share it: to close the file would leave it held
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            busy()
            fcntl.flock(file, fcntl.LOCK_EX)
    return held.close
