"""labdata/ parsed once: what a file says is kept as JSON under the SHA-256 of its bytes and of the code that read it.

Never stale: another byte, or another line of code, is another key. Never trusted: what comes back is validated
like a file, and nothing in it is ever executed. Losing it costs time only.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import multiprocessing
import os
import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pydantic_core
from pydantic import VERSION, BaseModel

from macros import files, processes
from macros.fields import Document

T = TypeVar("T")
FILE = Path(".cache/labdata.sqlite")
AT_HAND = 5000  # documents kept as objects, some 35 KB each; the others are decoded when asked for
WORTH_PROCESSES = 300  # files: a second's work
Job = tuple[type[BaseModel], str, Path]  # what a file should hold, its place below the labdata folder, that folder
Packed = tuple[str, str, bytes]  # the raw files a document names, its gist (`macros.references`), itself as JSON
TABLE = "CREATE TABLE IF NOT EXISTS documents (key BLOB PRIMARY KEY, raw TEXT NOT NULL, gist TEXT NOT NULL, json BLOB NOT NULL)"


@cache
def _read_by() -> bytes:
    """Everything that decides what a file comes to: this package's code, and who reads YAML and validates."""
    code = [path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))]
    return hashlib.sha256(b"".join([*code, f"{VERSION}, {pydantic_core.__version__}, {files.READ_BY}".encode()])).digest()


class Snapshot:
    """The documents of one lab that nothing was wrong with.

    Args:
        path: its SQLite file; where none can be written it lives in memory
    """

    def __init__(self, path: Path):
        self._rows, self._process = _opened(path), os.getpid()
        self._beside = {key: beside for key, *beside in self._rows.execute("SELECT key, raw, gist FROM documents")}
        self._at_hand: OrderedDict[bytes, Any] = OrderedDict()

    @staticmethod
    def key(kind: type[BaseModel], name: str, whole: bytes) -> bytes:
        """What a file of this name goes by, the SHA-256 of whose bytes is `whole`."""
        return hashlib.sha256(b"\0".join((_read_by(), kind.__name__.encode(), name.encode(), whole))).digest()

    def whole(self, key: bytes, raw: Path) -> bool:
        """Whether a document is kept, and what its sources name in `raw` is still there."""
        beside = self._beside.get(key)
        return beside is not None and all((raw / name).is_file() for name in beside[0].split())

    def gist(self, key: bytes) -> str:
        """What was kept beside a document, unread."""
        return self._beside[key][1]

    def get(self, kind: type[BaseModel], key: bytes) -> Any:
        """A document that is kept.

        Raises:
            OSError: it is not, or not as it was written.
        """
        if key in self._at_hand:
            self._at_hand.move_to_end(key)
            return self._at_hand[key]
        try:
            text = self._own().execute("SELECT json FROM documents WHERE key = ?", (key,)).fetchone()[0]
            document = kind.model_validate_json(text)
        except (ValueError, TypeError, sqlite3.Error):
            raise OSError(errno.EIO, "damaged or lost while it was in use; delete it and start again", str(FILE)) from None
        self._keep(key, document)
        return document

    def _own(self) -> sqlite3.Connection:
        """The table through a connection of this process: SQLite forbids to use one beyond a fork, or to close it there."""
        if self._process != os.getpid():
            self._parents, self._process = self._rows, os.getpid()
            path = self._rows.execute("PRAGMA database_list").fetchone()[2]
            if path:  # one in memory was copied with all else
                self._rows = sqlite3.connect(f"{Path(path).as_uri()}?mode=ro", uri=True, timeout=30)
        return self._rows

    def _keep(self, key: bytes, document: Any) -> None:
        self._at_hand[key] = document
        if len(self._at_hand) > AT_HAND:
            self._at_hand.popitem(last=False)

    def put(self, key: bytes, document: Document, gist: str = "") -> bool:
        """Keep a document; False where JSON has no words for it, or the disk refused."""
        text = packed(document, gist)
        if text is None or not self.store(key, *text):
            return False
        self._keep(key, document)
        return True

    def store(self, key: bytes, raw: str, gist: str, text: bytes) -> bool:
        """Keep what `packed` made of a document; False: the disk refused."""
        try:
            self._rows.execute("INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?)", (key, raw, gist, text))
        except sqlite3.Error:
            return False
        self._beside[key] = [raw, gist]
        return True

    def fill(self, pack: Callable[[Job], tuple[bytes, Packed, T] | None], jobs: list[Job]) -> dict[str, T]:
        """Keep what is lacking, read on every core, where that is worth starting processes; a sample says whether anything lacks.

        Args:
            pack: a file's key, what `packed` makes of it, and what else to tell of it; None where anything is wrong with it

        Returns:
            what else was told of each file kept now, by its place
        """
        told: dict[str, T] = {}
        cores = min(processes.cores(), 8)
        if cores == 1 or len(jobs) < WORTH_PROCESSES or not any(map(self._lacks, jobs[::WORTH_PROCESSES])):
            return told
        lacking = [job for job in jobs if self._lacks(job)] if self._beside else jobs
        if len(lacking) < WORTH_PROCESSES:
            return told
        # A fork has all modules loaded, and nothing runs beside this process yet: a site is read before it is drawn.
        method = "fork" if "fork" in multiprocessing.get_all_start_methods() else None
        with contextlib.suppress(OSError, BrokenProcessPool), processes.pool(cores, method) as pool:
            for job, done in zip(lacking, pool.map(pack, lacking, chunksize=50), strict=True):
                if done and self.store(done[0], *done[1]):
                    told[job[1]] = done[2]
        return told

    def _lacks(self, job: Job) -> bool:
        kind, place, root = job
        try:
            whole = hashlib.sha256(content(place, root)).digest()
            return not self.whole(self.key(kind, os.path.basename(place), whole), root / "raw")
        except OSError:
            return False  # said when it is read in its turn

    def done(self, used: set[bytes]) -> None:
        """Commit; drop what no file says any more, once that is most of it."""
        old = self._beside.keys() - used
        try:
            if len(old) > len(used) + 100:
                self._rows.executemany("DELETE FROM documents WHERE key = ?", [(key,) for key in old])
                self._beside = {key: beside for key, beside in self._beside.items() if key in used}
            self._rows.commit()
        except sqlite3.Error:
            pass


