"""A page's twin in Markdown, for readers without a browser and for language models: every number in place."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

from html_to_markdown import ConversionOptions, convert

_LABEL = re.compile(r'aria-label="([^"]*)"')
_NOTES = re.compile(r'</summary><ol>(<li id="(?:from|term)-.*)</ol></details>', re.S)
_REST = r"""\b[^>"]*(?:"[^"]*"[^>"]*)*>"""  # of a tag
_LINK = re.compile(r"""<a\s[^>]*?\bhref="([^"]*)"[^>"]*(?:"[^"]*"[^>"]*)*>(.*?)</a>""", re.S)
_SILENT = re.compile(rf"<(?:/?(?:data|span|thead|tbody|dl|dd|p)|t[hdr]){_REST}")
_MARKS = [(re.compile(rf"</?(?:b|strong){_REST}"), "**"), (re.compile(rf"</?em{_REST}"), "*"), (re.compile(rf"</?code{_REST}"), "`")]
_PLACE = re.compile(r"WRITTEN(\d+)ABOVE$", re.M)


def markdown(content: str, title: str) -> str:
    """A page's rendered content as Markdown: tables as tables, equations as words, a chart as what it shows.

    Args:
        content: HTML of the page's text, without the frame around it
        title: its heading, where the content has none

    >>> markdown('<p>It read <data value="20.8">20.80 tok/s</data>.</p>', "Day 1")
    '# Day 1\\n\\nIt read 20.80 tok/s.\\n'
    """
    told: set[str] = set()

    def chart(svg: str) -> str:
        label = _LABEL.search(svg, 0, svg.index(">"))
        if not label or label[1] in told:  # a chart is drawn twice, for the column and for a phone
            return ""
        told.add(label[1])
        return f"<p>Chart: {label[1]}</p>"

    plain = _each(content, "<svg", "</svg>", chart)
    for silent in ("template", "script", "style", "button"):  # the first may hold the others
        plain = _each(plain, f"<{silent}", f"</{silent}>", lambda inside: "")
    written: list[str] = []  # what is not for the library: it took most of a page's time for its tables and notes

    def place(text: str, html: str) -> str:
        if "<" in text:
            return html
        written.append(text)
        return f"<p>WRITTEN{len(written) - 1}ABOVE</p>"

    plain = _each(plain, "<table", "</table>", lambda inside: place(_table(inside.partition(">")[2]), f"<table{inside}</table>"))
    plain = _NOTES.sub(lambda found: f"</summary>{place(_notes(found[1]), f'<ol>{found[1]}</ol>')}</details>", plain)
    plain = _each(plain, RUN, "</dl>", lambda inside: place(_facts(inside.partition(">")[2]), f"{RUN}{inside}</dl>"))
    plain = re.sub(r"<mspace\b[^>]*>(?:</mspace>)?", "<mtext>\u00a0</mtext>", plain)
    if "<h1" not in plain:
        plain = f"<h1>{html.escape(title)}</h1>{plain}"
    text = convert(plain, OPTIONS).content or ""

    def put(found: re.Match) -> str:
        before = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]  # the mark of a quotation or an item
        return html.unescape(written[int(found[1])]).replace("\n", f"\n{before}")

    return _PLACE.sub(put, text).strip() + "\n"


def _each(text: str, start: str, end: str, made: Callable[[str], str]) -> str:
    """Text with what was made of each part from `start` to `end` in its place: ten times as fast as a regular expression.

    >>> _each("a (b) c (d)", "(", ")", str.upper)
    'a B c D'
    """
    first, *rest = text.split(start)
    parts = (part.partition(end) for part in rest)
    return "".join([first, *(piece for inside, _, after in parts for piece in (made(inside), after))])


def _table(rows: str) -> str:
    """A table's rows in Markdown, character references as they are; a tag that is not understood is left.

    >>> print(_table('<thead><tr><th>Test</th><th>Rate</th></tr></thead><tr><th>tg128</th><td><a href="#x">20.8</a> tok/s</td></tr>'))
    | Test | Rate |
    | --- | --- |
    | tg128 | [20.8](#x) tok/s |
    """
    columns = rows.partition("</tr>")[0].count("</th>")
    text = " ".join(rows.split()).replace("|", "&#92;|").replace("</th>", " | ").replace("</td>", " | ").replace("</tr>", "\n")
    head, *body = (f"| {' '.join(line.split())}" for line in _words(text).split("\n") if line.strip())
    return "\n".join([head, "|" + " --- |" * columns, *body])


def _notes(items: str) -> str:
    """Notes (`macros.notes`) as a numbered list in Markdown, each with its facts below it; else as `_table`.

    >>> print(_notes('<li id="from-1"><p><b>28 %</b>, computed</p><dl><dt>Formula</dt> <dd>a ÷ b</dd></dl></li>'))
    1. **28 %**, computed
        - Formula: a ÷ b
    """
    text = _words(" ".join(items.split()).replace("</dd><dt>", "\n").replace("<dl><dt>", "\n").replace("</dt> <dd>", ": ").replace("</dt><dd>", ": "))
    lines: list[str] = []
    for number, note in enumerate(text.split("</li>")[:-1], 1):
        about, *facts = (line.strip() for line in note.partition(">")[2].split("\n"))
        lines += [f"{number}. {about}", *(f"    - {fact}" for fact in facts)]
    return "\n".join(lines)


def _facts(pairs: str) -> str:
    """A run's facts, words without marks: a paragraph for each name and each fact; else as `_table`.

    >>> _facts("<dt>Engine</dt> <dd>llama.cpp</dd><dt>Power</dt> <dd>not recorded</dd>")
    'Engine\\n\\nllama.cpp\\n\\nPower\\n\\nnot recorded'
    """
    return " ".join(pairs.split()).replace("</dt> <dd>", "\n\n").replace("</dd><dt>", "\n\n").replace("<dt>", "").replace("</dd>", "")


def _words(markup: str) -> str:
    """Markup with its links and emphasis in Markdown."""
    text = _LINK.sub(r"[\2](\1)", _SILENT.sub("", markup))
    for tag, mark in _MARKS:
        text = tag.sub(mark, text)
    return text


RUN = '<dl class="provenance"'
OPTIONS = ConversionOptions(heading_style="atx", bullets="-")
