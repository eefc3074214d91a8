"""A page's own script: the project's functions in JavaScript, what they work on, and the hand-written part from `scripts/`.

One file a page, named by its content, so that no cache serves an old one; a plain deferred script, so that it
works from a folder on disk too and needs no `unsafe-eval`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from markupsafe import Markup

from macros import javascript, values
from macros.narrative import Book

FOLDER = Path(__file__).with_name("scripts")


def script(roots: Sequence[Any], data: Mapping[str, Any], names: Sequence[str]) -> str:
    """The text of a page's script; data becomes its constant DATA.

    Raises:
        ValueError: a number that is not finite.
    """
    packed = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    quoted = "'{}'".format(packed.replace("\\", "\\\\").replace("'", "\\'"))  # read faster than the same as code
    parts = [_program(tuple(roots)), f"const DATA = JSON.parse({quoted});", *((FOLDER / f"{n}.js").read_text(encoding="utf-8") for n in names)]
    return "\n".join(["(() => {", '"use strict";', *parts, "})();", ""])


@cache  # a rebuild runs the same code
def _program(roots: tuple[Any, ...]) -> str:
    return javascript.program(*roots, values.decimals_for, given={values.number: "decimal"})


def element(book: Book, name: str, text: str) -> Markup:
    """Register a script to be written; the element that loads it.

    In ASCII: a sign beyond doubles what a browser keeps of the whole text, and it takes half as long again to compile.
    """
    text = re.sub(r"[^\x00-\x7f]", lambda sign: json.dumps(sign[0])[1:-1], text)
    address = f"assets/{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.js"
    book.publish(address, text)
    return Markup('<script src="{}" defer></script>').format(book.link(address))
