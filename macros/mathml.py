"""Equations as MathML from words and Values: no math JavaScript on the page."""

from __future__ import annotations

from markupsafe import Markup

from macros.values import Value

OPERATORS = {"=", "×", "·", "+", "−", "≈", "≤", "≥", "<", ">", "→", "(", ")", ","}
Part = Value | Markup | str | int | float


def term(part: Part) -> Markup:
    """One part of an equation: an operator, words, a Value with its unit, or ready MathML."""
    if isinstance(part, Value):
        return Markup("<mn>{}</mn>").format(part)  # HTML is allowed inside a token: the number keeps its note
    if isinstance(part, Markup):
        return part
    text = str(part)
    if text in OPERATORS:
        # Between words MathML's own space is too tight.
        return Markup('<mo lspace="0.3em" rspace="0.3em">{}</mo>').format(text) if text == "×" else Markup("<mo>{}</mo>").format(text)
    if len(text) == 1 and text.isalpha():
        # Upright to MathML, slanted by the style sheet: the slanted letters of Unicode are in no text font.
        return Markup('<mi mathvariant="normal">{}</mi>').format(text)
    if text.replace(".", "").replace(",", "").isdigit():
        return Markup("<mn>{}</mn>").format(text)
    return Markup("<mtext>{}</mtext>").format(text)


def _row(*parts: Part) -> Markup:
    return Markup("<mrow>{}</mrow>").format(Markup("").join(term(p) for p in parts))


def frac(above: Part, below: Part) -> Markup:
    """A fraction."""
    return Markup("<mfrac>{}{}</mfrac>").format(_row(above), _row(below))


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
    """A displayed equation, on one line so that Markdown leaves it alone."""
    body = Markup("").join(term(p) for p in parts)
    return Markup('<div class="formula"><math display="block">{}</math></div>').format(body)


