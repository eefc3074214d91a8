"""A post as text: its sentences, its figures with their units, and a thread that cuts neither."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from macros import typed, units
from macros.places import LINK
from macros.values import number

_SHORTENED = r"(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<!\bcf\.)(?<!\bFig\.)(?<!\bNo\.)(?<!\bapprox\.)"
_SENTENCE_END = re.compile(rf"(?<=[.!?…]){_SHORTENED}[ ](?=\S)|(?<=[.!?…][”’\"')]){_SHORTENED}[ ](?=\S)")
_NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
_UNIT = rf"(?:\s?(?P<unit>{typed.UNITS})(?![\w/]))?"
FIGURE = re.compile(rf"(?<![\w.,/@#-])(?P<sign>[−+~≈-]?)(?P<first>{_NUMBER})(?:\s*(?P<joint>[–±-])\s*(?P<second>{_NUMBER}))?{_UNIT}(?![\w]|[.,]\d)", re.I)
SPELT = {**dict(zip("no one two three four five six seven eight nine ten eleven twelve".split(), range(13), strict=True)),
         "fifteen": 15, "sixteen": 16, **dict(zip("twenty thirty forty fifty sixty seventy eighty ninety hundred".split(), range(20, 101, 10), strict=True))}  # fmt: skip
_SPELT = re.compile(rf"(?<![\w-])(?P<n>{'|'.join(w for w, n in SPELT.items() if n > 1)})(?:\s|-)(?P<unit>{typed.UNITS})(?![\w/])", re.I)
# A name with a digit in it, a model's or a test's: Qwen3-8B, Q4_K_M, tg128, M4. One digit off is another thing.
NAME = re.compile(r"(?<![\w.-])(?=[\w.-]*\d)[A-Za-z][\w]*(?:[-_.][\w]+)*")
_ALIKE = {"tokens per second": "tok/s", "token per second": "tok/s", "tokens/s": "tok/s", "token/s": "tok/s", "x": "×", "times": "×", "-fold": "×", "per cent": "%",
          "percent": "%", "token": "tokens", "bytes": "B", "byte": "B"}  # fmt: skip
_CASED = {name.casefold(): name for name in units.UNITS}
ROUNDED = 2  # significant digits from which a figure may be a longer one, rounded


class TooLong(Exception):
    """One sentence alone is longer than a post of a thread may be."""

    def __init__(self, sentence: str, length: int, limit: int):
        self.sentence, self.length, self.limit = sentence, length, limit
        super().__init__(f"one sentence of {length} does not fit into {limit}: “{sentence}”")


@dataclass(frozen=True)
class Figure:
    """A number of a text, as printed.

    Args:
        text: the number with its unit, spaces plain
        n: the number in `unit`
        decimals: digits past the point
        unit: canonical ("tok/s", "%", "×", ... "" for a bare number)
        start: where it begins
        sign: "+" or "−" where one is printed
    """

    text: str
    n: float
    decimals: int
    unit: str
    start: int = 0
    sign: str = ""

    def says(self, n: float, unit: str) -> bool:
        """Whether it is this number, in any unit of one dimension, perhaps rounded; a sign counts where one is printed."""
        there = _converted(n, unit, self.unit)
        if there is None or (self.sign and (there < 0) != (self.sign == "−")):
            return False
        digits = number(abs(self.n), self.decimals)
        if len(re.sub(r"\D|^0+", "", digits.replace(".", ""))) < ROUNDED:
            return abs(abs(there) - abs(self.n)) <= 1e-9 * max(abs(there), abs(self.n))  # one digit is exact or wrong
        return number(abs(there), self.decimals) == digits


def _converted(n: float, unit: str, wanted: str) -> float | None:
    """A number in another unit of its dimension; None: of another dimension."""
    if unit == wanted:
        return n
    shares = {"1": 1.0, "×": 1.0, "%": 0.01}
    if unit in shares and wanted in shares:
        return n * shares[unit] / shares[wanted]
    if unit in units.UNITS and wanted in units.UNITS and units.dimension(unit) == units.dimension(wanted):
        return units.from_si(units.to_si(n, unit), wanted)
    return None


def flat(text: str) -> str:
    """One kind of space, one space at a time; lines stay lines."""
    return re.sub(r"[ \t\u00a0\u202f\u2009]+", " ", text)


def figures(text: str) -> list[Figure]:
    """Every number of a text that is no part of a name or an address, each end of a range for itself.

    >>> [f.text for f in figures("Qwen3-8B: 11.5–12.0 tok/s, then 20.80 ± 0.05 tok/s; 1 of 45, −36 %, 1.6×")]
    ['11.5 tok/s', '12.0 tok/s', '20.80 tok/s', '0.05 tok/s', '1', '45', '−36 %', '1.6 ×']
    """
    text = hidden(flat(text), names=True)
    found = []
    for m in FIGURE.finditer(text):
        unit = _canonical(m["unit"] or "")
        for part in ("first", "second"):
            if m[part]:
                sign = m["sign"].replace("-", "−") if part == "first" and m["sign"] in "+−-" else ""
                n = float(m[part].replace(",", "")) * (-1 if sign == "−" else 1)
                found.append(Figure(f"{sign}{m[part]} {unit}".rstrip(), n, len(m[part].partition(".")[2]), unit, m.start(part), sign))
    found += [Figure(m[0], float(SPELT[m["n"].lower()]), 0, _canonical(m["unit"]), m.start()) for m in _SPELT.finditer(text)]
    return sorted(found, key=lambda f: f.start)


def _canonical(unit: str) -> str:
    spelt = " ".join(unit.split())
    return _ALIKE.get(spelt.casefold(), _ALIKE.get(spelt, spelt if spelt in units.UNITS else _CASED.get(spelt.casefold(), spelt)))


def hidden(text: str, names: bool = False) -> str:
    """A text with its addresses (and names) blanked, place for place."""
    for pattern in (LINK, NAME) if names else (LINK,):
        text = pattern.sub(lambda m: "\0" * len(m[0]), text)
    return text


def names(text: str) -> list[str]:
    """Names with a digit in them, in order, addresses left out.

    >>> names("Apple M4, Qwen3-8B Q4_K_M at tg128; see https://example.org/v1")
    ['M4', 'Qwen3-8B', 'Q4_K_M', 'tg128']
    """
    return [m[0] for m in NAME.finditer(hidden(flat(text)))]


def links(text: str) -> list[str]:
    """Addresses, in order."""
    return LINK.findall(text)


def sentences(text: str) -> list[str]:
    """Sentences, lines that end without a stop included, in order.

    >>> sentences("In ink: at most 24 tok/s, i.e. a roof. Measured: 20.80 tok/s.\\nScore: 5 held.")
    ['In ink: at most 24 tok/s, i.e. a roof.', 'Measured: 20.80 tok/s.', 'Score: 5 held.']
    """
    return [s.strip() for line in text.split("\n") for s in _SENTENCE_END.split(line) if s.strip()]


def paragraphs(text: str) -> list[str]:
    """What stands between empty lines."""
    return [p.strip() for p in re.split(r"\n\s*\n", text) if p.strip()]


def thread(text: str, limit: int, count: Callable[[str], int]) -> list[str]:
    """A text as numbered posts, each of whole sentences.

    Paragraphs stay together where they fit, and one that ends in a colon stays with the next.

    Args:
        limit: of one post, numbering included, by `count`

    Raises:
        TooLong: one sentence alone does not fit.
    """
    pieces: list[str] = []  # what is not cut
    for paragraph in paragraphs(text):
        if pieces and pieces[-1].endswith(":"):
            paragraph = f"{pieces.pop()}\n\n{paragraph}"
        pieces.append(paragraph)
    room = limit - count("\n\n99/99")
    posts: list[str] = []
    for piece in pieces:
        if posts and count(f"{posts[-1]}\n\n{piece}") <= room:
            posts[-1] += f"\n\n{piece}"
        elif count(piece) <= room:
            posts.append(piece)
        else:
            posts += _cut(piece, room, count)
    return [f"{post}\n\n{i}/{len(posts)}" for i, post in enumerate(posts, 1)] if len(posts) > 1 else posts


def _cut(piece: str, room: int, count: Callable[[str], int]) -> list[str]:
    """A long paragraph at its sentence ends, line ends kept."""
    posts = [""]
    for line in piece.split("\n"):
        for i, sentence in enumerate(s.strip() for s in _SENTENCE_END.split(line)):
            joint = "" if not posts[-1] else "\n" if i == 0 else " "
            if count(sentence) > room:
                raise TooLong(sentence, count(sentence), room)
            if count(posts[-1] + joint + sentence) <= room:
                posts[-1] += joint + sentence
            else:
                posts.append(sentence)
    return [p.strip() for p in posts if p.strip()]
