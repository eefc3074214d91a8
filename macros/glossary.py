"""The glossary's terms, each linked where a page first uses it, so that it explains itself in place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from markupsafe import Markup

from macros import notes

_ENTRY = re.compile(r'^(?P<term>\S.*?) \{: #(?P<anchor>[\w-]+)(?: data-also="(?P<also>[^"]*)")? \}\n:\s+(?P<means>.+)$', re.M)
_QUIET = {"a", "code", "pre", "math", "svg", "h1", "h2", "h3", "h4", "table", "figure", "figcaption", "summary", "script", "button", "b", "strong", "data", "form"}
_SPOKEN = {"p", "li", "dd"}
_WHOLE = {"figure", "table", "svg"}  # most of a page, and nothing in it is looked through
_TAG = re.compile(r"<(/?)([a-zA-Z][\w-]*)([^>]*)>")


@dataclass(frozen=True)
class Entry:
    """A term, its address on the glossary page, what else it is called, what it means."""

    term: str
    anchor: str
    also: tuple[str, ...]
    means: str


def entries(markdown: str) -> tuple[Entry, ...]:
    """The terms of a definition list; definitions are one line of plain text.

    >>> entries('Depth {: #depth data-also="in the context" }\\n:   Tokens already there.')
    (Entry(term='Depth', anchor='depth', also=('in the context',), means='Tokens already there.'),)
    """
    return tuple(Entry(m["term"], m["anchor"], tuple(filter(None, (m["also"] or "").split("|"))), m["means"].strip()) for m in _ENTRY.finditer(markdown))


@lru_cache(maxsize=2)
def _pattern(known: tuple[Entry, ...]) -> tuple[re.Pattern, dict[str, Entry]]:
    """One pattern for all names, the longest first; a name with capitals inside is matched as it stands."""
    names = {name: entry for entry in known for name in (entry.term, *entry.also)}
    words = sorted(names, key=len, reverse=True)
    found = "|".join(re.escape(w) if re.search(r".[A-Z]|\d", w) else _any_case(w) for w in words)
    return re.compile(rf"(?<![\w/.-])({found})(?![\w/-])"), {name.casefold(): entry for name, entry in names.items()}


def _any_case(word: str) -> str:
    """A pattern for a word in capitals or not; one that begins with a set of letters is passed over quickly where none of them stands."""
    first = f"[{word[0].lower()}{word[0].upper()}]" if word[0].isascii() and word[0].isalpha() else f"(?i:{re.escape(word[0])})"
    return f"{first}(?i:{re.escape(word[1:])})"


def mark(html: str, known: tuple[Entry, ...], page: str) -> str:
    """A page's HTML with the first use of each term in its prose a link to what it means.

    Args:
        page: address of the glossary, relative to this page
    """
    if not known:
        return html
    pattern, names = _pattern(known)
    used: set[str] = set()

    def link(match: re.Match) -> str:
        entry = names[match[1].casefold()]
        if entry.anchor in used:
            return match[0]
        used.add(entry.anchor)
        return notes.term(match[1], entry.anchor, _meaning(entry, page))

    made, open_tags, at, prose = [], [], 0, False
    while tag := _TAG.search(html, at):
        closes, name, attributes = tag.groups()
        start, end, name = tag.start(), tag.end(), name.lower()
        if not closes and (name in _WHOLE or 'class="provenance"' in attributes):
            end = max(end, html.find(f"</{name}>", end))
        made += [pattern.sub(link, html[at:start]), html[start:end]] if prose else [html[at:end]]
        at = end
        if name in _QUIET or name in _SPOKEN:
            if not closes:
                open_tags.append(name)
            elif name in open_tags:
                del open_tags[len(open_tags) - 1 - open_tags[::-1].index(name) :]
            prose = not _SPOKEN.isdisjoint(open_tags) and _QUIET.isdisjoint(open_tags)
    return "".join([*made, html[at:]])


@lru_cache(maxsize=512)  # every machine's page says the same of a term
def _meaning(entry: Entry, page: str) -> str:
    """A term's note, on a page from where the glossary is at `page`."""
    more = Markup('<a href="{}#{}">Glossary</a>').format(page, entry.anchor)
    return notes.facts(f"<b>{notes.safe(entry.term)}</b>: {notes.safe(entry.means)}", (("See", more),))
