"""Copies of the project to break: tests never write into the checkout."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("bench", "docs", "labdata", "macros", "mkdocs.yml")


def copy_project(folder: Path) -> Path:
    """A fresh copy of everything a bench or a build reads."""
    home = folder / "project"
    home.mkdir()
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, home / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, home / part)
    if (ROOT / ".cache").exists():  # subset fonts, keyed by content: no need to cut them again
        shutil.copytree(ROOT / ".cache", home / ".cache")
    return home


def reseal(path: Path) -> None:
    """Make the seal beside a changed file fit it again, as whoever changed it could where git does not look."""
    beside = path.with_name(f"{path.stem}.seal.yml")
    text = beside.read_text(encoding="utf-8")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    beside.write_text(re.sub(r"(?m)^sha256: .*$", f"sha256: {digest}", text), encoding="utf-8")


def run_module(cwd: Path, *args: str, env: dict[str, str] | None = None, timeout: float = 300) -> subprocess.CompletedProcess:
    """`python -m ...` in a folder; what it says is kept. Sites are previews: a day still being written fails no test."""
    full = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "INKLAB_PREVIEW": "1", **(env or {})}
    return subprocess.run([sys.executable, "-m", *args], cwd=cwd, env=full, capture_output=True, text=True, timeout=timeout)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A fresh copy of everything a bench or a build reads."""
    return copy_project(tmp_path)
