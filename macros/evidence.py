"""Numbered tables and figures: rows in, one line of HTML out, with the CSV beside each."""

from __future__ import annotations

import json

from macros import chart_svg, charts, guard, tables
from macros.narrative import Book
from macros.table_texts import QUOTED
from macros.tables import Column


def publish(book: Book, id: str, found: list[dict]) -> str:
    """Keep a CSV for the build to write, and link to it: a row each, what is not known empty.

    No cell of words begins as a spreadsheet's formula does.
    """
    columns = map(_told, zip(*(row.values() for row in found), strict=True))
    lines = [",".join(map(_cell, found[0] if found else ())), *map(",".join, zip(*columns, strict=True)), ""]
    return _keep(book, f"{id}.csv", "\n".join(lines))


def _told(column: tuple) -> list[str]:
    """A column's cells as a CSV has them; many have the same words."""
    if set(map(type, column)) != {str}:
        return [_cell(value) for value in column]
    known = {words: _cell(words) for words in set(column)}
    return [known[words] for words in column]


def _cell(value: object) -> str:
    if value is None or value != value:
        return ""
    if not isinstance(value, str):
        return str(value)
    words = str(guard.not_a_formula(value))
    return words if QUOTED.isdisjoint(words) else '"' + words.replace('"', '""') + '"'


def _keep(book: Book, name: str, text: str) -> str:
    """Keep a file of the page at hand for the build to write, and link to it."""
    address = _address(book.here, name)
    book.publish(address, text)
    return book.link(address)


def _address(here: str, name: str) -> str:
    return f"data/{here.strip('/').replace('/', '-') or 'index'}-{name}"


def table(book: Book, id: str, columns: list[Column], cells: list[dict], found: list[dict] | str, caption: str) -> str:
    """A numbered table with its rows as CSV; `found` are these, or the link to a CSV that holds them."""
    html = tables.html_table(columns, cells)
    return tables.table_figure(id, book.number("table"), html, caption, found if isinstance(found, str) else publish(book, id, found))


def figure(book: Book, id: str, kind: str, found: list[dict], caption: str, label: str, csv: str = "") -> str:
    """A numbered chart with its rows as CSV and its spec.

    Args:
        kind: a function of `macros.charts`
        label: what it shows
        csv: the link to a CSV that holds the rows, where there is one
    """
    drawn = getattr(charts, kind)(found)
    published = charts.published(drawn, label)
    spec = _keep(book, f"{id}.vl.json", published)
    book.charts.setdefault(book.here, {})[id] = chart_svg.in_variables(published)
    return tables.figure(id, book.number("figure"), charts.to_svg(drawn, label), caption, csv or publish(book, id, found), spec)


def publish_charts(book: Book, here: str) -> None:
    """Keep what Explore draws on a page, one script for all its charts: opened from a folder, a page may not fetch."""
    if found := book.charts.pop(here, None):
        address = _address(here, "charts.js")
        specs = ",".join(f"{json.dumps(id)}:{spec}" for id, spec in found.items())
        book.publish(address, f"(window.inklabCharts??={{}})[{json.dumps(address.rpartition('/')[2])}]={{{specs}}};")
