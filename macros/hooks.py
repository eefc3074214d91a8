"""MkDocs' events: machine pages in, CSV and fonts out. The only other module that knows MkDocs."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any


_preview = False  # `mkdocs serve`, or INKLAB_PREVIEW=1: open parts are shown instead of stopping the build


def on_startup(command: str, dirty: bool) -> None:
    """`-q` hides MkDocs' warnings from its own strict mode too: a broken link would be published."""
    global _preview
    _preview = command == "serve" or os.environ.get("INKLAB_PREVIEW") == "1"
    logger = logging.getLogger("mkdocs")
    logger.setLevel(min(logger.level, logging.WARNING))


def on_files(files: Any, config: Any) -> Any:
    """Add a page for every machine in labdata/; no file is written into docs/."""
    from mkdocs.structure.files import File

    from macros import labdata, pages

    for machine in labdata.load().machines.values():
        files.append(File.generated(config, f"machines/{machine.id}.md", content=pages.stub(machine)))
    return files


def on_env(env: Any, config: Any, files: Any) -> None:
    """Every page is rendered and none is written: what is still open stops a published build, all of it in one message."""
    from mkdocs.exceptions import PluginError

    from macros import current_book

    found = current_book().open_parts
    if found and not _preview:
        raise PluginError("\n".join(found) + "\nmake serve shows the pages with their open parts")


def on_build_error(error: Exception) -> None:
    """A full disk or a folder nobody may write into is one line, not a traceback."""
    from mkdocs.exceptions import PluginError

    if isinstance(error, OSError):
        raise PluginError(f"{error.filename or 'site'}: cannot be written; {error.strerror}") from None


def on_post_build(config: Any) -> None:
    """Write what the pages registered: CSV files, and the fonts subset to what the site prints."""
    from macros import current_book, fonts

    site = Path(config["site_dir"])
    for address, text in current_book().files.items():
        path = site / address
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    fonts.build_fonts(site / "assets" / "fonts")
