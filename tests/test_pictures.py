"""Pictures: their size, that they say the numbers given, and that nothing runs over."""

from __future__ import annotations

import re
import struct
import xml.etree.ElementTree as ET

import pandas as pd
import pytest

from macros import charts, compare, figures, labdata, pictures

# Day 1 as published.
DEPTH = pd.DataFrame({"depth_tokens": [0, 2048, 4096, 8192], "measured_tok_s": [19.82, 19.20, 17.99, 15.97], "sigma_tok_s": [0.38, 0.28, 0.26, 0.06],
                      "predicted_tok_s": [19.82, 18.73, 17.75, 16.05], "roof_tok_s": [23.86, 22.53, 21.36, 19.33]}).to_dict("records")  # fmt: skip
CHART = pictures.Chart("decode_depth", DEPTH, "Decode rate in tokens per second against context depth. depth 0: measured 19.8.")
WORDS = pictures.Words("Day 1 of 45", "The spec sheet called it", "≤ 24 tok/s", "20.80 ± 0.05 tok/s", "87 % of the memory roof", "Inklab · Apple M4")
NS = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[ET.Element]:
    return list(ET.fromstring(svg).iter(f"{NS}text"))


def parted(svg: str) -> tuple[ET.Element, list[ET.Element]]:
    """The chart inside a picture, and the picture's own texts."""
    root = ET.fromstring(svg)
    return next(e for e in root if e.tag == f"{NS}svg"), [e for e in root if e.tag == f"{NS}text"]


def said(svg: str) -> str:
    return " ".join(t.text or "" for t in texts(svg))


@pytest.mark.parametrize("size", pictures.SIZES)
@pytest.mark.parametrize("chart", [CHART, None])
def test_a_picture_has_its_size_and_is_the_same_twice(size, chart, tmp_path, monkeypatch):
    monkeypatch.setattr(pictures.chart_cache.kept, "__defaults__", (tmp_path,))
    first = pictures.png(WORDS, chart, size)
    assert first[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", first[16:24]) == pictures.SIZES[size]
    (kept,) = tmp_path.iterdir()
    assert kept.read_bytes() == first
    kept.unlink()
    assert pictures.png(WORDS, chart, size) == first


def test_the_card_is_the_size_previews_ask_for(tmp_path, monkeypatch):
    monkeypatch.setattr(pictures.chart_cache.kept, "__defaults__", (tmp_path,))
    assert struct.unpack(">II", pictures.card_png(WORDS)[16:24]) == (1200, 630)


@pytest.mark.parametrize("size", pictures.SIZES)
def test_a_picture_says_its_numbers_in_text_a_phone_can_show(size):
    width, height = pictures.SIZES[size]
    svg = pictures.svg(WORDS, CHART, width, height)
    for words in ("Day 1 of 45", "≤ 24 tok/s", "20.80 ± 0.05 tok/s", "87 % of the memory roof", "Inklab · Apple M4", "predicted", "memory roof"):
        assert words in said(svg)
    assert " ".join(t.text for t in texts(svg) if "Title" in (t.get("font-family") or "")) == "The spec sheet called it"
    inner, own = parted(svg)
    box = list(map(float, inner.get("viewBox").split()))
    scale = min(float(inner.get("width")) / box[2], float(inner.get("height")) / box[3])
    sizes = [float(t.get("font-size")) for t in own]
    sizes += [scale * float(t.get("font-size")) for t in inner.iter() if t.get("font-size")]
    assert min(sizes) * 360 / 1200 >= 9  # [px] on a phone of 390 less its margins: small print, not dust


@pytest.mark.parametrize(
    "words",
    [
        WORDS,
        pictures.Words("Machine", "An unreasonably long name of a machine that somebody typed without a thought for cards " * 5, "", "1 tok/s", "word " * 200, "f" * 300),
        pictures.Words("k" * 200, "W" * 300, "1" * 80, "≤ 1,000,000.00 ± 1,000.00 tok/s", "", ""),
        pictures.Words("", "<script>alert(1)</script> & \"quotes\"", "", "", "", ""),
    ],
)
@pytest.mark.parametrize("size", pictures.SIZES)
def test_nothing_runs_over_however_long(words, size):
    width, height = pictures.SIZES[size]
    svg = pictures.svg(words, CHART, width, height)
    inner, own = parted(svg)
    limit = float(inner.get("x")) if size != "square" else width
    below = [float(t.get("y")) for t in own]
    assert max(below) <= height - pictures.MARGIN
    assert below[:-1] == sorted(below[:-1]) and (len(below) < 2 or below[-2] < below[-1])
    for text in own:
        advance = {"Inklab Title": 0.5, "Inklab Bold": 0.6}.get((text.get("font-family") or "").split(",")[0], 0.55)
        assert float(text.get("x")) + advance * float(text.get("font-size")) * len(text.text or "") <= max(limit, pictures.MARGIN + 440) + 1
    assert "<script" not in svg


def test_alt_text_holds_what_the_picture_holds():
    assert pictures.alt(WORDS, CHART) == (
        "Day 1 of 45. The spec sheet called it. Inked: ≤ 24 tok/s. Measured: 20.80 ± 0.05 tok/s. 87 % of the memory roof. "
        "Chart: Decode rate in tokens per second against context depth. depth 0: measured 19.8."
    )
    assert pictures.alt(pictures.Words("", "Method?")) == "Method?"


def test_titles_and_numbers_are_set_in_their_own_faces(tmp_path):
    """A renderer that misses a face falls back in silence: the same word in it must look different from the fallback."""

    def drawn(face: str) -> bytes:
        return charts.to_png(f'<svg xmlns="http://www.w3.org/2000/svg" width="300" height="60"><text x="5" y="40" font-size="30" font-family="{face}">Hamburg 20.80</text></svg>')

    assert len({drawn(face) for face in (pictures.TITLE, pictures.BOLD, pictures.REGULAR)}) == 3


def test_the_day_is_shown_by_decode_against_depth_and_a_lab_without_depth_by_bandwidth():
    lab = labdata.load()
    runs = lab.runs_on("day-01")
    chart = figures.picture_chart(lab, runs)
    assert chart.kind == "decode_depth"
    assert [row["measured_tok_s"] for row in chart.rows] == [19.82, 19.20, 17.99, 15.97]
    assert "depth 8,192: measured 16.0, predicted 16.0" in chart.label
    flat = [run for run in runs if not any(r.depth for r in run.results)]
    bars = figures.picture_chart(lab, flat)
    assert bars.kind == "backend_bars" and not re.search("nan", bars.label)
    assert figures.picture_chart(lab, []) is None
    assert all(compare.rate(r) for run in flat for r in run.results)
