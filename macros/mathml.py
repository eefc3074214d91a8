"""Equations as MathML from words and Values: no math JavaScript on the page."""

from __future__ import annotations

from markupsafe import Markup

from macros import notes
from macros.values import Value

OPERATORS = {"=", "×", "·", "+", "−", "≈", "≤", "≥", "<", ">", "→", "(", ")", ","}
Part = Value | Markup | str | int | float


class Math(Markup):
    """MathML that knows the Values in it."""

    values: tuple[Value, ...] = ()


def _made(html: Markup, *parts: Part) -> Math:
    made = Math(html)
    made.values = tuple(v for p in parts for v in ((p,) if isinstance(p, Value) else getattr(p, "values", ())))
    return made


def term(part: Part) -> Markup:
    """One part of an equation: an operator, words, a Value with its unit, or ready MathML."""
    if isinstance(part, Value):
        unit = "" if part.unit in ("", "×") else Markup("<mspace width='0.2em'/><mtext>{}</mtext>").format(part.unit)
        return _made(Markup('<mrow class="{}"><mn>{}</mn>{}</mrow>').format(part.kind, part.bare + ("×" if part.unit == "×" else ""), unit), part)
    if isinstance(part, Markup):
        return part
    text = str(part)
    if text in OPERATORS:
        # Between words MathML's own space is too tight; and a row of one sign and words is one sign to it, with the sign's space around all.
        spaced = Markup('<mrow><mspace width="0.3em"/><mo lspace="0" rspace="0">{}</mo><mspace width="0.3em"/></mrow>')
        return (spaced if text in "×+" else Markup("<mo>{}</mo>")).format(text)
    if len(text) == 1 and text.isalpha():
        # Upright to MathML, slanted by the style sheet: the slanted letters of Unicode are in no text font.
        return Markup('<mi mathvariant="normal">{}</mi>').format(text)
    if text.replace(".", "").replace(",", "").isdigit():
        return Markup("<mn>{}</mn>").format(text)
    return Markup("<mtext>{}</mtext>").format(text)


def _row(*parts: Part) -> Markup:
    return _made(Markup("<mrow>{}</mrow>").format(Markup("").join(term(p) for p in parts)), *parts)


def frac(above: Part, below: Part) -> Markup:
    """A fraction."""
    return _made(Markup("<mfrac>{}{}</mfrac>").format(_row(above), _row(below)), above, below)


def product(*factors: Part) -> Markup:
    """Factors joined by ×."""
    parts: list[Part] = []
    for factor in factors:
        parts += ["×", factor]
    return _row(*parts[1:])


def total(*terms: Part) -> Markup:
    """Terms joined by +."""
    parts: list[Part] = []
    for one in terms:
        parts += ["+", one]
    return _row(*parts[1:])


def equation(*parts: Part) -> Markup:
    """A displayed equation, on one line so that Markdown leaves it alone, with a link to what its numbers are.

    One link beside it and not one a number: to a screen reader an equation is a whole, with nothing to step into.
    """
    body = Markup("").join(term(p) for p in parts)
    known = [v for v in dict.fromkeys(_made(body, *parts).values) if v.note]
    words = Markup("").join(Markup("<dt>{}</dt><dd>{}</dd>").format(v, v.name or v.how) for v in known)
    link = notes.refer("numbers", "v", Markup("<p>The numbers of this equation</p><dl>{}</dl>").format(words)) if known else ""
    return Markup('<div class="formula" data-search-exclude><math display="block">{}</math>{}</div>').format(body, link)
