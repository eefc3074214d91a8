"""A page's twin in Markdown, for readers without a browser and for language models: every number in place."""

from __future__ import annotations

import html
import re

from html_to_markdown import ConversionOptions, convert

_SVG = re.compile(r"<svg\b([^>]*)>.*?</svg>", re.S)
_LABEL = re.compile(r'aria-label="([^"]*)"')


def markdown(content: str, title: str) -> str:
    """A page's rendered content as Markdown: tables as tables, equations as words, a chart as what it shows.

    Args:
        content: HTML of the page's text, without the frame around it
        title: its heading, where the content has none

    >>> markdown('<p>It read <data value="20.8">20.80 tok/s</data>.</p>', "Day 1")
    '# Day 1\\n\\nIt read 20.80 tok/s.\\n'
    """
    told: set[str] = set()

    def chart(svg: re.Match) -> str:
        label = _LABEL.search(svg[1])
        if not label or label[1] in told:  # a chart is drawn twice, for the column and for a phone
            return ""
        told.add(label[1])
        return f"<p>Chart: {label[1]}</p>"

    plain = _SVG.sub(chart, content)
    plain = re.sub(r"<(button|script|style|template)\b.*?</\1>", "", plain, flags=re.S)
    plain = re.sub(r"<mspace\b[^>]*>(?:</mspace>)?", "<mtext>\u00a0</mtext>", plain)
    if "<h1" not in plain:
        plain = f"<h1>{html.escape(title)}</h1>{plain}"
    return (convert(plain, OPTIONS).content or "").strip() + "\n"


OPTIONS = ConversionOptions(heading_style="atx", bullets="-")
