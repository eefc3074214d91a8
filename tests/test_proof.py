"""Nobody changes ink or a run quietly: every byte, the clock, the order, git's memory, withdrawal."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from conftest import reseal, run_module

from bench import desk
from macros import exhibits, history, labdata, pages, seals
from macros.inks import Ink, Prediction, Target
from macros.labdata import LabError
from macros.narrative import Book
from macros.records import HostDoc, InkRef, Instrument, Result, Run, Sitting

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
OF = Target(experiment="baseline", model="qwen3-8b-q4_k_m", test="tg128")
MACHINE = "apple-m4-24gb"


def result(minutes: float = 1, ns: int = 6_150_000_000) -> Result:
    return Result(experiment="baseline", model=OF.model, n_prompt=0, n_gen=128, depth=0, backend="Metal",
                  started_at=NOON + timedelta(minutes=minutes), samples_ns=[ns, ns + 10_000_000])  # fmt: skip


def ink(**given: object) -> Ink:
    p = Prediction(id="roof", quantity="Decode", kind="ceiling", value=24.0, unit="tok/s", as_written="24", because="120 / 5", of=OF)
    return Ink(**{"schema": 1, "id": "i", "title": "t", "machine": MACHINE, "author": "lab", "written_at": NOON, "written_note": "n",
                  "plan": "day1", "planned": [OF.label], "predictions": [p], **given})  # fmt: skip


def run(root: Path, **given: object) -> Run:
    ref = InkRef(id="i", sha256=seals.sha256(root / "ink/i.yml"))
    made = Instrument(name="x", version="1", engine="e", engine_version="1")
    return Run(**{"schema": 1, "id": "r", "machine": MACHINE, "ink": ref, "profile": "day1", "started_at": NOON, "command": "c",
                  "instrument": made, "host": HostDoc(os="x"), "planned": [OF.label], "results": [result()], **given})  # fmt: skip


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """A small lab: a machine, a model, an ink and a run sealed when written, an ink and a run sealed later."""
    root = tmp_path / "labdata"
    for name in ("machines/apple-m4-24gb.yml", "models/qwen3-8b-q4_k_m.yml", "raw/day-01.yml"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(labdata.ROOT / name, root / name)
    labdata.write(root / "ink/i.yml", ink())
    labdata.write(root / f"runs/{MACHINE}/r.yml", run(root))
    labdata.write(root / "ink/old.yml", ink(id="old", author="derived", written_at=None))
    older = root / "ink/old.yml", root / f"runs/{MACHINE}/old.yml"
    unsealed(older[0])
    labdata.write(older[1], run(root, id="old", started_at=None, ink=InkRef(id="old", sha256=seals.sha256(older[0]))))
    unsealed(older[1])
    for path in older:
        seal = seals.Seal(schema=1, sha256=seals.sha256(path), at=NOON, tool="t", commit=None, because="older than the seals")
        labdata.write(path.with_name("old.seal.yml"), seal)
    return root


def unsealed(path: Path) -> None:
    path.write_text(path.read_text(encoding="utf-8").rpartition(seals.MARK)[0], encoding="utf-8")


def problems(root: Path) -> list[str]:
    with pytest.raises(LabError) as caught:
        labdata.load(root)
    return caught.value.problems


@pytest.mark.parametrize("file", ["ink/i.yml", f"runs/{MACHINE}/r.yml", "ink/old.yml", f"runs/{MACHINE}/old.yml"])
def test_every_changed_byte_is_caught_and_named(lab: Path, file: str):
    """Each byte in turn: its lowest bit changed; and every seventh taken out or in another case."""
    labdata.load(lab)
    path = lab / file
    whole = path.read_bytes()
    assert len(whole) > 400
    for i, byte in enumerate(whole):
        for change in (bytes([byte ^ 1]), *((bytes([byte ^ 32]), b"") if i % 7 == 0 else ())):
            path.write_bytes(whole[:i] + change + whole[i + 1 :])
            assert any(p.startswith(f"labdata/{file}: seal: ") for p in problems(lab)), (i, change)
    path.write_bytes(whole)
    labdata.load(lab)


def test_the_seal_is_the_hash_of_what_stands_above_it(lab: Path):
    body, _, last = (lab / "ink/i.yml").read_text(encoding="utf-8").rpartition(seals.MARK)
    assert last.strip() == hashlib.sha256(body.encode()).hexdigest()


def forge(path: Path, old: str, new: str) -> None:
    """Change a file and seal it again."""
    body = path.read_text(encoding="utf-8").rpartition(seals.MARK)[0]
    assert old in body
    path.write_text(seals.close(body.replace(old, new, 1)), encoding="utf-8")


def test_ink_edited_and_sealed_again_is_caught_by_its_run(lab: Path):
    forge(lab / "ink/i.yml", "value: 24.0", "value: 20.9")
    (line,) = problems(lab)
    assert "r.yml: ink.sha256: labdata/ink/i.yml was changed after this run" in line and "restore the ink" in line


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"started_at": NOON - timedelta(minutes=1)}, ("r.yml: ink.id: ink after run", "withdraw the run")),
        ({"started_at": None, "results": [result(-5)]}, ("r.yml: ink.id: ink after run",)),
        ({"results": [result(-1)]}, ("results.0.started_at: the clock ran backwards", "set the clock")),
        ({"results": [result(9), result(8)]}, ("results.1.started_at: the clock ran backwards",)),
    ],
)
def test_hours_that_cannot_be_are_named(lab: Path, more: dict, expected: tuple[str, ...]):
    labdata.write(lab / f"runs/{MACHINE}/r.yml", run(lab, **more))
    found = problems(lab)
    assert any(all(words in p for words in expected) for p in found), found
    withdraw(lab / f"runs/{MACHINE}/r.yml")  # the cure that the line names
    labdata.load(lab)


def withdraw(path: Path) -> None:
    labdata.write(path.with_name(f"{path.stem}.withdrawn.yml"), seals.Withdrawal(schema=1, at=NOON, because="on battery"))


def test_a_withdrawn_run_stays_and_counts_no_more(lab: Path):
    withdraw(lab / f"runs/{MACHINE}/r.yml")
    found = labdata.load(lab)
    assert f"{MACHINE}/r" in found.runs and [r.id for r in found.runs_of(MACHINE)] == ["old"]
    assert found.runs_on("i") == [] and [r.id for r in found.withdrawn_runs(MACHINE)] == ["r"]


def test_a_deleted_file_leaves_its_seal_or_withdrawal_behind(lab: Path):
    (lab / f"runs/{MACHINE}/old.yml").unlink()
    (line,) = problems(lab)
    assert "old.seal.yml: file: what it stands beside was deleted" in line and "restore" in line


def git(root: Path, *args: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *who, *args], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def kept(lab: Path) -> Path:
    """The small lab, committed on main."""
    git(lab, "init", "-q", "-b", "main")
    commit(lab)
    assert history.problems(lab) == [] and history.late(labdata.load(lab), lab) == []
    return lab


def commit(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-qm", "x", "--allow-empty")


def test_an_edit_sealed_again_is_caught_by_git_committed_or_not(kept: Path):
    path = kept / f"runs/{MACHINE}/r.yml"
    forge(path, "6150000000", "6050000000")
    labdata.load(kept)  # the seals alone are content
    for _ in range(2):
        (line,) = history.problems(kept)
        assert line.startswith(f"labdata/runs/{MACHINE}/r.yml: file: differs from what was committed in ") and "git checkout" in line
        commit(kept)
    later = kept / f"runs/{MACHINE}/old.yml"
    later.write_text(later.read_text(encoding="utf-8").replace("6150000000", "6050000000"), encoding="utf-8")
    reseal(later)
    assert sum("old." in line for line in history.problems(kept)) == 2  # the run, and its seal


@pytest.mark.parametrize("file", [f"runs/{MACHINE}/r.yml", "ink/old.yml", "raw/day-01.yml"])
def test_a_deleted_file_is_missed_committed_or_not(kept: Path, file: str):
    (kept / file).unlink()
    for _ in range(2):
        (line,) = history.problems(kept)
        assert line.startswith(f"labdata/{file}: file: was deleted;") and "restores it" in line
        commit(kept)


def test_a_time_stamps_proof_beside_the_ink_may_be_renewed(kept: Path):
    for proof in ("pending", "complete"):
        (kept / "ink/i.yml.ots").write_text(proof, encoding="utf-8")
        labdata.load(kept)
        assert history.problems(kept) == []
        commit(kept)


def test_an_edited_raw_file_is_named(kept: Path):
    with (kept / "raw/day-01.yml").open("a", encoding="utf-8") as out:
        out.write("# and more\n")
    (line,) = history.problems(kept)
    assert line.startswith("labdata/raw/day-01.yml: file: differs")


def test_a_merged_branch_may_have_put_its_raw_file_right_but_not_its_ink(kept: Path):
    git(kept, "checkout", "-q", "-b", "day")
    for i, text in enumerate(("a slip", "as it was")):
        (kept / "raw/day-02.txt").write_text(text, encoding="utf-8")
        labdata.write(kept / "ink/day-02.yml", ink(id="day-02", title=f"version {i}"))
        commit(kept)
    git(kept, "checkout", "-q", "main")
    git(kept, "merge", "-q", "--no-ff", "-m", "m", "day")
    (line,) = history.problems(kept)
    assert line.startswith("labdata/ink/day-02.yml: file: differs from what was committed in ")


def test_rewritten_history_is_caught_by_the_base_branch(kept: Path, monkeypatch: pytest.MonkeyPatch):
    git(kept, "checkout", "-q", "--orphan", "forged")
    forge(kept / f"runs/{MACHINE}/r.yml", "6150000000", "6050000000")
    commit(kept)
    (line,) = history.problems(kept)
    assert "differs from what was committed in main" in line
    monkeypatch.setenv("INKLAB_BASE", "forged")
    assert history.problems(kept) == []
    monkeypatch.setenv("INKLAB_BASE", "gone")
    assert history.problems(kept)[0].startswith("INKLAB_BASE: no such branch or commit here; got 'gone'")


def test_a_run_left_out_of_a_rewritten_history_is_missed(kept: Path):
    git(kept, "checkout", "-q", "--orphan", "forged")
    (kept / f"runs/{MACHINE}/r.yml").unlink()
    commit(kept)
    (line,) = history.problems(kept)
    assert line.startswith(f"labdata/runs/{MACHINE}/r.yml: file: was deleted; got nothing, committed in main;")


def test_ink_committed_after_its_run_is_named(kept: Path):
    labdata.write(kept / "ink/j.yml", ink(id="j"))
    late = run(kept, id="s", ink=InkRef(id="j", sha256=seals.sha256(kept / "ink/j.yml")))
    labdata.write(kept / f"runs/{MACHINE}/s.yml", late)
    git(kept, "add", "runs")
    git(kept, "commit", "-qm", "run first")
    assert "git has the run before its ink j" in history.late(labdata.load(kept), kept)[0]
    commit(kept)
    (line,) = history.late(labdata.load(kept), kept)
    assert line.startswith(f"labdata/runs/{MACHINE}/s.yml: ink.id: git has the run before its ink j") and "withdraw the run" in line
    withdraw(kept / f"runs/{MACHINE}/s.yml")
    assert history.late(labdata.load(kept), kept) == []


def test_a_run_committed_half_done_may_grow_and_nothing_else(kept: Path):
    path = kept / f"runs/{MACHINE}/half.yml"
    half = run(kept, id="half", planned=[OF.label, "more"])
    labdata.write(path, half)
    commit(kept)
    labdata.write(path, half.model_copy(update={"results": [result(), result(2)]}))
    assert history.problems(kept) == []
    commit(kept)
    for forged in ([result(ns=1_000_000_000), result(2)], [result(), result(2, ns=1_000_000_000)], [result()]):
        labdata.write(path, half.model_copy(update={"results": forged}))
        assert any("half.yml: file: differs" in p for p in history.problems(kept)), forged


def test_later_rounds_of_a_run_committed_half_done_only_add_samples(kept: Path):
    path = kept / f"runs/{MACHINE}/rounds.yml"
    half = run(kept, id="rounds", planned=[OF.label])

    def after(*rounds: int, stopped: str | None = None) -> Run:
        sittings = [Sitting(n=1, started_at=NOON, load=[None, None]) for _ in rounds]
        return half.model_copy(update={"results": [result().model_copy(update={"samples_ns": list(rounds), "sittings": sittings, "stopped": stopped})]})

    labdata.write(path, after(2_000_000_000))
    commit(kept)
    labdata.write(path, after(2_000_000_000, 2_100_000_000, stopped="repetitions"))
    assert history.problems(kept) == []
    for forged in (after(1_000_000_000, 2_100_000_000), after(2_100_000_000)):
        labdata.write(path, forged)
        assert any("rounds.yml: file: differs" in p for p in history.problems(kept)), forged
    labdata.write(path, after(2_000_000_000, 2_100_000_000, stopped="repetitions"))
    commit(kept)
    labdata.write(path, after(2_000_000_000, 2_100_000_000, 1, stopped="repetitions"))
    assert any("rounds.yml: file: differs" in p for p in history.problems(kept))


def test_a_branch_behind_its_base_is_not_accused(kept: Path):
    path = kept / f"runs/{MACHINE}/half.yml"
    half = run(kept, id="half", planned=[OF.label, "more"])
    labdata.write(path, half)
    commit(kept)
    git(kept, "branch", "behind")
    labdata.write(path, half.model_copy(update={"results": [result(), result(2)]}))
    labdata.write(kept / "ink/new.yml", ink(id="new"))
    commit(kept)
    git(kept, "checkout", "-q", "behind")
    assert history.problems(kept) == []


def test_without_git_nothing_is_refused_for_it(lab: Path):
    assert history.problems(lab) == [] and history.late(labdata.load(lab), lab) == [] and history.head(lab) is None


def test_a_reason_is_needed_and_nothing_is_withdrawn_twice(project: Path):
    file = "labdata/runs/apple-m4-24gb/day1-cpu.yml"
    said = run_module(project, "bench", "withdraw", file)
    assert said.returncode == 1 and said.stderr.startswith("error: BECAUSE: a reason is needed")
    env = {"BECAUSE": "The charger was unplugged"}
    assert run_module(project, "bench", "withdraw", file, env=env).returncode == 0
    again = run_module(project, "bench", "withdraw", file, env=env)
    assert again.returncode == 1 and "is there already" in again.stderr
    assert "FILE: not a file of labdata" in run_module(project, "bench", "withdraw", "mkdocs.yml", env=env).stderr
    # Day 1 quotes that run: its page stops and names the reason, rather than print what no longer counts
    done = run_module(project, "mkdocs", "build", "-q")
    assert done.returncode == 1 and "was withdrawn and no longer counts" in done.stderr and "The charger was unplugged" in done.stderr
    page = pages.machine_page(Book(labdata.load(project / "labdata")), MACHINE)
    assert "The charger was unplugged" in page and 'id="withdrawn"' in page and "1 run withdrawn" in page


def test_what_has_a_seal_is_not_sealed_later(project: Path):
    labdata.write(project / "labdata/ink/i.yml", ink())
    done = run_module(project, "bench", "seal", "labdata/ink/i.yml", env={"BECAUSE": "x"})
    assert done.returncode == 1 and "is not sealed again" in done.stderr


def test_a_page_says_that_its_ink_was_withdrawn(lab: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(labdata, "ROOT", lab)
    withdraw(lab / "ink/i.yml")
    assert any("i.withdrawn.yml: file: a run counts on this ink; got apple-m4-24gb/r; withdraw the run first" in p for p in problems(lab))
    withdraw(lab / f"runs/{MACHINE}/r.yml")
    words = str(exhibits.seal(Book(labdata.load(lab)), "i"))
    assert "1 run withdrawn" in words and "ink withdrawn 1 November 2026, 12:00 UTC: on battery" in words and "not measured yet" in words


def test_two_inks_for_one_run_are_named(lab: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(labdata, "ROOT", lab)
    withdraw(lab / f"runs/{MACHINE}/r.yml")
    assert desk.for_run(labdata.load(lab), MACHINE, "day1", [OF.label]) == lab / "ink/i.yml"
    with pytest.raises(desk.DeskError, match="planned: not the tests of this run; they differ in more"):
        desk.for_run(labdata.load(lab), MACHINE, "day1", [OF.label, "more"])
    labdata.write(lab / "ink/j.yml", ink(id="j"))
    with pytest.raises(desk.DeskError, match="two inks for one run of plan day1 on apple-m4-24gb; got i, j; withdraw all but one"):
        desk.for_run(labdata.load(lab), MACHINE, "day1", [OF.label])
    withdraw(lab / "ink/j.yml")
    assert desk.for_run(labdata.load(lab), MACHINE, "day1", [OF.label]) == lab / "ink/i.yml"
    monkeypatch.setattr(desk, "now", lambda: NOON - timedelta(hours=1))
    with pytest.raises(desk.DeskError, match="clock ran backwards; got 2026-11-01 11:00:00.*sealed at 2026-11-01 12:00:00.*set the clock"):
        desk.for_run(labdata.load(lab), MACHINE, "day1", [OF.label])
