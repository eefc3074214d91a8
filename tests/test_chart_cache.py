"""A cached chart is the drawn one, is found without Altair, and is never an old one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd

from macros import chart_cache, charts

ROOT = Path(__file__).resolve().parent.parent
ROWS = pd.DataFrame({"label": ["Metal"], "achieved_gb_s": [99.7], "roof_gb_s": [120.0]})


def test_cached_is_drawn_and_a_changed_row_is_drawn_anew(tmp_path: Path):
    first = chart_cache.draw("backend_bars", ROWS, "f", "label", folder=tmp_path)
    assert first.svg == charts.to_svg(charts.backend_bars(ROWS), "f", "label")
    assert first.spec == charts.published(charts.backend_bars(ROWS), "label")
    assert chart_cache.draw("backend_bars", ROWS, "f", "label", folder=tmp_path) == first
    assert len(list(tmp_path.iterdir())) == 1
    changed = chart_cache.draw("backend_bars", ROWS.assign(achieved_gb_s=[99.8]), "f", "label", folder=tmp_path)
    assert changed != first and "99.8" in changed.svg and "99.8" in changed.spec


def test_a_cached_chart_needs_no_altair(tmp_path: Path):
    code = (
        "import sys, pathlib, pandas as pd; from macros import chart_cache;"
        "rows = pd.DataFrame({'label': ['Metal'], 'achieved_gb_s': [99.7], 'roof_gb_s': [120.0]});"
        f"chart_cache.draw('backend_bars', rows, 'f', 'l', folder=pathlib.Path({str(tmp_path)!r}));"
        "print('altair' in sys.modules)"
    )
    said = [subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip() for _ in range(2)]
    assert said == ["True", "False"]
