"""What git remembers of ink, runs and raw files: first committed when, and the same ever since.

Only read, and only where there is a history: without git, or in a shallow clone, less is known
and nothing is refused for it. The one module of `macros` that starts a process.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from macros import guard, labdata, snapshot
from macros.records import Run

FOLDERS = ("ink", "runs", "raw")
CURE = "git checkout {commit} -- {path} restores it; what is wrong is withdrawn by a new file (python -m bench withdraw), never edited"


@dataclass(frozen=True)
class Version:
    """A version of a file, as committed."""

    commit: str
    age: int  # commits before this one in the history
    blob: str


def git(root: Path, *args: str) -> str | None:
    """What a git command says about the repository around `root`; None: no git, no repository, or it failed."""
    try:
        done = subprocess.run(["git", "-c", "core.quotePath=false", "-C", str(root), *args], capture_output=True, text=True, errors="replace", timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def head(root: Path) -> str | None:
    """The commit checked out; None: no git."""
    return (git(root, "rev-parse", "HEAD") or "").strip() or None


def _log(root: Path, folders: tuple[str, ...], merged: bool) -> tuple[tuple[str, Version], ...]:
    """Every version of every file of some folders, oldest first: (place below labdata, where and what).

    Args:
        merged: a branch that was merged counts as its merge, whatever it did to its own files before
    """
    return _read(root, head(root) or "", folders, merged)


@lru_cache(maxsize=8)
def _read(root: Path, commit: str, folders: tuple[str, ...], merged: bool) -> tuple[tuple[str, Version], ...]:
    """What `_log` says of the history up to a commit: read once, a build asks four times."""
    text = git(root, "log", "--reverse", "--topo-order", "-m", "--diff-filter=AM", "--raw", "--no-renames", "--no-abbrev", "--relative",
               *(["--first-parent"] if merged else []), "--format=commit %H", commit or "HEAD", "--", *folders)  # fmt: skip
    found, commit, age = [], "", 0
    for line in (text or "").splitlines():
        if line.startswith("commit "):
            commit, age = line[7:], age + 1
        elif line.startswith(":"):
            facts, _, path = line.partition("\t")
            found.append((path, Version(commit, age, facts.split()[3])))
    return tuple(found)


def firsts(root: Path) -> dict[str, Version]:
    """Every ink and run file the history ever held, by its place below labdata, as it was first committed."""
    found: dict[str, Version] = {}
    for path, version in _log(root, ("ink", "runs"), merged=False):
        found.setdefault(path, version)
    return found


def _tree(root: Path, commit: str) -> dict[str, str] | None:
    """The blob of each ink, run and raw file of a commit; None: no such commit."""
    text = git(root, "ls-tree", "-r", commit, "--", *FOLDERS)
    if text is None:
        return None
    entries = (line.partition("\t") for line in text.splitlines())
    return {path: facts.split()[2] for facts, _, path in entries}


def base(root: Path) -> tuple[str, dict[str, str]]:
    """The base branch and the blobs of its files, those left out in which this branch is merely behind it.

    INKLAB_BASE names it; otherwise origin/HEAD, origin/main, main or master, the first there is; ("", {}) where there is none.
    """
    names = [os.environ["INKLAB_BASE"]] if os.environ.get("INKLAB_BASE") else ["origin/HEAD", "origin/main", "main", "master"]
    for name in names:
        there = _tree(root, name)
        if there is not None:
            fork = _tree(root, (git(root, "merge-base", "HEAD", name) or "").strip() or "none")
            here = _tree(root, "HEAD")
            if fork is None or here is None:  # no history in common, so nothing is merely behind
                return name, there
            return name, {path: blob for path, blob in there.items() if path in here and here[path] != fork.get(path)}
    return "", {}


def _blob(data: bytes, like: str) -> str:
    """Git's name of some content, in the hash that `like` is in."""
    kind = hashlib.sha1 if len(like) == 40 else hashlib.sha256  # a name, not a protection: the seals are SHA-256
    return kind(b"blob %d\0" % len(data) + data).hexdigest()


def _longer(old: dict[str, Any], new: dict[str, Any], lists: tuple[str, ...], free: tuple[str, ...] = ()) -> bool:
    """Whether a mapping is the same but for some lists, which only gained entries at their end, and some free keys."""
    grown = (*lists, *free)
    same = {k: v for k, v in old.items() if k not in grown} == {k: v for k, v in new.items() if k not in grown}
    return same and all((new.get(k) or [])[: len(old.get(k) or [])] == (old.get(k) or []) for k in lists)


