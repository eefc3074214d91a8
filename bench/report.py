"""Predicted against measured, in the terminal: the same rows as the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from macros import compare, plain, surprises
from macros.narrative import tally_words
from macros.records import Run

if TYPE_CHECKING:
    from macros.labdata import Lab


def table(lab: Lab, run: Run) -> str:
    """A run's ink, scored, as aligned plain text; then the words a reader needs beside it."""
    assert run.ink
    scores = compare.scores(lab, run.ink.id, [run])
    lines = [plain.aligned(scores), "", f"{tally_words(scores)}."]
    lines += [f"{r.test} @ {r.depth}, {r.model}: {r.failed or '; '.join(compare.conditions(r))}"
              for r in run.results if r.failed or compare.conditions(r)]  # fmt: skip
    lines += [f"Surprise? {c.what}, {c.prediction}: {c.sentence}" for c in surprises.candidates(scores)[:3]]
    if any(lab.models[r.model].weights == "synthetic" for r in run.results):
        lines.append("Synthetic weights: random bits in the real model's shapes and types.")
    return "\n".join(lines)


def newest(lab: Lab, machine: str | None = None) -> Run | None:
    """The newest run with a date and ink, of one machine or of all."""
    dated = [r for m in lab.machines for r in lab.runs_of(m) if r.started_at and r.ink and machine in (None, m)]
    return max(dated, key=lambda r: r.started_at.isoformat(), default=None)  # type: ignore[union-attr]
