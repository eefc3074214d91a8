"""What machines read of the site: the feed of reports, the list for language models, and how to cite a report."""

from __future__ import annotations

import datetime
import json
import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from xml.etree import ElementTree

from macros.labdata import Lab
from macros.records import Run

ATOM = "http://www.w3.org/2005/Atom"
NEWEST = 50  # entries of the feed
LISTED = 200  # machines named one by one in llms.txt; the data has them all


@dataclass(frozen=True)
class Report:
    """A page that reports: a day or a machine.

    Args:
        address: below the site's root ("days/01-local-inference/")
        key: its name in a reference
        number: what it is called beside its title ("Day 1"), "" where nothing
        summary: plain text
        updated: the last moment anything of it was inked, measured, sealed or withdrawn; None: not recorded
        inks: name and SHA-256 of the ink it stands on
    """

    address: str
    key: str
    title: str
    number: str
    summary: str
    updated: datetime.datetime | None
    inks: tuple[tuple[str, str], ...] = ()


def updated(lab: Lab, runs: Iterable[Run], inks: Iterable[str] = ()) -> datetime.datetime | None:
    """When anything of some runs and their ink last happened, by the files themselves; None: nothing says when."""
    runs = list(runs)
    names = {*inks, *(run.ink.id for run in runs if run.ink)}
    places = [f"ink/{name}" for name in names] + [f"runs/{run.machine}/{run.id}" for run in runs]
    moments = [run.started_at for run in runs] + [lab.inks[name].dry_at for name in names if name in lab.inks]
    moments += [r.started_at for run in runs for r in run.results]
    moments += [beside[place].at for beside in (lab.seals, lab.withdrawn) for place in places if place in beside]
    return max((m for m in moments if m), default=None)


def moment(at: datetime.datetime) -> str:
    """A moment as feeds write it, in UTC."""
    return f"{at.astimezone(datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"


def atom(site_name: str, description: str, site_url: str, reports: list[Report]) -> str:
    """The feed of reports, newest first, dated by what was measured and never by the build.

    Args:
        site_url: with a slash at its end; "": none, and links are relative to the feed
    """
    ElementTree.register_namespace("", ATOM)
    dated = sorted((r for r in reports if r.updated), key=lambda r: (r.updated, r.address), reverse=True)[:NEWEST]
    feed = ElementTree.Element(f"{{{ATOM}}}feed")

    def put(parent: ElementTree.Element, tag: str, words: str = "", **attributes: str) -> ElementTree.Element:
        made = ElementTree.SubElement(parent, f"{{{ATOM}}}{tag}", attributes)
        made.text = words or None
        return made

    def name(address: str) -> str:  # the same wherever the site lies, so that no reader sees a moved report as new
        return uuid.uuid5(uuid.NAMESPACE_URL, f"inklab:{site_name}:{address}").urn

    put(feed, "title", site_name)
    put(feed, "subtitle", description)
    put(feed, "id", name(""))
    put(feed, "updated", moment(dated[0].updated if dated else datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)))
    put(put(feed, "author"), "name", f"The {site_name} authors")
    put(feed, "link", rel="self", type="application/atom+xml", href=f"{site_url}feed.xml")
    put(feed, "link", rel="alternate", type="text/html", href=site_url or "index.html")
    for report in dated:
        entry = put(feed, "entry")
        put(entry, "title", f"{report.number}: {report.title}" if report.number else report.title)
        put(entry, "id", name(report.address))
        put(entry, "updated", moment(report.updated))
        put(entry, "link", rel="alternate", type="text/html", href=site_url + report.address + ("" if site_url else "index.html"))
        put(entry, "summary", report.summary, type="text")
    ElementTree.indent(feed)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(feed, encoding="unicode") + "\n"


def llms_txt(site_name: str, description: str, site_url: str, sections: dict[str, list[tuple[str, str, str]]]) -> str:
    """The list of plain-Markdown pages for language models (llmstxt.org).

    Args:
        sections: heading -> (title, address of the page, one sentence or "")
    """
    parts = [f"# {site_name}", f"> {description}", "Each page has a twin in Markdown with every number in place: its address and `index.md`."]
    for heading, entries in sections.items():
        lines = [f"- [{_flat(title)}]({site_url}{address}index.md)" + (f": {_flat(words)}" if words else "") for title, address, words in entries[:LISTED]]
        if len(entries) > LISTED:
            lines.append(f"- and {len(entries) - LISTED} more: every one is a row of [machines.csv]({site_url}data/lab/machines.csv)")
        parts.append(f"## {heading}\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _flat(words: str) -> str:
    return re.sub(r"([\[\]])", r"\\\1", " ".join(words.split()))


def bibtex(report: Report, site_name: str, site_url: str) -> str:
    """A report's reference for BibTeX, its ink's hash as the note."""
    fields = {"title": f"{{{_tex(report.title)}}}", "author": f"{{The {_tex(site_name)} authors}}", "institution": _tex(site_name), "type": "Lab report"}
    if report.number:
        fields["number"] = _tex(report.number)
    if report.updated:
        fields |= {"year": f"{report.updated:%Y}", "month": f"{report.updated:%m}".lstrip("0")}
    if site_url:
        fields["url"] = site_url + report.address
    if report.inks:
        fields["note"] = "Ink " + ", ".join(f"{_tex(name)} (SHA-256 {sha256[:16]})" for name, sha256 in report.inks)
    body = "".join(f"  {name} = {{{value}}},\n" for name, value in fields.items())
    return f"@techreport{{{report.key},\n{body}}}\n"


_TEX = str.maketrans({"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", **{c: f"\\{c}" for c in "&%$#_{}"}})


def _tex(words: str) -> str:
    return words.translate(_TEX)


def citation_cff(report: Report, site_name: str, site_url: str) -> str:
    """A report's CITATION.cff; YAML that is JSON line by line, so that no word of a title can be more than a word."""
    said = {
        "cff-version": "1.2.0", "message": "To cite this report, use this reference.", "type": "dataset",
        "title": f"{report.number}: {report.title}" if report.number else report.title,
        "authors": [{"name": f"The {site_name} authors"}], "license": "MIT", "abstract": report.summary,
    }  # fmt: skip
    if report.updated:
        said["date-released"] = f"{report.updated:%Y-%m-%d}"
    if site_url:
        said["url"] = site_url + report.address
    if report.inks:
        said["identifiers"] = [{"type": "other", "value": f"sha256:{sha256}", "description": f"Ink {name}"} for name, sha256 in report.inks]
    return "".join(f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in said.items() if value)
