"""What is published beside the pages: data, feed, references, Markdown twins, lists for machines. Knows pages by their parts, not MkDocs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from macros import feeds, seals, twins, web
from macros.feeds import Report
from macros.labdata import ROOT
from macros.narrative import Book


@dataclass(frozen=True)
class Site:
    """What the configuration says of the site; `url` ends in a slash, or is "" where it is not known."""

    name: str
    description: str
    url: str


def reports(book: Book, pages: Iterable[Any]) -> dict[str, Report]:
    """The pages that report, by address: days and machines.

    Args:
        pages: with url, title, meta and content, rendered
    """
    days = {day.address: day for day in book.days}
    found = {}
    for page in pages:
        machine = page.url.removeprefix("machines/").strip("/")
        if page.url in days:
            day = days[page.url]
            runs = book.lab.runs_on(day.ink) if day.ink in book.lab.inks else []
            inks, key, number = [day.ink], f"day-{day.number:02d}", f"Day {day.number}"
        elif page.url.startswith("machines/") and machine in book.lab.machines:
            runs = book.lab.runs_of(machine)
            inks, key, number = [r.ink.id for r in runs if r.ink], machine, ""
        else:
            continue
        inks = [i for i in dict.fromkeys(inks) if i in book.lab.inks]
        hashes = tuple((i, seals.sha256(ROOT / "ink" / f"{i}.yml")) for i in inks)
        summary = page.meta.get("description") or web.lead(page.content)
        found[page.url] = Report(page.url, f"inklab-{key}", page.meta.get("title") or page.title, number, summary, feeds.updated(book.lab, runs, inks), hashes)
    return found


def publish(book: Book, pages: list[Any], site: Site) -> None:
    """Complete each page's front matter and put the files into the book, by address below the root.

    A page gets `description` (its first words, where it gives none), and a report `updated` (a date) and `cite`.
    """
    for page in pages:
        page.meta.setdefault("description", web.lead(page.content))
    found = reports(book, pages)
    newest = max((r.updated for r in found.values() if r.updated), default=None)
    for page in pages:
        report = found.get(page.url)
        if report:
            page.meta["cite"] = feeds.bibtex(report, site.name, site.url)
            book.files[f"{page.url}cite.bib"] = page.meta["cite"]
            book.files[f"{page.url}CITATION.cff"] = feeds.citation_cff(report, site.name, site.url)
            if report.updated:
                page.meta["updated"] = f"{report.updated:%Y-%m-%d}"
        # MkDocs would date every page by the build, and two builds of the same files would differ.
        page.update_date = page.meta.get("updated") or (f"{newest:%Y-%m-%d}" if newest else "1970-01-01")
        book.files[f"{page.url}index.md"] = twins.markdown(page.content, page.meta.get("title") or page.title)
    book.files["feed.xml"] = feeds.atom(site.name, site.description, site.url, list(found.values()))
    book.files["llms.txt"] = feeds.llms_txt(site.name, site.description, site.url, _sections(pages, found))


def _sections(pages: list[Any], found: dict[str, Report]) -> dict[str, list[tuple[str, str, str]]]:
    def entry(page: Any) -> tuple[str, str, str]:
        return page.meta.get("title") or page.title, page.url, page.meta["description"]

    days = [entry(p) for p in pages if p.url in found and found[p.url].number]
    machines = sorted(entry(p) for p in pages if p.url in found and not found[p.url].number)
    rest = [entry(p) for p in pages if p.url not in found]
    return {"Days": days, "About the lab": rest, "Machines": machines}
