"""Years: a lab of the first release loads and builds with today's code, and a next layout has a way to be read."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Literal

import pytest

from macros import labdata, versions
from macros.cards import Machine
from macros.fields import Name, key
from macros.labdata import LabError

FIRST = Path(__file__).resolve().parent / "data" / "lab-0.1.0"
MACHINE = "machines/apple-m4-24gb.yml"


def digest(root: Path) -> str:
    """One hash of every file below a folder."""
    whole = hashlib.sha256()
    for path in sorted(p for p in root.rglob("*") if p.is_file()):
        whole.update(f"{path.relative_to(root).as_posix()}\n{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()


def test_the_lab_of_the_first_release_is_as_it_was_released():
    assert digest(FIRST) == "5966a4d2a4cad18afee8ad4b8767dc28b40b8674141ad26e771604a22afd515c", "a released lab is never brought up to date: what reads it is"


def test_the_lab_of_the_first_release_still_builds():
    from macros import pages
    from macros.narrative import Book

    lab = labdata.load(FIRST)
    assert len(lab.machines) == 2 and len(lab.runs) == 5 and len(lab.inks) == 2
    book = Book(lab)
    book.turn_to("machines/apple-m4-24gb/")
    page = pages.machine_page(book, "apple-m4-24gb")
    assert book.rate_of(lab.runs["apple-m4-24gb/day1-baseline"], lab.runs["apple-m4-24gb/day1-baseline"].results[1]).text.startswith("20.80")
    assert "20.80" in page and "unaltered" in page
    assert "Apple M4" in pages.machine_index(book)


class Machine2(Machine):
    """A machine as a version 2 might keep it: `os` in two parts, the hour of its description."""

    schema_version: Literal[2] = key("Version of this file's layout", 2, alias="schema")
    os: Name | None = key("Operating system", "macOS", default=None)  # type: ignore[assignment]
    system: Name = key("Operating system", "macOS")


def second(kind: str, content: dict) -> dict:
    """The step from 1 to 2: machines alone differ."""
    if kind != "Machine2":
        return content
    return {**{k: v for k, v in content.items() if k != "os"}, "system": content["os"]}


def test_a_file_of_version_1_is_read_as_version_2_and_not_rewritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(versions, "CURRENT", 2)
    monkeypatch.setitem(versions.STEPS, 1, second)
    shutil.copy(FIRST / MACHINE, tmp_path / "m.yml")
    before = (tmp_path / "m.yml").read_bytes()
    found = labdata.parse(Machine2, tmp_path / "m.yml", "labdata/m.yml")
    assert (found.schema_version, found.system, found.os) == (2, "macOS", None)
    assert (tmp_path / "m.yml").read_bytes() == before
    labdata.write(tmp_path / "new.yml", found)
    assert labdata.parse(Machine2, tmp_path / "new.yml", "labdata/new.yml") == found  # version 2 takes no step
    (tmp_path / "m.yml").write_text("schema: 3\n", encoding="utf-8")
    with pytest.raises(LabError, match="labdata/m.yml: schema: from a later Inklab than this one; got 3; known: 1 to 2; git pull brings a newer one"):
        labdata.parse(Machine2, tmp_path / "m.yml", "labdata/m.yml")


def test_every_version_but_the_newest_has_its_step():
    assert sorted(versions.STEPS) == list(range(1, versions.CURRENT))


@pytest.mark.parametrize("given", ["0", "-1", "'1'", "null", "[1]"])
def test_what_is_no_version_is_refused_by_its_key(tmp_path: Path, given: str):
    text = (FIRST / MACHINE).read_text(encoding="utf-8")
    (tmp_path / "m.yml").write_text(text.replace("schema: 1", f"schema: {given}"), encoding="utf-8")
    with pytest.raises(LabError, match="m.yml: schema: Input should be 1"):
        labdata.parse(Machine, tmp_path / "m.yml", "m.yml")
