"""Pages on screens of any width: nothing runs off sideways, and what is laid out late stands where it would have."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import until

DAY = "days/01-local-inference/"


def test_no_page_scrolls_sideways_at_any_width(read, served, site: Path):
    page, wrong = read("", java_script_enabled=True), []
    for path in sorted(site.rglob("index.html")):
        address = path.relative_to(site).parent.as_posix()
        page.goto(f"{served}{address}/")
        for width in (320, 480, 610, 650, 690, 700, 800, 1000, 1100):
            page.set_viewport_size({"width": width, "height": 850})
            if (over := page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")) > 0:
                wrong.append(f"{address or 'front'} at {width} px: {over} px too wide")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("width", [390, 1280])
def test_a_long_page_read_to_its_end_moves_nothing(read, width: int):
    """Blocks below the first screen are laid out as they come near; a reader sees none of them shift, and a link lands on its heading."""
    page = read("", viewport={"width": width, "height": 850})
    page.add_init_script("window.requestIdleCallback = () => {}")  # or the script would lay them out meanwhile
    page.goto(f"{page.url}{DAY}")
    page.evaluate("""() => { window.moved = 0; new PerformanceObserver(list => { for (const e of list.getEntries()) moved += e.value }).observe({ type: "layout-shift" }) }""")
    seen = page.evaluate("""() => { const inner = [...document.querySelectorAll("article > figure.chart > figcaption")];
        return inner.filter(e => e.checkVisibility({ contentVisibilityAuto: true })).length / inner.length }""")
    assert seen < 0.5  # else this test says nothing
    page.evaluate("""async () => { for (let y = 0; y < document.documentElement.scrollHeight; y += innerHeight / 2) {
        scrollTo(0, y); await new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r))) } }""")
    assert page.evaluate("moved") == 0
    page.goto(page.url + "#caveats")
    page.wait_for_timeout(300)
    assert 0 <= page.evaluate("document.getElementById('caveats').getBoundingClientRect().top") < 100


@pytest.mark.parametrize(("address", "scripts"), [(DAY, True), (f"{DAY}#caveats", True), (DAY, False)])
def test_a_page_is_whole_soon_without_being_scrolled(read, address: str, scripts: bool):
    """For a picture of all of it, or without scripts, nothing waits for a reader to come near."""
    page = read(address, viewport={"width": 390, "height": 850}, java_script_enabled=scripts)
    until(page, """() => { const all = [...document.querySelectorAll("article > * *:not(details *)")];
        return all.length > 500 && all.every(one => one.checkVisibility({ contentVisibilityAuto: true }) || !one.checkVisibility()) }""", 10)
    if "#" in address:
        assert 0 <= page.evaluate("document.getElementById('caveats').getBoundingClientRect().top") < 100
