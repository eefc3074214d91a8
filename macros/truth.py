"""Whether a post is true: its figures are the summary's, its claims of order are borne out, its verdicts are the score's.

A sentence that a draft made from the template also has, figures aside, must have the same figures; any other may
only use figures of the summary. Words that claim an order are held against the rows they are about.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from macros import prose
from macros.compare import NOISE_SIGMAS, TOLERANCE, VERDICTS
from macros.prose import Figure
from macros.summary import Scored, Summary

BORNE_OUT = ("\ue000", "\ue001")  # around words a macro has checked against its values
ALIKE = 0.6  # share of words from which a sentence is taken for an edited one of the draft
MORE, LESS, SAME = "more", "less", "same"
CLAIMS = {  # word -> what it says of the first thing against the second
    **dict.fromkeys(("faster", "quicker", "higher", "above", "exceeds", "exceeded", "beats", "beat", "outran", "outruns", "more than", "twice", "doubled", "double"), MORE),
    **dict.fromkeys(("slower", "lower", "below", "less than", "short of", "falls", "fell", "dropped", "half", "halved", "craters", "cratered", "collapsed"), LESS),
    **dict.fromkeys(("barely", "hardly", "about the same", "unchanged", "the same rate"), SAME),
}
FACTORS = {"twice": 2.0, "doubled": 2.0, "double": 2.0, "half": 0.5, "halved": 0.5, "craters": 0.5, "cratered": 0.5, "collapsed": 0.5}
WITHIN = re.compile(r"\b(?:to )?within (?P<far>[\d.,]+\s?%)", re.I)
CLAIM = re.compile(r"(?<![\w-])(?:no )?(?P<word>" + "|".join(sorted(CLAIMS, key=len, reverse=True)) + r")(?![\w-])", re.I)
_COUNT = re.compile(rf"(?<![\w.,])(?P<n>\d+|{'|'.join(prose.SPELT)}) (?:ceilings? |predictions? |of them )?(?P<verdict>{'|'.join(VERDICTS)})(?!\w)", re.I)
VERDICT = re.compile(r"(?<![\w-])(?P<verdict>held|missed|unbroken|broken|undecided)(?![\w-])", re.I)
_QUOTED = re.compile(r"“[^”]*”|\"[^\"\n]*\"")


def checked(word: str) -> str:
    """A word that a macro has checked, marked so that it is not checked again; `bare` takes the mark off."""
    return f"{BORNE_OUT[0]}{word}{BORNE_OUT[1]}"


def bare(text: str) -> str:
    """A text without those marks."""
    return re.sub(f"[{''.join(BORNE_OUT)}]", "", text)


@dataclass
class Known:
    """What a post may say.

    Args:
        summary: of its day or machine
        drafts: what the template makes of it today, for a text edited by hand; empty: the text is such a draft,
            and only the summary's own sentences stand as they are
        links: addresses that may be named besides
    """

    summary: Summary
    drafts: Sequence[str] = ()
    links: Iterable[str] = ()
    _numbers: list[tuple[float, str, bool]] = field(default_factory=list)
    _words: str = ""

    def __post_init__(self) -> None:
        told = {k: v for k, v in vars(self.summary).items() if k not in ("predictions", "inked_at", "measured_at", "address")}
        texts = [*_strings(told), *(t for p in self.summary.predictions for t in _strings(vars(p))), *self.drafts]
        self._words = prose.flat("\n".join(texts))
        self._numbers = [(f.n, f.unit, bool(f.sign)) for f in prose.figures(self._words)]
        self._numbers += [(v["n"], v["unit"], v["text"][:1] in "+−") for v in self.summary.values]
        self._numbers += [(float(n), "", False) for n in (*self.summary.counts.values(), len(self.summary.predictions))]
        for p in self.summary.predictions:
            numbers = (p.predicted, p.predicted_low, p.predicted_high, p.measured_mean, p.measured_sigma)
            self._numbers += [(n, p.unit, False) for n in numbers if n is not None]
            self._numbers += [(p.gap, "1", True)] if p.gap is not None else []

    def has(self, f: Figure) -> bool:
        """Whether a figure is one of the summary's; without a unit it may stand for one that has one, with a sign only for a signed one."""
        return any(f.says(n, f.unit if not f.unit and len(f.text) > 1 else unit) for n, unit, signed in self._numbers if signed or not f.sign)

    @cached_property
    def masks(self) -> dict[str, list[str]]:
        """Sentences that stand as they are, by their words alone."""
        found: dict[str, list[str]] = {}
        for text in (*self.drafts, *self.summary.sentences()):
            for sentence in _sentences(text):
                found.setdefault(_mask(sentence), []).append(sentence)
        return found

    @cached_property
    def names(self) -> set[str]:
        return set(prose.names(self._words))

    @cached_property
    def addresses(self) -> set[str]:
        return {*prose.links(self._words), *self.links}


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [text for one in inner for text in _strings(one)]


