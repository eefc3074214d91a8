"""Two builds in one folder at once: the second waits for the first, and says so."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

from macros import processes


def test_a_build_waits_for_another_in_its_folder(project: Path):
    (project / ".cache").mkdir(exist_ok=True)
    with open(project / ".cache/build.lock", "w", encoding="utf-8") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        env = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "INKLAB_PREVIEW": "1"}
        with subprocess.Popen([sys.executable, "-m", "mkdocs", "build", "-q"], cwd=project, env=env, stderr=subprocess.PIPE, text=True) as build:
            assert build.stderr and build.stderr.readline() == f"Waiting for another build in {project}\n"
            assert not (project / "site").exists()
            fcntl.flock(other, fcntl.LOCK_UN)
            assert build.wait(300) == 0 and build.stderr.read() == ""
    assert (project / "site/index.html").is_file()


def test_what_was_held_is_given_back_though_a_forked_process_lives_on(tmp_path: Path):
    lock, waited = tmp_path / "a/build.lock", []
    let_go = processes.alone(lock, lambda: waited.append(1))
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[fd for fd in range(3, 64) if _is(fd, lock)])
    let_go()
    processes.alone(lock, lambda: waited.append(2))()
    assert child.stdin and child.poll() is None and not waited
    child.communicate(b"\n", timeout=30)


def _is(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except OSError:
        return False


def test_a_folder_nobody_can_write_in_is_built_without_a_lock(tmp_path: Path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    processes.alone(tmp_path / "file/build.lock", lambda: None)()
