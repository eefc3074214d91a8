"""What a chart prints: numbers in d3's formats, and how long words are in Inter."""

from __future__ import annotations

import json
import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import cache, lru_cache
from importlib.metadata import version

from macros import chart_cache, fonts

STYLE = re.compile(r"(,?)(?:\.(\d+)(~?)([fg%])|(~?)([gd]))")  # f and % without digits: d3 takes them from the axis
EXACT = Context(prec=400)  # a double has no more digits
DEFAULT_DIGITS = 6  # d3's for g, where a format names none
UNKNOWN = 1.0  # the advance of a character Inter lacks, in font sizes: as wide as an ideograph


@lru_cache(1000)  # axes of many charts have the same
def number(value: float, style: str) -> str:
    """A number as d3-format writes it in the charts' locale.

    Args:
        style: [,].digits[~] and f, g or %; [,][~]g; [,]d

    Raises: ValueError for another format.

    >>> number(12000, ",~g"), number(1.5, ",.2~f"), number(0.5, ".0%"), number(2e6, "~g"), number(-3, ",d")
    ('12,000', '1.5', '50\u202f%', '2e+6', '−3')
    """
    match = STYLE.fullmatch(style)
    if not match:
        raise ValueError(f"chart: number format: not drawn; got {style!r}; known: [,].digits[~] and f, g or %; [,][~]g; [,]d")
    comma, given = match[1], match[2]
    trim, kind = (match[3], match[4]) if given else (match[5], match[6])
    digits = 0 if kind == "d" else int(given or DEFAULT_DIGITS)
    size = abs(value * 100 if kind == "%" else value)
    power = ""
    if kind == "g":
        digits = max(digits, 1)
        rounded = Decimal(size).normalize(Context(prec=digits, rounding=ROUND_HALF_UP))
        exponent = rounded.adjusted() if size else 0
        if -6 <= exponent < digits:
            text = f"{rounded:.{digits - 1 - exponent}f}"
        else:
            text, power = f"{rounded.scaleb(-exponent):.{digits - 1}f}", f"e{exponent:+d}"
    else:
        text = f"{Decimal(size).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, EXACT):f}"
    if trim and "." in text:
        text = text.rstrip("0").rstrip(".")
    whole, dot, part = text.partition(".")
    sign = "−" if value < 0 and text.strip("0.") else ""
    return sign + (f"{int(whole):,}" if comma else whole) + dot + part + power + ("\u202f%" if kind == "%" else "")


@cache
def _advances() -> dict[str, float]:
    """How far each character moves the next one, in font sizes."""

    def read() -> bytes:
        from fontTools.ttLib import TTFont  # slow to load

        font = TTFont(fonts.package_dir("fontpkg_inter") / "files" / "Inter[opsz,wght].ttf", lazy=True)
        widths, em = font["hmtx"], font["head"].unitsPerEm
        return json.dumps({chr(code): widths[glyph][0] / em for code, glyph in font.getBestCmap().items()}).encode()

    return json.loads(chart_cache.kept(["advances", version("fontpkg-inter")], ".json", read, chart_cache.ENVIRONMENT))


@lru_cache(1000)
def width(text: str, font_px: float) -> float:
    """How long a line is in Inter, without kerning [px]."""
    known = _advances()
    return font_px * math.fsum(known.get(character, UNKNOWN) for character in text)


def fitted(text: str, font_px: float, limit: float) -> str:
    """A line no longer than a limit [px], its end cut where it would be."""
    if width(text, font_px) < limit:
        return text
    room, end = limit - width("…", font_px), 0
    while end < len(text) and width(text[: end + 1], font_px) < room:
        end += 1
    return text[:end] + "…"
