"""Pages as readers meet them: light, dark, on a phone, on paper, without JavaScript, by keyboard."""

from __future__ import annotations

import json
import math

import pytest
from conftest import copy_project, run_module, serving, until

DAY, MACHINE = "days/01-local-inference/", "machines/apple-m4-24gb/"
PAGES = ["", DAY, MACHINE, "days/", "days/01-post/", "machines/", "accuracy/", "method/", "architectures/", "glossary/", "changelog/", "about/"]


def focused(page) -> str:
    return page.evaluate("document.activeElement.outerHTML.slice(0, 200)")


def test_lost_pages_say_so(read):
    page = read("nowhere/")
    assert page.text_content("h1") == "No such page"
    assert any(line.startswith("404 ") for line in page.complaints)
    page.complaints.clear()


def test_a_number_says_where_it_comes_from(read):
    page = read(DAY)
    rate = page.locator("p.lead a.measured")
    assert rate.locator("data").get_attribute("value") == "20.8"
    rate.click()
    panel = page.locator(".panel")
    words = panel.inner_text()
    for fact in ("20.80", "tg128", "mean ± σ of 5", "Apple M4 MacBook Pro, 24 GB", "labdata/runs/apple-m4-24gb/day1-baseline.yml", "date not recorded", "llama-bench on llama.cpp"):
        assert fact in words
    panel.get_by_role("link", name="the run, with its command").click()
    page.wait_for_url("**/machines/apple-m4-24gb/*#run-day1-baseline")
    assert "llama-bench -m MODEL" in page.locator("#run-day1-baseline").inner_text()


def test_a_computed_number_names_its_inputs_and_they_give_it(read):
    page = read(DAY)
    page.locator("p.lead a.derived").click()  # the share of the memory roof
    panel = page.locator(".panel")
    assert "rate × file size / bandwidth" in panel.inner_text()
    given = [float(v.get_attribute("value")) for v in panel.locator("dd data").all()]
    assert given == [20.8, 5.03, 120.0]  # tok/s, GB, GB/s
    shown = float(page.locator("p.lead a.derived data").get_attribute("value"))
    assert math.isclose(shown, 100 * given[0] * given[1] / given[2], rel_tol=1e-8)
    panel.get_by_role("link", name="120").click()  # an input answers in turn
    assert "Apple support: MacBook Pro (14-inch, M4, 2024) tech specs" in page.locator(".panel").inner_text()
    assert page.locator(".panel a[href='https://support.apple.com/en-us/121552']").count() == 1


def test_every_value_in_the_prose_is_a_number_for_machines(read):
    page = read(DAY)
    for value in page.locator("article p a.v data").all():
        assert math.isfinite(float(value.get_attribute("value")))
    assert page.locator("article p a.v data").count() > 60


def test_by_keyboard_alone(read):
    page = read(DAY)
    page.keyboard.press("Tab")
    assert "Skip to the text" in focused(page)
    page.keyboard.press("Enter")
    page.wait_for_url("**/#content")
    for _ in range(12):  # to the first number of the text
        page.keyboard.press("Tab")
        if 'class="v predicted' in focused(page):
            break
    page.locator(".panel", has_text="24").wait_for()
    assert "24" in page.locator(".panel").inner_text() and "As inked" in page.locator(".panel").inner_text()
    page.keyboard.press("Escape")
    assert page.locator(".panel").count() == 0 and 'class="v predicted' in focused(page)
    page.keyboard.press("Enter")
    assert 'role="dialog"' in focused(page) and "About 24" in focused(page)
    page.keyboard.press("Tab")
    assert "the ink, with its score" in focused(page)
    page.keyboard.press("Escape")
    assert page.locator(".panel").count() == 0 and 'class="v predicted' in focused(page)
    page.keyboard.press("Tab")
    page.locator(".panel", has_text="20.80").wait_for()  # the next number, and one panel
    assert page.locator(".panel").count() == 1


