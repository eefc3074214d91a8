"""What is wrong with a built site: one check for the build, `make check` and the tests. Standard library only.

It reads tags and not a tree: a thousand pages take seconds.
"""

from __future__ import annotations

import html
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from sys import intern
from urllib.parse import unquote, urldefrag

from macros import processes

# Bytes throughout: looking for fixed bytes is forty times as fast as a regular expression over characters, for a single one ten times as fast again.
# A tag's name and its attributes as they stand; with the words up to the next tag.
_TAG = re.compile(rb"""<(/?[a-zA-Z][^\s/>]*)([^"'>]*(?:"[^"]*"[^"'>]*|'[^']*'[^"'>]*)*)>""")
_TAG_AND_WORDS = re.compile(_TAG.pattern + rb"([^<]*(?:<(?![a-zA-Z/])[^<]*)*)")
_ATTRIBUTE = re.compile(r"""([^\s"'>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'=<>`]+)))?""", re.ASCII)
MANY = 32  # pages; fewer are read sooner than processes begin
LEFTOVERS = ("[[", "]]", "[%", "%]", "[#", "{{", "{%")
_TELLING = (b"id=", b"href=", b"src", b"data=", b"action=", b"<img", b"<svg")
_HANDLER = re.compile(rb"\son[a-z]+\s*=")
_ABSENT = re.compile(r"(?<![\w-])(?:nan|NaN|inf|undefined)(?![\w-])|^\s*None\s*$|\bNone$")
_ABSENCES = (b"nan", b"N", b"inf", b"undefined")
_SUSPECT = re.compile(rb"(?<![\w-])(?:nan|NaN|inf|undefined|None)(?![\w-])")
# What a page loads by itself, not what it links to: attributes by tag.
LOADS = {"script": ["src"], "img": ["src", "srcset"], "iframe": ["src"], "source": ["src", "srcset"], "video": ["src"], "audio": ["src"], "embed": ["src"],
         "object": ["data"], "use": ["href"], "image": ["href"]}  # fmt: skip
LOADING_LINKS = {"stylesheet", "preload", "modulepreload", "prefetch", "preconnect", "dns-prefetch", "icon", "manifest"}
_ELSEWHERE = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)
_URLS = [re.compile(start + rb"""["']?((?:https?:)?//[^"')\s]+)""") for start in (rb"url\(\s*", rb"@import\s+")]  # each begins with letters to jump to


@dataclass
class Page:
    """What a page holds that can be wrong. Of its links only those that lead to other files of the site, each once."""

    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def urls(data: bytes) -> list[str]:
    """What a style sheet, or the styles in a page, load from another host."""
    lower = data.lower()  # every letter stays in its place
    return [data[slice(*found.span(1))].decode() for pattern in _URLS for found in pattern.finditer(lower)]


def read(data: bytes) -> Page:
    """A page's ids and links, and what is wrong with it by itself; each problem is "<where>: <what>; got <value>".

    Most of a page are a chart's strokes: only tags that hold something telling are taken apart, and words where a page has a suspect one.
    """
    page = Page()
    page.problems += [f"style: loads from another host; got {found}" for found in urls(data)]
    for start, end in ((b"<!--", b"-->"), (b"<script", b"</script>"), (b"<style", b"</style>")):
        data = _silenced(data, start, end)
    lower, pairs = data.lower(), {data[at + i : at + i + 2] for half in (b"[", b"{", b"]") for at in _places(data, half) for i in (-1, 0)}
    left = [word.encode() for word in LEFTOVERS if word.encode() in pairs]
    found_at = [at for word in (*_TELLING, *left) for at in _places(lower, word)]
    found_at += [at for word in (b" on", b"\non") for at in _places(lower, word) if _HANDLER.match(lower, at)]
    for start in sorted({data.rfind(b"<", 0, at + 1) for at in found_at}):
        if tag := _TAG.match(data, start):
            found = _tag(tag[1], tag[2])
            page.ids += found.ids
            page.links += found.links
            page.problems += found.problems
    if left or any(_SUSPECT.match(data, at) for word in _ABSENCES for at in _places(data, word)):
        for _, _, raw in _TAG_AND_WORDS.findall(data):
            _words(page, raw.decode())
    known = Counter(page.ids)
    page.problems += [f"id: given twice; got {i!r}" for i, times in known.items() if times > 1]
    links = [link for link in dict.fromkeys(page.links) if not _SCHEME.match(link)]
    page.problems += [f"link: no such anchor; got {link!r}" for link in links if link[:1] == "#" and link != "#" and unquote(link[1:]) not in known]
    page.links = [link for link in links if link[:1] != "#"]
    return page


def _places(data: bytes, word: bytes) -> Iterator[int]:
    """Where a word stands."""
    at = data.find(word)
    while at >= 0:
        yield at
        at = data.find(word, at + 1)


