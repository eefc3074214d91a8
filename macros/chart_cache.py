"""Pictures, and the script that Explore runs, kept by content: what decides how they look is the key, so none is ever stale.

A chart in a page is not kept: to draw it takes less than to write a file and flush it to disk.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path

from macros import chart_kit, labdata

FOLDER = Path(".cache/charts")
ENVIRONMENT = Path(sys.prefix, "inklab") if sys.prefix != sys.base_prefix else FOLDER  # of what the installed packages alone decide
CODE = ("charts.py", "chart_*.py", "pictures.py")


def vega_name() -> str:
    """The name Explore's script is published by: another for another version."""
    return f"vega-{version('vl-convert-python')}.js"


def vega() -> bytes:
    """The script that Explore loads; it takes two seconds to make, so the set-up does."""

    def bundled() -> bytes:
        from macros import charts

        return charts.bundle().encode()

    return kept(["vega", version("vl-convert-python"), chart_kit.SCHEMA], ".js", bundled, ENVIRONMENT)


def kept(key: list, suffix: str, make: Callable[[], bytes], folder: Path = FOLDER) -> bytes:
    """What was made for a key before, or what is made now; all that decides how it looks belongs in the key."""
    digest = hashlib.sha256(json.dumps(key).encode()).hexdigest()
    path = folder / f"{digest}{suffix}"
    if path.is_file():
        return path.read_bytes()
    data = make()
    with contextlib.suppress(OSError):  # a full disk, or a folder nobody may write into: it is made again
        labdata.write_bytes(path, data)
    return data


@cache
def drawn_by() -> list[str]:
    """What else decides how a picture looks: the drawing code and its libraries."""
    here = Path(__file__).parent
    files = sorted(path for pattern in CODE for path in here.glob(pattern))
    files += sorted((here / "faces").glob("*.ttf"))
    code = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
    return code + [version(package) for package in ("vl-convert-python", "fontpkg-inter")]
