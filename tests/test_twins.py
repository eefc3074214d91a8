"""A page's twin in Markdown: its tables and notes, which are written here and not by the library, hold every word."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from html_to_markdown import convert

from macros import notes, tables, twins
from macros.tables import Column


def test_a_table_and_its_caption():
    table = tables.html_table([Column("test", "Test"), Column("rate", "Rate [tok/s]", "right", "measured")],
                              [{"test": "tg128 | pp512", "rate": "20.8 < 24"}, {"test": "", "rate": "5\u202fGB"}])  # fmt: skip
    figure = tables.table_figure("t", 1, table, "Rates.", "a.csv")
    assert twins.markdown(f"<h1>A</h1>{figure}<p>More.</p>", "") == (
        "# A\n\n| Test | Rate [tok/s] |\n| --- | --- |\n| tg128 \\| pp512 | 20.8 < 24 |\n| | 5 GB |\n\n***Table 1.** Rates. [CSV](a.csv)*\n\nMore.\n")  # fmt: skip


def test_a_notes_facts_stand_below_it():
    note = notes.facts(notes.Markup("<b>28 %</b>, computed"), (("Formula", "predicted / measured − 1"), ("See", notes.Markup('<a href="#run">the run</a>'))))
    body = f"<h1>A</h1><p>{notes.refer('28 %', 'v', note)}</p>"
    twin = twins.markdown(body + notes.section(body), "")
    assert twin.endswith("\n\n1. **28 %**, computed\n    - Formula: predicted / measured − 1\n    - See: [the run](#run)\n")


def test_a_table_that_holds_more_than_words_is_the_librarys():
    table = "<table><thead><tr><th>A</th></tr></thead><tbody><tr><td>one<ul><li>two</li></ul></td></tr></tbody></table>"
    assert twins.markdown(f"<h1>A</h1>{table}", "") == convert(f"<h1>A</h1>{table}", twins.OPTIONS).content.strip() + "\n"


def _words(text: str) -> str:
    return " ".join(html.unescape(text).split())


@pytest.mark.parametrize("page", ["days/01-local-inference", "machines/apple-m4-24gb", "accuracy", "architectures"])
def test_every_row_and_every_note_of_a_page_is_in_its_twin(site: Path, page: str):
    built = re.sub(r"<(svg|template)\b.*?</\1>", "", (site / page / "index.html").read_text(encoding="utf-8"), flags=re.S)
    text = (site / page / "index.md").read_text(encoding="utf-8")
    plain = re.sub(r"[*`]", "", re.sub(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)]*\)", r"\1", text))
    twin = [_words(line).replace("\\|", "|") for line in plain.split("\n")]
    rows = [[_words(re.sub(r"<[^>]*>|[*`]", "", cell)) for cell in re.findall(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", row, re.S)] for row in re.findall(r"<tr\b.*?</tr>", built, re.S)]
    facts = [_words(re.sub(r"<[^>]*>|[*`]", "", f"- {name}: {value}")) for name, value in re.findall(r"<dt>([^<]*)</dt> <dd>(.*?)</dd>", built.partition('<details class="notes"')[2])]
    assert len(rows) > 5
    wanted = [" ".join(f"| {' | '.join(row)} |".split()) for row in rows] + facts
    assert [line for line in wanted if line not in set(twin)] == []