def problems(text: str, known: Known) -> list[str]:
    """Everything a post says that is not so, one line each: what, and what the summary has."""
    found: list[str] = []
    for paragraph in prose.paragraphs(text):
        for sentence in _sentences(paragraph):
            twins = known.masks.get(_mask(sentence), [])
            if twins and any(_same(sentence, twin) for twin in twins):
                continue  # word for word and figure for figure a draft's
            if twins:
                found.append(f"words: not the draft's; got “{bare(sentence)}”; the summary has “{bare(twins[0])}”")
                continue
            found += _unknown(sentence, known) + _swapped(sentence, known) + _counted(sentence, known.summary)
            found += _claimed(sentence, paragraph, known.summary) + _judged(sentence, paragraph, known.summary)
    return list(dict.fromkeys(found))


def _sentences(text: str) -> list[str]:
    return [re.sub(r"^(?:[-*•#>]+|\d+\.) |[*`]", "", s) for s in prose.sentences(prose.flat(text)) if not re.fullmatch(r"\d+/\d+", s)]


def _mask(sentence: str) -> str:
    """A sentence with all that can be true or false blanked: figures, names, addresses, claims, verdicts."""
    masked = prose.NAME.sub("▯", prose.LINK.sub("▯", bare(sentence)))
    masked = re.sub(r"[−+]?\d[\d,]*(?:\.\d+)?", "▯", masked)
    return " ".join(VERDICT.sub("▮", CLAIM.sub("▮", masked)).split())


def _words(sentence: str) -> list[str]:
    """A sentence's claims and verdicts, in order."""
    return [m[0].lower() for pattern in (CLAIM, VERDICT) for m in pattern.finditer(bare(sentence))]


def _same(a: str, b: str) -> bool:
    one, other = prose.figures(bare(a)), prose.figures(bare(b))
    return (
        len(one) == len(other) and all(x.says(y.n, y.unit) for x, y in zip(one, other, strict=True))
        and prose.names(bare(a)) == prose.names(bare(b)) and prose.links(a) == prose.links(b) and _words(a) == _words(b)
    )  # fmt: skip


def _unknown(sentence: str, known: Known) -> list[str]:
    """Figures, names and addresses that the summary does not have."""
    text = bare(sentence)
    counted = WITHIN.sub(lambda m: "\0" * len(m[0]), text)  # a bound is the author's own; that it holds is checked with the claims
    found = [f"numbers: not in the summary of {known.summary.id}; got {f.text!r} in “{text}”" for f in prose.figures(counted) if not known.has(f)]
    found += [f"names: not in the summary of {known.summary.id}; got {n!r} in “{text}”" for n in prose.names(text) if n not in known.names]
    return found + [f"links: leads elsewhere than the draft's; got {u!r}" for u in prose.links(text) if u not in known.addresses]


def _swapped(sentence: str, known: Known) -> list[str]:
    """A figure or a claim that took the place of another in a sentence that was edited otherwise too."""
    words = _mask(sentence).split()
    alike = {mask: difflib.SequenceMatcher(None, words, mask.split()).ratio() for mask in known.masks}
    near = max(alike, key=alike.__getitem__, default="")
    if alike.get(near, 0.0) < ALIKE:
        return []
    close = known.masks[near][0]
    here, there = prose.figures(bare(sentence)), prose.figures(bare(close))
    new = [f for f in here if not any(f.says(g.n, g.unit) for g in there)]
    gone = [g for g in there if not any(f.says(g.n, g.unit) for f in here)]
    turned = {CLAIMS[w] for w in _words(sentence) if w in CLAIMS} - (was := {CLAIMS[w] for w in _words(close) if w in CLAIMS}) if close else set()
    swapped = [f"{f.text!r}" for f in new if any(g.unit == f.unit for g in gone)] + ([f"“{bare(sentence)}”"] if turned and was else [])
    return [f"words: another one stood here; got {what} in “{bare(sentence)}”; the summary has “{bare(close)}”" for what in swapped]


def _counted(sentence: str, summary: Summary) -> list[str]:
    """Counts of verdicts that are not the score's."""
    found = []
    for m in _COUNT.finditer(bare(sentence)):
        n = prose.SPELT.get(m["n"].lower(), None) if not m["n"].isdigit() else int(m["n"])
        if n != summary.counts.get(m["verdict"].lower(), 0):
            found.append(f"verdicts: not the score; got {m[0]!r}; the score is {summary.score or 'none: nothing was scored'}")
    return found


