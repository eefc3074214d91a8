"""Machines' pages as one process made them in a build before, for `make serve`: used again where all that they rest on is the same.

A page, and its machine's rows in the downloads, rest on the machine's own files and on those of machines that share an ink with it. All else is common to every page:
where any of that changes, all are made anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Container
from pathlib import Path
from typing import Any

from macros import labdata
from macros.narrative import Book

PACKAGE = Path(__file__).parent  # code, theme, scripts, letters
LIMIT_BYTES = 150 * 10**6
MOST = 150  # machines: about a megabyte each

_kept: dict[str, tuple[bytes, Any, int]] = {}  # by machine: what it rests on, what was made, how large


def digests(book: Book, common: object, root: Path = labdata.ROOT) -> dict[str, bytes]:
    """What each machine's page rests on, as a digest; of the first `MOST` machines.

    Args:
        common: whatever else decides how a page looks, as its `repr` tells
        root: labdata/, of which the lab has not read every file
    """
    lab = book.lab
    on: dict[str, set[str]] = {}
    for run, ink in lab.ink_of.items():
        on.setdefault(ink, set()).add(run.split("/")[0])
    for ink in lab.inks:
        on.setdefault(ink, set()).add((lab.gists.get(f"ink/{ink}") or lab.inks[ink]).machine)
    shared: list[object] = [common, book.days, _unread(root, lab.files), _unread(PACKAGE, ())]
    own: dict[str, list[object]] = {}
    for part in (*lab.files.items(), *book.firsts.items()):
        names = _whose(part[0], on)
        for name in names:
            own.setdefault(name, []).append(part)
        if not names:
            shared.append(part)
    together = {name: {name} for name in lab.machines}
    for names in on.values():
        for name in names:
            together[name] |= names
    head = _digest(shared)
    return {name: _digest((head, [own.get(other) for other in sorted(together[name])])) for name in list(lab.machines)[:MOST]}


def _digest(parts: object) -> bytes:
    return hashlib.sha256(repr(parts).encode()).digest()


def _whose(place: str, on: dict[str, set[str]]) -> set[str]:
    """The machines a file of labdata/ belongs to; an ink, and what stands beside it, to those it is of or that ran on it."""
    folder, _, file = place.partition("/")
    if folder == "ink":
        return on.get(labdata.split(file)[0], set())
    return {file.split("/")[0].removesuffix(".yml")} if folder in ("machines", "runs") else set()


def _unread(folder: Path, read: Container[str]) -> list[tuple[str, int, int]]:
    """Every file below a folder but those read: place, size [bytes], time of its last change [ns]."""
    found = []
    for at, below, names in os.walk(folder):
        below[:] = sorted(set(below) - {"__pycache__"})
        for path in (os.path.join(at, name) for name in sorted(names)):
            place = os.path.relpath(path, folder)
            if place not in read:
                with contextlib.suppress(OSError):  # an editor's, gone again
                    about = os.stat(path)
                    found.append((place, about.st_size, about.st_mtime_ns))
    return found


def kept(name: str, digest: bytes | None) -> Any:
    """What was made of a machine; None where nothing was, or of anything else than now."""
    found = _kept.get(name)
    return found[1] if found and found[0] == digest else None


def keep(name: str, digest: bytes, made: Any, size: int) -> None:
    """Keep what was made; what was kept longest makes room."""
    _kept.pop(name, None)
    _kept[name] = (digest, made, size)
    while sum(size for *_, size in _kept.values()) > LIMIT_BYTES:
        del _kept[next(iter(_kept))]
