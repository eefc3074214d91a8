"""Drawn charts kept by content: rows and the drawing code decide the key, so none is ever stale.

Altair and vl-convert, two thirds of a warm build, are loaded only for a chart not drawn before.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib.metadata import version
from pathlib import Path

import pandas as pd

FOLDER = Path(".cache/charts")
CODE = ("charts.py", "chart_layout.py", "chart_svg.py")


def draw(kind: str, rows: pd.DataFrame, figure_id: str, label: str, folder: Path = FOLDER) -> str:
    """A chart as inline SVG, drawn by `macros.charts`' function of that name or taken from the cache.

    Args:
        kind: "decode_depth", "prefill_depth", "predicted_measured", "backend_bars", "predicted_scatter" or "growth"
    """
    key = json.dumps([kind, rows.to_json(orient="split", double_precision=15), figure_id, label, _drawn_by()])
    path = folder / f"{hashlib.sha256(key.encode()).hexdigest()}.svg"
    if path.is_file():
        return path.read_text(encoding="utf-8")
    from macros import charts, labdata

    svg = charts.to_svg(getattr(charts, kind)(rows), figure_id, label)
    labdata.write_text(path, svg)
    return svg


@cache
def _drawn_by() -> list[str]:
    """What else decides how a chart looks: the drawing code and its libraries."""
    here = Path(__file__).parent
    code = [hashlib.sha256((here / name).read_bytes()).hexdigest() for name in CODE]
    return code + [version(package) for package in ("altair", "vl-convert-python", "fontpkg-inter")]
