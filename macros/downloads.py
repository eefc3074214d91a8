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
import zipfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import BinaryIO

from markupsafe import Markup, escape

from macros import export, labdata, table_texts, tables
from macros.export import Table
from macros.labdata import Lab
from macros.narrative import Book
from macros.tables import Column
from macros.values import number

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


class _Growing:
    """A table's CSV and JSON while they are written, with their hashes; `bytes` is the CSV's size."""

    def __init__(self, table: Table, folder: Path) -> None:
        self.names, self.rows, self.bytes, self.hash, self.hash_json = [c.name for c in table.columns], 0, 0, hashlib.sha256(), hashlib.sha256()
        self._csv, self._json = (folder / f"{table.name}.csv").open("wb"), (folder / f"{table.name}.json").open("wb")
        self._put(table_texts.header(self.names), "[")

    def take(self, table: Table) -> None:
        """Write the table's cells and take them away."""
        if table.cells:
            as_csv, as_json = table_texts.texts(self.names, table.cells)
            self._put(as_csv, f"{',' if self.rows else ''}\n{as_json}")
            self.rows += len(table.cells)
            table.cells.clear()

    def end(self) -> None:
        """Close both."""
        self._put("", "\n]\n" if self.rows else "\n\n]\n")
        self.bytes = self._csv.tell()
        self._csv.close()
        self._json.close()

    def _put(self, as_csv: str, as_json: str) -> None:
        for words, file, digest in ((as_csv, self._csv, self.hash), (as_json, self._json, self.hash_json)):
            data = words.encode()
            file.write(data)
            digest.update(data)


def _grown(lab: Lab, folder: Path, root: Path) -> dict[str, tuple[Table, _Growing]]:
    """Every table's CSV and JSON, written while the tables are filled: a large lab's are hundreds of MB."""
    growing: dict[str, tuple[Table, _Growing]] = {}

    def take(found: list[Table]) -> None:
        for table in found:
            if table.name not in growing:
                growing[table.name] = table, _Growing(table, folder)
            growing[table.name][1].take(table)

    found = export.tables(lab, root, take)
    take(found)
    for _, files in growing.values():
        files.end()
    return {table.name: growing[table.name] for table in found}


def _package(found: dict[str, tuple[Table, _Growing]], name: str, description: str, homepage: str) -> str:
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
            "bytes": files.bytes, "hash": f"sha256:{files.hash.hexdigest()}", "derived": table.derived,
            "also": [f"{table.name}.json", f"{table.name}.parquet"], "schema": schema,
        })  # fmt: skip
    told = {"$schema": PROFILE, "name": name, "description": description, "licenses": [{"name": "MIT", "path": "LICENSE.txt", "title": "MIT License"}]}
    return json.dumps(told | ({"homepage": homepage} if homepage else {}) | {"resources": resources}, ensure_ascii=False, indent=1) + "\n"


def archive(out: BinaryIO, root: Path = labdata.ROOT) -> None:
    """labdata/ as it lies on disk, but for ink that is still open, as a zip that is the same for the same files."""
    names = []
    for folder, below, files in os.walk(root):
        below[:] = [name for name in below if not name.startswith(".")]
        names += [os.path.relpath(os.path.join(folder, name), root) for name in files if not name.startswith(".") and not name.endswith(".open.yml")]
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in sorted(names, key=lambda name: name.split(os.sep)):
            path = os.path.join(root, name)
            if os.path.isfile(path) and not os.path.islink(path):
                entry = zipfile.ZipInfo(f"labdata/{name}", (1980, 1, 1, 0, 0, 0))
                entry.external_attr, entry.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
                with open(path, "rb") as file:
                    packed.writestr(entry, file.read(), compresslevel=DEFLATE)


def write(lab: Lab, folder: Path, description: str, homepage: str, root: Path = labdata.ROOT, cache: Path = Path(".cache/data")) -> list[Listed]:
    """Every file of `FOLDER`; what the tables are.

    Args:
        folder: where they go
        cache: Parquet files by content, so that an unchanged table is not written anew
    """
    folder.mkdir(parents=True, exist_ok=True)
    found = _grown(lab, folder, root)
    texts = {"datapackage.json": _package(found, "inklab", description, homepage).encode(), "LICENSE.txt": LICENCE.read_bytes()}
    for schema in sorted(root.glob("schema/*.json")):
        texts[schema.name] = schema.read_bytes()
    for name, data in texts.items():
        (folder / name).write_bytes(data)
    packed = io.BytesIO()  # 30 MB for a thousand machines; a zip goes back to each file's head, which on disk takes longer
    archive(packed, root)
    (folder / "labdata.zip").write_bytes(packed.getbuffer())
    kept = {name: cache / f"{_parquet_key(table, files.hash_json.hexdigest())}.parquet" for name, (table, files) in found.items()}
    new = {name for name, path in kept.items() if not path.is_file()}
    _write_parquet([(t, folder / f"{name}.json", folder / f"{name}.parquet") for name, (t, _) in found.items() if name in new])
    for name, path in kept.items():
        if name not in new:
            shutil.copyfile(path, folder / f"{name}.parquet")
            continue
        with contextlib.suppress(OSError):  # a cache that cannot be written costs time only
            labdata.write_bytes(path, (folder / f"{name}.parquet").read_bytes())
    return [Listed(table.name, table.about, table.derived, files.rows) for table, files in found.values()]


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
