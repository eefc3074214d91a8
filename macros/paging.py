"""Lists that grow with the lab: the machines, a hundred a page, and what the search knows of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup, escape

from macros.labdata import Lab
from macros.narrative import Book

A_PAGE = 100  # machines on a page of their list


def _last(count: int) -> int:
    return -(-count // A_PAGE)


def pages(lab: Lab) -> dict[str, str]:
    """The list of machines past its first page, which docs/ has: address below docs/ and Markdown of each."""
    head = "---\ntitle: Machines, page {0}\nsearch: {{exclude: true}}\n---\n# Machines, page {0}\n\n[[ machine_index({0}) ]]\n"
    return {f"machines/page/{n}.md": head.format(n) for n in range(2, _last(len(lab.machines)) + 1)}


def cut(items: Sequence[Any], page: int) -> Sequence[Any]:
    """What stands on a page, the first being 1."""
    return items[(page - 1) * A_PAGE : page * A_PAGE]


def links(book: Book, count: int, page: int) -> list[str]:
    """Links to all pages of the list, as one line of HTML; none where one page holds it."""
    if _last(count) < 2:
        return []
    each = (
        Markup('<a href="{}"{}>{}</a>').format(book.link(f"machines/page/{n}/" if n > 1 else "machines/"), Markup(' aria-current="page"') if n == page else "", n)
        for n in range(1, _last(count) + 1)
    )
    return [Markup('<nav class="pages" aria-label="Pages of machines">Page {}</nav>').format(Markup(" ").join(each))]


def search_entry(book: Book, name: str) -> dict[str, str]:
    """What the search finds a machine by: its name and its one sentence."""
    words = Markup(book.sentences.get(name, "")).striptags()
    return {"location": f"machines/{name}/", "title": str(escape(book.lab.machines[name].name)), "text": str(escape(words))}
