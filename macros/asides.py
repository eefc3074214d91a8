"""Finished HTML passes Markdown by: parsed there three times over, it would come out as it went in.

Of the page being made; the next one begins with none.
"""

from __future__ import annotations

import re

_kept: list[str] = []
_ID = re.compile(r'\bid="([\w-]+)"')
_PLACE = re.compile(r'<div data-aside="(\d+)">.*?</div>')
LEAST = 400  # characters; what is shorter costs Markdown nothing


def aside(printed: object) -> object:
    """What a macro printed, or where it is one long line of HTML, its place: a block with the same ids, so that links to them are known."""
    text = printed if isinstance(printed, str) else ""
    if len(text) < LEAST or not text.startswith(("<figure ", "<table ", '<div class="broad">', '<dl class="provenance"')) or "\n" in text:
        return printed
    _kept.append(text)
    ids = "".join(f'<i id="{name}"></i>' for name in _ID.findall(text))
    return f'<div data-aside="{len(_kept) - 1}">{ids}</div>'


def parts_aside(text: str) -> str:
    """Markdown with each of its parts aside that can be."""
    return "\n\n".join(str(aside(part)) for part in text.split("\n\n"))


def back(html: str) -> str:
    """A page's HTML with everything in its place."""
    found = _PLACE.sub(lambda place: _kept[int(place[1])], html)
    _kept.clear()
    return found
