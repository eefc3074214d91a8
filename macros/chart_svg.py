"""Vega's SVG made fit for a page: the page's colours, one accessible name, one line."""

from __future__ import annotations

import re
from html import escape

# One value in the spec, its CSS variable on the page: the light values of the design.
COLOURS = {
    "predicted": "#1f3fa8",
    "measured": "#a8480f",
    "roof": "#6b6f76",
    "muted": "#5b6069",
    "text": "#1d1f23",
    "paper": "#fbfaf7",
    "rule": "#d9d5cb",
}
NOISE = re.compile(r' (?:role|aria-[a-z]+|xmlns(?::\w+)?|version)="[^"]*"')
COLOUR = re.compile(r'"(#[0-9a-fA-F]{3,8}|rgba?\([^"]*)"')


def in_variables(text: str) -> str:
    """Quoted colours, of SVG or JSON, as the CSS variables of the page."""
    for name, value in COLOURS.items():
        text = text.replace(f'"{value}"', f'"var(--{name})"')
    return text


def inline(svg: str, css: str, prefix: str, label: str) -> str:
    """The drawing as inline SVG on one line.

    Args:
        css: class of the svg element
        prefix: what ids inside start with, unique on the page
        label: its accessible name; the parts inside lose theirs

    Raises: ValueError for a colour without a variable: it would stay light in the dark.
    """
    clips: dict[str, str] = {}

    def tag(match: re.Match) -> str:
        text = NOISE.sub("", match[0])
        text = re.sub(r"-?\d+\.\d{3,}", lambda n: f"{round(float(n[0]), 2):g}", text)
        text = in_variables(text)
        # Vega numbers clips across charts: count afresh so that a rebuild is byte-identical.
        text = re.sub(
            r'(id="|url\(#)(clip\d+)',
            lambda m: m[1] + clips.setdefault(m[2], f"{prefix}-clip{len(clips)}"),
            text,
        )
        if unknown := COLOUR.search(text):
            raise ValueError(
                f"chart: colour without a CSS variable; got {unknown[1]}; known {COLOURS}"
            )
        return text

    one_line = re.sub(r"[\r\n]+", " ", re.sub(r"<[^>]*>", tag, svg))
    opening = f'<svg class="{css}" role="img" aria-label="{escape(label)}"'
    return re.sub(r'^<svg(?: class="[^"]*")?', lambda _: opening, one_line)
