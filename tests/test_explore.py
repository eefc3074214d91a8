"""A chart's tools in a browser: Explore draws the chart's spec without eval, Copy PNG gives the picture, and nothing is loaded before."""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import serving, until

DAY = "days/01-local-inference/"
POLICY = "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:"  # no unsafe-eval


@pytest.fixture(scope="module")
def lab(site: Path) -> Iterator[str]:
    """The site below a path of its host, as on GitHub Pages."""
    with serving(site, "/lab/") as address:
        yield address


@pytest.fixture
def page(open_page: Any) -> Any:
    return open_page(viewport={"width": 1000, "height": 900})


def guarded(page: Any) -> None:
    """Every answer forbids eval, as the published site may."""
    page.route("**/*", lambda route: _forbid(route))


def _forbid(route: Any) -> None:
    answer = route.fetch()
    route.fulfill(response=answer, headers={**answer.headers, "content-security-policy": POLICY})


def explore(page: Any, figure: str) -> Any:
    page.locator(f"#{figure}").get_by_role("button", name="Explore").click()
    drawn = page.locator(f"#{figure} .explored svg")
    drawn.wait_for()
    return drawn


def test_explore_draws_the_spec_without_eval_and_only_then_loads_vega(page, lab):
    guarded(page)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(lab + DAY)
    assert not [url for url in asked if "vega-" in url or "-charts.js" in url]
    static = page.locator("#decode-depth > svg.wide")
    before = static.locator("text").all_text_contents()
    drawn = explore(page, "decode-depth")
    assert sorted(drawn.locator("text").all_text_contents()) == sorted(before)
    assert not static.is_visible()
    assert {url.removeprefix(lab).rpartition("/")[0] for url in asked if "vega-" in url or "-charts.js" in url} == {"assets", "data"}
    # A dot tells its numbers, those of the CSV.
    drawn.locator(".mark-symbol path").last.hover()
    tip = page.locator("#vg-tooltip-element.visible")
    tip.wait_for()
    rows = (page.request.get(lab + "data/days-01-local-inference-decode-depth.csv").text()).splitlines()
    deepest = dict(zip(rows[0].split(","), rows[-1].split(","), strict=True))
    assert f"{float(deepest['measured_tok_s']):.2f}" in tip.inner_text() and f"{int(deepest['depth_tokens']):,}" in tip.inner_text()
    page.locator("#decode-depth").get_by_role("button", name="Explore").click()
    assert page.locator(".explored").count() == 0 and static.is_visible()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1000), ("dark", 390)])
def test_an_explored_chart_follows_scheme_and_width(page, lab, scheme, width):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(lab + DAY)
    drawn = explore(page, "roofline")
    mark = drawn.locator(".mark-symbol path").last
    seen = mark.evaluate("e => getComputedStyle(e).fill")
    assert seen == {"light": "rgb(168, 72, 15)", "dark": "rgb(255, 171, 107)"}[scheme]  # DESIGN: measured
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert drawn.bounding_box()["width"] <= width


def test_every_chart_of_the_day_can_be_explored(page, lab):
    page.goto(lab + DAY)
    figures = page.locator("figure.chart[data-chart]").evaluate_all("all => all.map(f => f.id)")
    assert {"decode-depth", "prefill-depth", "ink-rates", "roofline", "formats", "cpu-gpu", "pulled"} == set(figures)
    for figure in figures:
        explore(page, figure)


def test_a_scatter_zooms_and_the_page_still_scrolls(page, lab):
    page.goto(lab + "accuracy/")
    drawn = explore(page, "decode-scatter")
    drawn.scroll_into_view_if_needed()
    box = drawn.bounding_box()
    ticks = lambda: drawn.locator(".role-axis-label text").all_text_contents()  # noqa: E731
    before, top = ticks(), page.evaluate("scrollY")
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.wheel(0, 120)
    until(page, f"scrollY > {top}")
    assert ticks() == before
    box = drawn.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -600)
    page.keyboard.up("Control")
    until(page, f"[...document.querySelectorAll('#decode-scatter .explored .role-axis-label text')].map(t => t.textContent).join() !== {json.dumps(','.join(before))}")


