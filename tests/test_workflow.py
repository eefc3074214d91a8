"""The workflow that publishes: actions pinned, tokens as small as they can be, and steps that exist."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))


def jobs(path: Path) -> dict:
    return yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]


def test_every_action_is_pinned_to_a_commit_and_says_which_version_that_is():
    lines = [line for path in WORKFLOWS for line in path.read_text(encoding="utf-8").splitlines() if "uses:" in line]
    assert lines
    for line in lines:
        assert re.search(r"uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line


def test_only_the_job_that_deploys_may_write_and_it_runs_no_code_of_ours():
    for path in WORKFLOWS:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert document["permissions"] == {}, "what a job may do is said in the job"
        assert "pull_request_target" not in document[True], "on: is YAML 1.1's true"
        for name, job in document["jobs"].items():
            writes = {scope for scope, level in job["permissions"].items() if level == "write"}
            if writes:
                assert writes == {"pages", "id-token"}, name
                assert "pull_request" in job["if"] and "!=" in job["if"]
                assert all("run" not in step and "deploy-pages@" in step["uses"] for step in job["steps"])
            assert job["timeout-minutes"] <= 30


def test_no_token_is_left_on_disk_and_nothing_from_outside_is_pasted_into_a_shell():
    for path in WORKFLOWS:
        for job in jobs(path).values():
            for step in job["steps"]:
                if "checkout@" in step.get("uses", ""):
                    assert step["with"]["persist-credentials"] is False
                assert "${{" not in step.get("run", "")


def test_what_it_runs_are_targets_of_the_makefile():
    targets = set(re.findall(r"(?m)^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8")))
    run = [step["run"] for path in WORKFLOWS for job in jobs(path).values() for step in job["steps"] if "run" in step]
    assert run
    for command in run:
        words = command.split()
        assert words[0] == "make" and set(words[1:]) <= targets, command
