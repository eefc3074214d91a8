"""The built site: PHYSICS on the page, links that lead somewhere, and a build that fails rather than lies."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from conftest import reseal, run_module

DAY = "docs/days/01-local-inference.md"
BASELINE = "labdata/runs/apple-m4-24gb/day1-baseline.yml"


def text_of(page: Path) -> str:
    """A page's words as a reader sees them, no-break spaces made plain."""
    body = page.read_text(encoding="utf-8")
    body = re.sub(r"<(script|style|svg)\b.*?</\1>", " ", body, flags=re.S)
    body = re.sub(r"<mspace[^>]*>", " ", body)  # what parts a value from its unit in an equation
    body = html.unescape(re.sub(r"<[^>]+>", "", body))
    return re.sub(r"[\s\u00a0\u202f]+", " ", body)


def build(project: Path) -> tuple[int, str]:
    done = run_module(project, "mkdocs", "build", "-q")
    return done.returncode, done.stdout + done.stderr


# Hand calculations of the shared physics notes; none was taken from the code's output.
PHYSICS = [
    "23.86 tok/s", "147,456 B", "144 KiB", "5.332 GB", "5.634 GB", "6.238 GB", "18.70", "17.70", "15.98",
    "268.6 tok/s", "270 tok/s", "36.7 FLOP/B", "3.26 FLOP/B", "589,824", "29.5 %", "27,771 tokens", "4.91", "8.51",
    "99.7 GB/s", "63.8 GB/s", "53 %", "87 %", "91 %", "85 %", "81 %", "84 %", "73 %", "4.67 GB", "14.05 GFLOP",
    "80.64 %", "0.07 %", "0.5 %", "2×", "1.73×", "1.66×", "−36 %", "57 %", "10.3×", "1.6×", "20.80 ± 0.05",
    "228.94 ± 0.10", "4.04 TFLOP/s", "144,000 B", "16.05 tok/s",
]  # fmt: skip


@pytest.mark.parametrize("value", PHYSICS)
def test_day_1_shows(site: Path, value: str):
    assert value in text_of(site / "days/01-local-inference/index.html")


@pytest.mark.parametrize(
    "words",
    ["5 held, 3 missed, 1 ceiling unbroken", "9 predictions", "360 tok/s", "11.5–12.0 tok/s", "barely changes", "craters"],
)
def test_day_1_is_scored_as_written(site: Path, words: str):
    assert words in text_of(site / "days/01-local-inference/index.html")


def test_the_post_says_what_the_page_says(site: Path):
    post = text_of(site / "days/01-post/index.html")
    for value in ("20.80", "360 tok/s", "228.94"):
        assert value in post


def test_every_machine_has_a_page_and_synthetic_weights_are_said(site: Path):
    from macros import labdata

    lab = labdata.load()
    for name in lab.machines:
        page = text_of(site / "machines" / name / "index.html")
        assert lab.machines[name].name in page
        used = {lab.models[r.model].weights for run in lab.runs_of(name) for r in run.results}
        assert ("Synthetic weights" in page) == ("synthetic" in used)
        for run in lab.runs_of(name):
            assert run.id in page
            assert run.command in page


