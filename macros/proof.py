"""What the files of labdata/ must agree on for "predicted first" to be true: clocks, order, nothing missing."""

from __future__ import annotations

import datetime
from collections.abc import Container
from typing import Any

from macros.inks import Ink
from macros.records import Run


def problems(lab: Any, broken: set[str]) -> list[str]:
    """Seals of files that are gone, and ink both open and sealed; what one ink or run can show is `of_ink` and `of_run`.

    Args:
        broken: names of files with problems of their own: what stands beside them is not orphaned
    """
    found = []
    known = {f"ink/{name}" for name in lab.inks} | {f"runs/{name}" for name in lab.runs}
    for word, beside in (("seal", lab.seals), ("withdrawn", lab.withdrawn)):
        for name in sorted(set(beside) - known):
            if name.split("/", 1)[1] not in broken:
                found.append(f"labdata/{name}.{word}.yml: file: what it stands beside was deleted; got no {name}.yml; "
                             f"restore that file: what is wrong is withdrawn, not deleted")  # fmt: skip
    for name in sorted(set(lab.open_inks) & set(lab.inks)):
        found.append(f"labdata/ink/{name}.open.yml: file: two inks of one name, {name}.yml is sealed already; delete the open one")
    return found


def of_ink(withdrawn: Container[str], ink: Ink) -> list[str]:
    """A clock that ran backwards while an ink was open."""
    if f"ink/{ink.id}" not in withdrawn and ink.sealed and ink.written_at and ink.sealed.at < ink.written_at:
        return [f"labdata/ink/{ink.id}.yml: sealed.at: the clock ran backwards; got {ink.sealed.at}, "
                f"opened {ink.written_at}; withdraw it, set the clock, ink again"]  # fmt: skip
    return []


def of_run(lab: Any, name: str, run: Run, dry_at: datetime.datetime | None) -> list[str]:
    """A run on withdrawn ink, a clock that ran backwards in it, ink after it.

    Args:
        dry_at: when its ink was dry; None: not recorded, or there is none
    """
    if f"runs/{name}" in lab.withdrawn:
        return []
    found = []
    if run.ink and f"ink/{run.ink.id}" in lab.withdrawn:
        found.append(f"labdata/ink/{run.ink.id}.withdrawn.yml: file: a run counts on this ink; got {name}; withdraw the run first")
    return found + clock(run, f"labdata/runs/{name}.yml") + order(dry_at, run, f"labdata/runs/{name}.yml")


def began(run: Run) -> datetime.datetime | None:
    """The earliest hour a run tells; None: not recorded."""
    return min((t for t in (run.started_at, *(r.started_at for r in run.results)) if t), default=None)


def order(dry: datetime.datetime | None, run: Run, shown: str) -> list[str]:
    """A run must begin after its ink was dry, as far as both hours were recorded."""
    if run.ink and dry and (start := began(run)) and start < dry:
        return [f"{shown}: ink.id: ink after run; got {run.ink.id} of {dry}, the run began {start}; "
                "no prediction of this run: withdraw the run, and measure again after the ink"]  # fmt: skip
    return []


def clock(run: Run, shown: str) -> list[str]:
    """The hours in a run never go backwards."""
    last = run.started_at
    for i, r in enumerate(run.results):
        if r.started_at and last and r.started_at < last:
            return [f"{shown}: results.{i}.started_at: the clock ran backwards; got {r.started_at}, after {last}; "
                    "withdraw the run, set the clock, measure again"]  # fmt: skip
        last = r.started_at or last
    return []