def _result_grown(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether a result is the same, or one whose later rounds have come: samples are added, none is changed."""
    waiting = old.get("sittings") and not old.get("stopped") and not old.get("failed")
    return old == new or bool(waiting) and _longer(old, new, ("samples_ns", "sittings"), ("load_before", "stopped"))


def _grown(old: str, new: str) -> bool:
    """Whether a run that was committed half done has only grown since: more results, or more rounds of them."""
    try:
        before, after = labdata.from_text(old), labdata.from_text(new)
        first, now = before["results"], after["results"]
        if len(now) > len(first) >= len(before.get("planned", [])):
            return False  # every test had been run
        return _longer(before, after, ("notes",), ("results",)) and len(now) >= len(first) and all(map(_result_grown, first, now))
    except (ValueError, TypeError, KeyError, AttributeError):
        return False


def _same(root: Path, path: str, blob: str, data: bytes) -> bool:
    """Whether a file is what git has, or a run that was half done then."""
    if _blob(data, blob) == blob:
        return True
    return path.startswith("runs/") and _grown(git(root, "cat-file", "blob", blob) or "", data.decode(errors="replace"))


def problems(root: Path) -> list[str]:
    """Ink, runs and raw files that were edited or deleted after they were committed, and caches that came with a commit."""
    if head(root) is None:
        return []
    caches = (git(root, "ls-files", "--full-name", "--", "../.cache") or "").splitlines()
    if caches:  # what is in there is taken for what this machine computed
        return [f"{caches[0]}: file: a cache is made on each machine and never committed; got it in git; git rm -r --cached .cache"]
    branch, there = base(root)
    asked = os.environ.get("INKLAB_BASE")
    if asked and not branch:
        return [f"INKLAB_BASE: no such branch or commit here; got {asked!r}; git fetch brings it, or leave it unset"]
    versions: dict[str, dict[str, str]] = {}
    # A raw file may be put right on its branch until it is merged; ink and runs are dry from their first commit.
    for folders, merged in ((("ink", "runs"), False), (("raw",), True)):
        for path, version in _log(root, folders, merged):
            versions.setdefault(path, {}).setdefault(version.blob, version.commit[:12])
    for path, blob in there.items():
        versions.setdefault(path, {}).setdefault(blob, branch)
    strange, names = guard.tree(root)  # every file is looked at once, not link by link on the way to each
    odd = {p.relative_to(root).as_posix() for p in strange}
    plain = {f"{place}/{name}" for place, found in names.items() if place not in odd for name in found} - odd
    found = []
    for path, known in sorted(versions.items()):
        if path.endswith(".open.yml") or not path.startswith("raw/") and not path.endswith(".yml"):
            continue  # not dry yet; a time stamp's proof beside the ink, which may be renewed
        for blob, commit in known.items():
            cure = CURE.format(commit=commit, path=f"labdata/{path}")
            if path not in plain and not (root / path).is_file():
                found.append(f"labdata/{path}: file: was deleted; got nothing, committed in {commit}; {cure}")
            elif not path.endswith(".errata.yml") and not ((path in plain or guard.inside(root, root / path)) and _same(root, path, blob, snapshot.content(path, root))):
                found.append(f"labdata/{path}: file: differs from what was committed in {commit}, whatever its seal says; {cure}")
    return found


def late(lab: Any, root: Path) -> list[str]:
    """Runs that were committed before the ink they name."""
    remembered = firsts(root)
    found = []
    for name, ink in lab.ink_of.items():
        ran, inked = remembered.get(f"runs/{name}.yml"), remembered.get(f"ink/{ink}.yml")
        if ran and f"runs/{name}" not in lab.withdrawn and (not inked or inked.age > ran.age):
            got = f"ink in {inked.commit[:12]}, run in {ran.commit[:12]}" if inked else f"run in {ran.commit[:12]}, no ink"
            found.append(f"labdata/runs/{name}.yml: ink.id: git has the run before its ink {ink}; got {got}; "
                         "commit the ink with the run or before it; else withdraw the run")  # fmt: skip
    return found


def changed(root: Path, base: str) -> dict[str, str] | None:
    """Files that differ from where this branch left a base, committed or not, with git's letter (A, M, D); None: no such base.

    Args:
        root: the checkout; the files are named from there
    """
    fork = (git(root, "merge-base", "HEAD", "--end-of-options", base) or "").strip()
    if not fork:
        return None
    tracked = (git(root, "diff", "--name-status", "--no-renames", "--relative", "-z", fork, "--") or "").split("\0")
    fresh = (git(root, "ls-files", "--others", "--exclude-standard", "-z") or "").split("\0")
    found = dict(zip(tracked[1::2], tracked[::2], strict=False)) | {path: "A" for path in fresh if path}
    return dict(sorted(found.items()))


def order(remembered: dict[str, Version], run: Run) -> str:
    """Which of a run and its ink git has first, in words; empty where it does not say."""
    ran = remembered.get(f"runs/{run.machine}/{run.id}.yml")
    inked = remembered.get(f"ink/{run.ink.id}.yml") if run.ink else None
    if not ran or not inked:
        return ""
    if inked.commit == ran.commit:
        return f"ink and run first committed together, {ran.commit[:12]}: their order rests on what they say themselves"
    return f"ink first committed in {inked.commit[:12]}, run in {ran.commit[:12]}, {'after' if inked.age < ran.age else 'before'} it"
