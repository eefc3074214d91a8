"""A run sent as one file arrives byte for byte or not at all, and a review says what a change brings."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bench import review, share
from macros import labdata, seals
from macros.fields import Quantity
from macros.records import Published, Sitting

RUN = "amd-epyc-2-cores-24-gb/2026-11-30-042943-day1"
NOW = datetime(2026, 12, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def lab() -> labdata.Lab:
    return labdata.load()


@pytest.fixture
def sender(tmp_path: Path) -> Path:
    """A lab that has the run."""
    return Path(shutil.copytree(labdata.ROOT, tmp_path / "sender/labdata"))


@pytest.fixture
def receiver(tmp_path: Path) -> Path:
    """A lab that has not."""
    root = Path(shutil.copytree(labdata.ROOT, tmp_path / "receiver/labdata"))
    machine = RUN.split("/")[0]
    shutil.rmtree(root / "runs" / machine)
    for path in [root / "machines" / f"{machine}.yml", *root.glob(f"ink/{machine}*")]:
        path.unlink()
    return root


def files(root: Path) -> dict[str, bytes]:
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def sent(sender: Path) -> bytes:
    share.write(sender, RUN)
    return next(sender.parent.glob("inklab-*.json")).read_bytes()


def test_a_shared_run_arrives_byte_for_byte_with_all_it_needs(sender: Path, receiver: Path):
    data = sent(sender)
    assert share.is_one(data)
    said = share.take(data, "x.json", receiver)
    assert files(receiver) == files(sender)
    assert f"Recorded in labdata/runs/{RUN}.yml" in said
    assert RUN in labdata.load(receiver).runs
    assert "Already there" in share.take(data, "x.json", receiver)[0]
    assert not list(receiver.parent.glob(".share-*"))


@pytest.mark.parametrize("place", ["ink/", "runs/"])
def test_a_changed_byte_breaks_the_seal_and_nothing_is_taken(sender: Path, receiver: Path, place: str):
    document = json.loads(sent(sender))
    name = next(n for n in document["files"] if n.startswith(place) and "seal" not in n)
    document["files"][name] = document["files"][name].replace("id: ", "id:  ", 1)
    before = files(receiver)
    with pytest.raises(labdata.LabError, match="seal"):
        share.take(json.dumps(document).encode(), "x.json", receiver)
    assert files(receiver) == before


def test_words_of_a_stranger_make_no_second_line(receiver: Path):
    with pytest.raises(share.ShareRefused) as refused:
        share.take(b'{"inklab_share": 1, "x\\nerror: \\ud800all is well": {}}', "x.json", receiver)
    assert len(str(refused.value).splitlines()) == 1
    str(refused.value).encode()  # it can be printed
    with pytest.raises(share.ShareRefused, match="a mapping; got str"):
        share.take(b'"" ', "x.json", receiver)


@pytest.mark.parametrize("place", ["../x.yml", "machines/../../x.yml", "/etc/x.yml", "chips/apple.yml", "runs/x.yml", "ink/x.open.yml", "raw/..", "schema/run.schema.json", "machines/a.yml\n"])
def test_no_name_leads_elsewhere(receiver: Path, place: str):
    before = files(receiver)
    with pytest.raises(share.ShareRefused, match="not a place"):
        share.take(json.dumps({"inklab_share": 1, "files": {place: "x"}}).encode(), "x.json", receiver)
    assert files(receiver) == before


@pytest.mark.parametrize(("data", "words"), [
    (b'{"inklab_share": 1, "files": {"ma', "cut off"), (b'{"inklab_share": 1, "files": []}', "must be a mapping"),
    (b'{"inklab_share": 1, "files": {"raw/a": 1}}', "no text"), (b'{"inklab_share": 1,' + b'"a":[' * 100_000, "cut off"),
    (b'{"inklab_share": 1, "files": {"raw/a": "\\ud800"}}', "no whole|a character that is none"),
])  # fmt: skip
def test_what_is_no_shared_file_is_said(receiver: Path, data: bytes, words: str):
    with pytest.raises(share.ShareRefused, match=words):
        share.take(data, "x.json", receiver)


def test_nothing_that_is_here_is_overwritten(sender: Path, receiver: Path):
    mine = receiver / "machines" / f"{RUN.split('/')[0]}.yml"
    mine.write_text("mine", encoding="utf-8")
    with pytest.raises(share.ShareRefused, match="another file of that name"):
        share.take(sent(sender), "x.json", receiver)
    assert mine.read_text(encoding="utf-8") == "mine"


def test_an_honest_run_raises_no_suspicion(lab: labdata.Lab):
    run = lab.runs[RUN]
    assert not [*review.above_roof(lab, run), *review.no_noise(run), *review.future(run, NOW), *review.same_samples(lab, {RUN})]


def with_result(run, **changed):
    """The run, its first test with samples changed."""
    n = next(i for i, r in enumerate(run.results) if r.samples_ns)
    fields = {"sittings": [], **changed}
    return run.model_copy(update={"results": [*run.results[:n], run.results[n].model_copy(update=fields), *run.results[n + 1 :]]}), n


def test_each_suspicion_names_its_test(lab: labdata.Lab):
    run = lab.runs[RUN]
    fast, n = with_result(run, samples_ns=[1_000_000, 1_100_000, 1_200_000])  # 512 tokens a millisecond: 500,000 tok/s on two cores
    assert [s.split(":")[0] for s in review.above_roof(lab, fast)] == [f"results.{n}"]
    still, n = with_result(run, samples_ns=[6_190_000_000] * 5)
    assert ["σ of exactly 0" in s for s in review.no_noise(still)] == [True]
    told, n = with_result(run, samples_ns=None, published=Published(mean_tok_s=20.8, sigma_tok_s=0.0, n=5))
    assert len([*review.no_noise(told)]) == 1
    once, _ = with_result(run, samples_ns=[6_190_000_000])
    assert not [*review.no_noise(once)]
    late, n = with_result(run, started_at=NOW + timedelta(days=1))
    assert [s.split(":")[0] for s in review.future(late, NOW)] == [f"results.{n}.started_at"]
    again, n = with_result(run, sittings=[Sitting(n=5, started_at=at, load=[None, None]) for at in (run.started_at, NOW + timedelta(days=1))])
    assert [s.split(":")[0] for s in review.future(again, NOW)] == [f"results.{n}.sittings.1.started_at"]


def test_samples_of_another_run_are_found_and_the_newer_is_named(lab: labdata.Lab):
    copy = f"{RUN}-again"
    both = labdata.Lab(**{**{k: getattr(lab, k) for k in ("machines", "models", "inks")}, "runs": {RUN: lab.runs[RUN], copy: lab.runs[RUN].model_copy(update={"id": "again"})}})
    found = [*review.same_samples(both, {copy})]
    assert {where for where, _ in found} == {copy}
    assert len(found) == sum(r.samples_ns is not None for r in lab.runs[RUN].results)


def test_a_spec_that_disagrees_with_the_table_is_named_and_a_slower_probe_is_not(lab: labdata.Lab):
    m4 = lab.machines["apple-m4-24gb"]  # Apple prints 120 GB/s

    def specs(value: float, source: str = "apple"):
        quantity = Quantity(value=value, unit="GB/s", source=source)
        return m4.model_copy(update={"specs": m4.specs.model_copy(update={"memory_bandwidth": quantity, "peak_compute": None}),
                                     "sources": {**m4.sources, "probe": m4.sources["apple"].model_copy(update={"kind": "measured"})}})

    assert not [*review.specs_off(specs(120), lab.chips)]
    (found,) = review.specs_off(specs(273), lab.chips)
    assert "specs.memory_bandwidth" in found and "got 273 GB/s" in found and "120 GB/s" in found
    assert not [*review.specs_off(specs(101, "probe"), lab.chips)]
    assert [*review.specs_off(specs(131, "probe"), lab.chips)]


def test_a_strangers_words_stay_words(lab: labdata.Lab):
    machine = lab.machines["apple-m4-24gb"].model_copy(update={"name": "<img src=x> [a](http://b) | @me"})
    text = review.summary(labdata.Lab(machines={"m": machine.model_copy(update={"id": "m"})}, chips=lab.chips), {"machines/m.yml": "A"}, {"a`b.py": "A"}, [], NOW)
    assert not re.search(r"(?<!\\)([<@`]|\]\()", text)


def test_the_summary_of_a_branch(sender: Path, receiver: Path):
    """Fork, take a run in, commit, review: what a maintainer reads."""
    home = receiver.parent

    def git(*args: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *args], cwd=home, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-qm", "base")
    git("checkout", "-qb", "mine")
    share.take(sent(sender), "x.json", receiver)
    git("add", "-A")
    git("commit", "-qm", "A machine")
    found = review.of(receiver, "main", NOW)
    assert not found.problems
    assert found.text.startswith("# 1 new machine, 1 run, 12 tests, ")
    page = home / "page.md"
    assert review.told(found, {"GITHUB_STEP_SUMMARY": str(page)}) == found.text == page.read_text(encoding="utf-8").rstrip("\n")
    assert "A virtual machine." in found.text and "measured\\: Read-bandwidth probe" in found.text and "measured: Read-bandwidth probe" in review.told(found, {})
    assert "synthetic weights" in found.text and "in use at most before a test" in found.text and "Of the roof" in found.text
    run = receiver / "runs" / f"{RUN}.yml"
    run.write_text(run.read_text(encoding="utf-8").replace(seals.MARK, "# ", 1) + "no: such\n", encoding="utf-8")
    broken = review.of(receiver, "main", NOW)
    assert broken.text.startswith("# Cannot be merged") and any(f"runs/{RUN}.yml" in p for p in broken.problems)
    with pytest.raises(labdata.LabError, match="BASE: no such branch"):
        review.of(receiver, "--output=x", NOW)
