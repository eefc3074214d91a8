"""HTML tables and numbered figures, each on one line so Markdown leaves it alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape


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
    head = Markup("").join(
        Markup('<th scope="col"{}>{}</th>').format(_classes(column), column.header)
        for column in columns
    )
    body = Markup("").join(
        Markup("<tr>{}</tr>").format(
            Markup("").join(
                _cell(column, row[column.key], first=index == 0)
                for index, column in enumerate(columns)
            )
        )
        for row in rows
    )
    return _one_line(
        Markup(
            '<table class="rows"{}>{}<thead><tr>{}</tr></thead><tbody>{}</tbody></table>'
        ).format(
            Markup(' id="{}"').format(id) if id else "",
            Markup("<caption>{}</caption>").format(caption) if caption else "",
            head,
            body,
        )
    )


def figure(
    id: str, number: int, svg: str, caption_html: str, csv_href: str | None = None, spec_href: str | None = None
) -> str:
    """A numbered chart with its caption and the links to its rows and its spec, as one line of HTML.

    svg and caption_html are trusted: they come from to_svg and from computed sentences.

    Args:
        spec_href: the Vega-Lite spec, "<name>.vl.json"; beside it "<name>.vl.js", the same for Explore
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
    link = Markup(' <a class="csv" href="{}" download>CSV</a>').format(csv_href) if csv_href else Markup("")
    # Search would list every axis label of a chart; a table's words are worth finding.
    extra = Markup(" data-search-exclude") if css == "chart" else Markup("")
    if spec_href:
        link += Markup(' <a class="csv" href="{}" title="The chart as Vega-Lite, its rows inside">Spec</a>').format(spec_href)
        extra += Markup(' data-chart="{}"').format(spec_href.removesuffix("json") + "js")
    return _one_line(
        Markup(
            '<figure id="{}" class="{}"{}>{}<figcaption><b>{} {}.</b> {}{}</figcaption></figure>'
        ).format(id, css, extra, Markup(body), word, number, Markup(caption_html), link)
    )


def _classes(column: Column) -> Markup:
    names = " ".join(filter(None, ("num" if column.align == "right" else "", column.css)))
    return Markup(' class="{}"').format(names) if names else Markup("")


def _cell(column: Column, value: object, *, first: bool) -> Markup:
    tag = Markup("th") if first else Markup("td")
    scope = Markup(' scope="row"') if first else ""
    return Markup('<{}{}{} data-label="{}">{}</{}>').format(
        tag, scope, _classes(column), column.header, escape(value), tag
    )


def _one_line(html: str) -> str:
    return " ".join(html.splitlines())
