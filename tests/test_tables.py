"""Tables and figures: one line of HTML, nothing unescaped, every cell labelled."""

from html.parser import HTMLParser

import pytest
from markupsafe import Markup

from macros.tables import Column, figure, html_table, table_figure

COLUMNS = [
    Column("quantity", "Quantity"),
    Column("inked", "Inked", align="right", css="predicted"),
    Column("verdict", "Verdict", css="verdict"),
]


class Cells(HTMLParser):
    """Collects what a browser would make of the markup."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attrs: list[dict] = []
        self.text: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attrs.append(dict(attrs))

    def handle_data(self, data):
        self.text.append(data)


@pytest.mark.parametrize(
    ("cell", "tags", "text"),
    [
        ("<script>alert(1)</script>", 0, "<script>alert(1)</script>"),
        ("a & b", 0, "a & b"),
        ('"><img src=x onerror=alert(1)>', 0, '"><img src=x onerror=alert(1)>'),
        (Markup("<b>held</b>"), 1, "held"),
        (23.9, 0, "23.9"),
    ],
)
def test_a_cell_is_text_unless_it_is_markup(cell, tags, text):
    page = Cells(html_table(COLUMNS, [{"quantity": cell, "inked": "", "verdict": ""}]))
    assert sum(tag in {"script", "img", "b"} for tag in page.tags) == tags
    assert text in "".join(page.text)


def test_header_and_caption_are_escaped_too():
    row = {"q": 1}
    page = Cells(html_table([Column("q", '"><script>')], [row], caption="<script>", id='a"b'))
    assert "script" not in page.tags
    assert page.attrs[0]["id"] == 'a"b'
    assert [a["data-label"] for a in page.attrs if "data-label" in a] == ['"><script>']


def test_every_cell_carries_its_label_for_the_phone_card():
    page = Cells(html_table(COLUMNS, [{"quantity": "Prefill", "inked": 360, "verdict": "missed"}]))
    cells = [a for a in page.attrs if "data-label" in a]
    assert [c["data-label"] for c in cells] == ["Quantity", "Inked", "Verdict"]
    assert cells[0]["scope"] == "row"
    assert cells[1]["class"] == "num predicted"


def test_markdown_sees_one_line():
    row = {"quantity": "two\n\nlines", "inked": 1, "verdict": "a\r\nb"}
    table = html_table(COLUMNS, [row])
    for html in (
        table,
        table_figure("t", 1, table, "A\nB", "t.csv"),
        figure("f", 1, "<svg>\n</svg>", "C"),
    ):
        assert len(html.splitlines()) == 1


def test_a_missing_cell_stops_the_build():
    with pytest.raises(KeyError, match="inked"):
        html_table(COLUMNS, [{"quantity": "Prefill", "verdict": "held"}])


def test_figures_are_numbered_and_linked():
    html = figure("decode", 3, "<svg></svg>", "Flat.", '../decode.csv?a=1&b="2"')
    assert html.startswith('<figure id="decode" class="chart" data-search-exclude>')
    assert "<b>Figure 3.</b> Flat." in html
    assert [a["href"] for a in Cells(html).attrs if "href" in a] == ['../decode.csv?a=1&b="2"']
    assert "CSV" not in figure("decode", 3, "<svg></svg>", "Flat.")
    assert "<b>Table 2.</b>" in table_figure("t", 2, "<table></table>", "Scores.")
