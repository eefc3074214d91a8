"""A lab that was never read is read on every core, and comes out as one process would read it, problems and all."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from macros import labdata, processes, snapshot
from tests import biglab


@pytest.fixture(scope="module")
def lab_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A labdata folder with the real models and two generated machines of three runs."""
    root = tmp_path_factory.mktemp("cold") / "labdata"
    for card in [*(labdata.ROOT / "models").glob("*.yml"), *(labdata.ROOT / "raw").glob("day-01.yml")]:
        (root / card.parent.name).mkdir(parents=True, exist_ok=True)
        (root / card.parent.name / card.name).write_bytes(card.read_bytes())
    biglab.write(root, 2, 3)
    return root


def read(root: Path, monkeypatch: pytest.MonkeyPatch, worth: int) -> tuple[labdata.Lab | list[str], int]:
    """The lab or its problems, read from its files alone, and how many documents were ready before the first was asked for."""
    monkeypatch.setattr(snapshot, "WORTH_PROCESSES", worth)
    monkeypatch.setattr(processes, "cores", lambda: 2)
    (root.parent / snapshot.FILE).unlink(missing_ok=True)
    snapshot.of.cache_clear()
    stored: list[bytes] = []
    store, parse = snapshot.Snapshot.store, labdata.parse
    monkeypatch.setattr(snapshot.Snapshot, "store", lambda self, key, *packed: stored.append(key) or store(self, key, *packed))
    ready: list[int] = []
    monkeypatch.setattr(labdata, "parse", lambda *told: ready.append(len(stored)) or parse(*told))
    try:
        found: labdata.Lab | list[str] = labdata.load(root)
    except labdata.LabError as error:
        found = error.problems
    finally:
        monkeypatch.undo()
        snapshot.of.cache_clear()
    return found, ready[0]


def test_processes_read_what_one_reads(lab_folder: Path, monkeypatch: pytest.MonkeyPatch):
    alone, none_ready = read(lab_folder, monkeypatch, 10**6)
    together, ready = read(lab_folder, monkeypatch, 4)
    assert (none_ready, ready) == (0, 12)  # six inks, six runs
    assert dict(alone.runs) == dict(together.runs) and dict(alone.inks) == dict(together.inks) and alone.machines == together.machines
    kept = sqlite3.connect(lab_folder.parent / snapshot.FILE).execute("SELECT count(*) FROM documents").fetchone()[0]
    assert kept == 12 + len(together.machines) + len(together.models)


def test_processes_find_every_problem_that_one_finds(lab_folder: Path, monkeypatch: pytest.MonkeyPatch):
    runs = sorted(lab_folder.glob("runs/*/*.yml"))
    was = {path: path.read_bytes() for path in runs[:3]}
    try:
        runs[0].write_bytes(was[runs[0]].replace(b"profile: ", b"profil: "))
        runs[1].write_bytes(was[runs[1]].replace(b"model: qwen", b"model: quen", 1))
        runs[2].write_bytes(b"a: [")
        alone, _ = read(lab_folder, monkeypatch, 10**6)
        together, _ = read(lab_folder, monkeypatch, 4)
    finally:
        for path, data in was.items():
            path.write_bytes(data)
    assert alone == together
    assert [any(path.name in line for line in alone) for path in was] == [True] * 3
    assert any("profil: unknown key" in line for line in alone)
