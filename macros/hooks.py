"""MkDocs' events: machine pages in, data out. The only other module that knows MkDocs."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import re
import sys
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import FileSystemBytecodeCache, FileSystemLoader
from mkdocs import utils
from mkdocs.plugins import CombinedEvent, event_priority

OBJECTS = 50_000  # made before Python looks for what refers to itself in a circle: a build makes millions that stay
gc.set_threshold(OBJECTS)  # also while modules are loaded

from macros import asides, chart_cache, glossary, notes, processes, rendering, web  # noqa: E402

TEMPLATES = chart_cache.ENVIRONMENT / f"templates-{version('jinja2')}"
_round: Any = None  # of the build under way (`macros.apart.Round`)
_terms: tuple[glossary.Entry, ...] = ()  # of its glossary
_let_go: Any = None  # of this folder, which one process builds at a time
_serving = False  # `mkdocs serve`: this process will build again
_preview = False  # that, or INKLAB_PREVIEW=1: open parts are shown instead of stopping the build


class _Templates(FileSystemBytecodeCache):
    """What cannot be kept, or is of another text, is compiled again; a copy of the project does not leave files of its own."""

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        return super().get_cache_key(name)

    def dump_bytecode(self, bucket: Any) -> None:
        with contextlib.suppress(OSError):
            super().dump_bytecode(bucket)


class _Shown(FileSystemLoader):
    """Lists a theme's files without its hidden folders: Material's ten thousand icons are in one, and MkDocs publishes none of them."""

    def list_templates(self) -> list[str]:
        found = set()
        for home in self.searchpath:
            for folder, inside, names in os.walk(home):
                inside[:] = [name for name in inside if not name.startswith(".")]
                found |= {Path(folder, name).relative_to(home).as_posix() for name in names}
        return sorted(found)


def on_startup(command: str, dirty: bool) -> None:
    """`-q` hides MkDocs' warnings from its own strict mode too: a broken link would be published."""
    global _preview, _serving
    _serving = command == "serve"
    _preview = _serving or os.environ.get("INKLAB_PREVIEW") == "1"
    logger = logging.getLogger("mkdocs")
    logger.setLevel(min(logger.level, logging.WARNING))


@event_priority(100)  # before the search, which asks the theme for its language
def on_config(config: Any) -> None:
    """Tell the template what Explore loads; keep the byte code of theme and pages, which every build would compile anew."""
    global _round
    _round = None  # until this build's is begun
    config.extra["vega"] = chart_cache.vega_name()
    plain = config.theme.get_env
    rendering.byte_code = None
    with contextlib.suppress(OSError):
        TEMPLATES.mkdir(parents=True, exist_ok=True)
        rendering.byte_code = _Templates(str(TEMPLATES))

    def keeping() -> Any:
        env = plain()
        env.loader, env.bytecode_cache = _Shown(env.loader.searchpath), rendering.byte_code
        return env

    config.theme.get_env = keeping


def on_pre_build(config: Any) -> None:
    """Wait for another build in this folder: each would empty the site that the other writes."""
    global _let_go
    home = Path(config.config_file_path).parent
    _let_go = processes.alone(home / ".cache/build.lock", partial(sys.stderr.write, f"Waiting for another build in {home}\n"))


def on_files(files: Any, config: Any) -> Any:
    """Add a page for every machine in labdata/, and publish the style sheet without its comments; no file is written into docs/."""
    from mkdocs.structure.files import File

    from macros import current_book, paging

    lab = current_book().lab  # as the macros have just loaded it
    current_book().site = Path(config["site_dir"])  # emptied a moment ago
    machines = dict.fromkeys((f"machines/{name}.md" for name in lab.machines), "")  # made whole by `macros.apart`
    for address, text in (machines | paging.pages(lab)).items():
        files.append(File.generated(config, address, content=text))
    for late in ("data.md", "machines/index.md", *paging.pages(lab), "compare.md"):  # they show what other processes make meanwhile; the first has the downloads put together
        last = files.get_file_from_path(late)
        if last:
            files.remove(last)
            files.append(last)
    style = files.get_file_from_path("assets/inklab.css")
    if style:
        files.remove(style)
        files.append(File.generated(config, style.src_uri, content=web.without_comments(style.content_string)))
    return files


def on_nav(nav: Any, config: Any, files: Any) -> None:
    """Begin the machines' pages and the downloads: what every page shows of the others is known by now."""
    global _round, _terms
    from macros import again, ahead, apart, chart_cache, current_book, downloads, export, outputs
    from macros.flat import Table

    book = current_book()
    home = files.get_file_from_path("glossary.md")
    _terms = glossary.entries(home.content_string) if home else ()
    for page in nav.pages:
        page.read_source(config)  # menus name a page by its front matter
    env = config.theme.get_env()
    site = outputs.Site(config.site_name, config.site_description, config.site_url or "")
    folder = Path(config["site_dir"], downloads.FOLDER)
    rows, parts = export.Rows(book.lab), downloads.Parts(folder)
    _round = apart.Round(book, config, files, nav, env, site, cards=bool(site.url) and not _preview, rows=rows, parts=parts,
                         digests=again.digests(book, [rows.of, *_common(config, files, nav)]) if _serving else {})  # fmt: skip
    book.tables = lambda: _round.tables
    machines = [file for file in files.documentation_pages() if file.name in book.lab.machines and file.src_uri == f"machines/{file.name}.md"]
    for file in machines:
        apart.Standing(file, _round)

    def rest() -> tuple[list[Table], list[downloads.Piece]]:
        book.publish(f"assets/{chart_cache.vega_name()}", chart_cache.vega())
        downloads.write_copies(folder)
        made = downloads.pieces(rows, "")
        return rows.tables(), made

    # MkDocs comes to the machines in the order it reads files.
    put_together = partial(downloads.write_tables, parts, folder, config.site_description, site.url)
    ahead.begin([file.name for file in machines], partial(apart.make, _round), rest, put_together)


