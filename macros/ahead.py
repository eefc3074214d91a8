"""Made ahead by other processes, while MkDocs makes one page after another: the downloads, and the machines' pages
with their rows in them.

Where the system cannot fork safely, and where a process is lost, each is made when its turn comes; the bytes are the same.
"""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from macros import processes

LOGGER = "mkdocs"  # what is said there counts where the build is strict

_make: Callable[[str], Any] = str  # what the processes inherit: makes a name's page
_first: Callable[[], Any] = str  # so do they this: makes what is no page
_last: Callable[..., None] = lambda *given: None  # and this: puts together what all of them made
_pool: ProcessPoolExecutor | None = None
_begun: Future[Any] | None = None
_ending: tuple[Future[None] | None, tuple[Any, ...]] | None = None
_made: Iterator[tuple[str, Any, list[tuple[str, int, str]]]] = iter(())


def begin(names: list[str], make: Callable[[str], Any], first: Callable[[], Any], last: Callable[..., None] = _last) -> None:
    """Make what is no page and these pages, in this order, while MkDocs works on others."""
    global _begun, _first, _last, _made, _make, _pool
    end()
    _make, _first, _last = make, first, last
    cores = processes.cores() if sys.platform == "linux" else 1  # macOS' own libraries do not survive a fork
    if cores > 1:
        gc.freeze()  # what is there stays; looked through by each process, it would be copied for each
        _pool = processes.pool(cores, "fork")
        _begun = _pool.submit(_elsewhere_first)
        _made = _pool.map(_elsewhere, names, chunksize=max(1, min(5, len(names) // (4 * cores))))


def end() -> None:
    """The build is over, or has failed: what was not begun is not made, and nothing is written any more."""
    global _begun, _ending, _made, _pool
    if _pool:
        _pool.shutdown(cancel_futures=True)
        gc.unfreeze()
    _made, _pool, _begun, _ending = iter(()), None, None, None


def _elsewhere_first() -> Any:
    return _first()


def _elsewhere_last(*given: Any) -> None:
    _last(*given)


def first() -> Any:
    """What is no page, made by now or made here. Raises what making it raises."""
    try:
        return _begun.result() if _begun else _first()
    except BrokenProcessPool:
        return _first()


def last(*given: Any) -> None:
    """Begin to put together what was made; `done` waits for it."""
    global _ending
    try:
        _ending = _pool.submit(_elsewhere_last, *given) if _pool else None, given
    except BrokenProcessPool:
        _ending = None, given


def done() -> None:
    """Wait until it is put together, or do that now. Raises what that raises."""
    assert _ending is not None
    begun, given = _ending
    try:
        return begun.result() if begun else _last(*given)
    except BrokenProcessPool:
        return _last(*given)


class _Heard(logging.Handler):
    """What is said in another process, to be said again in the one that counts it."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[tuple[str, int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append((record.name, record.levelno, record.getMessage()))


def _elsewhere(name: str) -> tuple[str, Any, list[tuple[str, int, str]]]:
    heard = _Heard()
    logger = logging.getLogger(LOGGER)
    logger.handlers, logger.propagate = [heard], False
    try:
        return name, _make(name), heard.said
    except Exception:
        return "", None, []  # made once more where it is asked for, it says what is wrong


def made(name: str) -> Any:
    """What was made of a name before, or is made now. Raises what making it raises."""
    try:
        found, page, said = next(_made, ("", None, []))
    except BrokenProcessPool:
        found = ""
    if found != name:
        return _make(name)
    for logger, level, words in said:
        logging.getLogger(logger).log(level, "%s", words)
    return page
