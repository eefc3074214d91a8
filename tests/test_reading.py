"""Pages as readers meet them: light, dark, on a phone, on paper, without JavaScript, by keyboard."""

from __future__ import annotations


def test_pages_are_compressed_and_lost_ones_say_so(served, browser):
    page = browser.new_page()
    answer = page.goto(served)
    assert answer.headers["content-encoding"] == "gzip"
    assert page.goto(served + "nowhere/").status == 404
    assert page.text_content("h1") == "No such page"
    page.close()
