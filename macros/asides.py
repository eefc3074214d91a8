"""Finished HTML passes Markdown by: parsed there three times over, it would come out as it went in.

Of the page being made; the next one begins with none.
"""

from __future__ import annotations

import re
from itertools import groupby

_kept: list[str] = []
_ID = re.compile(r' id="([\w-]+)"')
_PLACE = re.compile(r'<div data-aside="(\d+)">.*?</div>')
LEAST = 400  # characters; what is shorter costs Markdown nothing
_FINISHED = ("<figure ", "<table ", '<div class="broad">', '<dl class="provenance"')


def aside(printed: object) -> object:
    """What a macro printed, or where it is one long line of HTML, its place: a block with the same ids, so that links to them are known."""
    return _place(printed) if isinstance(printed, str) and len(printed) >= LEAST and _finished(printed) else printed


def _finished(text: str) -> bool:
    return text.startswith(_FINISHED) and "\n" not in text


def _place(text: str) -> str:
    _kept.append(text)
    ids = "".join(f'<i id="{name}"></i>' for name in _ID.findall(text))
    return f'<div data-aside="{len(_kept) - 1}">{ids}</div>'


def parts_aside(text: str) -> str:
    """Markdown with each of its parts aside that can be, those in a row as one."""
    found = groupby(text.split("\n\n"), _finished)
    texts = ((finished, "\n\n".join(parts)) for finished, parts in found)
    return "\n\n".join(_place(part) if finished else part for finished, part in texts)


def back(html: str) -> str:
    """A page's HTML with everything in its place."""
    found = _PLACE.sub(lambda place: _kept[int(place[1])], html)
    _kept.clear()
    return found
