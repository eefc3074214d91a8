"""Drafts for each place, from one template: its two texts, the author's frame around them, a link, a count."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from macros import compare, prose, truth
from macros.inked import InkedText
from macros.narrative import Book
from macros.places import PLACES, Place
from macros.summary import Summary, of_day, of_machine
from macros.values import Value

TEXTS = {"long": "the whole story", "short": "one post of a few lines"}
_TEXT = re.compile(r'^<div class="post" id="(?P<name>[a-z]+)" markdown>\n(?P<body>.*?)\n</div>$', re.S | re.M)
FRAME = ("opening", "thanks", "sign_off")  # the author's own words, settings of mkdocs.yml
_ORDERS = {**truth.CLAIMS, "more": truth.MORE, "over": truth.MORE, "less": truth.LESS, "under": truth.LESS, "level": truth.SAME}


@dataclass(frozen=True)
class Claim:
    """A word of order that the values bear out; `print_plain` marks it as checked."""

    word: str

    def __str__(self) -> str:
        return self.word


def claim(word: str, a: Value, b: Value) -> Claim:
    """A word that says how a stands to b, if the values bear it out: "faster", "above", "barely", ...

    Raises:
        ValueError: they do not, or not beyond noise; the word is unknown; two units.
    """
    if word not in _ORDERS:
        raise ValueError(f"claim: unknown word; got {word!r}; known: {', '.join(sorted(_ORDERS))}")
    if a.unit != b.unit:
        raise ValueError(f"claim: two units cannot be compared; got {a.text} and {b.text}")
    if not _stands(_ORDERS[word], a, b):
        raise ValueError(f"claim: {word!r} is not borne out; got {a.text} against {b.text}")
    return Claim(word)


def _stands(order: str, a: Value, b: Value) -> bool:
    first, second = (math.nan if v.kind == "measured" and v.sigma is None else v.sigma or 0.0 for v in (a, b))
    noise = compare.NOISE_SIGMAS * math.hypot(first, second)
    if order == truth.SAME:
        return abs(a.n - b.n) <= compare.TOLERANCE * abs(b.n)
    return a.n - b.n > noise if order == truth.MORE else b.n - a.n > noise


def differ_words(a: Value, b: Value) -> str:
    """Whether two measured values differ, in words that hold for any numbers.

    Raises:
        ValueError: they are not in one unit.
    """
    if a.unit != b.unit:
        raise ValueError(f"two units cannot be compared; got {a.text} and {b.text}")
    first, second = (compare.Measured(v.n, math.nan if v.sigma is None else v.sigma, 0) for v in (a, b))
    return {True: "differ beyond noise", False: f"are {compare.SAME}", None: "cannot be told apart or not, the noise of one is unknown"}[
        compare.differ(first, second)
    ]


def print_plain(value: Any) -> Any:
    """What a template prints, as plain text: for Jinja's `finalize`."""
    if isinstance(value, Claim):
        return truth.checked(value.word)
    if isinstance(value, (Value, InkedText)):
        return value.text
    return html.unescape(re.sub(r"<[^>]*>", "", value)) if isinstance(value, Markup) else value


def summary_of(book: Book, name: str, run: str | None = None) -> Summary:
    """The summary of an ink's day or of a machine, or of one run of it.

    Raises:
        LabError: neither.
    """
    day = next((d for d in book.days if d.ink == name), None)
    return of_day(book, day) if day else of_machine(book, name, book.run(f"{name}/{run}") if run else None)


def texts(rendered: str) -> dict[str, str]:
    """The texts of a rendered template by name, one kind of empty line between paragraphs."""
    return {m["name"]: re.sub(r"\n(?:[ \t]*\n)+", "\n\n", m["body"]).strip() for m in _TEXT.finditer(rendered)}


def plain(markdown: str) -> str:
    """Markdown as the plain text that most places take: emphasis and headings gone, a link's address behind its words."""
    text = re.sub(r"^#{1,6} ", "", markdown, flags=re.M)
    text = re.sub(r"^[-*] ", "• ", text, flags=re.M)
    text = re.sub(r"\[([^\]]+)\]\((https?://[^)]+)\)", r"\1: \2", text)
    text = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text)
    return html.unescape(re.sub(r"(\*\*|__|`)(.+?)\1", r"\2", text))


@dataclass(frozen=True)
class Draft:
    """A draft for one place.

    Args:
        parts: the posts of a thread, else one text
        over: what is too long and what to cut first, a line each
    """

    place: Place
    parts: list[str]
    over: list[str] = field(default_factory=list)

    @property
    def file(self) -> str:
        return f"{self.place.name}.{'md' if self.place.text == 'markdown' else 'txt'}"

    @property
    def text(self) -> str:
        return "\n\n".join(self.parts) + "\n"

    @property
    def counted(self) -> str:
        """Its length against the limit, in the place's unit."""
        longest = max(map(self.place.count, self.parts))
        limit = f" of {self.place.limit:,}" if self.place.limit else ""
        each = f"{len(self.parts)} posts, the longest " if self.place.thread else ""
        return f"{each}{longest:,}{limit} {self.place.unit}"


def drafts(found: Mapping[str, str], summary: Summary, frame: Mapping[str, str], link: str, table: str) -> list[Draft]:
    """A draft for every place.

    Args:
        found: the template's texts, "long" and "short"
        frame: the author's opening, thanks and sign_off
        link: where the report stands; empty: it is not published
        table: predictions against measurements in Markdown
    """
    before, *after = (frame.get(part) or "" for part in FRAME)
    full = f"Every number with its source: {link}" if link else ""
    body = {
        "long": plain(_joined(before, found["long"], full, *after)),
        "short": _joined(plain(found["short"]), link),
        "markdown": _joined(f"### {summary.label}: {summary.title}", before, found["long"], table, full, *after),
    }
    return [draft(place, body[place.text]) for place in PLACES]


def _joined(*parts: str) -> str:
    return "\n\n".join(p.strip() for p in parts if p.strip())


def draft(place: Place, text: str) -> Draft:
    """A text as one place takes it, with what is too long."""
    def count(words: str) -> int:
        return place.count(truth.bare(words))

    if place.thread and place.limit:
        try:
            return Draft(place, prose.thread(text, place.limit, count))
        except prose.TooLong as error:
            return Draft(place, [text], [f"length: {error}; make two sentences of it"])
    over = count(text) - place.limit if place.limit else 0
    if over <= 0:
        return Draft(place, [text])
    return Draft(place, [text], [f"length: {over:,} {place.unit} over; got {count(text):,}, the limit is {place.limit:,}; cut first: “{first_to_cut(text, over, place)}”"])


def first_to_cut(text: str, over: int, place: Place) -> str:
    """The sentence to cut first: one without a figure where there is one, long enough where one is, the last such; never the first or a link."""
    known = [s for s in prose.sentences(text)[1:] if not prose.links(s)] or prose.sentences(text)
    dispensable = [s for s in known if not prose.figures(s)] or known
    enough = [s for s in dispensable if place.count(s) >= over] or [max(dispensable, key=place.count)]
    return enough[-1]
