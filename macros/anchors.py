"""Re-anchoring: a predicted ratio started from a measured rate instead of an inked one, both ways scored."""

from __future__ import annotations

import math
from dataclasses import dataclass

from macros import compare
from macros.compare import Measured, Score, verdict
from macros.inks import Anchor, Correction, Prediction
from macros.labdata import Lab


@dataclass(frozen=True)
class Anchored:
    """A ratio's rate [tok/s], from the ink alone and anchored.

    Args:
        rate: what was measured, with its own sigma only
        start: the anchor's rate
        alone: inked rate x inked ratio, scored as the inked rate's kind
        anchored: measured rate x inked ratio, scored as a point; its sigma holds the anchor's too
        corrected: the same with the ratio as corrected in the errata; None: no slip in it
    """

    anchor: Anchor
    ratio: Prediction
    base: Prediction
    rate: Measured
    start: Measured
    alone: Score
    anchored: Score
    corrected: Score | None


def of_ink(lab: Lab, ink: str) -> list[Anchored]:
    """Every re-anchoring that an ink's errata name and that was measured, in their order."""
    errata = lab.errata.get(ink)
    found = (_one(lab, ink, a, errata.corrections) for a in errata.anchors) if errata else ()
    return [a for a in found if a]


def _one(lab: Lab, ink: str, anchor: Anchor, corrections: list[Correction]) -> Anchored | None:
    p, base = lab.prediction(ink, anchor.prediction), lab.prediction(ink, anchor.instead_of)
    rate, run = compare.measure(lab, compare.newest(lab.runs_on(ink)), p.of)
    hit = compare.find(compare.newest([lab.get("runs", anchor.run)]), p.over) if p.over else None
    start = compare.rate(hit[1]) if hit else None
    if rate is None or start is None or p.value is None or base.value is None:
        return None
    both = Measured(rate.mean, rate.mean * math.hypot(rate.relative_sigma, start.relative_sigma), min(rate.n, start.n))

    def score(kind: str, value: float, m: Measured) -> Score:
        made = Prediction(id=p.id, quantity=p.quantity, kind=kind, as_written=p.as_written, value=value, unit="tok/s", because=p.because, of=p.of)
        return Score(ink, made, m, verdict(made, m), run)

    right = next((c.corrected for c in corrections if c.prediction == p.id and c.corrected), None)
    return Anchored(
        anchor, p, base, rate, start, score(base.kind, base.value * p.value, rate), score("point", start.mean * p.value, both),
        score("point", start.mean * right, both) if right else None)  # fmt: skip
