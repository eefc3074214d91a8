"""What is wrong with a built site: one check for the build, `make check` and the tests. Standard library only.

It reads tags and not a tree: a thousand pages take seconds.
"""

from __future__ import annotations

import html
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urldefrag

_TAG = re.compile(r"""<(/?[a-zA-Z][\w:-]*)((?:\s+[^\s"'>/=]+(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'=<>`]+))?)*)\s*/?>""")
_TELLING = re.compile(r"\b(?:id|href|src|srcset|data|action|on\w+)\s*=|\[\[|\[%|\{[{%]")
_ATTRIBUTE = re.compile(r"""([^\s"'>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'=<>`]+)))?""")
_SILENT = re.compile(r"<!--.*?-->|(<(script|style)\b[^>]*>).*?(?=</\2>)", re.S)  # not read by a reader
_STROKES = re.compile(r'\s(?:d|transform|points|font-family)="[^"]*"')  # half of a page with charts
LEFTOVERS = ("[[", "]]", "[%", "%]", "[#", "{{", "{%")
_ABSENT = re.compile(r"(?<![\w-])(?:nan|NaN|inf|undefined)(?![\w-])|^\s*None\s*$|\bNone$")
# What a page loads by itself, not what it links to: (tag, attribute).
LOADS = {("script", "src"), ("img", "src"), ("img", "srcset"), ("iframe", "src"), ("source", "src"), ("source", "srcset"), ("video", "src"),
         ("audio", "src"), ("embed", "src"), ("object", "data"), ("use", "href"), ("image", "href")}  # fmt: skip
LOADING_LINKS = {"stylesheet", "preload", "modulepreload", "prefetch", "preconnect", "dns-prefetch", "icon", "manifest"}
_ELSEWHERE = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
_URL = re.compile(r"""(?:url\(\s*|@import\s+)["']?((?:https?:)?//[^"')\s]+)""", re.IGNORECASE)


@dataclass
class Page:
    """What a page holds that can be wrong."""

    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def read(text: str) -> Page:
    """A page's ids and links, and what is wrong with it by itself; each problem is "<where>: <what>; got <value>"."""
    page = Page()
    page.problems += [f"style: loads from another host; got {found}" for found in _URL.findall(text)]
    text = _STROKES.sub("", _SILENT.sub(lambda m: m[1] or "", text))
    end = 0
    for tag in _TAG.finditer(text):
        _words(page, text[end : tag.start()])
        end = tag.end()
        if not _TELLING.search(tag[2]) and tag[1] not in ("img", "svg"):
            continue  # most of a page are a chart's strokes
        told = {a[1].lower(): html.unescape(a[2] or a[3] or a[4] or "") for a in _ATTRIBUTE.finditer(tag[2])}
        _tag(page, tag[1].lower(), told)
    _words(page, text[end:])
    page.problems += [f"id: given twice; got {i!r}" for i in dict.fromkeys(i for i in page.ids if page.ids.count(i) > 1)]
    return page


def _short(text: str) -> str:
    return " ".join(text.split())[-60:]


def _words(page: Page, raw: str) -> None:
    """Words between two tags, as they stand in the file: a fact's own brackets are written as character references."""
    if not raw.strip():
        return
    page.problems += [f"text: {left!r} is left over; got {_short(raw)!r}" for left in LEFTOVERS if left in raw]
    if _ABSENT.search(raw.strip()):
        page.problems.append(f"text: prints no value; got {_short(raw)!r}")


def _tag(page: Page, name: str, told: dict[str, str]) -> None:
    if told.get("id"):
        page.ids.append(told["id"])
    page.links += [told[k] for k in ("href", "src") if told.get(k)]
    loading = [told[a] for t, a in LOADS if t == name and told.get(a)]
    if name == "link" and LOADING_LINKS & set(told.get("rel", "").lower().split()):
        loading.append(told.get("href", ""))
    page.problems += [f"{name}: loads from another host; got {address}" for address in loading if _ELSEWHERE.match(address)]
    if name == "img" and "alt" not in told:
        page.problems.append(f"img: no alt; got {told.get('src', '')}")
    if name == "svg" and told.get("role") == "img" and not (told.get("aria-label") or told.get("aria-labelledby")):
        page.problems.append(f"svg: role img without a name; got id {told.get('id', '')!r}")
    page.problems += [f"{name}: a script in an attribute; got {k}={v[:40]!r}" for k, v in told.items()
                      if k.startswith("on") or (k in ("href", "src", "action") and v.strip().lower().startswith("javascript:"))]  # fmt: skip
    for key, value in told.items():
        if not key.startswith("data-") and any(left in value for left in ("[[", "[%", "{{", "{%")):
            page.problems.append(f"{name}: {key}: a macro is left over; got {_short(value)!r}")


def problems(site: Path) -> list[str]:
    """Every broken link and anchor, id given twice, macro left over, value that is none, request to another host
    and image without words in a built site; one line each.
    """
    pages = {path: read(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    shown = {path: f"{site.name}/{path.relative_to(site).as_posix()}" for path in pages}
    known = {path: set(page.ids) for path, page in pages.items()}
    found = [f"{shown[path]}: {line}" for path, page in pages.items() for line in page.problems]
    there: dict[Path, bool] = {}
    for path, page in pages.items():
        for link in dict.fromkeys(page.links):
            address, fragment = urldefrag(link)
            if re.match(r"[a-z][a-z0-9+.-]*:|//", link, re.IGNORECASE) or (path.name == "404.html" and link.startswith("/")):
                continue
            target = Path(str(path.parent / unquote(address.partition("?")[0]))).resolve() if address else path
            if target not in there:
                there[target] = target.is_dir()
            target = target / "index.html" if there[target] else target
            if target not in known and not target.is_file():
                found.append(f"{shown[path]}: link: leads nowhere; got {link!r}")
            elif fragment and target in known and unquote(fragment) not in known[target]:
                found.append(f"{shown[path]}: link: no such anchor; got {link!r}")
    for path in sorted(site.rglob("*.css")):
        found += [f"{site.name}/{path.relative_to(site).as_posix()}: url: loads from another host; got {a}" for a in _URL.findall(path.read_text(encoding="utf-8"))]
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