class Page(HTMLParser):
    """Ids and links of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if found.get("id"):
            self.ids.append(found["id"])
        self.links += [found[k] for k in ("href", "src") if found.get(k)]


def test_links_lead_somewhere_and_ids_are_unique(site: Path):
    pages = {p: Page(p) for p in site.rglob("*.html")}
    wrong = []
    for path, page in pages.items():
        wrong += [f"{path.relative_to(site)}: id {i} given twice" for i in {i for i in page.ids if page.ids.count(i) > 1}]
        for link in page.links:
            address, fragment = urldefrag(link)
            if re.match(r"[a-z]+:|//", link) or (path.name == "404.html" and link.startswith("/")):
                continue
            target = (path.parent / unquote(address.partition("?")[0])).resolve() if address else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                wrong.append(f"{path.relative_to(site)}: {link} leads nowhere")
            elif fragment and target in pages and fragment not in pages[target].ids:
                wrong.append(f"{path.relative_to(site)}: {link} has no such anchor")
    assert not wrong, "\n".join(wrong)


def test_nothing_is_left_over(site: Path):
    for path in site.rglob("*.html"):
        body = path.read_text(encoding="utf-8")
        for leftover in ("[[", "]]", "[%", "%]", "{{", ">nan<", ">None<", "None</", "nan "):
            assert leftover not in re.sub(r"<script\b.*?</script>", "", body, flags=re.S), f"{path.name}: {leftover}"


def test_pages_ask_no_other_host(site: Path):
    for path in [*site.rglob("*.html"), *site.rglob("*.css")]:
        body = path.read_text(encoding="utf-8")
        loaded = re.findall(r"""<(?:script|img|link rel="stylesheet"|iframe)[^>]*?(?:src|href)=["']?(https?://[^"'> ]+)""", body)
        assert not loaded + re.findall(r"url\(['\"]?(https?://[^)]+)", body), path


def test_figures_have_csv_and_words(site: Path):
    page = (site / "days/01-local-inference/index.html").read_text(encoding="utf-8")
    figures = re.findall(r"<figure\b.*?</figure>", page, flags=re.S)
    assert len(figures) >= 6
    for number, figure in enumerate((f for f in figures if "<svg" in f), 1):
        assert f"Figure {number}." in figure
        assert re.search(r'role="img"[^>]*aria-label="[^"]{20,}"|aria-label="[^"]{20,}"[^>]*role="img"', figure)
    csv = (site / "data/days-01-local-inference-decode-depth.csv").read_text(encoding="utf-8").splitlines()
    assert csv[0].startswith("run,depth_tokens,step_bytes,")
    assert [line.split(",")[1] for line in csv[1:]] == ["0", "2048", "4096", "8192"]


def test_a_changed_measurement_changes_every_page(project: Path):
    path = project / BASELINE
    path.write_text(path.read_text(encoding="utf-8").replace("mean_tok_s: 20.80", "mean_tok_s: 21.87"), encoding="utf-8")
    reseal(path)
    code, said = build(project)
    assert code == 0, said
    for page in ("index.html", "days/01-local-inference/index.html", "days/01-post/index.html", "machines/apple-m4-24gb/index.html"):
        words = text_of(project / "site" / page)
        assert "21.87" in words, page
        assert "20.80" not in words, page


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        (DAY, 'measured(base, "tg128")', 'measured("apple-m4-24gb/nap", "tg128")', ("line ", "'apple-m4-24gb/nap'", "day1-baseline")),
        (DAY, 'measured(base, "tg128")', 'measured(base, "tg64")', ("line ", "no such test", "tg64", "tg128 @ 0")),
        (DAY, 'inked("day-01", "prefill-guess")', 'inked("day-01", "guess")', ("line ", "'guess'", "prefill-guess")),
        (DAY, '[[ seal("day-01") ]]', "[[ sael ]]", ("line ", "'sael' is undefined")),
        (DAY, "[% endset %]", "[% endest %]", ("line ", "endest")),
        (BASELINE, "mean_tok_s: 20.80", "mean_tok_s: .inf", (BASELINE, "mean_tok_s", "inf")),
        ("labdata/ink/day-01.yml", "value: 360", "value: 230", ("ink.sha256", "day-01.yml was changed after this run")),
    ],
)
def test_a_mistake_stops_the_build_in_one_line(project: Path, file: str, old: str, new: str, expected: tuple[str, ...]):
    path = project / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    code, said = build(project)
    assert code == 1
    assert any(all(words in line for words in expected) for line in said.splitlines()), said
    assert "Traceback" not in said
    assert not list((project / "site").rglob("*.html"))


def test_a_broken_link_stops_a_quiet_build_too(project: Path):
    with (project / "docs/method.md").open("a", encoding="utf-8") as out:
        out.write("\n[there](nowhere.md)\n")
    code, said = build(project)
    assert code == 1
    assert "nowhere.md" in said


def test_a_site_that_cannot_be_written_is_one_line(project: Path):
    (project / "site").write_text("a file where the folder goes", encoding="utf-8")
    code, said = build(project)
    assert code == 1
    assert said.strip().splitlines()[-1].endswith("site: cannot be written; Not a directory") and "Traceback" not in said


def test_words_from_labdata_stay_words(project: Path):
    evil = "a</title><script>alert(1)</script> \"x [[ 1/0 ]] [b](javascript:c) ![d](http://e.f/g.png) **h**"
    for file, key in (("machines/apple-m4-24gb.yml", "name"), ("checks/in-process.yml", "title"), ("models/qwen3-8b-q4_k_m.yml", "name")):
        path = project / "labdata" / file
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(rf"(?m)^{key}: .*$", lambda _: f"{key}: '{evil}'", text, count=1), encoding="utf-8")
    code, said = build(project)
    assert code == 0, said
    for path in (project / "site").rglob("*.html"):
        html = path.read_text(encoding="utf-8")
        assert "<script>alert" not in html and "<strong>h<" not in html, path
        assert not re.search(r"""(href|src)=["']?(javascript:c|http://e\.f)""", html), path
    assert "[[ 1/0 ]]" in text_of(project / "site/machines/apple-m4-24gb/index.html")


def test_a_test_that_failed_is_shown_as_not_measured(project: Path):
    from macros import labdata, pages
    from macros.narrative import Book

    path = project / "labdata/runs/apple-m4-24gb/day1-cpu.yml"
    text = path.read_text(encoding="utf-8")
    path.write_text(re.sub(r"published: \{mean_tok_s: 12.69.*\}", "failed: engine killed by SIGSEGV", text), encoding="utf-8")
    reseal(path)
    page = pages.machine_page(Book(labdata.load(project / "labdata")), "apple-m4-24gb")
    assert "not measured" in page and "engine killed by SIGSEGV" in page


def test_readme_table_is_current():
    from macros import labdata, plain

    text = plain.README.read_text(encoding="utf-8")
    assert plain.readme(labdata.load(), text) == text, "run make schema"
