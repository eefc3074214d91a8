"""The Makefile: every target is explained, and no value is ever run as a command."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z-]+):", TEXT, re.M))

pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="no make here")


def make(*args, **env):
    done = subprocess.run(["make", *args], cwd=ROOT, capture_output=True, text=True,
                          env={"PATH": os.environ["PATH"], **env})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_help_lists_every_target():
    assert {line.split()[1] for line in make("help").splitlines()} == TARGETS
    assert {"all", "bench", "site", "serve", "check", "test", "clean", "help"} <= TARGETS


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_every_target_is_made_of_something(target):
    assert make("-n", target).strip()


def test_make_alone_benches_then_builds_then_reports():
    steps = [make("-n").find(part) for part in ("bench run", "mkdocs build", "bench report", "make serve")]
    assert -1 not in steps
    assert steps == sorted(steps)


def test_the_site_asks_for_no_engine():
    assert "setup.py site" in make("-n", "site")
    assert "setup.py bench" not in make("-n", "site")


@pytest.mark.parametrize("by", ["argument", "environment"])
def test_values_reach_the_bench_untouched(tmp_path, by):
    value = f"$(shell touch {tmp_path}/a)`touch {tmp_path}/b`; touch {tmp_path}/c \"q' $HOME"
    show = tmp_path / "show.mk"
    show.write_text("show:\n\t@env\n")
    extra = [f"MODEL={value}"] if by == "argument" else []
    env = {"MODEL": value} if by == "environment" else {}
    out = make("-f", "Makefile", "-f", str(show), "show", "DEPTHS=0,2048", *extra, **env).splitlines()
    assert f"MODEL={value}" in out
    assert "DEPTHS=0,2048" in out
    assert not any(line.startswith("REPS=") for line in out)  # what nobody set stays unset
    assert [p.name for p in tmp_path.iterdir()] == ["show.mk"]


def test_byte_code_is_the_set_ups_to_write_whatever_the_environment_says(tmp_path):
    show = tmp_path / "show.mk"
    show.write_text("show:\n\t@echo forbidden: $$PYTHONDONTWRITEBYTECODE\n")
    assert "forbidden: 1" in make("-f", "Makefile", "-f", str(show), "show", PYTHONDONTWRITEBYTECODE="")


def test_what_a_user_may_set_is_nothing_the_makefile_needs_itself():
    allowed = re.search(r"^PASSED := ((?:.*\\\n)*.*)", TEXT, re.M)[1].replace("\\\n", " ").split()
    own = set(re.findall(r"^([A-Z_]+) *[:?]?=", TEXT, re.M))
    assert own and not own & set(allowed)
    said = subprocess.run(["make", "-n", "post", "RUN=nowhere"], cwd=ROOT, capture_output=True, text=True).stdout
    assert "-m bench post" in said and "nowhere" not in said
