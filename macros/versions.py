"""From one layout of labdata/ to the next, while a file is read: what was written stays as it is, byte for byte.

Ink and runs are sealed, so no file is ever rewritten for a new layout. The next one, version 2, takes four steps:

1. change the models (`macros.fields` and its siblings) and set CURRENT to 2;
2. write `STEPS[1]`: the name of a kind and the content of a version 1 file in, the content of version 2 out;
3. `make schema`, and a copy of a lab of version 1 under tests/data/, built by a test for ever after;
4. a line in the method page's changelog, and the date.

A value that version 1 did not record becomes null ("not recorded"), never a default of today.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

CURRENT = 1  # what is written now
# version -> (kind of document, its content) -> content in the next version; kinds are "Machine", "Ink", "Run", ...
STEPS: dict[int, Callable[[str, dict[str, Any]], dict[str, Any]]] = {}


def upgrade(kind: str, content: Any) -> Any:
    """A document's content in today's layout; what has no version is left to its model to refuse.

    Raises:
        ValueError: written by a later Inklab than this one.
    """
    version = content.get("schema") if isinstance(content, dict) else None
    if type(version) is not int or version < 1:
        return content
    if version > CURRENT:
        raise ValueError(f"schema: from a later Inklab than this one; got {version}; known: 1 to {CURRENT}; git pull brings a newer one")
    for number in range(version, CURRENT):
        content = {**STEPS[number](kind, content), "schema": number + 1}
    return content
