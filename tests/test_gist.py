"""What the checks across files need of an ink or a run stands in the snapshot, and is never stale: whatever changes around it is said."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from macros import labdata, seals, snapshot
from macros.inks import Ink
from macros.records import Run
from tests import biglab

MACHINE, RUN = "generated-00000", "2026-01-01-120000-day1"
INK = f"{MACHINE}-{RUN}"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project's folder with two generated machines of a run each, read once so that the snapshot holds them."""
    home = tmp_path_factory.mktemp("gists") / "whole"
    for card in [*(labdata.ROOT / "models").glob("*.yml"), *(labdata.ROOT / "raw").glob("day-01.yml")]:
        (home / "labdata" / card.parent.name).mkdir(parents=True, exist_ok=True)
        (home / "labdata" / card.parent.name / card.name).write_bytes(card.read_bytes())
    biglab.write(home / "labdata", 2, 1)
    labdata.load(home / "labdata")
    return home


@pytest.fixture
def root(whole: Path, tmp_path: Path) -> Path:
    """A copy of it, snapshot and all, opened as a new process would."""
    snapshot.of.cache_clear()
    shutil.copytree(whole, tmp_path / "lab")
    return tmp_path / "lab" / "labdata"


def problems(root: Path) -> list[str]:
    snapshot.of.cache_clear()
    try:
        labdata.load(root)
    except labdata.LabError as error:
        return error.problems
    return []


def edit(path: Path, old: str, new: str) -> None:
    """A sealed file changed and sealed again, as its author could."""
    body = path.read_text().rpartition(seals.MARK)[0]
    assert old in body
    path.write_text(seals.close(body.replace(old, new, 1)))


def ink_is_another(root: Path) -> None:
    edit(root / f"ink/{INK}.yml", "title: ", "title: Now ")


def ink_is_later(root: Path) -> None:
    ink, run = root / f"ink/{INK}.yml", root / f"runs/{MACHINE}/{RUN}.yml"
    was = seals.sha256(ink)
    edit(ink, "sealed:\n  at: 2026", "sealed:\n  at: 2027")
    edit(run, was, seals.sha256(ink))


def ink_is_withdrawn(root: Path) -> None:
    (root / f"ink/{INK}.withdrawn.yml").write_text("schema: 1\nat: 2026-11-30 04:10:00+00:00\nbecause: A slip\nsources: {}\n")


def card(root: Path) -> Path:
    """The card of a model that the machine's day 1 and its ink name."""
    name = re.findall(r"model: (\S+-q8_0-synthetic)$", (root / f"runs/{MACHINE}/{RUN}.yml").read_text(), re.MULTILINE)[0]
    return root / f"models/{name}.yml"


def a_model_is_from_a_log(root: Path) -> None:
    found = card(root)
    found.write_text(re.sub(r"(?m)^shape: .*$(\n  .*$)*", "shape: null", found.read_text()).replace("weights: synthetic", "weights: reported"))


def a_run_is_elsewhere(root: Path) -> None:
    (root / f"runs/{MACHINE}/{RUN}.yml").rename(root / f"runs/generated-00001/{RUN.replace('01-01', '01-09')}.yml")
    edit(root / f"runs/generated-00001/{RUN.replace('01-01', '01-09')}.yml", f"id: {RUN}", f"id: {RUN.replace('01-01', '01-09')}")


CHANGES: list[tuple[Callable[[Path], object], str]] = [
    (lambda root: (root / f"machines/{MACHINE}.yml").unlink(), f"labdata/ink/{INK}.yml: machine: no such file; got '{MACHINE}'"),
    (lambda root: (root / f"machines/{MACHINE}.yml").unlink(), f"labdata/runs/{MACHINE}/{RUN}.yml: machine: no such file; got '{MACHINE}'"),
    (lambda root: card(root).unlink(), f"labdata/runs/{MACHINE}/{RUN}.yml: results.10.model: no such file"),
    (lambda root: card(root).unlink(), ".of.model: no such file"),
    (a_model_is_from_a_log, "known from a log alone, nothing can be predicted about it"),
    (lambda root: (root / f"ink/{INK}.yml").unlink(), f"labdata/runs/{MACHINE}/{RUN}.yml: ink.id: no such file; got '{INK}'"),
    (ink_is_another, f"labdata/runs/{MACHINE}/{RUN}.yml: ink.sha256: labdata/ink/{INK}.yml was changed after this run"),
    (ink_is_later, f"labdata/runs/{MACHINE}/{RUN}.yml: ink.id: ink after run; got {INK}"),
    (ink_is_withdrawn, f"a run counts on this ink; got {MACHINE}/{RUN}; withdraw the run first"),
    (a_run_is_elsewhere, "machine: must be the folder's name; got 'generated-00000'"),
    (lambda root: edit(root / f"ink/{INK}.yml", "unit: tok/s", "unit: GB/s"), f"labdata/ink/{INK}.yml: predictions.0.unit: not a unit of what is predicted; got 'GB/s'"),
    (lambda root: edit(root / f"ink/{INK}.yml", "- id: baseline-pp512-range", "- id: baseline-pp512-ceiling"), "predictions: id given twice; got 'baseline-pp512-ceiling'"),
    (lambda root: edit(root / f"ink/{INK}.yml", "written_at: 2026", "written_at: 2028"), f"labdata/ink/{INK}.yml: sealed.at: the clock ran backwards"),
    (lambda root: edit(root / f"runs/{MACHINE}/{RUN}.yml", "  started_at: 2026-01-01 12:01:00", "  started_at: 2026-01-01 12:00:00"), "results.1.started_at: the clock ran backwards"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "said"), CHANGES, ids=lambda x: getattr(x, "__name__", None) or x[:60])
def test_a_change_around_a_kept_file_is_said_as_if_nothing_were_kept(root: Path, change: Callable[[Path], object], said: str):
    assert problems(root) == []
    change(root)
    warm = problems(root)
    again = problems(root)  # now the changed file is kept itself, where nothing is wrong with it alone
    (root.parent / snapshot.FILE).unlink()
    assert warm == again == problems(root)
    assert any(said in line for line in warm), warm


def test_nothing_is_decoded_for_the_checks(root: Path, monkeypatch: pytest.MonkeyPatch):
    decoded = []
    get = snapshot.Snapshot.get
    monkeypatch.setattr(snapshot.Snapshot, "get", lambda self, kind, key: decoded.append(kind) or get(self, kind, key))
    lab = labdata.load(root)
    assert len(lab.runs) == len(lab.inks) == 2 and not {Ink, Run} & set(decoded)
    assert lab.ink_of == {f"{m}/{RUN}": f"{m}-{RUN}" for m in lab.machines}
    assert lab.ink_of == {name: run.ink.id for name, run in lab.runs.items() if run.ink}


def test_a_damaged_gist_is_made_up_for(root: Path):
    kept = snapshot.of(root)
    kept._rows.execute("UPDATE documents SET gist = '{\"sound\": 1}'")
    kept._rows.commit()
    assert problems(root) == []
    ink_is_another(root)
    assert any("was changed after this run" in line for line in problems(root))


def test_a_linked_folder_is_said_and_nothing_in_it_is_read(root: Path, tmp_path: Path):
    (root / "ink").rename(tmp_path / "elsewhere")
    (root / "ink").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere/x.yml").write_text("a: [")
    assert problems(root) == [f"labdata/ink: file: a symbolic link; got one to {str(tmp_path / 'elsewhere')[:80]!r}; put the file itself there"]
