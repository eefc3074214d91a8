"""A build and its commands on machines that are not as one would wish: another locale, a cache that cannot be written."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from macros import chart_cache, labdata
from tests.conftest import ROOT, run_module
from tests.test_architecture import imports


def test_terminal_without_the_signs_gets_the_report():
    """ISO 8859-1 has ± and no ●."""
    env = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run([sys.executable, "-m", "bench", "report"], cwd=ROOT, env=env, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert "±" in done.stdout.decode("latin-1")


@pytest.mark.parametrize("what", [errno.EROFS, errno.ENOSPC])
def test_cache_that_cannot_be_written_costs_time_only(what: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refused(path: Path, data: bytes) -> None:
        raise OSError(what, os.strerror(what), str(path))

    monkeypatch.setattr(labdata, "write_bytes", refused)
    assert chart_cache.kept(["a picture"], ".png", lambda: b"drawn", tmp_path) == b"drawn"


def test_site_is_built_where_a_file_stands_in_the_cache_s_place(project: Path):
    """No folder can be made below a file, not even by root."""
    shutil.rmtree(project / ".cache")
    (project / ".cache").write_text("not a folder", encoding="utf-8")
    done = run_module(project, "mkdocs", "build", "-q")
    assert done.returncode == 0, done.stderr
    assert (project / "site" / "index.html").is_file()


def test_a_site_s_packages_are_all_that_its_build_imports():
    """`make site` in a new checkout has lock/site.txt and nothing else; only `make fit` and `make fonts` need more."""
    locked = set(re.findall(r"(?m)^([a-z0-9-]+)==", (ROOT / "lock" / "site.txt").read_text(encoding="utf-8")))
    owners = packages_distributions()
    for path in sorted((ROOT / "macros").glob("*.py")):
        if path.stem in ("fit", "spread", "fonts"):
            continue
        for package in {name.split(".")[0] for name in imports(path)} - {*sys.stdlib_module_names, "macros"}:
            of = {owner.lower().replace("_", "-").replace(".", "-") for owner in owners.get(package, [package])}
            assert of & locked, f"{path.name} imports {package}, which lock/site.txt does not have"
