"""What stands behind a number, a term or a word: a link in the text, and a note at the page's end that it leads to.

With scripts the note opens where the link stands (`theme/assets/inklab.js`); without, it is an ordinary link.
A note's anchor is a hash of its text, so the same number keeps its address and two uses share one note.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from markupsafe import Markup, escape

_known: dict[str, str] = {}  # of the page being made, by anchor
_REFERENCE = re.compile(r'href="#((?:from|term)-[\w-]+)"')


def safe(words: object) -> str:
    """What `escape` makes of a cell or a fact, as a plain string: of a page's thousands each takes a third of the time, a Markup of none is needed."""
    if type(words) is not str:
        return words if type(words) is Markup else escape(words)
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("'", "&#39;").replace('"', "&#34;")


def refer(text: str | Markup, css: str, note: str) -> Markup:
    """Text as a link to its note."""
    anchor = f"from-{hashlib.sha256(note.encode()).hexdigest()[:8]}"
    return _link(anchor, text, css, note)


def term(text: str, anchor: str, meaning: str) -> Markup:
    """A term of the glossary as a link to what it means; `anchor` is its address there."""
    return _link(f"term-{anchor}", text, "term", meaning)


def _link(anchor: str, text: str | Markup, css: str, note: str) -> Markup:
    _known[anchor] = note
    return Markup(f'<a class="{css}" href="#{anchor}">{safe(text)}</a>')


def facts(first: str, pairs: Sequence[tuple[str, str | Markup]]) -> str:
    """A note as HTML: what it is about, HTML too, then labelled facts; those without a value are left out."""
    return f"<p>{first}</p>{described(pairs) if any([v for _, v in pairs]) else ''}"


def described(pairs: Sequence[tuple[str, str | Markup]], more: str = "") -> str:
    """Labelled facts as HTML, those without a value left out; labels and `more`, attributes, are no data and stand as they are."""
    return f"<dl{more}>{''.join([f'<dt>{k}</dt> <dd>{safe(v)}</dd>' for k, v in pairs if v])}</dl>"


def section(body: str) -> Markup:
    """The notes a page's text refers to, and those these refer to, in order; nothing for a page without.

    The next page begins with none.
    """
    order = list(dict.fromkeys(_REFERENCE.findall(body)))
    for anchor in order:  # grows while it is read
        order += [a for a in dict.fromkeys(_REFERENCE.findall(_known[anchor])) if a not in order]
    items = "".join(f'<li id="{anchor}">{_known[anchor]}</li>' for anchor in order)
    _known.clear()
    if not order:
        return Markup("")
    return Markup(f'<details class="notes" data-search-exclude><summary>Where the numbers on this page come from</summary><ol>{items}</ol></details>')
