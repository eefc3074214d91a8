"""Finished HTML passes Markdown by: parsed there three times over, it would come out as it went in.

Of the page being made; the next one begins with none.
"""

from __future__ import annotations

import re
import zlib

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


class Packed:
    """A finished page's HTML kept small until it is printed: MkDocs holds every page's until the last one is written."""

    def __init__(self, html: str) -> None:
        self._data = zlib.compress(html.encode(), 1)

    def __str__(self) -> str:
        return zlib.decompress(self._data).decode()


def taken() -> list[str]:
    """What a page made elsewhere has set aside; the next begins with none."""
    found = list(_kept)
    _kept.clear()
    return found


def give(found: list[str]) -> None:
    """Take over what was set aside for this page elsewhere."""
    _kept[:] = found


def back(html: str) -> str:
    """A page's HTML with everything in its place."""
    found = _PLACE.sub(lambda place: _kept[int(place[1])], html)
    _kept.clear()
    return found
