"""What writes the downloads of a large lab: values in words once, a machine's documents at a time."""

from __future__ import annotations

import csv
import datetime
import hashlib
import io
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from macros import downloads, export, labdata, table_texts
from macros.compare import rate
from macros.flat import Column
from macros.reckoned import Reckoned
from macros.side_by_side import Maker
from tests.conftest import ROOT

MOMENT = datetime.datetime(2026, 11, 30, 6, 10, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
CELLS = [
    ("a,b", 1, 0.1, True, [1, None, 2.5], MOMENT, {"a": 'say "b"'}, 1),
    ('say "x"', 2, -0.0, False, [], None, {}, 1.0),
    ("two\nlines", None, 1e-07, None, None, MOMENT, None, True),
    ("=1+1", 10**15, 1e16, True, ["é", "…"], MOMENT, {}, "1"),
    ("", 0, None, False, [[1], [1]], None, {"1": 1}, None),
    ("100 %s", -1, 0.0, True, [1, None, 2.5], MOMENT, {}, [1]),
]
TYPES = {
    "words": ("string", "VARCHAR"), "int": ("integer", "BIGINT"), "float": ("number", "DOUBLE"), "bool": ("boolean", "BOOLEAN"),
    "list": ("array", "JSON[]"), "moment": ("datetime", "TIMESTAMPTZ"), "dict": ("object", "MAP(VARCHAR, JSON)"), "any, 100 %": ("any", "JSON"),
}  # fmt: skip
COLUMNS = [Column(name, *types, "") for name, types in TYPES.items()]


def test_words_are_those_of_the_standard_library():
    as_csv, as_json = table_texts.texts(COLUMNS, CELLS)
    in_utc = [[datetime.datetime(2026, 11, 30, 4, 10).isoformat() + "Z" if v is MOMENT else v for v in row] for row in CELLS]
    wanted = [json.dumps(dict(zip(TYPES, row, strict=True)), ensure_ascii=False, separators=(",", ":")) for row in in_utc]
    assert as_json.split(",\n") == wanted
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in in_utc:
        nested = [json.dumps(v, ensure_ascii=False, separators=(",", ":")) if isinstance(v, (list, dict, bool)) else v for v in row]
        writer.writerow(["'=1+1" if v == "=1+1" else v for v in nested])
    assert as_csv == out.getvalue()


NUMBERS = [0.1, 1e-4, 9.9e-5, 1e-5, 1e-7, 5e-324, 1e15, 9999999999999998.0, 1e16, 1.7e308, 100.00001, 2 / 3, 10**30, -(2**63), True, -0.0]


@pytest.mark.parametrize("value", NUMBERS)
def test_numbers_are_written_as_python_writes_them(value: float):
    column, several = Column("x", "number", "DOUBLE", ""), Column("y", "array", "DOUBLE[]", "")
    for number in (value, -value):
        words = json.dumps(number)
        assert table_texts.texts([column, several], [(number, [number])]) == (f"{words},[{words}]\n", f'{{"x":{words},"y":[{words}]}}')


def test_a_day_and_a_moment_elsewhere():
    day, moment = Column("day", "date", "DATE", ""), Column("moment", "datetime", "TIMESTAMPTZ", "")
    rows = [(datetime.date(2026, 11, 30), MOMENT), (None, MOMENT.astimezone(datetime.UTC)), (None, None)]
    assert table_texts.texts([day, moment], rows)[0] == "2026-11-30,2026-11-30T04:10:00Z\n,2026-11-30T04:10:00Z\n,\n"


@pytest.mark.parametrize("value", [math.nan, math.inf, [1.0, -math.inf]])
@pytest.mark.parametrize("kind", ["number", "array", "any"])
def test_what_is_no_number_is_refused(value: object, kind: str):
    with pytest.raises(ValueError):
        table_texts.texts([Column("a", "string", "VARCHAR", ""), Column("b", kind, "DOUBLE[]", "")], [("x", 1.0), ("y", value)])


def test_rows_made_machine_by_machine_are_those_of_the_whole(tmp_path: Path):
    lab = labdata.load()
    whole = export.tables(lab)
    made, parts = export.Rows(lab), downloads.Parts(tmp_path)
    for machine in [*sorted(lab.machines, reverse=True), ""]:  # in whatever order they come
        found = downloads.pieces(made, machine)
        assert not any(t.cells for t in made.tables()) and (found or not lab.runs_of(machine))
        parts.add(found)
    assert [t.name for t in made.tables()] == [t.name for t in whole]
    assert [t.rows for t in parts.listed(made.tables())] == [len(t.cells) for t in whole]
    for table in whole:
        written = parts.join(table, parts.places.get(table.name, []), tmp_path)
        as_csv, as_json = table_texts.texts(table.columns, table.cells) if table.cells else ("", "")
        data, rows = (tmp_path / f"{table.name}.csv").read_bytes(), (tmp_path / f"{table.name}.json").read_bytes()
        assert data.decode() == table_texts.header([c.name for c in table.columns]) + as_csv
        assert rows.decode() == f"[\n{as_json}\n]\n"
        assert (written.bytes, written.csv, written.json) == (len(data), hashlib.sha256(data).hexdigest(), hashlib.sha256(rows).hexdigest())


def test_what_a_page_that_failed_left_is_no_other_s(monkeypatch: pytest.MonkeyPatch):
    lab = labdata.load()
    made = export.Rows(lab)
    wanted = downloads.pieces(made, "apple-m4-24gb")
    with monkeypatch.context() as broken:
        broken.setattr(export, "_rated", lambda *of: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            downloads.pieces(made, "amd-epyc-2-cores-24-gb")
    assert downloads.pieces(made, "apple-m4-24gb") == wanted


def test_a_machine_s_lines_hold_its_own_results():
    lab = labdata.load()
    [tg] = [x for x in Maker().lines(Reckoned(lab, "apple-m4-24gb")) if x.test == "tg128" and "Q4_K_M" in x.model and x.run == "day1-baseline"]
    assert (tg.measured.mean, tg.measured.sigma, tg.measured.n) == (20.8, 0.05, 5)  # the lab's notes of Day 1
    for machine in lab.machines:
        results = {(run.id, r.test, r.backend, rate(r)) for run in lab.runs_of(machine) for r in run.results if r.depth == 0}
        assert {(x.run, x.test, x.backend, x.measured) for x in Maker().lines(Reckoned(lab, machine))} <= results


def test_a_disk_that_takes_half_of_a_piece_stops_the_build(tmp_path: Path):
    """Linux answers a write across the limit with the bytes that fitted, and no error: half a table would be published."""
    code = "import resource, sys; from pathlib import Path; from macros.downloads import Parts, Piece; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); Parts(Path(sys.argv[1])).add([Piece('runs', 0, 1, b'x' * 800, b'y' * 800)])"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1 and "OSError: [Errno 27]" in done.stderr
