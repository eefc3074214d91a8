"""Made ahead by other processes, while MkDocs makes one page after another: the downloads, and the machines' pages.

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

from macros import downloads, export, processes
from macros.downloads import Listed
from macros.narrative import Book

LOGGER = "mkdocs"  # what is said there counts where the build is strict

_make: Callable[[str], Any] = str  # what the processes inherit: makes a name's page
_tables: Callable[[], list[Listed]] | None = None  # so do they this: writes the downloads
_pool: ProcessPoolExecutor | None = None
_written: Future[list[Listed]] | None = None
_made: Iterator[tuple[str, Any, list[tuple[str, int, str]]]] = iter(())


def begin(names: list[str], make: Callable[[str], Any], tables: Callable[[], list[Listed]]) -> None:
    """Write the downloads and make these pages, in this order, while MkDocs works on others."""
    global _make, _made, _pool, _tables, _written
    end()
    _make, _tables = make, tables
    cores = processes.cores() if sys.platform == "linux" else 1  # macOS' own libraries do not survive a fork
    if cores > 1:
        gc.freeze()  # what is there stays; looked through by each process, it would be copied for each
        _pool = processes.pool(cores, "fork")
        _written = _pool.submit(_write)
        _made = _pool.map(_elsewhere, names, chunksize=max(1, min(5, len(names) // (4 * cores))))


def end() -> None:
    """The build is over, or has failed: what was not begun is not made, and nothing is written any more."""
    global _made, _pool, _tables, _written
    if _pool:
        _pool.shutdown(cancel_futures=True)
        gc.unfreeze()
    _made, _pool, _tables, _written = iter(()), None, None, None


def _write() -> list[Listed]:
    assert _tables is not None
    return _tables()


def written(book: Book) -> list[Listed]:
    """The tables of the downloads, which are written by now where a site is built. Raises what that raised."""
    global _written
    try:
        if _written:
            return _written.result()
    except BrokenProcessPool:
        pass
    _written = Future()
    _written.set_result(_tables() if _tables else downloads.listed(export.tables(book.lab)))
    return _written.result()


class Heard(logging.Handler):
    """What is said in another process, to be said again in the one that counts it."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[tuple[str, int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append((record.name, record.levelno, record.getMessage()))


def _elsewhere(name: str) -> tuple[str, Any, list[tuple[str, int, str]]]:
    heard = Heard()
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
