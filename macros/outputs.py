"""What is published beside the pages: feed, references, summaries, Markdown twins, lists for machines. Knows pages by their parts, not MkDocs."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

from macros import evidence, feeds, figures, pictures, summary, twins, web
from macros.feeds import Report
from macros.narrative import Book
from macros.pictures import Words
from macros.summary import Summary


@dataclass(frozen=True)
class Site:
    """What the configuration says of the site; `url` ends in a slash, or is "" where it is not known."""

    name: str
    description: str
    url: str


def report(book: Book, found: Summary) -> Report:
    """A day or a machine, as feeds and references name it."""
    day = found.kind == "report"
    runs = book.lab.runs_on(found.id) if day else book.lab.runs_of(found.id)
    inks = [found.id] if day else list(dict.fromkeys(r.ink.id for r in runs if r.ink))
    hashes = tuple((name, book.lab.ink_sha256[name]) for name in inks)
    number = found.label.partition(" of ")[0] if day else ""
    words = [found.question if day else "", found.headline, f"{found.score}." if found.score else "", found.note]
    key = number.lower().replace(" ", "-") or found.id
    return Report(found.address, f"inklab-{key}", found.title, number, " ".join(filter(None, words)), feeds.updated(book.lab, runs, inks), hashes)


def complete(book: Book, page: Any, site: Site, cards: bool, own: Summary | None, told: Report | None, newest: Summary | None = None) -> None:
    """Complete a page's front matter and put the files beside it into the book, by address below the root.

    A page gets `description` (its first words, where it gives none), a report `updated` (a date) and `cite` (HTML);
    with cards, `card` (its address) and `card_alt` (what it shows).

    Args:
        page: with url, title, meta and content, rendered
        cards: draw its picture, a third of a second where it is not in the cache
        own: the summary of the day or machine it reports
        told: the same, as feeds and references name it
        newest: the day whose chart stands beside the words of a page that reports none
    """
    # Material prints it into an attribute as it is
    page.meta["description"] = html.escape(page.meta.get("description") or web.lead(page.content))
    if told:
        reference = feeds.bibtex(told, site.name, site.url)
        page.meta["cite"] = html.escape(reference).replace("{", "&#123;").replace("}", "&#125;")  # two are a macro's mark
        page.meta |= {"updated": f"{told.updated:%Y-%m-%d}"} if told.updated else {}
        book.publish(f"{page.url}cite.bib", reference)
        book.publish(f"{page.url}CITATION.cff", feeds.citation_cff(told, site.name, site.url))
    if cards:
        picture, page.meta["card_alt"] = card(book, page, own, newest, site)
        page.meta["card"] = f"{page.url}card.png"
        book.publish(page.meta["card"], picture)
    evidence.publish_charts(book, page.url)
    book.publish(f"{page.url}index.md", twins.markdown(page.content, page.meta.get("title") or page.title))


def publish(book: Book, pages: list[Any], site: Site, cards: bool, made: dict[str, Report]) -> None:
    """Complete the pages, date them, and put the lists of them into the book.

    Args:
        made: the machines', completed before, by address
    """
    days = {found.address: found for found in summary.days(book)}
    reports = {address: report(book, found) for address, found in days.items()} | made
    newest = next(reversed(days.values()), None)
    last = max((r.updated for r in reports.values() if r.updated), default=None)
    for page in pages:
        told = reports.get(page.url)
        if page.url not in made:
            complete(book, page, site, cards, days.get(page.url), told, newest)
        # MkDocs would date every page by the build, and two builds of the same files would differ.
        dated = told and told.updated or last
        page.update_date = f"{dated:%Y-%m-%d}" if dated else "1970-01-01"
    book.publish("feed.xml", feeds.atom(site.name, site.description, site.url, list(reports.values())))
    book.publish("llms.txt", feeds.llms_txt(site.name, site.description, site.url, _sections(pages, reports)))


def card(book: Book, page: Any, own: Summary | None, newest: Summary | None, site: Site) -> tuple[bytes, str]:
    """A page's picture and what it shows: a report's own numbers and chart, else the page's words beside the newest day's chart."""
    shown = own or newest
    runs = [] if shown is None else book.lab.runs_on(shown.id) if shown.kind == "report" else book.lab.runs_of(shown.id)
    chart = figures.picture_chart(book.lab, runs) if runs else None
    if shown is None or (page.url and not own):
        said = f"{site.name} · chart: {shown.label.partition(' of ')[0]}" if shown else site.name
        words = Words(site.name, page.meta.get("title") or page.title, note=html.unescape(page.meta["description"]), footer=said)
    else:
        words = summary.picture_words(shown)
    return pictures.card_png(words, chart), pictures.alt(words, chart)


def _sections(pages: list[Any], reports: dict[str, Report]) -> dict[str, list[tuple[str, str, str]]]:
    def entry(page: Any) -> tuple[str, str, str]:
        return page.meta.get("title") or page.title, page.url, html.unescape(page.meta["description"])

    days = [entry(p) for p in pages if p.url in reports and reports[p.url].number]
    machines = sorted(entry(p) for p in pages if p.url in reports and not reports[p.url].number)
    rest = [entry(p) for p in pages if p.url not in reports]
    return {"Days": days, "About the lab": rest, "Machines": machines}
