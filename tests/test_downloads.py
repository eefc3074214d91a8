"""What writes the downloads of a large lab: values in words once, a few hundred documents at a time."""

from __future__ import annotations

import csv
import datetime
import io
import json
import math

import pytest

from macros import export, labdata, table_texts
from macros.compare import rate
from macros.side_by_side import Maker

MOMENT = datetime.datetime(2026, 11, 30, 6, 10, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
CELLS = [
    ("a,b", 1, 0.1, True, [1, None, 2.5], MOMENT, {"a": 'say "b"'}, 1),
    ('say "x"', 2, -0.0, False, [], None, {}, 1.0),
    ("two\nlines", None, 1e-07, None, None, MOMENT, None, True),
    ("=1+1", 10**15, 1e16, True, ["é", "…"], MOMENT, {}, "1"),
    ("", 0, None, False, [[1], [1]], None, {"1": 1}, None),
    ("100 %s", -1, 0.0, True, [1, None, 2.5], MOMENT, {}, [1]),
]
NAMES = ("words", "int", "float", "bool", "list", "moment", "dict", "any, 100 %")


def test_words_are_those_of_the_standard_library():
    as_csv, as_json = table_texts.texts(NAMES, CELLS)
    in_utc = [[datetime.datetime(2026, 11, 30, 4, 10).isoformat() + "Z" if v is MOMENT else v for v in row] for row in CELLS]
    wanted = [json.dumps(dict(zip(NAMES, row, strict=True)), ensure_ascii=False, separators=(",", ":")) for row in in_utc]
    assert as_json.split(",\n") == wanted
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in in_utc:
        nested = [json.dumps(v, ensure_ascii=False, separators=(",", ":")) if isinstance(v, (list, dict, bool)) else v for v in row]
        writer.writerow(["'=1+1" if v == "=1+1" else v for v in nested])
    assert as_csv == out.getvalue()


@pytest.mark.parametrize("value", [math.nan, math.inf, [1.0, -math.inf]])
def test_what_is_no_number_is_refused(value: object):
    with pytest.raises(ValueError):
        table_texts.texts(("a", "b"), [("x", 1.0), ("y", value)])


def test_a_large_lab_is_never_held_whole(monkeypatch: pytest.MonkeyPatch):
    lab = labdata.load()
    whole = {t.name: t.cells for t in export.tables(lab)}
    monkeypatch.setattr(export, "AT_A_TIME", 2)
    taken: dict[str, list[tuple]] = {}
    most = 0

    def take(found: list[export.Table]) -> None:
        nonlocal most
        most = max(most, *(len(t.cells) for t in found))
        for table in found:
            taken.setdefault(table.name, []).extend(table.cells)
            table.cells.clear()

    rest = export.tables(lab, take=take)
    assert most < max(map(len, whole.values())) / 2
    take(rest)
    assert taken == whole


def test_a_machine_s_lines_hold_its_own_results():
    lab = labdata.load()
    [tg] = [x for x in Maker().lines(lab, "apple-m4-24gb") if x.test == "tg128" and "Q4_K_M" in x.model and x.run == "day1-baseline"]
    assert (tg.measured.mean, tg.measured.sigma, tg.measured.n) == (20.8, 0.05, 5)  # the lab's notes of Day 1
    for machine in lab.machines:
        results = {(run.id, r.test, r.backend, rate(r)) for run in lab.runs_of(machine) for r in run.results if r.depth == 0}
        assert {(x.run, x.test, x.backend, x.measured) for x in Maker().lines(lab, machine)} <= results
