"""What a build keeps of a page's macros, what of a page the search reads, which of a theme's files are listed, and how a build ends."""

from __future__ import annotations

import gc
from types import SimpleNamespace

import jinja2
import pytest

from macros import hooks, rendering


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setattr(rendering, "byte_code", hooks._Templates(str(tmp_path)))
    monkeypatch.setattr(rendering, "_compiled", {})
    return tmp_path


def test_a_pages_byte_code_is_never_of_another_text_or_other_marks(kept, monkeypatch):
    def page(text: str, start: str = "[[", end: str = "]]") -> str:
        rendering._compiled.clear()  # as in another process
        env = SimpleNamespace(env=jinja2.Environment(variable_start_string=start, variable_end_string=end), variables={})
        return rendering.rendered(env, text + " " * rendering.LEAST, {"n": 5}, "docs/a.md", 0, str).strip()

    assert [page("[[ n ]]"), page("[[ n + 1 ]]"), page("[[ n ]]"), page("[[ n ]]", "<<", ">>"), page("[[ n ]]")] == ["5", "6", "5", "[[ n ]]", "5"]
    assert len(list(kept.glob("*.cache"))) == 1
    monkeypatch.setattr(jinja2.Environment, "compile", lambda *_: pytest.fail("compiled again"))
    assert page("[[ n ]]") == "5"


def test_the_search_gets_a_pages_words_without_the_marks_inside_them():
    content = '<h2 id="a">A</h2><p class="x">at <a class="v" title="a > b" href="#x"><data value="1">1 tok/s</data></a>, x < 2</p><table><tr><td>1</td><td>2</td></tr></table>'
    page = SimpleNamespace(content=content, meta={})
    hooks._for_search({}, page, None, None)
    assert page.content == '<h2 id="a">A</h2><p class="x">at 1 tok/s, x < 2</p>1 2 '
    hooks._for_print({}, page, None, None)
    assert page.content == content


def test_a_themes_hidden_folders_are_not_listed_and_can_be_read(tmp_path):
    for name in ("main.html", "assets/a.js", ".icons/b.svg"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
    loader = hooks._Shown(str(tmp_path))
    assert loader.list_templates() == ["assets/a.js", "main.html"]
    assert jinja2.Environment(loader=loader).get_template(".icons/b.svg").render() == "x"


def test_what_a_build_made_is_not_looked_through_before_it_ends():
    made, before = [], gc.get_freeze_count()
    made.append(made)  # refers to itself: only Python's search would find it
    try:
        hooks.on_shutdown()
        assert gc.get_freeze_count() > before and not any(found is made for found in gc.get_objects())
    finally:
        gc.unfreeze()
