"""Years: the whole site, every page of today, over a lab of the first release, which knows nothing of what came since."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import ROOT, run_module

OWN = ("machines", "models", "ink", "runs", "raw", "checks", "costs", "latency", "trials")  # a lab's; the rest of labdata/ comes with the code


@pytest.mark.parametrize("without", [(), ("checks",)])
def test_a_lab_of_the_first_release_is_published_with_todays_code(project: Path, without: tuple[str, ...]):
    for name in OWN:
        shutil.rmtree(project / "labdata" / name, ignore_errors=True)
    shutil.copytree(ROOT / "tests/data/lab-0.1.0", project / "labdata", dirs_exist_ok=True, ignore=shutil.ignore_patterns(*without))
    done = run_module(project, "mkdocs", "build", "-q")
    assert done.returncode == 0, done.stderr
    assert "20.80" in (project / "site/machines/apple-m4-24gb/index.html").read_text(encoding="utf-8")
    method = (project / "site/method/index.html").read_text(encoding="utf-8")
    assert "make parity" in method and ("Synthetic weights" in method)
    assert ('id="weights"' in method) is not bool(without)
