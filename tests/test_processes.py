"""What works beside a build ends with it, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from macros import processes
from tests.conftest import ROOT

KILLED = """
import os, signal
from macros import processes
pool = processes.pool(2, "fork")
print(*pool.map(abs, [-1, -2]), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks here")
def test_killed_build_leaves_no_process():
    # The two inherit the pipe: it reaches its end once none of them is left.
    with subprocess.Popen([sys.executable, "-c", KILLED], cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True) as build:
        try:
            said, _ = build.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(build.pid, signal.SIGKILL)
            raise
    assert said.split() == ["1", "2"]
    assert build.returncode == -signal.SIGKILL


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process its cores")
def test_cores_are_those_allowed():
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert processes.cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)
