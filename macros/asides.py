"""Finished HTML passes Markdown by: parsed there three times over, it would come out as it went in.

Of the page being made; the next one begins with none.
"""

from __future__ import annotations

import re

_kept: list[str] = []
_ID = re.compile(r' id="([\w-]+)"')
_PLACE = re.compile(r'<div data-aside="(\d+)">.*?</div>')
LEAST = 400  # characters; what is shorter costs Markdown nothing
_FINISHED = ("<figure ", "<table ", '<div class="broad">')


def aside(printed: object) -> object:
    """What a macro printed, or where it is one long line of HTML, its place: a block with the same ids, so that links to them are known."""
    if not (isinstance(printed, str) and len(printed) >= LEAST and printed.startswith(_FINISHED) and "\n" not in printed):
        return printed
    _kept.append(printed)
    ids = "".join(f'<i id="{name}"></i>' for name in _ID.findall(printed))
    return f'<div data-aside="{len(_kept) - 1}">{ids}</div>'


def back(html: str) -> str:
    """A page's HTML with everything in its place."""
    found = _PLACE.sub(lambda place: _kept[int(place[1])], html) if _kept else html
    _kept.clear()
    return found
