"""CHIP= of `make import`: a log that does not tell which of two chips it is of, under a machine's name of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import __main__ as command
from bench import imports
from bench.import_cards import ImportRefused
from macros import labdata

LOG = "ggml_metal_init: GPU name:   Apple M2 Ultra\n| model | size | params | backend | test | t/s |\n|--|--|--|--|--|--|\n| a 1B F16 | 2.00 GiB | 1.07 B | Metal | tg128 | 9.00 ± 0.10 |\n"


def test_a_machine_has_the_users_name_and_the_chip_that_was_said(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture):
    root = project / "labdata"
    (project / "log.md").write_text(LOG)
    monkeypatch.chdir(project)
    monkeypatch.setattr(labdata, "ROOT", root)
    for name, value in {"FILE": "log.md", "MACHINE": "my-studio", "CHIP": "apple-m2-ultra-76c"}.items():
        monkeypatch.setenv(name, value)
    assert command._import({"file": None, "machine": None, "model": None, "chip": None}) == 0
    assert "Recorded in labdata/runs/my-studio/" in capsys.readouterr().out
    machine = labdata.load(root).machines["my-studio"]
    assert (machine.name, machine.chip) == ("Apple M2 Ultra (76-core GPU) (my-studio)", "Apple M2 Ultra (76-core GPU)")
    assert machine.specs.memory_bandwidth.si == 800e9  # Apple's specification of the Mac Studio (2023)


@pytest.mark.parametrize(
    ("machine", "chip", "words"),
    [
        ("my-studio", "apple-m2-ultra-77c", r"CHIP: no such chip in labdata/chips; got 'apple-m2-ultra-77c'; close to it: .*apple-m2-ultra-76c"),
        ("my-studio", "apple-m4-max-40c", r"CHIP: another chip than the log's; got 'apple-m4-max-40c', the log says 'Apple M2 Ultra'"),
        ("my-studio", None, r"none can be made from the log \(could be .*CHIP=apple-m2-ultra-60c"),
    ],
)
def test_a_chip_that_cannot_be_is_refused(machine: str, chip: str | None, words: str):
    with pytest.raises(ImportRefused, match=words):
        imports.prepare(LOG.encode(), "log", labdata.load(), machine, None, chip)


def test_a_known_machine_keeps_its_chip():
    log = LOG.replace("ggml_metal_init: GPU name:   Apple M2 Ultra\n", "")
    with pytest.raises(ImportRefused, match="CHIP: labdata/machines/apple-m4-24gb.yml is about another chip; it says 'Apple M4'; got 'apple-m2-ultra-76c'"):
        imports.prepare(log.encode(), "log", labdata.load(), "apple-m4-24gb", None, "apple-m2-ultra-76c")
