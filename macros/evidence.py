"""Numbered tables and figures: rows in, one line of HTML out, with the CSV beside each."""

from __future__ import annotations

import csv
import io
import json
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
    writer.writerows([guard.not_a_formula(cell) if isinstance(cell, str) else None if cell != cell else cell for cell in row.values()] for row in found)
    return _keep(book, f"{id}.csv", text.getvalue())


def _keep(book: Book, name: str, text: str) -> str:
    """Keep a file of the page at hand for the build to write, and link to it."""
    address = _address(book.here, name)
    book.publish(address, text)
    return book.link(address)


def _address(here: str, name: str) -> str:
    return f"data/{here.strip('/').replace('/', '-') or 'index'}-{name}"


def table(book: Book, id: str, columns: list[Column], cells: list[dict], found: list[dict], caption: str) -> str:
    """A numbered table with its rows as CSV."""
    html = tables.html_table(columns, cells)
    return tables.table_figure(id, book.number("table"), html, caption, publish(book, id, found))


def figure(book: Book, id: str, kind: str, found: list[dict], caption: str, label: str) -> str:
    """A numbered chart with its rows as CSV and its spec; `kind` is a function of `macros.charts`, `label` what it shows."""
    drawn = getattr(charts, kind)(found)
    published = charts.published(drawn, label)
    spec = _keep(book, f"{id}.vl.json", published)
    book.charts.setdefault(book.here, {})[id] = chart_svg.in_variables(published)
    return tables.figure(id, book.number("figure"), charts.to_svg(drawn, label), caption, publish(book, id, found), spec)


def publish_charts(book: Book, here: str) -> None:
    """Keep what Explore draws on a page, one script for all its charts: opened from a folder, a page may not fetch."""
    if found := book.charts.pop(here, None):
        address = _address(here, "charts.js")
        specs = ",".join(f"{json.dumps(id)}:{spec}" for id, spec in found.items())
        book.publish(address, f"(window.inklabCharts??={{}})[{json.dumps(address.rpartition('/')[2])}]={{{specs}}};")
