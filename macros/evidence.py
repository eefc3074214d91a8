"""Numbered tables and figures: rows in, one line of HTML out, with the CSV beside each."""

from __future__ import annotations

import json
from types import NoneType

from pydantic_core import to_json

from macros import chart_svg, charts, guard, table_texts, tables
from macros.narrative import Book
from macros.tables import Column

NUMBERS = {int, float, NoneType}


def publish(book: Book, id: str, found: list[dict]) -> str:
    """Keep a CSV for the build to write, and link to it: a row each, what is not known empty.

    No cell of words begins as a spreadsheet's formula does.
    """
    columns = map(_told, zip(*(row.values() for row in found), strict=True))
    return _keep(book, f"{id}.csv", table_texts.header(found[0] if found else ()) + "".join([f"{','.join(row)}\n" for row in zip(*columns, strict=True)]))


def _told(column: tuple) -> list[str]:
    """A column's cells as a CSV has them; many have the same words."""
    if set(map(type, column)) <= NUMBERS:
        numbers = to_json(column).decode()[1:-1].replace("NaN", "").replace("null", "")
        if table_texts.as_python(numbers):
            return numbers.split(",")
    words = {cell: table_texts.quoted(str(guard.not_a_formula(cell))) for cell in set(column) if isinstance(cell, str)} | {None: ""}
    return [words[cell] if cell in words else "" if cell != cell else str(cell) for cell in column]


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
