"""Made ahead by other processes, while MkDocs makes one page after another: the downloads, and the machines' pages.

Where the system cannot fork safely each is made when its turn comes; the bytes are the same.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass

from markupsafe import Markup

from macros import asides, downloads, export, notes, pages, processes, summary
from macros.downloads import Listed
from macros.narrative import Book
from macros.summary import Summary

LEAST = 8  # machines; fewer are made sooner than asked for
_book: Book | None = None  # what the processes inherit
_tables: Callable[[], list[Listed]] = list  # so do they this: writes the downloads
_written: Future[list[Listed]] | None = None
_made: Iterator[Made | None] = iter(())


@dataclass(frozen=True)
class Made:
    """A machine's page: its Markdown, and what it left for the page's other parts."""

    name: str
    text: str
    kept: list[str]
    known: dict[str, Markup]
    sentence: str
    summary: Summary


def begin(book: Book, names: list[str], tables: Callable[[], list[Listed]]) -> None:
    """Write the downloads and make these machines' pages, in this order, while MkDocs works on others."""
    global _book, _made, _tables, _written
    _book, _made, _tables, _written = book, iter(()), tables, None
    cores = processes.cores() if sys.platform == "linux" else 1  # macOS' own libraries do not survive a fork
    if cores > 1:
        book.lab.at_hand()
        pool = processes.pool(cores, "fork")
        _written = pool.submit(_write)
        if len(names) >= LEAST:
            _made = pool.map(_make, names, chunksize=max(1, min(20, len(names) // (4 * cores))))
        pool.shutdown(wait=False)


def _write() -> list[Listed]:
    return _tables()


def written(book: Book) -> list[Listed]:
    """The tables of the downloads, which are written by now where a site is built. Raises what that raised."""
    global _written
    if _written is None:
        _written = Future()
        _written.set_result(_tables() if book is _book else downloads.listed(export.tables(book.lab)))
    return _written.result()


def _make(name: str) -> Made | None:
    assert _book is not None
    _book.turn_to(f"machines/{name}/", f"machines/{name}.md")
    try:
        text = asides.parts_aside(pages.machine_page(_book, name))
    except Exception:
        return None  # the page says it in its place
    return Made(name, text, asides.taken(), notes.taken(), _book.sentences[name], summary.publish(_book, name))


def page(book: Book, name: str) -> str:
    """A machine's page, made before or made now."""
    made = next(_made, None) if book is _book else None
    if made is None or made.name != name:
        return asides.parts_aside(pages.machine_page(book, name))
    asides.give(made.kept)
    notes.give(made.known)
    book.sentences[name], book.summaries[name] = made.sentence, made.summary
    return made.text
