"""labdata/ for others: every table as CSV, JSON and Parquet, a Data Package that describes them, and the files themselves.

Parquet is written by DuckDB out of the very JSON that is published, under the types of the schema.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import stat
import tempfile
import zipfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import BinaryIO

from markupsafe import Markup, escape

from macros import labdata, table_texts, tables
from macros.export import Rows
from macros.flat import Table
from macros.narrative import Book
from macros.reckoned import Reckoned
from macros.tables import Column
from macros.values import number

CACHE = Path(".cache/data")
FOLDER = "data/lab"  # below the site's root; a published address stays
LICENCE = labdata.ROOT / "LICENSE.txt"
LARGEST_ROW = 100_000_000  # of JSON [B]
DEFLATE = 3  # zlib's level: half the time of its own choice, 6, for a twentieth more bytes
PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"


def address(book: Book, name: str) -> str:
    """A link from the page to a file of the downloads."""
    return book.link(f"{FOLDER}/{name}")


@dataclass(frozen=True)
class Listed:
    """A table as the page of them names it."""

    name: str
    about: str
    derived: bool
    rows: int


def listed(found: list[Table]) -> list[Listed]:
    """Tables as they are named."""
    return [Listed(t.name, t.about, t.derived, len(t.cells)) for t in found]


def table_list(book: Book, found: list[Listed], derived: bool) -> str:
    """The recorded or the derived tables: what a row is, how many, and the three files, as HTML."""
    cells = []
    for table in (t for t in found if t.derived == derived):
        links = (Markup('<a href="{}" download>{}</a>').format(address(book, f"{table.name}.{word.lower()}"), word) for word in ("CSV", "JSON", "Parquet"))
        about = Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(table.about[0].upper() + table.about[1:]))))
        cells.append({"name": Markup("<code>{}</code>").format(table.name), "about": about, "rows": number(table.rows, 0), "files": Markup(" ").join(links)})
    columns = [Column("name", "Table"), Column("about", "A row is"), Column("rows", "Rows", "right"), Column("files", "Files", css="csv")]
    return tables.html_table(columns, cells)


@dataclass(frozen=True)
class Piece:
    """A block's rows of one table, as they stand in its CSV and JSON.

    Args:
        block: the place of the block (`export.Rows`)
    """

    table: str
    block: int
    rows: int
    csv: bytes
    json: bytes


def pieces(of: Rows, machine: str, own: Reckoned | None = None) -> list[Piece]:
    """The rows of a machine's documents, or of those that are nobody's ("").

    Args:
        own: what the machine's runs come to, where that is at hand

    Raises:
        LabError, CorpusError: see `Rows.add`.
    """
    found = []
    for table in of.tables():
        table.cells.clear()  # where a page failed, they were not taken
    for n in of.of.get(machine, []):
        of.add(of.blocks[n], own)
        for table in of.tables():
            if table.cells:
                as_csv, as_json = table_texts.texts(table.columns, table.cells)
                found.append(Piece(table.name, n, len(table.cells), as_csv.encode(), as_json.encode()))
                table.cells.clear()
    return found


Where = tuple[int, int, int, int, int]  # of a piece: its block, its rows, where it begins [B], the lengths of CSV and JSON [B]


class Parts:
    """Pieces on disk until all are there: a large lab's are hundreds of MB."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file, self._end = tempfile.TemporaryFile(dir=folder), 0
        self.places: dict[str, list[Where]] = {}

    def add(self, made: list[Piece]) -> None:
        """Keep some."""
        for piece in made:
            self.places.setdefault(piece.table, []).append((piece.block, piece.rows, self._end, len(piece.csv), len(piece.json)))
            self._end += len(piece.csv) + len(piece.json)
        self._file.writelines(part for piece in made for part in (piece.csv, piece.json))
        self._file.flush()  # to the last byte or an error: other processes read it, and a full disk takes half

    def listed(self, found: list[Table]) -> list[Listed]:
        """The tables with their rows."""
        return [Listed(t.name, t.about, t.derived, sum(rows for _, rows, *_ in self.places.get(t.name, ()))) for t in found]

    def join(self, table: Table, places: list[Where], folder: Path) -> _Written:
        """Write a table's CSV and JSON, in the order of its blocks."""
        hashes = hashlib.sha256(), hashlib.sha256()
        with (folder / f"{table.name}.csv").open("wb") as as_csv, (folder / f"{table.name}.json").open("wb") as as_json:

            def put(*both: bytes | memoryview) -> None:
                for data, file, digest in zip(both, (as_csv, as_json), hashes, strict=True):
                    file.write(data)
                    digest.update(data)

            put(table_texts.header([c.name for c in table.columns]).encode(), b"[")
            for i, (_, _, at, n_csv, n_json) in enumerate(sorted(places)):
                data = memoryview(os.pread(self._file.fileno(), n_csv + n_json, at))
                put(data[:n_csv], b",\n" if i else b"\n")
                put(b"", data[n_csv:])
            put(b"", b"\n]\n" if places else b"\n\n]\n")
            return _Written(as_csv.tell(), hashes[0].hexdigest(), hashes[1].hexdigest())


@dataclass(frozen=True)
class _Written:
    """Size of a table's CSV [B], SHA-256 of it and of its JSON."""

    bytes: int
    csv: str
    json: str