def content(place: str, root: Path) -> bytes:
    """The bytes of a file below a folder; not by pathlib, which takes as long as the reading.

    Raises:
        OSError: it cannot be read.
    """
    with open(f"{root}/{place}", "rb") as opened:
        return opened.read()


def packed(document: Document, gist: str) -> Packed | None:
    """What is kept of a document; None where JSON has no words for it.

    What YAML can say, JSON brings back the same: numbers are finite and bounded, moments have offsets of whole minutes.
    """
    try:
        text = document.model_dump_json(by_alias=True, exclude_unset=True).encode()
    except ValueError:
        return None
    return " ".join(source.raw for source in document.sources.values() if source.raw), gist, text


@dataclass(frozen=True, slots=True)
class Kept:
    """Where a document is kept."""

    snapshot: Snapshot
    kind: type[BaseModel]
    key: bytes


class Shelf(MutableMapping[str, Any]):
    """Documents by name, a `Kept` one decoded when asked for: ten thousand runs as objects would take 700 MB."""

    def __init__(self, found: Mapping[str, Any] | None = None) -> None:
        self._found: dict[str, Any] = dict(found._found if isinstance(found, Shelf) else found or {})

    def __getitem__(self, name: str) -> Any:
        found = self._found[name]
        return found.snapshot.get(found.kind, found.key) if isinstance(found, Kept) else found

    def __setitem__(self, name: str, document: Any) -> None:
        self._found[name] = document

    def __delitem__(self, name: str) -> None:
        del self._found[name]

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


@cache
def of(root: Path) -> Snapshot:
    """The snapshot of a labdata folder, in .cache beside it."""
    return Snapshot(root.resolve().parent / FILE)


def _opened(path: Path) -> sqlite3.Connection:
    """The file's table; one that is damaged is begun anew, and where none can be written it lives in memory."""
    for _ in range(2):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            rows = sqlite3.connect(path, timeout=30, check_same_thread=False)  # `mkdocs serve` builds in a thread
            rows.execute("PRAGMA synchronous=OFF")  # a torn file is found out and begun anew
            rows.execute(TABLE)
            rows.execute("SELECT key, raw, gist, json FROM documents LIMIT 1").fetchone()
            return rows
        except (OSError, sqlite3.Error):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
    rows = sqlite3.connect(":memory:", check_same_thread=False)
    rows.execute(TABLE)
    return rows
