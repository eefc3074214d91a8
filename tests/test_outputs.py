"""What is published beside the pages: feed, lists, twins, references, cards, and the policy of each page."""

from __future__ import annotations

import base64
import contextlib
import datetime
import hashlib
import html
import os
import re
import struct
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from conftest import ROOT, copy_project, run_module, serving

from macros import built, feeds, web
from macros.feeds import Report

ATOM = {"a": "http://www.w3.org/2005/Atom"}
ADDRESS = "https://lab.example/inklab/"
REPORTS = ("days/01-local-inference/", "machines/apple-m4-24gb/", "machines/amd-epyc-2-cores-24-gb/")
HOSTILE = Report("days/x/", "inklab-x", 'a}, note = {50 % & $x_1$ \\ "q"', "Day 1", "line\nbreak: # [x]", None)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as it is built for an address, in another year and with another order of sets."""
    home = copy_project(tmp_path_factory.mktemp("published"))
    done = run_module(home, "mkdocs", "build", "-q", env={"INKLAB_PREVIEW": "", "SITE_URL": ADDRESS.rstrip("/"), "SOURCE_DATE_EPOCH": "0", "PYTHONHASHSEED": "7"})
    assert done.returncode == 0, done.stderr
    return home / "site"


@contextlib.contextmanager
def one_core() -> Iterator[None]:
    """What is started meanwhile may use one core only, where the system can say so."""
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    if allowed:
        os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        if allowed:
            os.sched_setaffinity(0, allowed)


def test_the_checker_finds_nothing(site: Path, published: Path):
    assert built.problems(site) + built.problems(published) == []


def test_no_value_is_printed_as_markup(site: Path):
    for path in site.rglob("*.html"):
        assert not re.search(r"&lt;(code|(data|a|span) (class|value|href)=)", path.read_text(encoding="utf-8")), path


def test_two_builds_are_the_same_byte_for_byte(site: Path, tmp_path: Path):
    home = copy_project(tmp_path)
    with one_core():  # so by one process
        done = run_module(home, "mkdocs", "build", "-q", env={"INKLAB_PREVIEW": "", "SITE_URL": "", "SOURCE_DATE_EPOCH": "0", "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"})
    assert done.returncode == 0, done.stderr
    files = [{p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()} for folder in (site, home / "site")]
    assert files[0].keys() == files[1].keys()
    assert [name for name in files[0] if files[0][name] != files[1][name]] == []


def newest_seal() -> str:
    at = [yaml.safe_load(p.read_text(encoding="utf-8"))["at"] for p in ROOT.glob("labdata/**/*.seal.yml") if "apple" in p.as_posix() or "day-01" in p.name]
    return max(at).astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.parametrize("url", ["", ADDRESS])
def test_the_feed_has_every_report_dated_by_its_files(site: Path, published: Path, url: str):
    folder = published if url else site
    feed = ElementTree.parse(folder / "feed.xml").getroot()
    entries = {e.find("a:link", ATOM).get("href").removeprefix(url).removesuffix("index.html"): e for e in feed.findall("a:entry", ATOM)}
    assert set(entries) == set(REPORTS)
    assert all((folder / address / "index.html").is_file() for address in entries)
    ids = [e.find("a:id", ATOM).text for e in entries.values()]
    assert len(set(ids)) == len(ids) and all(i.startswith("urn:uuid:") for i in ids)
    assert feed.find("a:link[@rel='self']", ATOM).get("href") == f"{url}feed.xml"
    day = entries[REPORTS[0]]
    assert day.find("a:updated", ATOM).text == newest_seal()
    assert "20.80\u00a0±\u00a00.05" in day.find("a:summary", ATOM).text
    assert "5 held, 3 missed, 1 ceiling unbroken" in day.find("a:summary", ATOM).text


def test_a_moved_site_does_not_make_its_reports_new(site: Path, published: Path):
    ids = [[e.text for e in ElementTree.parse(folder / "feed.xml").getroot().findall("a:entry/a:id", ATOM)] for folder in (site, published)]
    assert ids[0] == ids[1]


def test_every_page_has_a_twin_with_its_numbers(site: Path):
    for path in site.rglob("index.html"):
        twin = path.with_name("index.md").read_text(encoding="utf-8")
        prose = re.sub(r"(?ms)^```.*?^```", "", twin)  # a shell's comments are no headings
        assert prose.count("\n# ") + prose.startswith("# ") == 1, path
        assert not re.search(r"<(data|span|a|td|svg|math|mrow|button)\b", twin), path
        assert 'type="text/markdown" href="index.md"' in path.read_text(encoding="utf-8")
    day = re.sub(r"[\u00a0\u202f]", " ", (site / "days/01-local-inference/index.md").read_text(encoding="utf-8"))
    for words in ("20.80 ± 0.05 tok/s", "147,456 B", "144 KiB", "| 8,192", "(120 GB/s)/(5.03 GB)", "Chart: Decode rate"):  # the shared physics notes'
        assert words in day, words


def test_llms_txt_names_every_page(site: Path):
    text = (site / "llms.txt").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert {site / link for link in links} == set(site.rglob("index.md"))
    assert text.startswith("# Inklab\n\n> ")


def test_llms_txt_does_not_grow_without_end():
    many = [(f"Machine {i}", f"machines/{i}/", "") for i in range(1000)]
    assert feeds.llms_txt("Lab", "", "", {"Machines": many}).count("\n- ") == feeds.LISTED + 1


@pytest.mark.parametrize("address", REPORTS)
def test_a_report_can_be_cited(published: Path, address: str):
    bib = (published / address / "cite.bib").read_text(encoding="utf-8")
    assert bib.count("{") == bib.count("}") and re.match(r"@techreport\{inklab-[\w.-]+,\n", bib)
    assert f"url = {{{ADDRESS}{address}}}" in bib and "year = {2026}" in bib
    cff = yaml.safe_load((published / address / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(cff) and cff["cff-version"] == "1.2.0"  # what CFF 1.2.0 asks for
    assert cff["date-released"] == "2026-11-30" and cff["url"] == ADDRESS + address
    for entry in cff["identifiers"]:
        name = entry["description"].removeprefix("Ink ")
        assert entry["value"] == f"sha256:{hashlib.sha256((ROOT / f'labdata/ink/{name}.yml').read_bytes()).hexdigest()}"
    page = (published / address / "index.html").read_text(encoding="utf-8")
    assert html.unescape(re.search(r'<details class="cite">.*?<code>(.*?)</code>', page, re.S)[1]) == bib


def test_a_hostile_title_stays_a_title():
    bib = feeds.bibtex(HOSTILE, "Lab", "")
    assert bib.splitlines()[1] == r'  title = {{a\}, note = \{50 \% \& \$x\_1\$ \textbackslash{} "q"}},'
    cff = yaml.safe_load(feeds.citation_cff(HOSTILE, "Lab", ""))
    assert cff["title"] == f"Day 1: {HOSTILE.title}" and cff["abstract"] == HOSTILE.summary
    assert "date-released" not in cff and "year" not in bib


def test_the_project_s_own_citation_is_of_this_version():
    cff = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (str(cff["version"]), cff["license"]) == (project["version"], project["license"])


def test_an_address_gives_canonical_links_a_sitemap_and_cards(published: Path):
    places = ElementTree.parse(published / "sitemap.xml").getroot()
    locations = [loc.text for loc in places.iter("{http://www.sitemaps.org/schemas/sitemap/0.9}loc")]
    pages = {p.parent.relative_to(published).as_posix() for p in published.rglob("index.html")}
    assert {loc.removeprefix(ADDRESS).rstrip("/") or "." for loc in locations} == pages
    for path in published.rglob("index.html"):
        page, address = path.read_text(encoding="utf-8"), path.parent.relative_to(published).as_posix()
        here = ADDRESS if address == "." else f"{ADDRESS}{address}/"
        assert f'<link rel="canonical" href="{here}">' in page
        shown = re.search(r'property="og:image" content="([^"]+)"', page)
        assert shown, path
        card = shown[1]
        picture = (published / card.removeprefix(ADDRESS)).read_bytes()
        assert picture[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", picture[16:24]) == (1200, 630), path
        assert len(re.search(r'property="og:image:alt" content="([^"]+)"', page)[1]) > 40
        assert len(re.search(r'<meta name="description" content="([^"]+)"', page)[1]) > 20


def test_without_an_address_nothing_absolute_is_made_up(site: Path):
    for path in site.rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        assert "og:image" not in page and "canonical" not in page
    assert not list(site.rglob("card.png"))


def rules(page: str) -> dict[str, str]:
    policy = html.unescape(re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]+)">', page)[1])
    return dict(rule.strip().split(" ", 1) for rule in policy.split(";"))


def test_every_page_publishes_a_policy_that_its_own_scripts_keep(site: Path, published: Path):
    for path in [*site.rglob("*.html"), *published.rglob("*.html")]:
        page = path.read_text(encoding="utf-8")
        found = rules(page)
        assert found["default-src"] == "'none'" and found["base-uri"] == "'none'"
        assert "unsafe" not in found["script-src"] and "http" not in " ".join(found.values())
        for script in re.findall(r"<script>(.*?)</script>", page, re.S):
            assert f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" in found["script-src"], path
        assert page.index("Content-Security-Policy") < page.index("<link")


@pytest.mark.parametrize("address", ["", "days/01-local-inference/", "machines/apple-m4-24gb/", "data/"])
def test_pages_work_below_a_path_and_under_their_policy(site: Path, read: Any, address: str):
    with serving(site, "/deep/lab/") as root:
        page = read(root + address)
        page.evaluate("document.head.append(Object.assign(document.createElement('script'), {textContent: 'window.stolen = 1'}))")
        assert page.evaluate("window.stolen") is None, "an inline script that is not ours runs"
        page.evaluate("() => new Promise(done => { setTimeout('window.evaluated = 1'); setTimeout(done, 50) })")
        assert page.evaluate("window.evaluated") is None, "a string runs as a script"
        page.complaints[:] = [line for line in page.complaints if "inline script" not in line and "unsafe-eval" not in line]


def test_the_site_reads_from_a_folder(site: Path, read: Any):
    page = read(f"file://{site}/index.html")
    for link in ("Data", "Method"):
        page.locator(".site-links a", has_text=link).click()
        page.wait_for_url("**/index.html")
        assert page.locator("h1").inner_text() == link
    assert page.evaluate("getComputedStyle(document.body).fontFamily").startswith('"Source Serif 4"'), "styles load"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('<a href="../">', '<a href="../index.html">'),
        ('<a class="v" href="..#ink" title="x">', '<a class="v" href="../index.html#ink" title="x">'),
        ('<a href="machines/m4/?sort=rate#top">', '<a href="machines/m4/index.html?sort=rate#top">'),
        ('<a href="#top">', '<a href="#top">'),
        ('<a href="data/x.csv">', '<a href="data/x.csv">'),
        ('<a href="https://other.example/">', '<a href="https://other.example/">'),
        ('<a href="mailto:a@b.example">', '<a href="mailto:a@b.example">'),
        ('<link rel="stylesheet" href="assets/">', '<link rel="stylesheet" href="assets/">'),
    ],
)
def test_links_for_a_folder(before: str, after: str):
    assert web.for_folder(before) == after
