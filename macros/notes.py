"""What stands behind a number, a term or a word: a link in the text, and a note at the page's end that it leads to.

With scripts the note opens where the link stands (`theme/assets/inklab.js`); without, it is an ordinary link.
A note's anchor is a hash of its text, so the same number keeps its address and two uses share one note.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from markupsafe import Markup

_known: dict[str, Markup] = {}  # of the page being made, by anchor
_REFERENCE = re.compile(r'href="#((?:from|term)-[\w-]+)"')


def refer(text: str | Markup, css: str, note: Markup) -> Markup:
    """Text as a link to its note."""
    anchor = f"from-{hashlib.sha256(note.encode()).hexdigest()[:8]}"
    return _link(anchor, text, css, note)


def term(text: str, anchor: str, meaning: Markup) -> Markup:
    """A term of the glossary as a link to what it means; `anchor` is its address there."""
    return _link(f"term-{anchor}", text, "term", meaning)


def _link(anchor: str, text: str | Markup, css: str, note: Markup) -> Markup:
    _known[anchor] = note
    return Markup('<a class="{}" href="#{}">{}</a>').format(css, anchor, text)


def facts(first: Markup, pairs: Sequence[tuple[str, str | Markup]]) -> Markup:
    """A note: what it is about, then labelled facts; those without a value are left out."""
    rows = Markup("").join(Markup("<dt>{}</dt><dd>{}</dd>").format(k, v) for k, v in pairs if v)
    return Markup("<p>{}</p>").format(first) + (Markup("<dl>{}</dl>").format(rows) if rows else Markup(""))


def section(body: str) -> Markup:
    """The notes a page's text refers to, and those these refer to, in order; nothing for a page without.

    The next page begins with none.
    """
    order = list(dict.fromkeys(_REFERENCE.findall(body)))
    for anchor in order:  # grows while it is read
        order += [a for a in dict.fromkeys(_REFERENCE.findall(_known[anchor])) if a not in order]
    items = Markup("").join(Markup('<li id="{}">{}</li>').format(anchor, _known[anchor]) for anchor in order)
    _known.clear()
    if not order:
        return Markup("")
    return Markup('<details class="notes" data-search-exclude><summary>Where the numbers on this page come from</summary><ol>{}</ol></details>').format(items)
