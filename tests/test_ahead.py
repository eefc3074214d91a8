"""Pages made by other processes: in order, with what was said and what went wrong, and none after the end."""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from macros import ahead, processes
from macros.downloads import Listed

TABLES = [Listed("runs", "a run", False, 3)]
HERE = os.getpid()
NAMES = [f"m{i}" for i in range(12)]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks here")


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(processes, "cores", lambda: 2)
    yield
    ahead.end()


def where(name: str) -> tuple[str, bool]:
    """A page, and whether it was made elsewhere."""
    return name, os.getpid() != HERE


def test_pages_come_in_order_from_elsewhere():
    ahead.begin(NAMES, where, lambda: TABLES)
    assert [ahead.made(name) for name in NAMES] == [(name, True) for name in NAMES]
    assert ahead.first() == TABLES


def test_without_other_processes_each_is_made_here(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(processes, "cores", lambda: 1)
    ahead.begin(NAMES, where, lambda: TABLES)
    assert [ahead.made(name) for name in NAMES] == [(name, False) for name in NAMES]
    assert ahead.first() == TABLES


def test_a_page_that_fails_says_so_where_it_is_asked_for():
    def make(name: str) -> tuple[str, bool]:
        if name == "m3":
            raise ValueError("no such value")
        return where(name)

    ahead.begin(NAMES, make, lambda: TABLES)
    assert [ahead.made(name)[1] for name in NAMES[:3]] == [True] * 3
    with pytest.raises(ValueError, match="no such value"):
        ahead.made("m3")
    assert [ahead.made(name)[1] for name in NAMES[4:]] == [True] * 8


def test_what_is_said_elsewhere_is_said_here_once(caplog: pytest.LogCaptureFixture):
    def make(name: str) -> str:
        logging.getLogger("mkdocs.structure.pages").warning("%s leads nowhere", name)
        return name

    ahead.begin(NAMES[:2], make, lambda: TABLES)
    time.sleep(0.2)
    assert not caplog.records
    assert [ahead.made(name) for name in NAMES[:2]] == NAMES[:2]
    assert [(r.name, r.levelname, r.getMessage()) for r in caplog.records] == [("mkdocs.structure.pages", "WARNING", f"{name} leads nowhere") for name in NAMES[:2]]


def test_a_lost_process_loses_no_page():
    def make(name: str) -> str:
        if os.getpid() != HERE and name == "m5":
            os.kill(os.getpid(), signal.SIGKILL)
        return name

    ahead.begin(NAMES, make, lambda: TABLES)
    assert [ahead.made(name) for name in NAMES] == NAMES
    assert ahead.first() == TABLES


def test_nothing_is_written_after_the_end(tmp_path: Path):
    def make(name: str) -> None:
        time.sleep(0.05)
        (tmp_path / name).touch()

    ahead.begin([f"m{i}" for i in range(200)], make, lambda: TABLES)
    ahead.made("m0")
    ahead.end()
    left = sorted(tmp_path.iterdir())
    assert 1 <= len(left) < 200
    time.sleep(0.3)
    assert sorted(tmp_path.iterdir()) == left


@pytest.mark.parametrize("cores", [1, 2])
def test_what_was_made_is_put_together_once(cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(processes, "cores", lambda: cores)

    def together(*given: str) -> None:
        with (tmp_path / "made").open("a") as file:
            print(*given, os.getpid() == HERE, file=file)

    ahead.begin(NAMES[:2], where, lambda: TABLES, together)
    assert [ahead.made(name)[0] for name in NAMES[:2]] == NAMES[:2]
    ahead.last("a", "b")
    ahead.done()
    assert (tmp_path / "made").read_text() == f"a b {cores == 1}\n"


def test_a_process_lost_at_the_end_is_replaced(tmp_path: Path):
    def together(name: str) -> None:
        if os.getpid() != HERE:
            os.kill(os.getpid(), signal.SIGKILL)
        (tmp_path / name).touch()

    ahead.begin([], where, lambda: TABLES, together)
    ahead.last("made")
    ahead.done()
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


def test_what_goes_wrong_at_the_end_is_raised():
    def together() -> None:
        raise OSError(28, "No space left on device", "site/data/lab/runs.csv")

    ahead.begin([], where, lambda: TABLES, together)
    ahead.last()
    with pytest.raises(OSError, match="No space left"):
        ahead.done()