def _silenced(data: bytes, start: bytes, end: bytes) -> bytes:
    """A page without what no reader reads, its opening tags left."""
    first, *rest = data.split(start)
    kept = [first]
    for part in rest:
        inside, _, after = part.partition(end)
        kept += [start + inside.partition(b">")[0] + b">" if start != b"<!--" else b"", after]
    return b"".join(kept)


def _short(text: str) -> str:
    return " ".join(text.split())[-60:]


def _words(page: Page, raw: str) -> None:
    """Words between two tags, as they stand in the file: a fact's own brackets are written as character references."""
    page.problems += [f"text: {left!r} is left over; got {_short(raw)!r}" for left in LEFTOVERS if left in raw]
    if _ABSENT.search(raw.strip()):
        page.problems.append(f"text: prints no value; got {_short(raw)!r}")


@lru_cache(4096)  # every page has the same header, and a table the same link in each row
def _tag(raw: bytes, attributes: bytes) -> Page:
    page, name = Page(), raw.decode().lower()
    told = {key.lower(): html.unescape(a or b or c) for key, a, b, c in _ATTRIBUTE.findall(attributes.decode())}
    if told.get("id"):
        page.ids.append(intern(told["id"]))
    page.links += [intern(told[k]) for k in ("href", "src") if told.get(k)]
    loading = [told[a] for a in LOADS.get(name, ()) if told.get(a)]
    if name == "link" and LOADING_LINKS & set(told.get("rel", "").lower().split()):
        loading.append(told.get("href", ""))
    page.problems += [f"{name}: loads from another host; got {address}" for address in loading if _ELSEWHERE.match(address)]
    if name == "img" and "alt" not in told:
        page.problems.append(f"img: no alt; got {told.get('src', '')}")
    if name == "svg" and told.get("role") == "img" and not (told.get("aria-label") or told.get("aria-labelledby")):
        page.problems.append(f"svg: role img without a name; got id {told.get('id', '')!r}")
    for key, value in told.items():
        if key.startswith("on") or (key in ("href", "src", "action") and value.strip().lower().startswith("javascript:")):
            page.problems.append(f"{name}: a script in an attribute; got {key}={value[:40]!r}")
        if ("[" in value or "{" in value) and not key.startswith("data-") and any(left in value for left in ("[[", "[%", "{{", "{%")):
            page.problems.append(f"{name}: {key}: a macro is left over; got {_short(value)!r}")
    return page


def _file(path: str) -> Page:
    return read(Path(path).read_bytes())


def _read(paths: list[str]) -> list[Page]:
    """Pages off the disk, many of them by as many processes as there are cores."""
    cores = processes.cores()
    if len(paths) < MANY or cores < 2:
        return [_file(path) for path in paths]
    with processes.pool(cores) as pool:
        return list(pool.map(_file, paths, chunksize=8))


def problems(site: Path, known: dict[str, Page] | None = None) -> list[str]:
    """Every broken link and anchor, id given twice, macro left over, value that is none, request to another host
    and image without words in a built site; one line each.

    Args:
        known: pages read before, by path; the others are read now
    """
    there = {os.path.join(folder, name) for folder, _, names in os.walk(site) for name in names}
    paths = [path for path in sorted(there) if path.endswith(".html")]
    new = [path for path in paths if path not in (known or {})]
    read_now = dict(zip(new, _read(new), strict=True)) | (known or {})
    pages = {path: read_now[path] for path in paths}
    shown = {path: f"{site.name}/{Path(path).relative_to(site).as_posix()}" for path in pages}
    ids = {path: set(page.ids) for path, page in pages.items()}
    found = [f"{shown[path]}: {line}" for path, page in pages.items() for line in page.problems]
    for path, page in pages.items():
        folder = os.path.dirname(path)
        for link in page.links:
            address, fragment = urldefrag(link)
            if os.path.basename(path) == "404.html" and link.startswith("/"):
                continue
            target = os.path.normpath(os.path.join(folder, unquote(address.partition("?")[0])))
            index = os.path.join(target, "index.html")
            target = index if index in there else target
            if target not in there and not os.path.isfile(target):
                found.append(f"{shown[path]}: link: leads nowhere; got {link!r}")
            elif fragment and target in ids and unquote(fragment) not in ids[target]:
                found.append(f"{shown[path]}: link: no such anchor; got {link!r}")
    for path in sorted(path for path in there if path.endswith(".css")):
        found += [f"{site.name}/{Path(path).relative_to(site).as_posix()}: url: loads from another host; got {a}" for a in urls(Path(path).read_bytes())]
    return found


def main(site: Path = Path("site")) -> int:
    """Check the site in this folder; 1 and a line each for what is wrong."""
    found = problems(site)
    for line in found:
        print(f"error: {line}", file=sys.stderr)
    if not found:
        print(f"{site}: {len(list(site.rglob('*.html')))} pages; every link leads somewhere, nothing is left over, no other host is asked.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
