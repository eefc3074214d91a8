"""Macros filled in: of a page as the site is built, and of posts without a build."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from macros import guard


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


byte_code: Any = None  # where a build keeps pages' code for the next one (`jinja2.BytecodeCache`)
LEAST = 1000  # characters; what is shorter is compiled sooner than read from a disk
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
        compiled = _compiled.get(text) or _compiled.setdefault(text, _code(env.env, text, shown))
        return env.env.template_class.from_code(env.env, compiled, env.env.make_globals(None)).render(**{**env.variables, **meta})
    except Exception as error:
        raise PluginError(f"{shown}: line {_line(error) + above}: {guard.said(error)}") from None


def _code(env: Any, text: str, shown: str) -> Any:
    """A page's byte code, from the last build where that had the same text between the same marks."""
    if byte_code is None or len(text) < LEAST:
        return env.compile(text)
    marks = (env.variable_start_string, env.variable_end_string, env.block_start_string, env.block_end_string, env.comment_start_string, env.comment_end_string)
    bucket = byte_code.get_bucket(env, shown, None, repr((marks, text)))
    if bucket.code is None:
        bucket.code = env.compile(text)
        byte_code.set_bucket(bucket)
    return bucket.code


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
