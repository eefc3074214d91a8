"""CONTRIBUTING.md followed to the letter, and what is said of licences and trust is so."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from conftest import ROOT, copy_project

from bench import options, supply, weights
from macros import labdata
from macros.records import Result
from macros.work import Shape

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
TINY = Shape("qwen3", 2, 256, 512, 1024, 4, 2, 64, tied=True)


@dataclass(frozen=True)
class Walk:
    """What CONTRIBUTING.md's blocks left behind: the fork, the contributor's clone, and all that was said."""

    fork: Path
    home: Path
    env: dict[str, str]
    said: str

    @property
    def run(self) -> Path:
        """The run that was measured."""
        return next((self.home / "labdata/runs/my-laptop").glob("*.yml"))

    def sh(self, script: str, cwd: Path, **env: str) -> str:
        """A script as a workflow's step runs it, which must not fail."""
        done = subprocess.run(["bash", "-ec", script], cwd=cwd, env={**self.env, **env}, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Walk:
    """Every sh block of CONTRIBUTING.md in its order; the fork is a bare repository here, the set-up is the tests' own."""
    if not shutil.which("make"):
        pytest.skip("no make here")
    tmp_path = tmp_path_factory.mktemp("walk")
    upstream, fork = copy_project(tmp_path), tmp_path / "fork.git"
    shutil.rmtree(upstream / ".cache", ignore_errors=True)
    for name in ("Makefile", ".gitignore", ".gitattributes", "CONTRIBUTING.md", "README.md", "CITATION.cff", "LICENSE"):
        shutil.copy(ROOT / name, upstream / name)
    env = {**os.environ, **dict.fromkeys((name.upper() for name in options.HELP), ""), "INKLAB_PREVIEW": "1", "XDG_CACHE_HOME": str(tmp_path / "cache"), "REPS": "2",
           "MODEL": str(tmp_path / "tiny.gguf"), "GIT_CONFIG_GLOBAL": str(tmp_path / "gitconfig"), "MAKEFLAGS": f" -- SETUP=: VENV_PYTHON={sys.executable}"}  # fmt: skip
    for name in ("MACHINE", "BASE", "INKLAB_BASE", "GITHUB_STEP_SUMMARY"):
        env.pop(name, None)
    address = f'[url "{fork}"]\n insteadOf = https://github.com/me/inklab\n'  # the one thing that is not as written
    (tmp_path / "gitconfig").write_text(f"[user]\n name = a\n email = a@example.org\n[init]\n defaultBranch = main\n{address}", encoding="utf-8")
    weights.write(tmp_path / "tiny.gguf", TINY, "Q4_K_M")
    made = Walk(fork, tmp_path / "inklab", env, "")
    made.sh(f"git init -q && git add -A && git commit -qm base && git clone -q --bare . {fork}", upstream)
    blocks = [re.sub(r"(?m)^ {4}", "", block) for block in re.findall(r"```sh\n(.*?)```", TEXT, re.S)]
    assert len(blocks) == 5
    return replace(made, said=made.sh("".join(blocks).replace("<you>", "me"), tmp_path))


def test_the_contributors_path_walked_to_the_letter(walk: Walk):
    run = walk.run
    assert "# 1 new machine, 1 run, " in walk.said
    assert f"## Run my-laptop/{run.stem} (new)" in walk.said and "synthetic weights" in walk.said
    page = next(re.findall(r"`site/(machines/my-laptop/index.html)`", TEXT).__iter__())
    assert run.stem in (walk.home / "site" / page).read_text(encoding="utf-8")
    pushed = walk.sh("git diff --name-status main my-laptop", walk.fork).splitlines()
    assert pushed and all(line.startswith("A\tlabdata/") for line in pushed), pushed
    assert "my-laptop" in labdata.load(walk.home / "labdata").machines


PULL_REQUEST = {  # what the workflow's expressions are for one
    "github.server_url": "https://github.com", "github.repository": "me/inklab", "github.base_ref": "main", "steps.pages.outputs.base_url": "",
    "github.event_name == 'pull_request' && format('origin/{0}', github.base_ref) || ''": "origin/main",
}  # fmt: skip


def filled(values: dict[str, object]) -> dict[str, str]:
    """Settings of a workflow, its expressions filled in."""
    return {name: re.sub(r"\$\{\{ *(.*?) *\}\}", lambda found: PULL_REQUEST[found[1]], str(value)) for name, value in values.items()}


def test_the_workflow_run_to_the_letter_on_that_pull_request(walk: Walk, tmp_path: Path):
    """The commands and settings of its first job, on what GitHub checks out: the branch merged into main."""
    home, page = tmp_path / "merged", tmp_path / "summary.md"
    walk.sh(f"git clone -q {walk.fork} {home} && cd {home} && git checkout -q --detach origin/main && git merge -q --no-ff -m merge origin/my-laptop", tmp_path)
    job = yaml.safe_load((ROOT / ".github/workflows/site.yml").read_text(encoding="utf-8"))["jobs"]["build"]
    steps = [step for step in job["steps"] if "run" in step and "!=" not in step.get("if", "")]
    for step in steps:
        walk.sh(step["run"], home, CI="true", GITHUB_STEP_SUMMARY=str(page), **filled(job["env"] | step.get("env", {})))
    text = page.read_text(encoding="utf-8")
    assert len(steps) == 2 and text.startswith("# 1 new machine, 1 run, ")
    assert "None of those looked for." in text or "above its roof" in text  # a machine under test may be busy while its roof is probed
    preview = next(step["with"]["path"] for step in job["steps"] if step.get("with", {}).get("name") == "preview")
    assert walk.run.stem in (home / preview / "machines/my-laptop/index.html").read_text(encoding="utf-8")


def test_what_is_odd_about_a_pull_request_is_read_in_half_a_minute(walk: Walk, tmp_path: Path):
    """Five things a maintainer should ask about, a file each, and nothing that forbids a merge."""
    home = tmp_path / "odd"
    walk.sh(f"git clone -q {walk.fork} {home} -b my-laptop", tmp_path)
    lab = labdata.load(home / "labdata")
    run, m4 = lab.runs[f"my-laptop/{walk.run.stem}"], lab.machines["apple-m4-24gb"]
    late = datetime.now(UTC).replace(microsecond=0) + timedelta(days=30)

    def sampled(ns: Callable[[int, int], list[int]]) -> list[Result]:
        """Its tests with other samples, of which no two are alike."""
        return [r.model_copy(update={"samples_ns": ns(i, sum(r.samples_ns)), "sittings": [], "stopped": None}) for i, r in enumerate(run.results) if r.samples_ns]

    odd = {
        "above its roof": {"results": sampled(lambda i, ns: [1_100_000 + i, 1_200_000 + i])},
        "σ of exactly 0": {"results": sampled(lambda i, ns: [50 * ns + i] * 2)},
        "the same samples as another test": {},
        "in the future": {"started_at": late, "results": [r.model_copy(update={"started_at": None}) for r in sampled(lambda i, ns: [60 * ns + i, 61 * ns + i])]},
    }
    files = {}
    for n, (words, changed) in enumerate(odd.items()):
        new = run.model_copy(update={"id": f"odd-{n}", **changed})
        labdata.write(home / f"labdata/runs/my-laptop/odd-{n}.yml", new)
        files[f"labdata/runs/my-laptop/odd-{n}.yml"] = words
    specs = m4.specs.model_copy(update={"memory_bandwidth": m4.specs.memory_bandwidth.model_copy(update={"value": 273.0})})  # Apple prints 120 GB/s
    labdata.write(home / "labdata/machines/odd.yml", m4.model_copy(update={"id": "odd", "specs": specs}))
    files["labdata/machines/odd.yml"] = "disagrees with labdata/chips; got 273 GB/s; known for Apple M4: 120 GB/s"

    said = walk.sh("git add -A && git commit -qm odd && make -s review BASE=origin/main", home)
    suspicions = said.partition("## Suspicions")[2].partition("##")[0].splitlines()
    for file, words in files.items():
        assert [line for line in suspicions if file in line and words in line], said
    assert "Cannot be merged" not in said


def test_who_has_no_git_sends_one_file(walk: Walk, tmp_path: Path):
    """`make share` here, `make import` in a lab without it: byte for byte what the branch brings."""
    said = walk.sh("make -s share RUN=my-laptop", walk.home)
    file = walk.home / re.search(r"Written: (\S+\.json)", said)[1]
    home = tmp_path / "other"
    walk.sh(f"git clone -q {walk.fork} {home}", tmp_path)
    said = walk.sh(f"make -s import FILE={file} && git add -A && git commit -qm taken && make -s review BASE=origin/main", home)
    assert f"Recorded in labdata/runs/my-laptop/{walk.run.name}" in said and "# 1 new machine, 1 run, " in said
    assert not walk.sh(f"git diff --name-only HEAD {walk.sh('git rev-parse my-laptop', walk.home).strip()} -- labdata", home, GIT_ALTERNATE_OBJECT_DIRECTORIES=str(walk.home / ".git/objects"))


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
