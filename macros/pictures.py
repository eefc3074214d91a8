"""A page's picture as PNG: its words and its one chart, for link previews and posts.

Text is at least a thirtieth of the width, so that it can be read where a phone shows the
picture as wide as its screen. Always in the light colours: a preview has no scheme.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import astuple, dataclass

from markupsafe import Markup

from macros import chart_cache, chart_layout
from macros.chart_svg import COLOURS

SIZES = {"card": (1200, 630), "wide": (1200, 675), "square": (1200, 1200)}  # [px]: Open Graph, a post, a square post
MARGIN, GAP = 56, 36
SMALL, LARGE = 30, 44  # [px]: least text, and the two numbers
CHART_SCALE = 2.55  # a chart's 13 px become 33
LEAST_PLOT = 90  # height of a chart's plot before it is scaled [px]
REGULAR, BOLD, TITLE = "Inter, sans-serif", "Inklab Bold, Inter, sans-serif", "Inklab Title, Inter, sans-serif"
SERIF_CHARACTER, BOLD_CHARACTER = 0.53, 0.62  # mean advances in font sizes, a little wide; Inter's is chart_layout.CHARACTER


@dataclass(frozen=True)
class Words:
    """What a picture says.

    Args:
        kicker: where this stands, "Day 1 of 45"
        title: the page's
        predicted, measured: the two numbers with their units, "" where there is none
        note: one short sentence under them
        footer: the site's name and machine
    """

    kicker: str
    title: str
    predicted: str = ""
    measured: str = ""
    note: str = ""
    footer: str = "Inklab"


@dataclass(frozen=True)
class Chart:
    """A chart to put on a picture: a kind of `macros.charts` that takes a size, its rows, and what they show in words."""

    kind: str
    rows: list[dict]
    label: str


def card_png(words: Words, chart: Chart | None = None) -> bytes:
    """The card of a page for link previews, 1200 x 630 px."""
    return png(words, chart, "card")


def png(words: Words, chart: Chart | None = None, size: str = "wide") -> bytes:
    """A picture, drawn or taken from the cache.

    Args:
        size: "card", "wide" (1200 x 675) or "square" (1200 x 1200)
    """
    width, height = SIZES[size]

    def drawn() -> bytes:
        from macros import charts

        return charts.to_png(svg(words, chart, width, height))

    shown = [chart.kind, chart.rows] if chart else []
    return chart_cache.kept(["picture", astuple(words), shown, width, height, chart_cache.drawn_by()], ".png", drawn)


def alt(words: Words, chart: Chart | None = None) -> str:
    """What a picture shows, in sentences."""
    numbers = [f"{name}: {value}" for name, value in (("Inked", words.predicted), ("Measured", words.measured)) if value]
    parts = [words.kicker, words.title, *numbers, words.note, f"Chart: {chart.label}" if chart else ""]
    return " ".join(part if part[-1] in ".?!" else f"{part}." for part in parts if part)


def svg(words: Words, chart: Chart | None, width: int, height: int) -> str:
    """The picture as SVG: words beside the chart, or above it where the picture is as high as wide."""
    beside = chart is not None and height < 0.8 * width
    column = 440 if beside else width - 2 * MARGIN
    parts, end = _words(words, column, height, 0.4 * height if beside or not chart else 0.15 * height)
    if chart is not None:
        left = MARGIN + column + GAP if beside else MARGIN
        top = MARGIN if beside else end + GAP
        parts.append(_chart(chart, left, top, width - MARGIN - left, height - MARGIN - top - (0 if beside else SMALL + GAP)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f'<rect width="{width}" height="{height}" fill="{COLOURS["paper"]}"/>{"".join(parts)}</svg>'
    )


def _words(words: Words, column: int, height: int, title_height: float) -> tuple[list[str], float]:
    """The texts from the top down, the footer at the bottom; where they end [px]."""
    parts, y = [], float(MARGIN)

    def put(text: str, size: float, colour: str, face: str = REGULAR, after: float = 0) -> None:
        nonlocal y
        y += 1.2 * size
        parts.append(_text(text, y - 0.25 * size, size, colour, face))
        y += after

    numbers = [part for part in (("inked", words.predicted, "predicted"), ("measured", words.measured, "measured")) if part[1]]
    note = _wrapped(words.note, SMALL, column, chart_layout.CHARACTER)[:3]
    taken = 1.2 * SMALL * (2 + len(note)) + 26 + len(numbers) * (1.2 * (SMALL + LARGE) + 10)
    put(_fitting(words.kicker, SMALL, column), SMALL, "muted", BOLD, after=8)
    size, lines = _title(words.title, column, min(title_height, height - 2 * MARGIN - taken))
    for line in lines:
        put(line, size, "text", TITLE)
    y += 18
    for name, value, colour in numbers:
        put(name, SMALL, "muted")
        put(_fitting(value, SMALL, column), min(LARGE, _largest(value, column)), colour, BOLD, after=10)
    for line in note:
        put(line, SMALL, "muted")
    parts.append(_text(_fitting(words.footer, SMALL, column), height - MARGIN, SMALL, "muted", REGULAR))
    return parts, y


def _text(text: str, y: float, size: float, colour: str, face: str) -> str:
    return Markup('<text x="{}" y="{:.1f}" font-family="{}" font-size="{:.1f}" fill="{}">{}</text>').format(MARGIN, y, face, size, COLOURS[colour], text)


def _title(text: str, column: int, height: float) -> tuple[float, list[str]]:
    """The largest size at which a title fits, and its lines; the end cut where none does."""
    for size in (76, 68, 60, 52, 46, 40):
        lines = _wrapped(text, size, column, SERIF_CHARACTER)
        if len(lines) * 1.2 * size <= height and all(len(line) * size * SERIF_CHARACTER <= column for line in lines):
            return size, lines
    most, longest = max(1, int(height / (1.2 * size))), int(column / (SERIF_CHARACTER * size))
    kept = lines[:most] if len(lines) <= most else [*lines[: most - 1], lines[most - 1] + "…"]
    return size, [line if len(line) <= longest else line[: longest - 1].rstrip() + "…" for line in kept]


def _wrapped(text: str, size: float, column: float, character: float) -> list[str]:
    """Words on lines as long as the column allows."""
    lines: list[str] = []
    for word in text.split(" "):
        joined = f"{lines[-1]} {word}" if lines else word
        if lines and len(joined) * size * character <= column:
            lines[-1] = joined
        elif word:
            lines.append(word)
    return lines


def _largest(text: str, column: float) -> float:
    """The font size at which bold text is as long as the column [px]."""
    return column / (BOLD_CHARACTER * len(text))


def _fitting(text: str, least: float, column: float) -> str:
    """A line that fits at its least size, its end cut where it does not."""
    most = int(column / (chart_layout.CHARACTER * least))
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _chart(chart: Chart, left: float, top: float, width: float, height: float) -> str:
    from macros import charts

    layout: Callable[..., dict] = getattr(charts, chart.kind)
    room = height / CHART_SCALE
    plot, spec = room, {}
    for _ in range(3):  # what stands around the plot, its key too, is known once it is laid out
        spec = layout(chart.rows, size=(round(width / CHART_SCALE), max(LEAST_PLOT, round(plot))))
        plot = room - spec["padding"]["top"] - spec["padding"]["bottom"]
    drawing = charts.standing(spec)
    box = f'x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" preserveAspectRatio="xMidYMin meet"'
    return re.sub(r'^<svg([^>]*?) width="[^"]*" height="[^"]*"', lambda m: f"<svg{m[1]} {box}", drawing, count=1)
