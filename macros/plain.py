"""Predicted against measured as plain text: the terminal's table, and README's."""

from __future__ import annotations

from pathlib import Path

from macros import compare, labdata
from macros.compare import Score
from macros.labdata import Lab
from macros.inked import inked_value, measured_value
from macros.narrative import gap_text, tally_words, verdict_text

COLUMNS = ("Quantity", "Inked", "Measured", "Gap", "Verdict")
MARKS = {"held": "●", "unbroken": "●", "missed": "✕", "broken": "✕"}
LEFT = (0, 4)  # columns of words; the others hold numbers
README = Path(__file__).resolve().parent.parent / "README.md"
BEGIN, END = "<!-- table: make schema -->", "<!-- end -->"


def rows(scores: list[Score]) -> list[tuple[str, ...]]:
    """One row a prediction, as printed."""
    return [_row(s) for s in scores]


def _row(s: Score) -> tuple[str, ...]:
    p, m = s.prediction, s.measured
    inked = ("≤ " if p.kind == "ceiling" else "") + inked_value(p).text
    return p.quantity, inked, measured_value(p, m).text if m else "not measured", gap_text(s), f"{MARKS.get(s.verdict, '○')} {verdict_text(s)}"


def aligned(scores: list[Score]) -> str:
    """The table with its columns lined up, for a terminal."""
    body = [COLUMNS, *rows(scores)]
    widths = [max(len(r[i]) for r in body) for i in range(len(COLUMNS))]
    lines = [
        "  ".join(c.ljust(w) if i in LEFT else c.rjust(w) for i, (c, w) in enumerate(zip(r, widths, strict=True))).rstrip()
        for r in body
    ]
    return "\n".join([lines[0], "─" * max(map(len, lines)), *lines[1:]])


def markdown(scores: list[Score]) -> str:
    """The table in Markdown."""
    rule = "|" + "|".join(":--" if i in LEFT else "--:" for i in range(len(COLUMNS))) + "|"
    return "\n".join([f"| {' | '.join(COLUMNS)} |", rule, *(f"| {' | '.join(r)} |" for r in rows(scores))])


def readme(lab: Lab, text: str) -> str:
    """README with its table brought up to date: Day 1's ink, scored.

    Raises:
        ValueError: the markers are gone.
    """
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"README.md: no table between {BEGIN} and {END}")
    scores = compare.scores(lab, "day-01")
    machine = lab.machines[lab.inks["day-01"].machine].name
    return f"{head}{BEGIN}\n{markdown(scores)}\n\n{machine}: {tally_words(scores)}.\n{END}{tail}"


def write_readme() -> None:
    """Bring README.md's table up to date."""
    text = README.read_text(encoding="utf-8")
    labdata.write_text(README, readme(labdata.load(), text))


if __name__ == "__main__":
    write_readme()
