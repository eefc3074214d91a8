"""What surprised: candidates ranked from the scores, each a sentence that is true whatever the numbers; the author picks."""

from __future__ import annotations

import math
from dataclasses import dataclass

from markupsafe import Markup

from macros.compare import NOISE_SIGMAS, Score
from macros.inks import DIRECTIONS, Prediction
from macros.labdata import LabError
from macros.inked import inked_value, measured_value
from macros.narrative import Book
from macros.values import THIN, inert, number, percent


@dataclass(frozen=True)
class Surprise:
    """One candidate.

    Args:
        prediction: its id in the ink
        what: "broken ceiling", "miss", "broken direction", "unexpected equality" or "best hit"
        sentence: plain text
        sigmas: how far the measurement lies from the ink, in its own sigmas; NaN: not known
    """

    prediction: str
    what: str
    sentence: str
    sigmas: float


def candidates(scores: list[Score]) -> list[Surprise]:
    """What an ink's scores offer: misses and broken claims, the largest in units of their uncertainty first,
    then equalities that were not foretold, then the best hit."""
    wrong = sorted((_wrong(s) for s in scores if s.verdict in ("missed", "broken")), key=lambda c: -c.sigmas)
    equal = [_equal(s) for s in scores if s.same and _foretold(s)]
    hits = [s for s in scores if s.verdict == "held" and s.gap is not None and s.prediction.kind != "interval" and s.run]
    return wrong + equal + ([_hit(min(hits, key=lambda s: abs(s.gap or 0)))] if hits else [])


def _foretold(s: Score) -> bool:
    """Whether a difference was foretold: any ordering, and every direction but the one that says there is none."""
    p = s.prediction
    return p.kind == "ordering" or (p.kind == "direction" and not DIRECTIONS[p.direction][0] < 1 < DIRECTIONS[p.direction][1])  # type: ignore[index]


def inked_words(p: Prediction) -> str:
    """A prediction as a sentence holds it: "at most 24 tok/s", "“craters”"."""
    text = inked_value(p).text
    return f"“{text}”" if p.kind in ("direction", "ordering") else f"at most {text}" if p.kind == "ceiling" else text


def pair(s: Score) -> str:
    """What was inked and what was measured."""
    p, m = s.prediction, s.measured
    assert m is not None
    return said(p, inked_words(p), measured_value(p, m).text)


def said(p: Prediction, inked: str, measured: str) -> str:
    """The same of the two as printed."""
    over = {"direction": " of what it was compared with", "ordering": ", faster over slower, for the pair that bears it out least"}
    return f"{p.quantity}: inked {inked}, measured {measured}{over.get(p.kind, '')}"


def _away(s: Score) -> float:
    """Distance from what would have held, in sigmas."""
    p, m = s.prediction, s.measured
    assert m is not None
    if p.kind not in ("direction", "ordering"):
        return s.distance_sigmas if s.distance_sigmas is not None else math.nan
    low, high = DIRECTIONS["rises" if p.slower else p.direction]  # type: ignore[index]
    away = max(low - m.mean, m.mean - high)
    return away / m.sigma if m.sigma else math.inf


def _wrong(s: Score) -> Surprise:
    kind, sigmas = s.prediction.kind, _away(s)
    what = {"ceiling": "broken ceiling", "direction": "broken direction", "ordering": "broken direction"}.get(kind, "miss")
    far = f"{number(sigmas, 0 if sigmas >= 10 else 1)}{THIN}σ of the measurement" if math.isfinite(sigmas) else "a distance no noise explains"
    if s.gap is None:
        return Surprise(s.prediction.id, what, f"{pair(s)}. That is {far} outside the claim.", sigmas)
    side = "above" if s.gap > 0 else "below"
    return Surprise(s.prediction.id, what, f"{pair(s)}. That is {percent(abs(s.gap)).text} {side} the ink, {far}.", sigmas)


def _equal(s: Score) -> Surprise:
    words = f"{pair(s)}. The two do not differ by more than {number(NOISE_SIGMAS, 0)}{THIN}σ."
    return Surprise(s.prediction.id, "unexpected equality", words, s.distance_sigmas or 0.0)


def _hit(s: Score) -> Surprise:
    assert s.gap is not None
    close = f"{percent(abs(s.gap)).text} {'above' if s.gap > 0 else 'below'} the ink" if s.gap else "on the ink"
    luck = ", closer than the noise, so partly luck" if s.same and s.gap else ""
    return Surprise(s.prediction.id, "best hit", f"{pair(s)}. That is {close}{luck}.", s.distance_sigmas if s.distance_sigmas is not None else math.nan)


def picked(scores: list[Score], prediction: str, ink: str) -> Markup:
    """The sentence of the candidate an author picked.

    Raises:
        LabError: not among the candidates; they are named.
    """
    known = {c.prediction: c for c in candidates(scores)}
    if prediction not in known:
        raise LabError([f"labdata/ink/{ink}.yml: surprise: not a candidate; got {prediction!r}; known: {', '.join(known) or 'none'}"])
    return inert(known[prediction].sentence)


def listed(book: Book, scores: list[Score], ink: str) -> Markup:
    """The candidates with how to pick one: an open part, for the author's eyes."""
    found = candidates(scores)
    items = Markup("").join(Markup("<li>{}, <code>{}</code>: {}</li>").format(c.what, c.prediction, c.sentence) for c in found)
    words = f"pick what surprised with the macro surprise({ink!r}, id)" if found else f"nothing of ink {ink} is measured that could surprise"
    return Markup("<div>{}<ol>{}</ol></div>").format(book.open_part(words), items) if found else book.open_part(words)
