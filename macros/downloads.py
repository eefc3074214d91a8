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

from markupsafe import Markup, escape

from macros import export, labdata, tables
from macros.export import Table
from macros.narrative import Book
from macros.tables import Column
from macros.values import number

FOLDER = "data/lab"  # below the site's root; a published address stays
LICENCE = labdata.ROOT / "LICENSE.txt"
LARGEST_ROW = 100_000_000  # of JSON [B]
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


def package(found: list[Table], folder: Path, name: str, description: str, homepage: str) -> str:
    """The Data Package: each table's columns with type and meaning, its key, its parent, size and hash.

    Args:
        folder: where the tables are, as CSV
    """
    resources = []
    for table in found:
        path = folder / f"{table.name}.csv"
        schema = {
            "fields": [{"name": c.name, "type": c.type, "description": c.about} for c in table.columns],
            "primaryKey": list(table.key),
            "missingValues": [""],
        }
        parent = next((t for t in found if t.name == table.parent), None)
        if parent:
            schema["foreignKeys"] = [{"fields": list(parent.key), "reference": {"resource": parent.name, "fields": list(parent.key)}}]
        resources.append({
            "name": table.name, "description": table.about, "path": f"{table.name}.csv", "format": "csv", "mediatype": "text/csv", "encoding": "utf-8",
            "bytes": path.stat().st_size, "hash": f"sha256:{_sha256(path)}", "derived": table.derived,
            "also": [f"{table.name}.json", f"{table.name}.parquet"], "schema": schema,
        })  # fmt: skip
    told = {"$schema": PROFILE, "name": name, "description": description, "licenses": [{"name": "MIT", "path": "LICENSE.txt", "title": "MIT License"}]}
    return json.dumps(told | ({"homepage": homepage} if homepage else {}) | {"resources": resources}, ensure_ascii=False, indent=1) + "\n"


def archive(root: Path = labdata.ROOT) -> bytes:
    """labdata/ as it lies on disk, but for ink that is still open, as a zip that is the same for the same files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(root.rglob("*")):
            hidden = any(part.startswith(".") for part in path.relative_to(root).parts)
            if path.is_file() and not path.is_symlink() and not hidden and not path.name.endswith(".open.yml"):
                entry = zipfile.ZipInfo(f"labdata/{path.relative_to(root).as_posix()}", (1980, 1, 1, 0, 0, 0))
                entry.external_attr, entry.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
                packed.writestr(entry, path.read_bytes())
    return out.getvalue()


def write(found: list[Table], folder: Path, description: str, homepage: str, root: Path = labdata.ROOT, cache: Path = Path(".cache/data")) -> list[Listed]:
    """Every file of `FOLDER`; what the tables are.

    Args:
        folder: where they go
        cache: Parquet files by content, so that an unchanged table is not written anew
    """
    folder.mkdir(parents=True, exist_ok=True)
    for table in found:  # straight into the files: a large lab's are hundreds of MB
        for word, put in (("csv", export.write_csv), ("json", export.write_json)):
            with (folder / f"{table.name}.{word}").open("w", encoding="utf-8", newline="") as out:
                put(table, out)
    texts = {"datapackage.json": package(found, folder, "inklab", description, homepage).encode(), "LICENSE.txt": LICENCE.read_bytes(), "labdata.zip": archive(root)}
    for schema in sorted(root.glob("schema/*.json")):
        texts[schema.name] = schema.read_bytes()
    for name, data in texts.items():
        (folder / name).write_bytes(data)
    kept = {table.name: cache / f"{_parquet_key(table, folder / f'{table.name}.json')}.parquet" for table in found}
    new = {name for name, path in kept.items() if not path.is_file()}
    _write_parquet([(t, folder / f"{t.name}.json", folder / f"{t.name}.parquet") for t in found if t.name in new])
    for name, path in kept.items():
        if name not in new:
            shutil.copyfile(path, folder / f"{name}.parquet")
            continue
        with contextlib.suppress(OSError):  # a cache that cannot be written costs time only
            labdata.write_bytes(path, (folder / f"{name}.parquet").read_bytes())
    return listed(found)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _parquet_key(table: Table, rows: Path) -> str:
    """All that decides a Parquet file's bytes."""
    told = [[(c.name, c.sql, c.about) for c in table.columns], table.about, _sha256(rows), version("duckdb")]
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
