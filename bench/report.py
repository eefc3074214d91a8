"""Predicted against measured, in the terminal: the same rows as the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from macros import compare
from macros.compare import Score
from macros.narrative import gap_value, inked_value, measured_value, tally_words
from macros.records import Run
from macros.values import percent

if TYPE_CHECKING:
    from macros.labdata import Lab

COLUMNS = ("Quantity", "Inked", "Measured", "Gap", "Verdict")
MARKS = {"held": "●", "unbroken": "●", "missed": "✕", "broken": "✕"}


def rows(scores: list[Score]) -> list[tuple[str, ...]]:
    """One row a prediction, as printed."""
    return [_row(s) for s in scores]


def _row(s: Score) -> tuple[str, ...]:
    p, m = s.prediction, s.measured
    inked = inked_value(p, "", "").text
    measured = measured_value(p, m).text if m else "not measured"
    if s.utilisation is not None:
        gap = f"{percent(s.utilisation, decimals=0).text} of roof"
    else:
        gap = gap_value(s.gap).text if s.gap else ""
    return p.quantity, ("≤ " if p.kind == "ceiling" else "") + inked, measured, gap, f"{MARKS.get(s.verdict, '○')} {s.verdict}"


def table(lab: Lab, run: Run) -> str:
    """A run's ink, scored, as aligned plain text; then the words a reader needs beside it."""
    assert run.ink
    scores = compare.scores(lab, run.ink.id, [run])
    body = [COLUMNS, *rows(scores)]
    widths = [max(len(r[i]) for r in body) for i in range(len(COLUMNS))]
    lines = [_line(r, widths) for r in body]
    lines.insert(1, "─" * len(lines[0]))
    lines += ["", f"{tally_words(scores)}."]
    lines += [f"{r.test} @ {r.depth}, {r.model}: {r.failed or '; '.join(compare.conditions(r))}"
              for r in run.results if r.failed or compare.conditions(r)]  # fmt: skip
    if any(lab.models[r.model].weights == "synthetic" for r in run.results):
        lines.append("Synthetic weights: random bits in the real model's shapes and types.")
    return "\n".join(lines)


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    left = (0, 4)
    return "  ".join(c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths, strict=True))).rstrip()


def newest(lab: Lab, machine: str | None = None) -> Run | None:
    """The newest run with a date and ink, of one machine or of all."""
    dated = [r for r in lab.runs.values() if r.started_at and r.ink and machine in (None, r.machine)]
    return max(dated, key=lambda r: r.started_at.isoformat(), default=None)  # type: ignore[union-attr]
