"""A machine's page: finished HTML, each sweep drawn once, what Explore draws in one script, and a mistake in one line."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from pathlib import Path

import markdown
import pytest
from mkdocs.exceptions import PluginError

from macros import apart, chart_svg, evidence, glossary, labdata, narrative, pages
from macros.reckoned import Reckoned
from tests import biglab

NAME = "generated-00000"
ADDRESS = f"machines/{NAME}/"


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory):
    """A lab with one machine of four inked runs: prefill is swept by the oldest alone, decode by all."""
    root = tmp_path_factory.mktemp("lab") / "labdata"
    for part in ("models", "raw"):
        shutil.copytree(labdata.ROOT / part, root / part)
    biglab.write(root, 1, 4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(labdata, "ROOT", root)
        made = narrative.Book(labdata.load(root))
        made.turn_to(ADDRESS)
        yield made


@pytest.fixture(scope="module")
def page(book: narrative.Book) -> str:
    return pages.machine_page(book, NAME)


def caption(page: str, figure: str) -> str:
    return page[page.index(f'<figure id="{figure}"') :].partition("<figcaption>")[2].partition("</figcaption>")[0]


def test_each_sweep_is_drawn_once_of_the_newest_run_that_has_it(book, page):
    runs = book.lab.runs_of(NAME)
    swept = {phase: [run.id for run in runs if any(r.depth and r.test.startswith(phase) for r in run.results)] for phase in ("tg", "pp")}
    assert swept == {"tg": [run.id for run in runs], "pp": [runs[0].id]}
    assert re.findall(r'<figure id="([^"]+)" class="chart"', page) == ["roofline", "ratios", "tg-chart", "pp-chart", "bandwidth-chart"]
    assert f"run {runs[-1].id}." in caption(page, "tg-chart") and f"run {runs[0].id}." in caption(page, "pp-chart")
    # The second newest ink keeps its table and its seal.
    assert 'id="scores-2"' in page and page.count('class="seal"') == 2 and 'id="scores-3"' not in page


def test_markdown_would_leave_it_as_it_is(page):
    """So MkDocs' successor, which sends it through, shows the same; blank lines between blocks are no words."""
    through = markdown.markdown(page, extensions=["attr_list", "def_list", "md_in_html", "tables", "footnotes", "admonition"])
    assert re.sub(r"\n+", "\n", through) == page
    assert "\n\n" not in page and not re.search(r"^(#|- |\S.*\{[:#])", page, re.M)


def test_what_explore_draws_are_the_specs_in_the_page_s_colours(book, page):
    evidence.publish_charts(book, ADDRESS)
    address = f"data/machines-{NAME}-charts.js"
    start = f'(window.inklabCharts??={{}})["machines-{NAME}-charts.js"]='
    script = book.files[address]
    assert script.startswith(start) and script.endswith(";")
    specs = json.loads(script.removeprefix(start).removesuffix(";"))
    assert list(specs) == re.findall(r'<figure id="([^"]+)" class="chart"', page)
    assert page.count(f'data-chart="../../{address}"') == len(specs)
    for figure, spec in specs.items():
        plain = json.dumps(spec)
        for name, colour in chart_svg.COLOURS.items():
            plain = plain.replace(f'"var(--{name})"', f'"{colour}"')
        assert json.loads(plain) == json.loads(book.files[f"data/machines-{NAME}-{figure}.vl.json"])
    assert not [name for name in book.files if name.endswith(".vl.js")]
    assert ADDRESS not in book.charts, "written once, then forgotten"


def test_the_list_of_its_parts_has_each_heading(site: Path):
    built = (site / "machines/amd-epyc-2-cores-24-gb/index.html").read_text(encoding="utf-8")
    listed = built.partition('<nav class="toc"')[2].partition("</nav>")[0]
    headings = re.findall(r'<h2 id="([^"]+)">(.*?)</h2>', built)
    assert len(headings) > 4 and re.findall(r'<a href="#([^"]+)">(.*?)</a>', listed) == headings


def test_no_name_takes_the_address_of_a_part(book):
    for name, anchor in {"Specs": "specs_1", "東京": "_1", "A [[ 1/0 ]] <b>": "a-10-b"}.items():
        machines = {**book.lab.machines, NAME: book.lab.machines[NAME].model_copy(update={"name": name})}
        made = pages.machine_page(narrative.Book(dataclasses.replace(book.lab, machines=machines), here=ADDRESS), NAME)
        assert f'<h1 id="{anchor}">' in made and "<b>" not in made.partition("</h1>")[0] and "[[" not in made


def test_a_page_that_cannot_be_made_is_one_line_with_the_machine_s_file(book, monkeypatch):
    def broken(*_):
        raise ValueError("no such thing; got 7\nmore of it")

    monkeypatch.setattr(pages, "specs_table", broken)
    with pytest.raises(PluginError, match=rf"^labdata/machines/{NAME}\.yml: its page cannot be made: no such thing; got 7$"):
        apart._body(book, NAME, Reckoned(book.lab, NAME))


def test_the_glossary_passes_by_what_is_no_prose():
    known = (glossary.Entry("Roof", "roof", (), "A bound."),)
    quiet = '<figure id="a"><table><td>Roof</td></table><p>roof</p></figure><svg><text>Roof</text></svg><dl class="provenance"><dd>Roof</dd></dl>'
    marked = glossary.mark(f"{quiet}<p>The roof, a Roof.</p>", known, "../glossary/")
    assert marked.startswith(quiet) and marked.count('class="term"') == 1 and re.search(r"<p>The <a [^>]+>roof</a>, a Roof\.</p>$", marked)
