"""A number as the pages print it: value, unit, what kind of number it is, where it comes from."""

from __future__ import annotations

import datetime
import math
import re
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache
from typing import Any

from markupsafe import Markup, escape

from macros import notes, units
from macros.traced import Traced

THIN = "\u202f"  # narrow no-break space: a value and its unit never part
KINDS = ("predicted", "measured", "derived", "spec")
_WIDE = Context(prec=700)  # more digits than a float has in either direction
Facts = tuple[tuple[str, str | Markup], ...]


KIND_WORDS = {"predicted": "predicted", "measured": "measured", "derived": "computed", "spec": "from a source"}
WHERE = {"predicted": "the ink, with its score", "measured": "the run, with its command", "derived": "the table it stands in", "spec": "the table it stands in"}


def number(x: float, decimals: int) -> str:
    """A number with true minus and thousands separators.

    >>> number(-0.3640, 2), number(27771.2, 0), number(22.15, 1)
    ('−0.36', '27,771', '22.2')

    Raises:
        ValueError: not a finite number; a page never prints nan.
    """
    if not math.isfinite(x):
        raise ValueError(f"not a finite number; got {x}")
    # The decimal as written, halves away from zero: 22.15 is 22.2, though its float lies below. What is no half of the last
    # decimal lies on the same side of one as its float, as far as a float is finer than that.
    steps = abs(x) * 10.0**decimals
    if abs(steps % 1 - 0.5) < 1e-6 or steps > 1e9 or decimals > 6:
        text = f"{Decimal(repr(float(x))).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP, _WIDE):,f}"
    else:
        text = f"{x:,.{decimals}f}"
    return text if text[0] != "-" else f"−{text[1:]}" if text.strip("-0.") else text[1:]


def decimals_for(x: float, significant: int = 3) -> int:
    """Decimals that show this many significant digits (none past the point for large numbers).

    >>> decimals_for(23.857), decimals_for(589824), decimals_for(0.8064)
    (1, 0, 3)
    """
    if x == 0:
        return 0
    return max(0, significant - 1 - math.floor(math.log10(abs(x))))


def sigma_decimals(mean: float, sigma: float) -> int:
    """Decimals the standard deviation supports: its first two digits, at most two decimals.

    Rates under 1 may show one decimal more for each leading zero.

    >>> sigma_decimals(20.80, 0.05), sigma_decimals(226.7, 7.47), sigma_decimals(0.806, 0.016)
    (2, 1, 3)
    """
    if not sigma > 0:
        return decimals_for(mean, 4)
    cap = 2 if mean >= 1 else 2 + max(0, -math.floor(math.log10(mean)))
    return min(cap, decimals_for(sigma, 2))


def as_typed(x: float) -> int:
    """Decimals of a number as a person typed it: 24 has none, 11.5 has one."""
    text = f"{round(x, 6):.6f}".rstrip("0")
    return len(text.partition(".")[2])


