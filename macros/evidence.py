"""Numbered tables and figures: rows in, one line of HTML out, with the CSV beside each."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable

from macros import chart_svg, charts, guard, tables
from macros.narrative import Book
from macros.tables import Column

def publish(book: Book, id: str, found: list[dict]) -> str:
    """Keep a CSV for the build to write, and link to it: a row each, what is not known empty.

    No cell of words begins as a spreadsheet's formula does.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(found[0] if found else ())
    writer.writerows(zip(*map(_told, zip(*(row.values() for row in found), strict=True)), strict=True))
    return _keep(book, f"{id}.csv", text.getvalue())


def _told(column: tuple) -> Iterable:
    """A column's cells as a CSV has them; most stay as they are, and many have the same words."""
    other = {cell: None if cell != cell else guard.not_a_formula(cell) for cell in set(column) if cell != cell or isinstance(cell, str) and cell[:1] in guard.FORMULA}
    return [other.get(cell, cell) for cell in column] if other else column


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
