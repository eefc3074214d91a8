"""What a machine's page rests on: of its own files only its page follows, of all else every page. See also `test_rebuild`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from macros import again, labdata
from macros.history import Version
from macros.narrative import Book
from tests import biglab
from tests.conftest import copy_project

ONE, TWO = "generated-00000", "generated-00001"
ALL = {"amd-epyc-2-cores-24-gb", "apple-m4-24gb", ONE, TWO}
RUN, INK = f"runs/{ONE}/2026-01-01-120000-day1", f"ink/{ONE}-2026-01-01-120000-day1"
WITHDRAWN = "schema: 1\nat: 2026-11-30T04:10:00Z\nbecause: The laptop was on battery\n"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = copy_project(tmp_path_factory.mktemp("again")) / "labdata"
    biglab.write(root, 2, 1)
    return root


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    again._kept.clear()


def changed(root: Path, edit: Callable[[], object]) -> set[str]:
    """The machines whose page is made anew after an edit."""
    before = again.digests(Book(labdata.load(root)), "", root)
    edit()
    after = again.digests(Book(labdata.load(root)), "", root)
    assert set(before) == set(after) == ALL
    return {name for name in ALL if before[name] != after[name]}


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        (f"machines/{ONE}.yml", "name: Generated", "name: Renamed", {ONE}),
        (f"{RUN}.withdrawn.yml", None, WITHDRAWN, {ONE}),
        ("ink/day-01.errata.yml", "because: ", "because: In short, ", {"apple-m4-24gb"}),
        ("models/qwen3-8b-q4_k_m.yml", "name: Qwen3-8B Q4_K_M", "name: Another Qwen3-8B Q4_K_M", ALL),
        ("chips/nvidia.yml", "NVIDIA GeForce RTX 3060 12 GB", "NVIDIA GeForce RTX 3060 12 GB renamed", ALL),
        ("checks/probe-2026-11-30-124645.yml", "title: ", "title: Another ", ALL),
        ("corpus/measurements.csv", "\n", "\n\n", ALL),
        ("raw/new.log", None, "a log", ALL),
    ],
)
def test_who_follows_a_file(root: Path, file: str, old: str | None, new: str, expected: set[str]):
    path = root / file
    before = path.read_bytes() if old else None

    def edit() -> None:
        text = path.read_text(encoding="utf-8") if old else ""
        assert not old or old in text
        path.write_text(text.replace(old, new, 1) if old else new, encoding="utf-8")

    try:
        assert changed(root, edit) == expected
    finally:
        path.unlink() if before is None else path.write_bytes(before)


def test_a_later_seal_is_its_machines(root: Path):
    seal = root / "runs/apple-m4-24gb/day1-cpu.seal.yml"
    text = seal.read_text(encoding="utf-8")
    try:
        assert changed(root, lambda: seal.write_text(text + "# read again\n", encoding="utf-8")) == {"apple-m4-24gb"}
    finally:
        seal.write_text(text, encoding="utf-8")


def test_machines_that_share_an_ink_follow_each_other(root: Path):
    lab = labdata.load(root)
    shared = replace(lab, ink_of=lab.ink_of | {f"{TWO}/another": INK.removeprefix("ink/")})
    edited = replace(shared, files=lab.files | {f"machines/{TWO}.yml": b"another"})
    before, after = (again.digests(Book(one), "", root) for one in (shared, edited))
    assert {name for name in ALL if before[name] != after[name]} == {ONE, TWO}


def test_what_git_remembers_is_the_machines_and_the_rest_is_everyones(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(again, "PACKAGE", tmp_path)
    lab = labdata.load(root)

    def of(common: str = "", firsts: dict[str, Version] | None = None) -> dict[str, bytes]:
        return again.digests(Book(lab, firsts=firsts or {}), common, root)

    def differ(other: dict[str, bytes]) -> set[str]:
        return {name for name in ALL if plain[name] != other[name]}

    plain = of()
    assert differ(of()) == set()
    assert differ(of(firsts={f"{RUN}.yml": Version("a" * 40, 1, "b" * 40)})) == {ONE}
    assert differ(of(common="another glossary")) == ALL
    (tmp_path / "theme").mkdir()
    (tmp_path / "theme/main.html").write_text("a template")
    assert differ(of()) == ALL


def test_what_is_kept_is_bounded_and_the_oldest_goes():
    part = again.LIMIT_BYTES // 3
    for name in ("a", "b", "c"):
        again.keep(name, b"1", name, part)
    again.keep("a", b"2", "newer a", part)
    assert [again.kept("a", b"1"), again.kept("a", b"2"), again.kept("a", None), again.kept("d", b"1")] == [None, "newer a", None, None]
    again.keep("d", b"1", "d", part)
    assert [again.kept(name, digest) for name, digest in (("b", b"1"), ("c", b"1"), ("a", b"2"), ("d", b"1"))] == [None, "c", "newer a", "d"]
    again.keep("e", b"1", "e", again.LIMIT_BYTES + 1)
    assert not again._kept


SERVED = """
import hashlib, json, logging, pathlib, sys
from mkdocs.commands.build import build
from mkdocs.config import load_config
from macros import again
def site():
    config = load_config("mkdocs.yml")
    config.plugins.on_startup(command="serve", dirty=False)
    build(config)
    digests = {name: digest for name, (digest, *_) in again._kept.items()}
    return digests, {p.relative_to("site").as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in pathlib.Path("site").rglob("*") if p.is_file()}
digests, made = site()
same = []
for file, old, new in json.loads(sys.argv[1]):
    path, before = pathlib.Path(file), digests
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    digests, made = site()
    same.append(sorted(name for name in digests if digests[name] == before[name]))
print(json.dumps({"same": same, "made": made}))
"""


def served(home: Path, edits: list[tuple[str, str, str]]) -> dict:
    done = subprocess.run([sys.executable, "-c", SERVED, json.dumps(edits)], cwd=home, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_site_with_kept_pages_is_the_one_a_fresh_process_makes(tmp_path: Path):
    home = copy_project(tmp_path)
    edits = [("docs/glossary.md", '"model bandwidth utilisation"', '"bandwidth utilisation of a model"'), ("labdata/machines/apple-m4-24gb.yml", "Apple M4 MacBook Pro", "Another Apple M4")]
    found = served(home, edits)
    assert found["same"] == [[], ["amd-epyc-2-cores-24-gb"]]
    fresh = served(home, [])["made"]
    differ = {name for name in found["made"].keys() | fresh.keys() if found["made"].get(name) != fresh.get(name)}
    assert differ <= {"sitemap.xml.gz"}, "MkDocs writes the hour into it"
    assert "Another Apple M4" in (home / "site/machines/apple-m4-24gb/index.html").read_text(encoding="utf-8")