def test_terms_and_footnotes_explain_themselves_in_place(read):
    page = read(DAY)
    page.locator("a.term", has_text="cache of keys and values").click()
    assert "grows with each token" in page.locator(".panel").inner_text()
    page.locator(".panel").get_by_role("link", name="Glossary").click()
    page.wait_for_url("**/glossary/*#kv-cache")
    page.go_back()
    page.locator("a.footnote-ref").first.click()
    assert "Pope" in page.locator(".panel").inner_text()
    page.locator("h1").click()
    assert page.locator(".panel").count() == 0


def test_hover_shows_and_leaving_hides(read):
    page = read(DAY)
    page.locator("p.lead a.measured").hover()
    page.locator(".panel").wait_for()
    page.locator("h1").hover()
    page.locator(".panel").wait_for(state="detached")


def test_without_javascript_a_number_is_a_link_to_its_note(read, served):
    page = read(DAY, java_script_enabled=False)
    assert not page.locator(".search").is_visible() and not page.locator(".scheme").is_visible()
    page.locator("p.lead a.measured").click()
    note = page.locator(f"[id='{page.url.partition('#')[2]}']")
    assert note.is_visible() and "day1-baseline.yml" in note.inner_text()
    for address in PAGES:
        page.goto(served + address)
        assert len(page.locator("article").inner_text()) > 300, address


def test_a_phone_needs_no_sideways_scroll_and_no_magnifying_glass(read, served):
    page = read("", viewport={"width": 390, "height": 844})
    wrong = []
    for address in PAGES:
        page.goto(served + address)
        wrong += page.evaluate("""address => [...(document.documentElement.scrollWidth > 390 ? [`${address}: ${document.documentElement.scrollWidth} px wide`] : []),
            ...[...document.querySelectorAll('article :is(p, li, dd, td)')].filter(e => e.innerText?.trim() && e.checkVisibility()
            && parseFloat(getComputedStyle(e).fontSize) < 12).map(e => `${address}: small: ${e.innerText.slice(0, 40)}`)]""", address)
    assert not wrong, "\n".join(wrong)


def test_a_panel_stays_on_a_phone_s_screen(read):
    page = read(DAY, viewport={"width": 390, "height": 844}, has_touch=True)
    for value in page.locator("article p a.v").all()[:12]:
        value.tap()
        box = page.locator(".panel").bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390 and box["y"] >= 0 and box["y"] + box["height"] <= 844
        page.keyboard.press("Escape")
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_paper_is_light_and_whole_from_dark(read):
    page = read(DAY, color_scheme="dark")
    dark = page.evaluate("getComputedStyle(document.body).color")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(29, 31, 35)" != dark
    assert not page.locator(".site-links").is_visible() and not page.locator(".notes").is_visible()
    assert page.locator("figure svg.wide").first.is_visible() or page.locator("figure svg.narrow").first.is_visible()


def test_the_switch_of_light_and_dark_is_remembered(read):
    page = read("", color_scheme="light")
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.get_by_title("Switch to dark").click()
    dark = page.evaluate(paper)
    assert light == "rgb(251, 250, 247)" and dark == "rgb(21, 23, 27)"
    page.reload()
    assert page.evaluate(paper) == dark
    page.get_by_title("Switch to light").click()
    assert page.evaluate(paper) == light


def test_the_switch_follows_the_system_until_somebody_chooses(read):
    page = read("", color_scheme="dark")
    assert page.get_by_title("Switch to light").is_visible()
    page.emulate_media(color_scheme="light")
    page.get_by_title("Switch to dark").click()
    page.emulate_media(color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 23, 27)" and page.get_by_title("Switch to light").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(read, served, scheme):
    from axe_playwright_python.sync_playwright import Axe

    page = read(DAY, color_scheme=scheme, bypass_csp=True)  # axe is a script of ours
    page.locator("p.lead a.measured").click()  # the open panel too
    wrong = []
    for address in [DAY, *(p for p in PAGES if p != DAY and (scheme == "light" or p in ("", MACHINE)))]:
        if page.url != served + address:
            page.goto(served + address)
        found = Axe().run(page)
        wrong += [f"{address}: {found.generate_report()}"] if found.violations_count else []
    assert not wrong, "\n".join(wrong)


