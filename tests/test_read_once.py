"""What is read, decoded or found out once for many files: lines of YAML, and each machine's decode in the list of machines."""

from __future__ import annotations

import random

import pytest

from macros import files, headlines, labdata, pages, quick, snapshot
from macros.narrative import Book


@pytest.mark.parametrize(("text", "is_"), [
    ("a: 1\nb:\n- c: 2\n  d:\n  - - 1\n    - 2\n  - - a: x\n      b:\n", {"a": 1, "b": [{"c": 2, "d": [[1, 2], [{"a": "x", "b": None}]]}]}),
    ("a:\n# a remark\n\n  b: [1,\n    2]\n  c: {}\nd:\n", {"a": {"b": [1, 2], "c": {}}, "d": None}),
    ("- a:\n  - 1\n- b:\n    c: 2\n", [{"a": [1]}, {"b": {"c": 2}}]),
])  # fmt: skip
def test_columns_tell_what_a_line_belongs_to(text: str, is_: object):
    assert quick.read(text) == is_


@pytest.mark.parametrize("text", [
    "a: 1\n  b: 2\n", "a: 1\n- b\n", "- a\nb: 1\n", "a:\n    b: 1\n  c: 2\n", "- a: 1\n   b: 2\n", "- a\n  - b\n", "  a: 1\nb: 2\n",
    "a: 1\na: 2\n", "a:\n- b: 1\n  b: 2\n", "a\n", "# a,\nb: 1\n", "a: x,\n- b\n", "a: [1,\n", "a: 1", "a: 1\r\n",
])  # fmt: skip
def test_lines_that_do_not_fit_together_are_left_to_the_careful_reader(text: str):
    with pytest.raises(ValueError):
        quick.read(text)


def test_random_columns_are_read_as_the_careful_reader_does():
    draw, taken = random.Random(8), 0
    for _ in range(4000):
        column, lines = 0, []
        for _ in range(draw.randint(1, 8)):
            column = max(0, column + draw.choice([0, 0, 0, 2, 2, -2, -2, 1, -4]))
            dashes = "- " * draw.choice([0, 0, 0, 1, 1, 2])
            lines.append(" " * column + dashes + draw.choice(["a:", "b:", "c:", "d:", "e: 1", "f: [1,\n    2]", "g: x", "1", "#"]))
            column += len(dashes) * draw.choice([0, 1])
        text = "\n".join(lines) + "\n"
        try:
            found = quick.read(text)
        except ValueError:
            continue
        taken += 1
        assert repr(found) == repr(files._in_general(text)), text
    assert taken > 200


def test_a_line_that_comes_again_has_a_list_of_its_own():
    text = "a: [1, 2]\nb: {}\n"
    quick.read(text)["a"].append(3)
    quick.read(text)["b"]["c"] = 1
    assert quick.read(text) == {"a": [1, 2], "b": {}}


def test_lines_found_out_stay_bounded(monkeypatch: pytest.MonkeyPatch):
    kept = quick._Lines()
    monkeypatch.setattr(quick, "_lines", kept)
    for start in range(0, 60_000, 1000):
        quick.read("".join(f"- {n}\n" for n in range(start, start + 1000)))
    quick.read(f"a: {'x' * 300}\n")
    assert 0 < len(kept) <= 50_001 and max(map(len, kept)) < 200


def test_the_list_of_machines_decodes_no_run_again(monkeypatch: pytest.MonkeyPatch):
    labdata.load()  # kept, whoever runs this first
    snapshot.of.cache_clear()
    lab = labdata.load()
    assert lab.models_run == {r.model for run in lab.runs.values() for r in run.results}
    book = Book(lab)
    book.turn_to("machines/", "machines/index.md")
    anew = pages.machine_index(book)
    for name, machine in lab.machines.items():
        book.turn_to(f"machines/{name}/", f"machines/{name}.md")  # its links start from its own page
        book.decodes[name] = headlines.read(book, machine, lab.runs_of(name)).decode
    book.turn_to("machines/", "machines/index.md")
    monkeypatch.setattr(labdata.Lab, "runs_of", lambda self, machine: pytest.fail(f"runs of {machine} asked for"))
    get = snapshot.Snapshot.get
    monkeypatch.setattr(snapshot.Snapshot, "get", lambda self, kind, key: pytest.fail("decoded") if kind is labdata.Run else get(self, kind, key))
    assert pages.machine_index(book) == anew
