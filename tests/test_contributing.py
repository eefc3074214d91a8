"""CONTRIBUTING.md followed to the letter, and what is said of licences and trust is so."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, copy_project

from bench import options, supply, weights
from macros import labdata
from macros.work import Shape

TINY = Shape("qwen3", 2, 256, 512, 1024, 4, 2, 64, tied=True)


@pytest.mark.skipif(not shutil.which("make"), reason="no make here")
def test_the_contributors_path_walked_to_the_letter(tmp_path: Path):
    """Every sh block of CONTRIBUTING.md in its order; the fork is a bare repository here, the set-up is the tests' own."""
    upstream = copy_project(tmp_path)
    shutil.rmtree(upstream / ".cache", ignore_errors=True)
    for name in ("Makefile", ".gitignore", ".gitattributes", "CONTRIBUTING.md", "README.md", "CITATION.cff", "LICENSE"):
        shutil.copy(ROOT / name, upstream / name)
    env = {**os.environ, **dict.fromkeys((name.upper() for name in options.HELP), ""), "INKLAB_PREVIEW": "1", "XDG_CACHE_HOME": str(tmp_path / "cache"), "REPS": "2",
           "MODEL": str(tmp_path / "tiny.gguf"), "GIT_CONFIG_GLOBAL": str(tmp_path / "gitconfig"), "MAKEFLAGS": f" -- SETUP=: VENV_PYTHON={sys.executable}"}  # fmt: skip
    for name in ("MACHINE", "BASE", "INKLAB_BASE", "GITHUB_STEP_SUMMARY"):
        env.pop(name, None)
    (tmp_path / "gitconfig").write_text("[user]\n name = a\n email = a@example.org\n[init]\n defaultBranch = main\n", encoding="utf-8")
    weights.write(tmp_path / "tiny.gguf", TINY, "Q4_K_M")
    fork = tmp_path / "fork.git"
    sh = f"git init -q && git add -A && git commit -qm base && git clone -q --bare . {fork}"
    subprocess.run(["sh", "-ec", sh], cwd=upstream, env=env, check=True, timeout=60)

    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    blocks = [re.sub(r"(?m)^ {4}", "", block) for block in re.findall(r"```sh\n(.*?)```", text, re.S)]
    assert len(blocks) == 5
    script = "".join(blocks).replace("https://github.com/<you>/inklab", f"{fork} inklab")
    assert "<you>" not in script
    done = subprocess.run(["sh", "-ec", script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]

    home = tmp_path / "inklab"
    run = next((home / "labdata/runs/my-laptop").glob("*.yml"))
    assert "# 1 new machine, 1 run, " in done.stdout
    assert f"## Run my-laptop/{run.stem} (new)" in done.stdout and "synthetic weights" in done.stdout
    page = next(re.findall(r"`site/(machines/my-laptop/index.html)`", text).__iter__())
    assert run.stem in (home / "site" / page).read_text(encoding="utf-8")
    pushed = subprocess.run(["git", "diff", "--name-status", "main", "my-laptop"], cwd=fork, capture_output=True, text=True, check=True).stdout.splitlines()
    assert pushed and all(line.startswith("A\tlabdata/") for line in pushed), pushed
    assert not {line for line in pushed if ".cache" in line}
    assert "my-laptop" in labdata.load(home / "labdata").machines


def test_every_locked_package_is_listed_with_its_licence():
    listed = re.findall(r"(?m)^\| ([a-z0-9-]+) \| (\S+) \| ([^|]+) \|", (ROOT / supply.TARGET).read_text(encoding="utf-8"))
    assert {(name, version) for name, version, _ in listed} == set(supply.locked(ROOT)), "run make sbom after make lock"
    said = {name: words for name, _, words in listed if "(of " not in words}
    assert said["pyyaml"] == "MIT" and said["numpy"].startswith("BSD-3-Clause")  # https://pypi.org/project/…


def test_a_licence_is_read_in_each_of_the_ways_it_is_declared():
    sbom = {"components": [
        {"name": "A_b", "version": "1", "licenses": [{"expression": "MIT OR Apache-2.0"}]},
        {"name": "c", "version": "2", "licenses": [{"license": {"name": "License :: OSI Approved :: BSD License"}}, {"license": {"id": "BSD-3-Clause"}}]},
        {"name": "d", "version": "3"}]}  # fmt: skip
    text = supply.table(json.loads(json.dumps(sbom)), {("a-b", "1"): ["site"], ("a-b", "0.9"): ["fit"], ("c", "2"): ["site", "dev"], ("d", "3"): ["fit"], ("e", "4"): ["fit"]})
    assert "| a-b | 1 | MIT OR Apache-2.0 | site |" in text and "| c | 2 | BSD License, BSD-3-Clause | site, dev |" in text
    assert "| a-b | 0.9 | MIT OR Apache-2.0 (of 1) | fit |" in text
    assert "| d | 3 | none declared | fit |" in text and f"| e | 4 | {supply.NOT_HERE} | fit |" in text
