"""What a machine's runs come to, reckoned once: its page, its summary, the comparison and the downloads are views of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from macros import compare, rows
from macros.compare import Score
from macros.labdata import Lab
from macros.records import Run


@dataclass(frozen=True)
class Reckoned:
    """A machine's runs, scores and rates, each reckoned when it is first asked for.

    Args:
        machine: its id
    """

    lab: Lab
    machine: str

    @cached_property
    def runs(self) -> list[Run]:
        """Its runs that count, oldest first."""
        return self.lab.runs_of(self.machine)

    @cached_property
    def on(self) -> dict[str, list[Run]]:
        """Its runs by their ink, the newest ink first."""
        inks = dict.fromkeys(r.ink.id for r in reversed(self.runs) if r.ink)
        return {ink: [r for r in self.runs if r.ink and r.ink.id == ink] for ink in inks}

    @cached_property
    def scores(self) -> dict[str, list[Score]]:
        """Each ink scored on the machine's own runs."""
        return {ink: compare.scores(self.lab, ink, runs) for ink, runs in self.on.items()}

    @cached_property
    def scored(self) -> dict[str, list[dict]]:
        """The same as rows, see `rows.ink`."""
        return {ink: rows.ink(scores) for ink, scores in self.scores.items()}

    def all_scores(self, ink: str) -> list[Score] | None:
        """An ink's scores; None where other machines ran on it too, so that these are not all."""
        return self.scores.get(ink) if self.lab.machines_on(ink) == {self.machine} else None

    def all_scored(self, ink: str) -> list[dict] | None:
        """The same as rows."""
        return self.scored[ink] if self.all_scores(ink) else None

    @cached_property
    def results(self) -> dict[str, list[dict]]:
        """Every test of each run, see `rows.results`."""
        return {run.id: rows.results(self.lab, [run]) for run in self.runs}
