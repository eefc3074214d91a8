"""What differs under Zensical is named: a page, a value, a word, a file, and nothing where nothing does."""

from __future__ import annotations

from pathlib import Path

from bench import successor

PAGE = '<head><meta property="og:title" content="x"></head><article class="a"><p>It read <data class="v" value="{}">20.8</data> {}.</p></article><footer>{}</footer>'


def page(folder: Path, name: str, *words: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(PAGE.format(*words), encoding="utf-8")


def test_differences_are_named(tmp_path: Path):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for folder in (ours, theirs):
        page(folder, "same/index.html", "20.8", "tok/s", folder.name)
    page(ours, "gone/index.html", "1", "", "")
    page(ours, "value/index.html", "20.8", "tok/s", "")
    page(theirs, "value/index.html", "21.9", "tok/s", "")
    page(ours, "word/index.html", "20.8", "tok/s", "")
    page(theirs, "word/index.html", "20.8", "tokens", "")
    (ours / "feed.xml").write_text("", encoding="utf-8")
    assert successor.differences(ours, theirs) == [
        "gone/index.html: page: not built",
        "value/index.html: values: 1 of ours, 1 of its, not the same",
        "word/index.html: words: differ from 'tok/s.' on; its are 'tokens.'",
        "*.xml: files: 1 not written, such as feed.xml",
    ]


def test_it_is_laid_out_with_the_machines_pages(tmp_path: Path):
    successor.lay_out(tmp_path / "work")
    assert {p.stem for p in tmp_path.glob("work/docs/machines/*.md")} == {"index", "apple-m4-24gb", "amd-epyc-2-cores-24-gb"}
    assert (tmp_path / "work/mkdocs.yml").is_file()
