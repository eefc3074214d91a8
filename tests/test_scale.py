"""A large lab: generated ones are valid, what was parsed once is never stale or trusted, and no page lists everything."""

from __future__ import annotations

import csv
import io
import os
import re
import sqlite3
import subprocess
from pathlib import Path

import pytest

from macros import history, labdata, narrative, pages, paging, snapshot
from macros.costs import Cost
from tests import biglab, perf

MACHINES, RUNS = 3, 4


@pytest.fixture(scope="module")
def lab_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A labdata folder with the real models and three generated machines of four runs."""
    root = tmp_path_factory.mktemp("lab") / "labdata"
    for card in (labdata.ROOT / "models").glob("*.yml"):
        (root / "models").mkdir(parents=True, exist_ok=True)
        (root / "models" / card.name).write_bytes(card.read_bytes())
    (root / "raw").mkdir()
    (root / "raw" / "day-01.yml").write_bytes((labdata.ROOT / "raw" / "day-01.yml").read_bytes())
    biglab.write(root, MACHINES, RUNS)
    return root


@pytest.fixture(autouse=True)
def afresh():
    """Every test opens its snapshot as a new process would."""
    snapshot.of.cache_clear()
    yield
    snapshot.of.cache_clear()


def test_a_generated_lab_is_valid_and_says_what_it_is(lab_folder: Path):
    lab = labdata.load(lab_folder)
    assert (len(lab.machines), len(lab.inks), len(lab.runs)) == (MACHINES, MACHINES * RUNS, MACHINES * RUNS)
    assert set(lab.ink_of) == set(lab.runs) and len(set(lab.ink_of.values())) == MACHINES * RUNS
    for machine in lab.machines.values():
        assert "Generated" in machine.name and any("nothing here was measured" in note for note in machine.notes)
        assert [r.profile for r in lab.runs_of(machine.id)] == ["day1", "quick", "quick", "quick"]
    samples = [tuple(r.samples_ns) for run in lab.runs.values() for r in run.results]
    assert len(set(samples)) == len(samples)


def test_the_same_arguments_make_the_same_bytes(lab_folder: Path, tmp_path: Path):
    again = tmp_path / "labdata"
    (again / "models").mkdir(parents=True)
    for path in [*(lab_folder / "models").glob("*.yml"), *(lab_folder / "raw").glob("*")]:
        (again / path.relative_to(lab_folder)).parent.mkdir(exist_ok=True)
        (again / path.relative_to(lab_folder)).write_bytes(path.read_bytes())
    biglab.write(again, 1, RUNS)
    for path in again.rglob("generated-00000*/*.yml"):
        assert path.read_bytes() == (lab_folder / path.relative_to(again)).read_bytes()


def test_what_is_kept_is_what_the_files_say():
    parsed = {name: labdata.parse(labdata.Run, labdata.ROOT / "runs" / f"{name}.yml", "x") for name in labdata.load().runs}
    snapshot.of.cache_clear()  # decoded from the file, as a new process would
    lab = labdata.load()
    assert parsed == dict(lab.runs)
    for name, run in parsed.items():
        assert labdata.text(Path("runs/x/x.yml"), run) == labdata.text(Path("runs/x/x.yml"), lab.runs[name])


def test_a_changed_byte_and_a_lost_raw_file_are_seen_at_once(lab_folder: Path):
    labdata.load(lab_folder)
    machine = lab_folder / "machines/generated-00001.yml"
    was, stamp = machine.read_bytes(), machine.stat()
    try:
        machine.write_bytes(was.replace(b"name: Generated machine 00001", b"name: Generated machine 00009"))
        os.utime(machine, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # neither its size nor its time tells
        assert labdata.load(lab_folder).machines["generated-00001"].name.startswith("Generated machine 00009")
        machine.write_bytes(was.replace(b"chip: ", b"chop: "))
        with pytest.raises(labdata.LabError, match="generated-00001.yml: chop: unknown key"):
            labdata.load(lab_folder)
    finally:
        machine.write_bytes(was)
    raw = lab_folder / "raw/day-01.yml"
    kept = raw.read_bytes()
    try:
        raw.unlink()
        with pytest.raises(labdata.LabError, match="qwen3-8b-q4_k_m.yml: sources.lab.raw: no such file"):
            labdata.load(lab_folder)
    finally:
        raw.write_bytes(kept)


@pytest.mark.parametrize("harm", ["garbage", "wrong", "empty"])
def test_a_snapshot_from_elsewhere_harms_nothing(lab_folder: Path, harm: str):
    before = dict(labdata.load(lab_folder).machines)
    file = lab_folder.parent / snapshot.FILE
    snapshot.of.cache_clear()
    if harm == "garbage":
        file.write_bytes(b"not a database" * 1000)
    elif harm == "empty":
        file.unlink()
    else:
        rows = sqlite3.connect(file)
        rows.execute("DROP TABLE documents")
        rows.execute("CREATE TABLE documents (key BLOB, pickled BLOB)")
        rows.commit()
        rows.close()
    assert dict(labdata.load(lab_folder).machines) == before
    snapshot.of.cache_clear()
    rows = sqlite3.connect(file)
    rows.execute("UPDATE documents SET json = '{\"schema\": 1, \"evil\": true}'")  # valid JSON, not a document
    rows.commit()
    rows.close()
    with pytest.raises(OSError, match="delete it and start again"):
        dict(labdata.load(lab_folder).machines)
    snapshot.of.cache_clear()
    file.unlink()


def test_a_cache_that_came_with_a_commit_is_refused(tmp_path: Path):
    (tmp_path / "labdata").mkdir()
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache/labdata.sqlite").write_bytes(b"x")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    for step in (["init", "-q"], ["add", "-f", ".cache"], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *step], check=True)
    assert history.problems(tmp_path / "labdata") == [
        ".cache/labdata.sqlite: file: a cache is made on each machine and never committed; got it in git; git rm -r --cached .cache"
    ]


def test_old_ink_is_a_line_and_the_list_of_machines_has_pages(lab_folder: Path, monkeypatch: pytest.MonkeyPatch):
    lab = labdata.load(lab_folder)
    monkeypatch.setattr(labdata, "ROOT", lab_folder)
    book = narrative.Book(lab)
    book.turn_to("machines/generated-00000/")
    page, runs = pages.machine_page(book, "generated-00000"), lab.runs_of("generated-00000")
    inks = list(dict.fromkeys(run.ink.id for run in reversed(runs)))
    assert len(inks) > pages.WHOLE
    lines = page.partition('<h2 id="earlier">')[2].partition("<h2")[0]
    assert all(f'href="#run-{run.id}"' in lines for run in runs if run.ink.id in inks[pages.WHOLE :])
    # One CSV for all of them: the charted ink, both tables and the line on the earlier ones link to it.
    names = [name for name in book.files if name.endswith(".csv")]
    assert not [name for name in names if "scores" in name or "ratios" in name]
    assert page.count('href="../../data/machines-generated-00000-predictions.csv"') == 4
    listed = list(csv.DictReader(io.StringIO(book.files["data/machines-generated-00000-predictions.csv"])))
    assert [(row["ink"], row["prediction"]) for row in listed] == [(ink, p.id) for ink in inks for p in lab.inks[ink].predictions]
    assert {row["run"] for row in listed if row["measured"]} == {run.id for run in runs}


def test_a_page_shows_the_newest_result_of_each_test_and_its_csv_has_all(lab_folder: Path, monkeypatch: pytest.MonkeyPatch):
    lab = labdata.load(lab_folder)
    monkeypatch.setattr(labdata, "ROOT", lab_folder)
    book = narrative.Book(lab)
    book.turn_to("machines/generated-00000/")
    page, runs = pages.machine_page(book, "generated-00000"), lab.runs_of("generated-00000")
    table = page[page.index('<figure id="measurements"'):].partition("</figure>")[0]
    shown, last = re.findall(r'<tr>.*?#run-([\w-]+)"', table), {(r.test, r.model, r.depth, r.backend, r.experiment): run.id for run in runs for r in run.results}
    assert sorted(shown) == sorted(last.values())
    every = sum(len(run.results) for run in runs)
    assert every > len(shown) and f"The CSV has all {every}, of {len(runs)} runs" in table
    assert len(book.files["data/machines-generated-00000-measurements.csv"].splitlines()) == every + 1
    monkeypatch.setattr(paging, "A_PAGE", 2)
    assert list(paging.pages(lab)) == ["machines/page/2.md"]
    book.turn_to("machines/page/2/")
    second = pages.machine_index(book, 2)
    assert re.findall(r'href="([^"]+)"[^>]*>Generated', second) == ["../../generated-00002/"]
    assert '<a href="../../">1</a>' in second and 'aria-current="page">2</a>' in second
    assert "## Models" not in second


def test_a_limit_is_passed_by_work_or_by_memory_not_by_waiting():
    cost = Cost(what="load", machines=1, runs=1, wall_s=9.0, cpu_s=4.0, peak_bytes=10**6, limit_s=5.0, limit_bytes=10**7)
    assert not perf.over(cost)
    assert perf.over(cost.model_copy(update={"cpu_s": 6.0}))
    assert perf.over(cost.model_copy(update={"peak_bytes": 10**8}))


def test_a_forked_process_reads_the_snapshot_through_a_connection_of_its_own(tmp_path):
    kept = snapshot.Snapshot(tmp_path / "kept.sqlite")
    machine = labdata.load().machines["apple-m4-24gb"]
    assert kept.put(b"key", machine)
    kept.done({b"key"})
    kept._at_hand.clear()
    before = kept._rows
    child = os.fork()
    if child == 0:
        own = kept.get(type(machine), b"key") == machine and kept._rows is not before and kept._parents is before
        os._exit(0 if own else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert kept.get(type(machine), b"key") == machine and kept._rows is before
