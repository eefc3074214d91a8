"""Other processes for work on many files: as many as this one may use cores, and none of them outlives it."""

from __future__ import annotations

import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor


def cores() -> int:
    """Cores this process may run on: `taskset` and a container's set count, where the system tells them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def pool(count: int, method: str | None = None) -> ProcessPoolExecutor:
    """That many processes, begun by `method` (fork, spawn; None is the system's own).

    A pool's process waits for its next task for ever: killed, its parent would leave it to the system.
    """
    return ProcessPoolExecutor(count, multiprocessing.get_context(method), initializer=_end_with_parent)


def _end_with_parent() -> None:
    threading.Thread(target=_wait_for_end, daemon=True).start()


def _wait_for_end() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)  # nothing to tidy: what a process writes is whole or is made again
