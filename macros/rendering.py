"""Macros filled in: of a page as the site is built, and of posts without a build."""

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

        from macros import labdata

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


_compiled: dict[str, Any] = {}  # pages' code by their text: a rebuild finds most of them again


def rendered(env: Any, text: str, meta: dict, shown: str, above: int, printed: Any) -> str:
    """A page or a template of posts, its macros filled in.

    Args:
        above: lines of front matter above the text
        printed: what is done to each value that is printed (Jinja's `finalize`)

    Raises:
        PluginError: a mistake in it, one line with file and line.
    """
    from mkdocs.exceptions import PluginError

    env.env.finalize = printed
    try:
        compiled = _compiled.get(text) or _compiled.setdefault(text, env.env.compile(text))
        return env.env.template_class.from_code(env.env, compiled, env.env.make_globals(None)).render(**{**env.variables, **meta})
    except Exception as error:
        words = str(error).strip().splitlines() or [type(error).__name__]
        raise PluginError(f"{shown}: line {_line(error) + above}: {words[0]}") from None


def _line(error: Exception) -> int:
    """The template line an error came from."""
    if hasattr(error, "lineno"):
        return error.lineno
    lines, trace = [0], error.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename == "<template>":
            lines.append(trace.tb_lineno)
        trace = trace.tb_next
    return lines[-1]


def lines_above(page: Any) -> int:
    """Lines of a source file above its Markdown."""
    text = page.file.content_string
    body = page.markdown or ""
    return text[: text.find(body.strip()[:40])].count("\n") if body.strip() else 0
