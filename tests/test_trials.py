"""Records of faults: written as they grow, gone on with where they were broken off, and said so on the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from macros import exhibits, labdata
from macros.narrative import Book
from tests import faults


def broken_after(most: int):
    """A kind of fault that is broken off after so many trials."""

    def act(_bench, times: int, count: faults.Count) -> None:
        done = 0
        while count.more(times) and done < most:
            done += 1
            count.times, count.hit, count.went_on = count.times + 1, count.hit + 1, count.went_on + 1

    return act


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "labdata/trials/faults.yml"


def sit(path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> faults.Record:
    """One command, broken off after so many trials of the one kind there is."""
    fault = faults.Fault("pulled the plug", "make bench", broken_after(most), 5, "nothing was lost")
    monkeypatch.setattr(faults, "FAULTS", [fault])
    record = faults.Record(path, 1)
    count = record.counts[fault]
    count.keep = lambda c: record.keep(fault, c)
    fault.act(None, record.planned[fault], count)
    return record


def row(path: Path):
    (found,) = labdata.load(path.parent.parent).trials["faults"].trials
    return found


def test_a_record_broken_off_says_so_and_is_gone_on_with(path: Path, monkeypatch: pytest.MonkeyPatch):
    first = sit(path, monkeypatch, 2)
    assert (row(path).times, row(path).planned) == (2, 5)
    assert ">2 of 5<" in str(exhibits.trials_table(Book(labdata.load(path.parent.parent)), "faults", "faults", "Faults"))
    sit(path, monkeypatch, 9)
    assert (row(path).times, row(path).planned, row(path).hit, row(path).outcome) == (5, None, 5, "nothing was lost")
    assert labdata.load(path.parent.parent).trials["faults"].started_at == first.begun
    sit(path, monkeypatch, 1)  # whole: made anew
    assert (row(path).times, row(path).planned) == (1, 5)


def test_what_went_wrong_stays_in_the_record(path: Path, monkeypatch: pytest.MonkeyPatch):
    record = sit(path, monkeypatch, 2)
    (fault, count), = record.counts.items()
    count.lost = 1
    count.note("a sealed ink was changed")
    record.keep(fault, count)
    sit(path, monkeypatch, 9)
    assert (row(path).times, row(path).lost, row(path).outcome) == (5, 1, "a sealed ink was changed")