def _common(config: Any, files: Any, nav: Any) -> list[object]:
    """What decides how every page looks, beside labdata/ and this package with its theme: the configuration, the menus, the glossary, what there is to link to."""
    told = {key: value for key, value in config.items() if isinstance(value, (str, int, type(None)))}
    terms = files.get_file_from_path("glossary.md")
    return [told, Path(config.config_file_path).read_bytes(), [(page.url, page.title, page.meta) for page in nav.pages],
            sorted(files.src_uris), terms and terms.content_string]  # fmt: skip


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Terms of the glossary linked where a page first uses them; below its text, the notes that its links lead to."""
    home = files.src_uris.get("glossary.md")
    if home and page.file is not home:
        html = glossary.mark(html, _terms, home.url_relative_to(page.file))
    html = asides.back(html)
    return html + str(notes.section(html))


def on_env(env: Any, config: Any, files: Any) -> Any:
    """Every page is rendered: what is still open stops a published build, all of it in one message."""
    from mkdocs.exceptions import PluginError

    from macros import outputs, paging

    book = _round.book
    search = config.plugins.get("material/search")
    if search:
        search.search_index.entries += [paging.search_entry(book, name) for name in book.lab.machines]
    if book.open_parts and not _preview:
        raise PluginError("\n".join(book.open_parts) + "\nmake serve shows the pages with their open parts")
    pages = [file.page for file in files.documentation_pages()]
    outputs.publish(book, pages, _round.site, _round.cards, {page.url: page.made.report for page in pages if hasattr(page, "made")})
    return _round.env


_WORDLESS = re.compile(r'<svg\b.*?</svg>|<details class="notes".*?</details>', re.S)
# Tags whose words the search takes and whose mark it drops; none is left out of it, and none holds a heading.
_MARKS = "a|abbr|b|button|caption|cite|data|dd|dfn|dl|dt|em|figcaption|i|kbd|label|m[a-z]+|small|span|strong|summary|table|tbody|td|tfoot|th|thead|time|tr|var"
_PLAIN = re.compile(rf"""</?(?:{_MARKS})(?=[\s>])[^>"]*(?:"[^"]*"[^>"]*)*>""")


@event_priority(100)  # before the search reads it
def _for_search(context: Any, page: Any, config: Any, nav: Any) -> Any:
    """The search parses a page letter by letter, also what it leaves out: it gets the page without that, and without marks inside its words."""
    page.meta["whole"] = page.content
    excluded = (page.meta.get("search") or {}).get("exclude")
    plain = "" if excluded else re.sub(r"</t[dh]>", " ", _WORDLESS.sub("", page.content))  # or the words of two cells were one
    page.content = _PLAIN.sub("", plain)
    return context


@event_priority(-100)  # after it
def _for_print(context: Any, page: Any, config: Any, nav: Any) -> Any:
    page.content = page.meta.pop("whole")
    return context


on_page_context = CombinedEvent(_for_search, _for_print)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """A policy for what the page may load, and links that also work from a folder where no address is set."""
    output = web.roomy(output)
    return web.guarded(output if config.site_url else web.for_folder(output))


def on_post_template(output: str, template_name: str, config: Any) -> str:
    """The page for what is not found has a policy too."""
    return web.guarded(output) if template_name.endswith(".html") else output


def on_shutdown() -> None:
    """The system takes the memory back at once; Python, before it ends, would look through everything a build has made, half a second of it at twenty machines."""
    gc.freeze()


def _done() -> None:
    """Other processes may build here."""
    global _let_go
    if _let_go:
        _let_go()
    _let_go = None


def on_build_error(error: Exception) -> None:
    """A full disk or a folder nobody may write into is one line, not a traceback; a build that failed leaves no site."""
    from mkdocs.exceptions import PluginError

    from macros import ahead

    ahead.end()
    if _round:
        utils.clean_directory(_round.config.site_dir)  # machines' pages are written early: nothing of a failed build looks published
    _done()
    if isinstance(error, OSError):
        raise PluginError(f"{error.filename or 'site'}: cannot be written; {error.strerror}") from None


def on_post_build(config: Any) -> None:
    """Everything is written; then check all of it."""
    from mkdocs.exceptions import PluginError

    from macros import ahead, built

    assert _round.tables
    ahead.done()
    ahead.end()
    pages = (file.page for file in _round.files.documentation_pages())
    found = built.problems(Path(config["site_dir"]), {page.file.abs_dest_path: page.made.read for page in pages if hasattr(page, "made")})
    if found and not _preview:
        raise PluginError("\n".join(found))
    _done()
