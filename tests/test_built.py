"""The check of a built site: each kind of fault is found, and what only looks like one is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from macros import built, processes

PAGE = """<!doctype html><html><head><meta charset="utf-8"><link rel="stylesheet" href="{style}"></head>
<body><h1 id="top">None of these pages has a nan-like value</h1><p>{body}</p></body></html>"""


def site(tmp_path: Path, body: str) -> Path:
    folder = tmp_path / "site"
    (folder / "method").mkdir(parents=True)
    (folder / "style.css").write_text("a{background:url(data:image/png;base64,AA)}", encoding="utf-8")
    (folder / "method/index.html").write_text(PAGE.format(style="../style.css", body="<a id='noise'></a>"), encoding="utf-8")
    (folder / "index.html").write_text(PAGE.format(style="style.css", body=body), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('<a href="nowhere/">x</a>', "link: leads nowhere; got 'nowhere/'"),
        ('<a href="method/#noize">x</a>', "link: no such anchor; got 'method/#noize'"),
        ('<a href="#bottom">x</a>', "link: no such anchor; got '#bottom'"),
        ('<b id="top"></b>', "id: given twice; got 'top'"),
        ("It drew [[ share ]] of it", "text: '[[' is left over"),
        ("{% if x %}", "text: '{%' is left over"),
        ("<td>nan</td>", "text: prints no value; got 'nan'"),
        ("20.8 ± nan tok/s", "text: prints no value"),
        ("<td>None</td>", "text: prints no value; got 'None'"),
        ("the model: None", "text: prints no value"),
        ('<i title="as [[ x ]]"></i>', "i: title: a macro is left over"),
        ('<img src="style.css">', "img: no alt"),
        ('<svg role="img" id="a"><path d=""/></svg>', "svg: role img without a name; got id 'a'"),
        ('<img alt="" src="https://elsewhere.example/x.png">', "img: loads from another host"),
        ('<script src="//cdn.example/x.js"></script>', "script: loads from another host"),
        ('<link rel="preload" href="https://cdn.example/f.woff2">', "link: loads from another host"),
        ("<style>p{background:url(https://cdn.example/p.png)}</style>", "style: loads from another host"),
        ('<b onclick="x()">y</b>', "b: a script in an attribute; got onclick="),
        ('<a href="javascript:x()">y</a>', "a: a script in an attribute; got href="),
        ('<b\nonclick="x()">y</b>', "b: a script in an attribute; got onclick="),
        ('<B TITLE="a > b" ID="top"></B>', "id: given twice; got 'top'"),
        ("<style>p{background:URL( '//cdn.example/ñ.png')}</style>", "style: loads from another host; got //cdn.example/ñ.png"),
    ],
)
def test_a_fault_is_found_and_named(tmp_path: Path, body: str, expected: str):
    found = built.problems(site(tmp_path, body))
    assert any(line.startswith("site/index.html: ") and expected in line for line in found), found


@pytest.mark.parametrize(
    "body",
    [
        '<a href="method/#noise">x</a> <a href="https://elsewhere.example/">y</a> <a href="mailto:a@b.example">z</a> <a href="?sort=rate#top">s</a>',
        "<script>var a = [[1]], b = {}; if (a === NaN) { None }</script>",
        "<style>a::before { content: '[[' }</style><!-- [[ nothing ]] -->",
        "&#91;&#91; 1/0 &#93;&#93; inference, information, nanometre, Nonesuch, tok/s and None of it",
        """<figure data-spec='{"values": [[1, 2], [3, 4]]}'><img alt="" src="style.css"></figure>""",
        '<b title="id=&quot;top&quot; on the way, not onclick=">on id="top" and src="nowhere"</b>',
        '<svg role="img" aria-label="A line"><title>a &gt; b</title></svg> a < b and "[" and ]',
    ],
)
def test_what_only_looks_like_a_fault_is_none(tmp_path: Path, body: str):
    assert built.problems(site(tmp_path, body)) == []


def test_style_sheets_are_read_too(tmp_path: Path):
    folder = site(tmp_path, "")
    (folder / "style.css").write_text('@import "https://fonts.example/x.css";', encoding="utf-8")
    assert built.problems(folder) == ["site/style.css: url: loads from another host; got https://fonts.example/x.css"]


def test_processes_find_what_one_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = site(tmp_path, '<p id="all">Every page leads here.</p>')
    for n in range(built.MANY):
        (folder / f"{n}.html").write_text(f'<p id="p{n}"><a href="index.html#all">up</a> <a href="{n}.html#p{n}">here</a> <a href="{n + 1}.html#p{n}">next</a></p>', encoding="utf-8")
    monkeypatch.setattr(processes, "cores", lambda: 1)
    alone = built.problems(folder)
    assert len(alone) == built.MANY  # no page has its neighbour's anchor, and the last has no neighbour
    monkeypatch.setattr(processes, "cores", lambda: 2)
    assert built.problems(folder) == alone
    known = {str(folder / "0.html"): built.Page(problems=["said before"])}
    assert built.problems(folder, known) == ["site/0.html: said before", *alone[1:]]
