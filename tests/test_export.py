"""labdata/ as tables: nothing is lost, nothing is other than in the files, and all three formats say the same."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import ROOT
from pydantic import BaseModel

from macros import downloads, export, flat, labdata, table_texts
from macros.export import Table


@pytest.fixture(scope="module")
def lab() -> labdata.Lab:
    return labdata.load()


@pytest.fixture(scope="module")
def tables(lab: labdata.Lab) -> dict[str, Table]:
    return {t.name: t for t in export.tables(lab)}


def rebuilt(tables: dict[str, Table], name: str, kind: type[BaseModel], key: dict[str, Any]) -> dict[str, Any]:
    """A part of a document put together from the rows of its table and of those below it."""
    row = next(r for r in tables[name].rows if all(r[k] == v for k, v in key.items()))
    columns, children = flat.layout(kind)
    found: dict[str, Any] = {}

    def put(path: tuple[str, ...], value: Any) -> None:
        at = found
        for step in path[:-1]:
            at = at.setdefault(step, {})
        at[path[-1]] = value

    for column in columns:
        put(column.path, row[column.name])
    for child in children:
        below = f"{name}_{child.name}"
        mine = [r for r in tables[below].rows if all(r[k] == v for k, v in key.items())]
        assert [r[f"{child.name}_n"] for r in mine] == list(range(1, len(mine) + 1))
        put(child.path, [rebuilt(tables, below, child.kind, key | {f"{child.name}_n": r[f"{child.name}_n"]}) for r in mine])
    return found


def stated(value: Any) -> Any:
    """A document without what is nothing: None, empty lists and parts in which all is None."""
    if isinstance(value, dict):
        kept = {k: s for k, v in value.items() if (s := stated(v)) not in (None, [], {})}
        return kept
    return [stated(v) for v in value] if isinstance(value, list) else value


def test_every_document_can_be_put_together_again_from_the_tables(lab: labdata.Lab, tables: dict[str, Table]):
    done = 0
    for name, _, kind, found in export.documents(lab):
        for place, document in found:
            again = rebuilt(tables, name, kind, {"document": place})
            assert stated(again) == stated(document.model_dump(exclude={"sources"})), place
            done += 1
    assert done > 300


def test_the_tables_hold_what_the_files_hold(tables: dict[str, Table]):
    """Read by YAML alone, past all our models."""
    for path in [*ROOT.glob("labdata/runs/*/*.yml"), *ROOT.glob("labdata/ink/*.yml"), *ROOT.glob("labdata/machines/*.yml")]:
        document, place = yaml.safe_load(path.read_text(encoding="utf-8")), path.relative_to(ROOT / "labdata").as_posix().removesuffix(".yml")
        for key, source in (document.get("sources") or {}).items():
            row = next(r for r in tables["sources"].rows if (r["document"], r["key"]) == (place, key))
            assert row["title"] == source["title"]
        for n, result in enumerate(document.get("results", []), 1):
            row = next(r for r in tables["runs_results"].rows if (r["document"], r["results_n"]) == (place, n))
            assert row["samples_ns"] == result.get("samples_ns")
            assert row["published_mean_tok_s"] == (result.get("published") or {}).get("mean_tok_s")
            assert (row["test"] if "test" in row else None, row["depth"], row["model"]) == (None, result["depth"], result["model"])
        predictions = document.get("predictions", [])
        assert [r["as_written"] for r in tables["inks_predictions"].rows if r["document"] == place] == [p["as_written"] for p in predictions]


def test_derived_tables_say_what_the_pages_say(tables: dict[str, Table]):
    rate = next(r for r in tables["rates"].rows if r["document"] == "runs/apple-m4-24gb/day1-baseline" and r["test"] == "tg128")
    assert (rate["mean_tok_s"], rate["sigma_tok_s"], rate["n"]) == (20.8, 0.05, 5)  # the lab's notes of Day 1
    verdicts = [r["verdict"] for r in tables["scores"].rows if r["document"] == "ink/day-01"]
    assert {w: verdicts.count(w) for w in set(verdicts)} == {"held": 5, "missed": 3, "unbroken": 1}
    assert all(t.derived == (t.name in ("rates", "scores")) for t in tables.values())


def test_every_column_says_what_it_is_and_no_name_stands_twice(tables: dict[str, Table]):
    for table in tables.values():
        names = [c.name for c in table.columns]
        assert len(names) == len(set(names)), table.name
        assert all(c.about for c in table.columns), table.name
        assert all(set(row) == set(names) for row in table.rows), table.name
        keys = [tuple(row[k] for k in table.key) for row in table.rows]
        assert len(keys) == len(set(keys)), table.name
    assert "[tok/s]" in next(c.about for c in tables["rates"].columns if c.name == "mean_tok_s")


def test_a_withdrawn_run_is_recorded_and_counts_no_more(lab: labdata.Lab):
    from dataclasses import replace
    from datetime import UTC, datetime

    from macros.seals import Withdrawal

    name = "runs/apple-m4-24gb/day1-baseline"
    gone = replace(lab, withdrawn={name: Withdrawal(schema=1, at=datetime(2026, 12, 1, tzinfo=UTC), because="on battery")})
    found = {t.name: t for t in export.tables(gone)}
    assert any(r["document"] == name for r in found["runs"].rows)
    assert not any(r["document"] == name for r in found["rates"].rows)
    assert [r["because"] for r in found["withdrawn"].rows] == ["on battery"]


LAB = "data/lab"


def test_csv_json_and_parquet_hold_the_same_rows(site: Path):
    import duckdb

    package = json.loads((site / LAB / "datapackage.json").read_text(encoding="utf-8"))
    assert len(package["resources"]) > 25
    for resource in package["resources"]:
        name, fields = resource["name"], [f["name"] for f in resource["schema"]["fields"]]
        data = (site / LAB / resource["path"]).read_bytes()
        assert (len(data), f"sha256:{hashlib.sha256(data).hexdigest()}") == (resource["bytes"], resource["hash"])
        as_csv = list(csv.DictReader(data.decode().splitlines(keepends=True)))
        as_json = json.loads((site / LAB / f"{name}.json").read_text(encoding="utf-8"))
        query = duckdb.sql(f"SELECT * FROM '{site / LAB / name}.parquet'")
        assert query.columns == fields
        as_parquet = [dict(zip(fields, row, strict=True)) for row in query.fetchall()]
        assert len(as_csv) == len(as_json) == len(as_parquet), name
        for c, j, p in zip(as_csv, as_json, as_parquet, strict=True):
            assert list(c) == fields == list(j)
            for field in resource["schema"]["fields"]:
                key = field["name"]
                said = table_texts.cell(j[key], table_texts.to_json(j[key]))
                assert c[key] == said, (name, key)
                if field["type"] in ("number", "integer", "string", "boolean", "array", "object"):
                    assert p[key] == j[key], (name, key)
                else:
                    assert (p[key] is None) == (j[key] is None), (name, key)


def test_the_archive_is_the_folder_without_open_ink(tmp_path: Path):
    for name, text in {"ink/day-02.yml": "a: 1\n", "ink/day-03.open.yml": "b: 2\n", ".hidden.yml": "c: 3\n", "raw/log.txt": "d\n"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "raw/elsewhere").symlink_to("/etc/hostname")
    first, again = io.BytesIO(), io.BytesIO()
    downloads.archive(first, tmp_path)
    (tmp_path / "raw/log.txt").touch()
    downloads.archive(again, tmp_path)
    assert again.getvalue() == first.getvalue(), "the same files, the same bytes"
    with zipfile.ZipFile(first) as packed:
        assert packed.namelist() == ["labdata/ink/day-02.yml", "labdata/raw/log.txt"]


def test_the_licence_that_travels_is_the_project_s():
    assert (ROOT / "labdata/LICENSE.txt").read_bytes() == (ROOT / "LICENSE").read_bytes()