def about(text: str, summary: Summary) -> list[Scored]:
    """The predictions a text speaks of: by their name, or by a figure of theirs."""
    plain, here = prose.flat(bare(text)).casefold(), prose.figures(bare(text))

    def meant(p: Scored) -> bool:
        if p.quantity.casefold() in plain:
            return True
        theirs = [n for n in (p.measured_mean, p.predicted, p.predicted_low, p.predicted_high) if n is not None]
        return any(f.unit and ((p.gap is not None and f.says(p.gap, "1")) or any(f.says(n, p.unit) for n in theirs)) for f in here)

    return [p for p in summary.predictions if p.measured_mean is not None and meant(p)]


def _claimed(sentence: str, paragraph: str, summary: Summary) -> list[str]:
    """Claims of order or nearness that no row bears out."""
    text = re.sub(f"{BORNE_OUT[0]}[^{BORNE_OUT[1]}]*{BORNE_OUT[1]}", lambda m: "\0" * len(m[0]), sentence)
    text = _QUOTED.sub(lambda m: "\0" * len(m[0]), text)  # what the ink said is no claim of the post's
    found = []
    for m in [*CLAIM.finditer(text), *WITHIN.finditer(text)]:
        word = m[0]
        sides = _sides(text, m)
        if sides and "far" not in m.groupdict():
            wanted = CLAIMS[m["word"].lower()]
            if not _ordered(wanted, *sides):
                found.append(f"claims: {word!r} is not so; got “{bare(sentence)}”")
            continue
        meant = about(sentence, summary) or about(paragraph, summary)
        if not meant:
            found.append(f"claims: nothing in the summary bears out {word!r}; got “{bare(sentence)}”; name the quantity or its figures, or let claim() say it")
        elif not any(_borne_out(m, p) for p in meant):
            found.append(f"claims: {word!r} is not so; got “{bare(sentence)}”; the summary has “{meant[0].sentence}”")
    return found


def _sides(text: str, m: re.Match) -> tuple[Figure, Figure] | None:
    """The figures of one unit next before and next after a word."""
    here = prose.figures(text)
    before, after = [f for f in here if f.start < m.start() and f.unit], [f for f in here if f.start >= m.end() and f.unit]
    return (before[-1], after[0]) if before and after and before[-1].unit == after[0].unit else None


def _ordered(wanted: str, a: Figure, b: Figure) -> bool:
    if wanted == SAME:
        return abs(a.n - b.n) <= TOLERANCE * abs(b.n)
    return a.n > b.n if wanted == MORE else a.n < b.n


def _borne_out(m: re.Match, p: Scored) -> bool:
    """Whether a prediction's row bears a claim out: a ratio against 1, any other number against the ink, beyond noise."""
    assert p.measured_mean is not None
    noise = NOISE_SIGMAS * (math.nan if p.measured_sigma is None else p.measured_sigma)  # noise that is not known bears nothing out
    if "far" in m.groupdict():
        far = prose.figures(m["far"])[0].n / 100
        return p.gap is not None and abs(p.gap) <= far
    word = m["word"].lower()
    relative = p.unit == "1"
    against = 1.0 if relative else p.predicted or (p.predicted_low if p.measured_mean < (p.predicted_low or 0) else p.predicted_high)
    if against is None:
        return False
    low, high = (p.measured_mean - noise) / against, (p.measured_mean + noise) / against
    if m[0].lower().startswith("no "):  # "no faster"
        return not (low > 1 if CLAIMS[word] == MORE else high < 1)
    if word in FACTORS:
        near = abs(p.measured_mean / against - FACTORS[word]) <= TOLERANCE * FACTORS[word]
        return near or (word in ("craters", "cratered", "collapsed") and high <= FACTORS[word])
    if CLAIMS[word] == SAME:
        return 1 - TOLERANCE <= low and high <= 1 + TOLERANCE
    return low > 1 if CLAIMS[word] == MORE else high < 1


def _judged(sentence: str, paragraph: str, summary: Summary) -> list[str]:
    """Verdicts that are not the score's."""
    found = []
    text = _COUNT.sub("", bare(sentence))
    for m in VERDICT.finditer(_QUOTED.sub("", text)):
        meant = about(sentence, summary) or about(paragraph, summary)
        if not meant:
            found.append(f"verdicts: of what is {m[0]!r} said; got “{bare(sentence)}”; name the quantity or its figures")
        elif m["verdict"].lower() not in {p.verdict for p in meant}:
            found.append(f"verdicts: not the score's; got {m[0]!r} in “{bare(sentence)}”; the score is “{meant[0].quantity}: {meant[0].verdict}”")
    return found