@dataclass(frozen=True)
class Value:
    """A number on a page. `str()` is HTML, `.text` is plain, `.si` goes into formulas.

    Args:
        n: the number, in `unit`
        unit: unit as printed ("tok/s", "GB/s", "%", "×", "" for a bare number)
        kind: predicted (ink), measured, derived (computed afterwards) or spec (a source's figure)
        sigma: sample standard deviation, same unit; None or NaN: not known
        decimals: digits past the point; by default what sigma supports, else 3 significant
        signed: print a plus sign too, for gaps
        how: the formula, the test or the source's words: how it came about
        href: where it is documented, relative to the page
        name: what it is, in a few words, for the numbers computed from it
        facts: what else its note says: run, date, build, source
        inputs: the values it was computed from; by default what `n` was computed from (`macros.traced`)
    """

    n: float
    unit: str
    kind: str
    sigma: float | None = None
    decimals: int | None = None
    how: str = ""
    href: str = ""
    signed: bool = False
    name: str = ""
    facts: Facts = ()
    inputs: tuple[Value, ...] | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown kind of value; got {self.kind!r}; known: {', '.join(KINDS)}")
        if isinstance(self.n, bool) or not isinstance(self.n, (int, float)) or not math.isfinite(self.n):
            raise ValueError(f"not a finite number; got {self.n!r} ({self.how})")
        if self.sigma is not None and math.isnan(self.sigma):
            object.__setattr__(self, "sigma", None)
        if self.inputs is None:
            traced = isinstance(self.n, Traced)
            object.__setattr__(self, "inputs", self.n.inputs if traced else ())
            if traced:
                object.__setattr__(self, "n", float(self.n))

    @property
    def si(self) -> Traced:
        """The number in its base unit (fractions for %); what is computed from it names it."""
        si = self.n / 100 if self.unit == "%" else units.to_si(self.n, self.unit) if self.unit in units.UNITS else self.n
        return Traced(si, (self,))

    def to(self, unit: str, decimals: int | None = None) -> Value:
        """The same value in another unit of its dimension."""
        if units.dimension(unit) != units.dimension(self.unit):
            raise ValueError(f"cannot print {self.unit} as {unit}")
        factor = units.to_si(1, self.unit) / units.to_si(1, unit)
        sigma = None if self.sigma is None else self.sigma * factor
        return replace(self, n=self.n * factor, sigma=sigma, unit=unit, decimals=decimals)

    def d(self, decimals: int) -> Value:
        """The same value with this many digits past the point."""
        return replace(self, decimals=decimals)

    @property
    def mean(self) -> Value:
        """The same value without its sigma."""
        shown = self.decimals if self.decimals is not None else self._decimals()
        return replace(self, sigma=None, decimals=shown)

    def _decimals(self) -> int:
        if self.decimals is not None:
            return self.decimals
        if self.sigma is not None:
            return sigma_decimals(self.n, self.sigma)
        return decimals_for(self.n)

    @property
    def bare(self) -> str:
        """The number without its unit: "20.80 ± 0.05"."""
        decimals = self._decimals()
        text = number(self.n, decimals)
        if self.signed and self.n > 0:
            text = "+" + text
        if self.sigma is not None:
            text += f"\u00a0±\u00a0{number(self.sigma, decimals)}"
        return text

    @property
    def text(self) -> str:
        """Plain text: "20.80 ± 0.05 tok/s", "87 %", "1.73×"."""
        if not self.unit:
            return self.bare
        return self.bare + ("×" if self.unit == "×" else THIN + self.unit)

    def _data(self, text: str) -> str:
        return f'<data value="{self.n:.9g}">{text}</data>'

    @property
    def linked(self) -> Markup:
        """The value as a link straight to where it is documented: for lists over all of labdata, without a note each."""
        data = self._data(notes.safe(self.text))
        return Markup(f'<a class="v {self.kind}" href="{escape(self.href)}">{data}</a>' if self.href else data)

    @property
    def note(self) -> str:
        """Where the value comes from, as HTML; empty where nothing is known of it."""
        return self._note(notes.safe(self.text))

    def _note(self, text: str) -> str:
        if not (self.how or self.facts or self.inputs):
            return ""
        # (the same value in two units or two roundings is one input)
        own = {f"{i.name} {i.how} {i.si!r}": i for i in self.inputs or ()}
        given = Markup("; ".join([f"{i}{notes.safe(f' {i.name or i.how}' if i.name or i.how else '')}" for i in own.values()])) if own else ""
        where = Markup(f'<a href="{notes.safe(self.href)}">{WHERE[self.kind]}</a>') if self.href else ""
        label = {"derived": "Formula", "spec": "Source"}.get(self.kind, "How")
        first = f'<b class="{self.kind}">{text}</b>, {notes.safe(f"{self.name}, " if self.name else "")}{KIND_WORDS[self.kind]}'
        return notes.facts(first, ((label, self.how), ("From", given), *self.facts, ("See", where)))

    def __html__(self) -> str:
        text = notes.safe(self.text)
        data, note = Markup(self._data(text)), self._note(text)
        return notes.refer(data, f"v {self.kind}", note) if note else Markup(f'<span class="v {self.kind}">{data}</span>')

    def __str__(self) -> str:
        return self.__html__()


@lru_cache(maxsize=256)  # a page says when each run and ink was, dozens of times
def hour(at: datetime.datetime) -> str:
    """A moment as the pages print it, UTC.

    >>> hour(datetime.datetime(2026, 11, 30, 5, 10, tzinfo=datetime.timezone(datetime.timedelta(hours=1))))
    '30 November 2026, 04:10 UTC'
    """
    return f"{at.astimezone(datetime.UTC):%-d %B %Y, %H:%M UTC}"


def percent(fraction: float, kind: str = "derived", decimals: int | None = None, **rest: Any) -> Value:
    """A fraction as a percentage.

    >>> percent(0.8716).text
    '87.2\u202f%'
    """
    return Value(fraction * 100, "%", kind, decimals=decimals, **rest)


def inert(text: str) -> Markup:
    """A fact's words inside Markdown, where they shall stay words: no tag, link or emphasis.

    >>> inert("[a](javascript:b) **c**")
    Markup('&#91;a&#93;&#40;javascript:b&#41; &#42;&#42;c&#42;&#42;')
    """
    active = r"[\\`*_{}\[\]()#+!|~<>&\"'$^=@]"
    return Markup(re.sub(active, lambda sign: f"&#{ord(sign[0])};", " ".join(text.split())))


def verdict_html(word: str) -> Markup:
    """A verdict with its mark; colour never stands alone."""
    good, bad = ("held", "unbroken"), ("missed", "broken")
    mark, css = ("●", "held") if word in good else ("✕", "missed") if word in bad else ("○", "undecided")
    return Markup(f'<span class="verdict {css}">{mark} {escape(word)}</span>')
