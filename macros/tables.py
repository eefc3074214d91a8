"""HTML tables and numbered figures, each on one line so Markdown leaves it alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import escape

from macros.notes import safe


@dataclass(frozen=True)
class Column:
    """One table column.

    Args:
        key: the row's key that holds the cell
        header: what stands above it, and before the value on a phone's card
        align: "left" or "right" (numbers go right)
        css: class of every cell: "predicted", "measured", "verdict", or nothing
    """

    key: str
    header: str
    align: str = "left"
    css: str = ""


def html_table(
    columns: Sequence[Column],
    rows: Sequence[Mapping[str, object]],
    *,
    caption: str | None = None,
    id: str | None = None,
) -> str:
    """A table as one line of HTML; the first column heads its row.

    Cells are escaped unless they are already Markup. A row must hold every
    column's key: absent data is written by the caller ("not measured").

    Raises: KeyError for a row without one of the columns.
    """
    # Plain strings put together: Markup.format takes ten times as long, and a lab of a thousand machines has a million cells.
    head = "".join(f'<th scope="col"{_classes(column)}>{escape(column.header)}</th>' for column in columns)
    labels = [(column.key, f'{_classes(column)} data-label="{escape(column.header)}"') for column in columns]
    body = "".join(f"<tr>{_cells(row, labels)}</tr>" for row in rows)
    named = f' id="{escape(id)}"' if id else ""
    above = f"<caption>{escape(caption)}</caption>" if caption else ""
    return _one_line(f'<table class="rows"{named}>{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>')


def figure(
    id: str, number: int, svg: str, caption_html: str, csv_href: str | None = None, spec_href: str | None = None
) -> str:
    """A numbered chart with its caption and the links to its rows and its spec, as one line of HTML.

    svg and caption_html are trusted: they come from to_svg and from computed sentences.

    Args:
        spec_href: the Vega-Lite spec, "<page>-<id>.vl.json"; beside it "<page>-charts.js", what Explore draws
    """
    return _numbered("Figure", "chart", id, number, svg, caption_html, csv_href, spec_href)


def table_figure(
    id: str, number: int, table: str, caption_html: str, csv_href: str | None = None
) -> str:
    """A numbered table with its caption and the link to its rows, as one line of HTML."""
    return _numbered("Table", "table", id, number, table, caption_html, csv_href)


def _numbered(
    word: str, css: str, id: str, number: int, body: str, caption_html: str, csv_href: str | None, spec_href: str | None = None
) -> str:
    link = f' <a class="csv" href="{escape(csv_href)}" download>CSV</a>' if csv_href else ""
    # Search would list every axis label of a chart; a table's words are worth finding.
    extra = " data-search-exclude" if css == "chart" else f' style="--rows:{body.count("<tr>")}"'
    if spec_href:
        link += f' <a class="csv" href="{escape(spec_href)}" title="The chart as Vega-Lite, its rows inside">Spec</a>'
        extra += f' data-chart="{escape(spec_href.removesuffix(f"{id}.vl.json"))}charts.js"'
    caption = f"<figcaption><b>{word} {number}.</b> {caption_html}{link}</figcaption>"
    return _one_line(f'<figure id="{escape(id)}" class="{css}"{extra}>{body}{caption}</figure>')


def _classes(column: Column) -> str:
    names = " ".join(filter(None, ("num" if column.align == "right" else "", column.css)))
    return f' class="{escape(names)}"' if names else ""


def _cells(row: Mapping[str, object], labels: list[tuple[str, str]]) -> str:
    (key, first), *rest = labels
    return f'<th scope="row"{first}>{safe(row[key])}</th>' + "".join([f"<td{label}>{safe(row[key])}</td>" for key, label in rest])


def _one_line(html: str) -> str:
    return " ".join(html.splitlines())
