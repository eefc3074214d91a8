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


def _raises() -> None:
    raise ValueError("said by the work")


def _lost_in_another(parent: int) -> int:
    if os.getpid() != parent:
        os._exit(9)
    return os.getpid()


def test_work_beside_gives_and_raises_what_it_does_and_survives_its_process(monkeypatch: pytest.MonkeyPatch):
    for cores in (1, 2):
        monkeypatch.setattr(processes, "cores", lambda cores=cores: cores)
        assert (processes.beside(os.getpid)() == os.getpid()) == (cores == 1 or sys.platform != "linux")
        with pytest.raises(ValueError, match="said by the work"):
            processes.beside(_raises)()
        assert processes.beside(_lost_in_another, os.getpid())() == os.getpid()
