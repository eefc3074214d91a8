"""What `make perf` measures may not end: it is stopped with all it started, and said to be."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests import perf

ENDLESS = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], stdout=subprocess.DEVNULL)
open("child.pid", "w").write(str(child.pid))
time.sleep(600)
"""


def running(pid: int) -> bool:
    """Whether a process still does anything; one that nobody waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="asks Linux what still runs")
def test_what_does_not_end_is_stopped_with_what_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(perf, "STOP_S", 5.0)
    cost = perf.took("cold build", tmp_path, ["-c", ENDLESS], 60.0)
    assert cost.what == "cold build, stopped" and cost.wall_s >= 5.0
    child, end = int((tmp_path / "child.pid").read_text()), time.monotonic() + 10
    while running(child) and time.monotonic() < end:
        time.sleep(0.05)
    assert not running(child)


def test_what_fails_by_itself_ends_the_measurement(tmp_path: Path):
    with pytest.raises(SystemExit, match="load: failed with exit code 3"):
        perf.took("load", tmp_path, ["-c", "import sys; sys.exit(3)"], None)


def test_what_ends_in_time_is_no_different(tmp_path: Path):
    assert perf.took("load", tmp_path, ["-c", "print('took 1.5 0.5')"], None).what == "load"