def _package(found: dict[str, tuple[Table, _Written]], name: str, description: str, homepage: str) -> str:
    """The Data Package: each table's columns with type and meaning, its key, its parent, size and hash."""
    resources = []
    for table, files in found.values():
        schema = {
            "fields": [{"name": c.name, "type": c.type, "description": c.about} for c in table.columns],
            "primaryKey": list(table.key),
            "missingValues": [""],
        }
        if table.parent:
            parent = found[table.parent][0]
            schema["foreignKeys"] = [{"fields": list(parent.key), "reference": {"resource": parent.name, "fields": list(parent.key)}}]
        resources.append({
            "name": table.name, "description": table.about, "path": f"{table.name}.csv", "format": "csv", "mediatype": "text/csv", "encoding": "utf-8",
            "bytes": files.bytes, "hash": f"sha256:{files.csv}", "derived": table.derived,
            "also": [f"{table.name}.json", f"{table.name}.parquet"], "schema": schema,
        })  # fmt: skip
    told = {"$schema": PROFILE, "name": name, "description": description, "licenses": [{"name": "MIT", "path": "LICENSE.txt", "title": "MIT License"}]}
    return json.dumps(told | ({"homepage": homepage} if homepage else {}) | {"resources": resources}, ensure_ascii=False, indent=1) + "\n"


def archive(out: BinaryIO, root: Path = labdata.ROOT) -> None:
    """labdata/ as it lies on disk, but for ink that is still open, as a zip that is the same for the same files."""
    names = []
    for folder, below, files in os.walk(root):
        below[:] = [name for name in below if not name.startswith(".")]
        inside = os.path.relpath(folder, root).split(os.sep) if folder != str(root) else []
        names += [(*inside, name) for name in files if not name.startswith(".") and not name.endswith(".open.yml")]
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in sorted(names):
            path = os.path.join(root, *name)
            if stat.S_ISREG(os.lstat(path).st_mode):
                entry = zipfile.ZipInfo("/".join(("labdata", *name)), (1980, 1, 1, 0, 0, 0))
                entry.external_attr, entry.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
                with open(path, "rb") as file:
                    packed.writestr(entry, file.read(), compresslevel=DEFLATE)


def write_copies(folder: Path, root: Path = labdata.ROOT) -> None:
    """What is no table: schemas, licence, and the files as they are."""
    for path in (LICENCE, *root.glob("schema/*.json")):
        shutil.copyfile(path, folder / path.name)
    packed = io.BytesIO()  # 30 MB for a thousand machines; a zip goes back to each file's head, which on disk takes longer
    archive(packed, root)
    (folder / "labdata.zip").write_bytes(packed.getbuffer())


def write_tables(parts: Parts, folder: Path, description: str, homepage: str, found: list[Table], places: dict[str, list[Where]], cache: Path = CACHE) -> None:
    """The tables' files out of their pieces, and the package that describes them.

    Args:
        folder: where they go
        cache: Parquet files by content, so that an unchanged table is not written anew
    """
    made = {table.name: (table, parts.join(table, places.get(table.name, []), folder)) for table in found}
    (folder / "datapackage.json").write_bytes(_package(made, "inklab", description, homepage).encode())
    kept = {name: cache / f"{_parquet_key(table, files.json)}.parquet" for name, (table, files) in made.items()}
    new = {name for name, path in kept.items() if not path.is_file()}
    _write_parquet([(t, folder / f"{name}.json", folder / f"{name}.parquet") for name, (t, _) in made.items() if name in new])
    for name, path in kept.items():
        if name not in new:
            shutil.copyfile(path, folder / f"{name}.parquet")
            continue
        with contextlib.suppress(OSError):  # a cache that cannot be written costs time only
            labdata.write_bytes(path, (folder / f"{name}.parquet").read_bytes())


def _parquet_key(table: Table, rows: str) -> str:
    """All that decides a Parquet file's bytes.

    Args:
        rows: SHA-256 of the table as JSON
    """
    told = [[(c.name, c.sql, c.about) for c in table.columns], table.about, rows, version("duckdb")]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def _write_parquet(files: list[tuple[Table, Path, Path]]) -> None:
    """Tables out of their JSON by DuckDB: zstd, one thread for one order of bytes, what each column is in the file's metadata."""
    if not files:
        return
    import duckdb  # slow to load, for what is not in the cache

    def quoted(words: str) -> str:
        return "'" + words.replace("'", "''") + "'"

    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for table, source, target in files:
            draft = target.with_suffix(f".{os.getpid()}")  # two builds may run at once
            columns = ", ".join(f"{quoted(c.name)}: {quoted(c.sql)}" for c in table.columns)
            about = {"description": table.about, "license": "MIT", "columns": json.dumps({c.name: c.about for c in table.columns}, ensure_ascii=False)}
            metadata = ", ".join(f"{name}: {quoted(words)}" for name, words in about.items())
            read = f"read_json({quoted(str(source))}, format = 'array', columns = {{{columns}}}, maximum_object_size = {LARGEST_ROW})"
            connection.execute(f"COPY (SELECT * FROM {read}) TO {quoted(str(draft))} (FORMAT parquet, COMPRESSION zstd, KV_METADATA {{{metadata}}})")
            draft.replace(target)
