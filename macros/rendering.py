"""The pages' macros without a build: what posts are rendered with."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Site:
    """The site's settings and macros without a build: what posts are rendered with."""

    env: Any
    book: Any
    url: str
    frame: dict[str, str]

    def render(self, path: Path, address: str, printed: Any = None, variables: dict | None = None) -> str:
        """A page or a template, its macros filled in; links start from `address`.

        Raises:
            PluginError: a mistake in it, one line with file and line.
        """
        from mkdocs.utils.meta import get_data

        from macros import labdata, rendered

        whole = path.read_text(encoding="utf-8")
        text, meta = get_data(whole)
        shown = path.relative_to(labdata.ROOT.parent).as_posix()
        self.book.turn_to(address, shown.removeprefix("docs/"))
        return rendered(self.env, text, {**meta, **(variables or {})}, shown, whole[: len(whole) - len(text)].count("\n"), printed or self.book.say)


def macros_of(config_file: Path) -> Site:
    """The macros as mkdocs.yml sets them up.

    Raises:
        PluginError: labdata has problems.
    """
    from mkdocs.config import load_config

    from macros import current_book

    logging.getLogger("mkdocs").setLevel(logging.WARNING)
    config = load_config(str(config_file))
    env = config.plugins["macros"]
    env.on_config(config)
    return Site(env, current_book(), config.site_url or "", dict(config.extra.get("post") or {}))
