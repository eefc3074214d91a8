"""`make publish`: into a folder and to another host, and nothing of anybody's lost."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from bench import publish


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "project/site"
    (folder / "machines/m4").mkdir(parents=True)
    (folder / "index.html").write_text("home", encoding="utf-8")
    (folder / "machines/m4/index.html").write_text("m4", encoding="utf-8")
    return folder


def contents(folder: Path) -> dict[str, str]:
    return {p.relative_to(folder).as_posix(): p.read_text(encoding="utf-8") for p in folder.rglob("*") if p.is_file() and p.name != publish.LISTING}


def test_a_folder_holds_what_the_site_holds_and_only_that(site: Path, tmp_path: Path):
    public = tmp_path / "public"
    assert publish.into_folder(site, public) == (2, 0)
    (public / "CNAME").write_text("theirs", encoding="utf-8")
    shutil.rmtree(site / "machines")
    (site / "index.html").write_text("new", encoding="utf-8")
    (site / "about.html").write_text("about", encoding="utf-8")
    assert publish.into_folder(site, public) == (2, 1)
    assert contents(public) == {"index.html": "new", "about.html": "about", "CNAME": "theirs"}
    assert not (public / "machines").exists()
    assert publish.into_folder(site, public) == (0, 0)


def test_a_list_that_names_what_lies_elsewhere_removes_nothing_there(site: Path, tmp_path: Path):
    public, outside = tmp_path / "public", tmp_path / "precious.txt"
    publish.into_folder(site, public)
    outside.write_text("precious", encoding="utf-8")
    (public / publish.LISTING).write_text("../precious.txt\nindex.html\n", encoding="utf-8")
    publish.into_folder(site, public)
    assert outside.read_text(encoding="utf-8") == "precious"


@pytest.mark.parametrize(
    ("dest", "said"),
    [("", "not given"), ("  ", "not given"), ("{project}", "the project itself"), ("{parent}", "the project itself"), ("{project}/site/x", "the project itself"),
     ("{full}", "not empty"), ("{full}/a.txt", "not a folder")],
)  # fmt: skip
def test_a_destination_where_something_would_be_lost_is_refused(site: Path, tmp_path: Path, dest: str, said: str):
    full = tmp_path / "full"
    full.mkdir()
    (full / "a.txt").write_text("a", encoding="utf-8")
    with pytest.raises(publish.Refused, match=said) as error:
        publish.check(dest.format(project=site.parent, parent=tmp_path, full=full), site, site.parent)
    assert len(str(error.value).splitlines()) == 1 and str(error.value).startswith("DEST: ")


@pytest.fixture
def rsync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An rsync that writes down what it was given, first on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "rsync").write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/said\nif [ -e {tmp_path}/down ]; then echo "no route to host" >&2; exit 12; fi\n', encoding="utf-8")
    (folder / "rsync").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return tmp_path


def test_another_host_is_given_to_rsync_as_a_place_and_never_as_an_option(site: Path, rsync: Path):
    publish.check("me@example.org:-e sh", site, site.parent)
    publish.to_host(site, "me@example.org:www", delete=False)
    said = (rsync / "said").read_text(encoding="utf-8").splitlines()
    assert said[-3:] == ["--", f"{site}/", "me@example.org:www"]
    assert "--delete-after" not in said
    publish.to_host(site, "me@example.org:www", delete=True)
    assert "--delete-after" in (rsync / "said").read_text(encoding="utf-8").splitlines()


def test_a_host_that_does_not_answer_is_one_line(site: Path, rsync: Path):
    (rsync / "down").touch()
    with pytest.raises(publish.Refused, match="code 12; no route to host"):
        publish.to_host(site, "me@example.org:www", delete=False)


def test_without_rsync_another_host_is_refused(site: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(publish.Refused, match="rsync is not installed"):
        publish.check("me@example.org:www", site, site.parent)
