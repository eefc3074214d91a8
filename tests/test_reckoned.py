"""What a machine's runs come to, reckoned once: the same as each view reckons for itself; and the short ways that must not differ from the long."""

from __future__ import annotations

import dataclasses
import datetime
import math
import random
from decimal import ROUND_HALF_UP, Context, Decimal

import pytest

from macros import chip_names, compare, export, labdata, narrative, rows, summary
from macros.reckoned import Reckoned
from macros.values import hour, number

NAME = "apple-m4-24gb"


@pytest.fixture(scope="module")
def lab() -> labdata.Lab:
    return labdata.load()


def test_it_is_what_each_view_reckons_for_itself(lab: labdata.Lab):
    own = Reckoned(lab, NAME)
    assert own.runs == lab.runs_of(NAME) and list(own.on) == ["day-01"] and own.on["day-01"] == lab.runs_on("day-01")
    assert own.scores["day-01"] == compare.scores(lab, "day-01") and own.all_scores("day-01") is own.scores["day-01"]
    assert [row for run in own.runs for row in own.results[run.id]] == rows.results(lab, own.runs)
    book = narrative.Book(lab)
    assert summary.of_machine(book, NAME, own=own).as_json() == summary.of_machine(book, NAME).as_json()


def test_the_downloads_rows_are_the_same_with_it_and_without(lab: labdata.Lab):
    for machine in lab.machines:
        with_it, without = export.Rows(lab), export.Rows(lab)
        for n in without.of[machine]:
            with_it.add(with_it.blocks[n], Reckoned(lab, machine))
            without.add(without.blocks[n])
        assert [t.cells for t in with_it.tables()] == [t.cells for t in without.tables()]
        assert any(t.name == "scores" and t.cells for t in without.tables())


def test_ink_that_another_machine_ran_on_too_is_not_scored_on_one_alone(lab: labdata.Lab):
    other = next(name for name in lab.runs if not name.startswith(f"{NAME}/"))
    shared = dataclasses.replace(lab, ink_of={**lab.ink_of, other: "day-01"})
    own = Reckoned(shared, NAME)
    assert own.scores["day-01"] and own.all_scores("day-01") is None and own.all_scored("day-01") is None


def test_a_number_is_its_decimal_s_rounding_whichever_way_it_takes():
    wide, dice = Context(prec=700), random.Random(1)
    for _ in range(20_000):
        d = dice.randrange(9)
        whole = dice.randrange(-(10**6), 10**6)
        for x in (dice.uniform(-1, 1) * 10 ** dice.uniform(-9, 13), (10 * whole + 5) / 10**d, math.nextafter((whole + 0.5) / 10**d, dice.choice((-math.inf, math.inf)))):
            exact = Decimal(repr(x)).quantize(Decimal(1).scaleb(-d), ROUND_HALF_UP, wide)
            assert number(x, d) == f"{abs(exact) if exact == 0 else exact:,f}".replace("-", "−"), (x, d)


def test_an_hour_is_said_in_utc_whatever_its_offset():
    east = datetime.timezone(datetime.timedelta(hours=9, minutes=30))
    assert hour(datetime.datetime(2026, 12, 1, 1, 45, tzinfo=east)) == "30 November 2026, 16:15 UTC"


@pytest.mark.parametrize(
    ("said", "ids"),
    [
        ("Generated chip 00001", []),
        ("Tesla T4", ["nvidia-t4"]),  # a short word is a whole one: not T400
        ("GeForce RTX 3090", ["nvidia-rtx-3090"]),
        ("MI300X", ["amd-instinct-mi300x"]),
    ],
)
def test_a_chip_is_found_by_the_words_of_its_name(said: str, ids: list[str]):
    assert [chip.id for chip in chip_names.candidates(said)] == ids
