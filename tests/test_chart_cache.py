"""What is kept is found again, and is never an old one; a page's charts are drawn without the libraries of its pictures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from macros import chart_cache, charts

ROOT = Path(__file__).resolve().parent.parent


def test_what_was_made_is_found_again_and_another_key_makes_anew(tmp_path: Path):
    made = iter([b"first", b"second"])
    assert [chart_cache.kept(key, ".png", lambda: next(made), tmp_path) for key in (["a"], ["a"], ["b"], ["a"])] == [b"first", b"first", b"second", b"first"]
    assert len(list(tmp_path.iterdir())) == 2


def test_a_chart_needs_no_data_frame_no_altair_and_no_vega():
    code = (
        "import sys; from macros import charts;"
        "spec = charts.backend_bars([{'label': 'Metal', 'achieved_gb_s': 99.7, 'roof_gb_s': 120.0}]);"
        "assert '99.7 of 120 GB' in charts.to_svg(spec, 'l');"
        "print(sorted({'altair', 'pandas', 'vl_convert'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_explores_script_is_made_once_an_environment_and_anew_for_another_version(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(chart_cache, "ENVIRONMENT", tmp_path)
    monkeypatch.setattr(charts, "bundle", lambda: made.append(1) or f"script {len(made)}")
    assert [chart_cache.vega(), chart_cache.vega()] == [b"script 1", b"script 1"]
    monkeypatch.setattr(chart_cache, "version", lambda package: "another")
    assert chart_cache.vega() == b"script 2"
