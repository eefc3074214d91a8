"""Machines' pages, each made whole by itself, so that other processes can: MkDocs' own steps for a page, one after another.

In MkDocs' round a page that holds nothing stands for it: links to it are known, and it is in the site's map.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from jinja2 import Environment, Template
from mkdocs.commands.build import get_context
from mkdocs.exceptions import PluginError
from mkdocs.structure.pages import Page
from mkdocs.structure.toc import AnchorLink, TableOfContents

from macros import again, ahead, built, downloads, guard, headlines, outputs, pages, side_by_side, summary
from macros.downloads import Listed, Parts, Piece
from macros.export import Rows
from macros.feeds import Report
from macros.headlines import Decode, Reading
from macros.narrative import Book
from macros.outputs import Site
from macros.reckoned import Reckoned
from macros.side_by_side import Line

_NOTHING = Template("")  # MkDocs writes no page that comes out empty, and would say so of each
logging.getLogger("mkdocs.commands.build").addFilter(lambda record: not record.getMessage().startswith("Page skipped: 'machines/"))


@dataclass(frozen=True)
class Round:
    """What every page of a build is made with."""

    book: Book
    config: Any
    files: Any
    nav: Any
    env: Environment
    site: Site
    cards: bool
    rows: Rows
    parts: Parts
    digests: dict[str, bytes] = field(default_factory=dict)  # what pages rest on that may be used again (`macros.again`)
    compared: side_by_side.Maker = field(default_factory=side_by_side.Maker)

    @cached_property
    def documents(self) -> list[Any]:
        """Every page's file, looked for once and not for each of a thousand pages."""
        return self.files.documentation_pages()

    @cached_property
    def tables(self) -> list[Listed]:
        """The downloads' tables, once every machine's page is made: their files are put together from then on."""
        tables, rest = ahead.first()
        self.parts.add(rest)
        ahead.last(tables, self.parts.places)
        return self.parts.listed(tables)


@dataclass(frozen=True)
class Made:
    """What the rest of the site needs of a machine's page once it is written.

    Args:
        listed: of its front matter, what lists of pages say: description, day it was updated
        read: what the check of the site needs of it
        files: all that was written, by address below the root, where it is to be kept
        rows: its documents' in the downloads, until they are taken from it
    """

    sentence: str
    lines: list[Line]
    decode: Decode | None
    report: Report
    listed: dict[str, str]
    open_parts: list[str]
    read: built.Page
    files: dict[str, str | bytes]
    rows: list[Piece]

    @property
    def size(self) -> int:
        """What is kept of it [B]."""
        return sum(map(len, self.files.values())) + sum(len(piece.csv) + len(piece.json) for piece in self.rows)


_HEADING = re.compile(r'<h2 id="([^"]+)">(.*?)</h2>')


def _meta(book: Book, name: str) -> dict[str, Any]:
    """Front matter. Not in the search's index, which would outgrow every page with a thousand of these: `paging.search_entry` is."""
    return {"title": book.lab.machines[name].name, "toc": True, "search": {"exclude": True}}


def _body(book: Book, name: str, own: Reckoned) -> tuple[str, Reading]:
    """The page's text, and what it says of the machine first. Raises a PluginError, one line, for a machine that no page can be made of."""
    try:
        reading = headlines.read(book, book.lab.machines[name], own.runs)
        return pages.machine_page(book, name, own, reading), reading
    except Exception as error:
        raise PluginError(f"labdata/machines/{name}.yml: its page cannot be made: {guard.said(error)}") from None


def make(around: Round, name: str) -> Made:
    """Write a machine's page and all that lies beside it, as they were made before where that is still right."""
    digest, heard, logger = around.digests.get(name), ahead.Heard(), logging.getLogger(ahead.LOGGER)
    kept = again.kept(name, digest)
    logger.addHandler(heard)
    try:
        made = kept or _made(around, name)
    finally:
        logger.removeHandler(heard)
    for address, data in made.files.items():
        around.book.publish(address, data)
    new = digest and not kept and not heard.said  # a warning is given in every build
    return made if new else replace(made, files={})


def _made(around: Round, name: str) -> Made:
    book, config, files = around.book, around.config, around.files
    events, file = config.plugins, files.get_file_from_path(f"machines/{name}.md")
    own = Reckoned(book.lab, name)
    standing, before, book.open_parts = file.page, book.open_parts, []
    site, others, book.site, book.files = book.site, book.files, None, {}
    try:
        page = events.on_pre_page(Page(None, file, config), config=config, files=files)
        page.markdown, page.meta = "", _meta(book, name)
        book.turn_to(page.url, file.src_uri)
        page.content, reading = _body(book, name, own)
        page.toc = TableOfContents([AnchorLink(words, anchor, 2) for anchor, words in _HEADING.findall(page.content)])
        page.content = events.on_page_content(page.content, page=page, config=config, files=files)
        found = summary.publish(book, summary.of_machine(book, name, own=own, reading=reading))
        told = outputs.report(book, found)
        outputs.complete(book, page, around.site, around.cards, found, told)
        context = events.on_page_context(get_context(around.nav, around.documents, config, page), page=page, config=config, nav=around.nav)
        output = events.on_post_page(around.env.get_template("main.html").render(context), page=page, config=config)
        data = output.encode("utf-8", errors="xmlcharrefreplace")
        book.publish(file.dest_uri, data)
        listed = {key: page.meta[key] for key in ("description", "updated") if key in page.meta}
        rows = downloads.pieces(around.rows, name, own)
        return Made(book.sentences[name], around.compared.lines(own), reading.decode, told, listed, book.open_parts, built.read(data), book.files, rows)
    finally:
        file.page, book.open_parts = standing, before
        book.site, book.files = site, others


class Standing(Page):
    """A machine's page in MkDocs' round."""

    made: Made

    def __init__(self, file: Any, around: Round):
        super().__init__(None, file, around.config)
        self.around = around

    def read_source(self, config: Any) -> None:
        self.markdown, self.meta = "", _meta(self.around.book, self.file.name) | {"render_macros": False, "template": _NOTHING}

    def render(self, config: Any, files: Any) -> None:
        """Take what was made of it, or make it now."""
        made = ahead.made(self.file.name)
        self.around.parts.add(made.rows)
        if made.files:
            again.keep(self.file.name, self.around.digests[self.file.name], made, made.size)
        self.made = replace(made, files={}, rows=[])
        book = self.around.book
        name = self.file.name
        book.sentences[name], book.lines[name], book.decodes[name] = self.made.sentence, self.made.lines, self.made.decode
        book.open_parts += self.made.open_parts
        self.content, self.meta = "", self.meta | self.made.listed
        self.present_anchor_ids = set(self.made.read.ids)