def test_search_finds_and_asks_for_its_index_only_then(read):
    asked = []
    page = read("about/")
    page.on("request", lambda r: asked.append(r.url.rpartition("/")[2]))
    page.reload(wait_until="load")
    page.keyboard.press("/")
    assert 'name="query"' in focused(page)
    page.keyboard.type("speculative")
    page.locator(".md-search-result__link").first.click()
    page.wait_for_url("**/days/01-local-inference/**")
    first = next(i for i, name in enumerate(asked) if name.startswith("bundle."))
    assert not [name for name in asked[:first] if name.startswith("search")] and "search_index.json" in asked


def test_search_reads_words_not_markup(site):
    texts = {entry["location"]: entry["text"] for entry in json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))["docs"]}
    assert "The spec sheet called it Decode is said" in texts["days/"]  # a term and what it means are two words
    assert not [where for where, text in texts.items() if "bandwidthfile" in text]  # an equation has no order of words


# Every kind of page; the two longest of each that grows with its data.
FIRST = ["", "days/", DAY, "days/01-post/", "machines/", MACHINE, "machines/amd-epyc-2-cores-24-gb/", "compare/", "predict/", "accuracy/", "method/", "data/"]


@pytest.mark.parametrize("address", FIRST)
def test_a_first_visit_is_light_still_and_asks_one_host(served, open_page, address):
    """At most 120 KB as sent, fonts included, and 80 KB without them; nothing moves; nobody else is asked; the theme's script is not needed."""
    page = open_page(viewport={"width": 390, "height": 844})
    wire = page.context.new_cdp_session(page)
    wire.send("Network.enable")
    kinds, sizes, asked = {}, {}, []
    wire.on("Network.responseReceived", lambda e: kinds.__setitem__(e["requestId"], e["type"]))
    wire.on("Network.loadingFinished", lambda e: sizes.__setitem__(e["requestId"], e["encodedDataLength"]))
    page.on("request", lambda r: asked.append(r.url))
    # A table that a slow machine paints while it still reads it may settle its columns; once read, nothing moves.
    page.add_init_script("""window.moved = {}; new PerformanceObserver(list => { for (const e of list.getEntries()) {
        const when = document.readyState === "loading" ? "reading" : "read"; window.moved[when] = (window.moved[when] ?? 0) + e.value } })
        .observe({ type: "layout-shift", buffered: true })""")
    page.goto(served + address, wait_until="networkidle")
    assert all(url.startswith((served, "data:")) for url in asked), asked
    everything = sum(sizes.values())
    fonts = sum(size for request, size in sizes.items() if kinds.get(request) == "Font")
    assert 0 < everything <= 120e3 and everything - fonts <= 80e3, f"{everything} B, {fonts} of them fonts"
    moved = page.evaluate("window.moved")
    assert "read" not in moved and moved.get("reading", 0) < 0.01, moved
    assert not [url for url in asked if "/bundle." in url]


def test_instant_navigation_keeps_the_panels(tmp_path, open_page):
    home = copy_project(tmp_path)
    (home / "site").mkdir()
    with serving(home / "site", under="/lab/") as address:
        done = run_module(home, "mkdocs", "build", "-q", env={"SITE_URL": address})
        assert done.returncode == 0, done.stderr
        page = open_page()
        page.goto(address)
        page.evaluate("window.same = true")
        link = page.get_by_role("link", name="Read Day 1")
        with page.expect_request_finished(lambda request: request.url.endswith("/sitemap.xml")):
            link.hover()  # the theme's script comes, and asks which pages there are
        until(page, "document$ && performance.getEntriesByName(new URL('sitemap.xml', document.baseURI)).length")
        link.click()
        until(page, "document.title.startsWith('The spec sheet')")
        assert page.evaluate("window.same"), "the page was loaded anew"
        assert page.locator(".site-links [aria-current]").inner_text() == "Days"
        page.locator("#decode-depth").get_by_role("button", name="Explore").wait_for()
        page.locator("p.lead a.measured").click()
        assert "day1-baseline.yml" in page.locator(".panel").inner_text()
        page.locator("p.lead a.measured").click()
        assert page.locator(".panel").count() == 0
        page.go_back()
        until(page, "!document.title.startsWith('The spec sheet')")
        assert page.evaluate("window.same") and page.locator(".panel").count() == 0