def test_it_works_from_a_folder_and_is_furnished_once(page, site):
    page.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")  # as on a host without https
    page.goto((site / DAY / "index.html").as_uri())
    page.add_script_tag(url=(site / "assets/charts.js").as_uri())  # an instant navigation runs it again
    assert page.locator("#decode-depth .chart-tools").count() == 1
    explore(page, "decode-depth")
    with page.expect_download() as saved:
        page.locator("#decode-depth").get_by_role("button", name="Copy PNG").click()
    assert Path(saved.value.path()).read_bytes().startswith(b"\x89PNG")


def test_copy_gives_the_picture_with_its_caption(page, lab):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=lab.split("/lab")[0])
    page.goto(lab + DAY)
    page.locator("#pulled").get_by_role("button", name="Copy PNG").click()
    page.locator("#pulled").get_by_role("button", name="Copied").wait_for()
    data = page.evaluate("""async () => {
        const [item] = await navigator.clipboard.read();
        const bytes = new Uint8Array(await (await item.getType("image/png")).arrayBuffer());
        return btoa(bytes.reduce((text, byte) => text + String.fromCharCode(byte), ""));
    }""")
    png = base64.b64decode(data)
    width, height = struct.unpack(">II", png[16:24])
    box = page.locator("#pulled > svg.wide").bounding_box()
    assert width == 2 * (round(box["width"]) + 32)
    assert height > 2 * (box["height"] + 16 + 20)  # room for at least a line of caption
    colours = page.evaluate("""async (data) => {
        const image = new Image(); image.src = "data:image/png;base64," + data; await image.decode();
        const pen = Object.assign(document.createElement("canvas"), {width: image.width, height: image.height}).getContext("2d");
        pen.drawImage(image, 0, 0);
        const seen = {}, all = pen.getImageData(0, 0, image.width, image.height).data;
        for (let i = 0; i < all.length; i += 4) seen[all.slice(i, i + 3).join()] = (seen[all.slice(i, i + 3).join()] || 0) + 1;
        return Object.entries(seen).sort((a, b) => b[1] - a[1]).slice(0, 3).map(e => e[0]);
    }""", data)
    assert colours[:2] == ["251,250,247", "168,72,15"]  # paper, then the bars' rust


def test_what_cannot_be_loaded_is_said(page, lab):
    page.route("**/vega-*.js", lambda route: route.abort())
    page.goto(lab + DAY)
    page.locator("#pulled").get_by_role("button", name="Explore").click()
    page.locator("#pulled").get_by_role("button", name="Explore: could not be loaded").wait_for()
    assert page.locator("#pulled > svg.wide").is_visible()
    assert ["ERR_FAILED" in line for line in page.complaints] == [True]
    page.complaints.clear()


def test_without_scripts_a_chart_keeps_its_links_and_has_no_buttons(read, lab):
    plain = read(lab + DAY, java_script_enabled=False)
    figure = plain.locator("#decode-depth")
    assert figure.locator("button").count() == 0
    assert [link.inner_text() for link in figure.locator("a.csv").all()] == ["CSV", "Spec"]
    spec = json.loads(plain.request.get(lab + "data/days-01-local-inference-decode-depth.vl.json").text())
    assert re.fullmatch(r"https://vega\.github\.io/schema/vega-lite/v\d\.[\d.]+\.json", spec["$schema"])
    assert spec["description"] == figure.locator("svg.wide").get_attribute("aria-label")


def test_print_shows_the_static_chart(page, lab):
    page.goto(lab + DAY)
    explore(page, "decode-depth")
    page.emulate_media(media="print")
    assert page.locator("#decode-depth > svg.wide").is_visible()
    assert not page.locator(".explored").is_visible() and not page.locator(".chart-tools").first.is_visible()
