"""The charts that place results: where a mark lies is where a hand calculation puts it, and labels keep clear of dots."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest

from macros import chart_layout, charts, compare, figure_rows, labdata
from tests.test_charts import rows_of

NAN = float("nan")
CSS = (Path(__file__).parents[1] / "macros/theme/assets/inklab.css").read_text(encoding="utf-8")
# Day 1 by hand: 2P = 16.38 GFLOP a token; 16.38 / 5.03 GB and 512 × that; 20.80, 228.94 and the guess of 360 tok/s × 2P.
ROOF = pd.DataFrame(
    {
        "label": ["decode, Q4_K_M", "prefill, Q4_K_M"],
        "flops_per_byte": [3.256, 1667.3],
        "measured_flops_s": [340.7e9, 3750e9],
        "sigma_flops_s": [0.8e9, 1.6e9],
        "predicted_flops_s": [393.1e9, 5897e9],
        "predicted_low_flops_s": [NAN, NAN],
        "predicted_high_flops_s": [NAN, NAN],
        "bandwidth_bytes_s": [120e9, 120e9],
        "peak_flops_s": [4.4e12, 4.4e12],
    }
)
INK = pd.DataFrame(
    {
        "label": ["Prefill rate", "Q8_0 decode rate"], "quantity": ["Prefill rate", "Q8_0 decode rate"], "as_written": ["360 tok/s", "11.5 to 12.0 tok/s"],
        "predicted": [360, NAN], "predicted_low": [NAN, 11.5], "predicted_high": [NAN, 12.0], "measured": [228.94, 12.52], "sigma": [0.10, 0.08],
        "verdict": ["missed", "missed"], "tolerance": [0.1, 0.1],
    }
)  # fmt: skip
SPREAD = pd.DataFrame({"label": ["Q8_0", "Q4_K_M"], "n": [19, 87], "low": [0.55, 0.32], "q1": [0.75, 0.45], "median": [0.8, 0.62], "q3": [0.84, 0.74],
                       "high": [0.88, 0.8], "own": [0.91, NAN], "own_sigma": [0.005, NAN]})  # fmt: skip
CPU = pd.DataFrame({"quantity": ["CPU-only prefill", "CPU-only decode"], "as_written": ["craters", "barely changes"], "low": [0.0, 0.9], "high": [0.5, 1.1],
                    "measured": [0.097, 0.61], "sigma": [0.008, 0.065], "verdict": ["held", "missed"]})  # fmt: skip
DOTS = pd.DataFrame(
    {
        "chip": ["A"] * 3, "model": ["m"] * 3, "quant": ["Q4_0"] * 3, "test": ["tg128"] * 3, "predicted_tok_s": [10.0, 100.0, 50.0], "low80_tok_s": [8.0, 80.0, 40.0],
        "high80_tok_s": [12.0, 120.0, 60.0], "measured_tok_s": [11.0, 40.0, 50.0], "inside": [True, False, True], "number": ["", "1", ""],
    }
)  # fmt: skip
SPECS = {
    "roofline": charts.roofline(rows_of(ROOF)),
    "no-peak": charts.roofline(rows_of(ROOF.assign(peak_flops_s=NAN))),
    "no-ink": charts.roofline(rows_of(ROOF.assign(predicted_flops_s=NAN))),
    "inked": charts.inked_scatter(rows_of(INK)),
    "formats": charts.format_shares(rows_of(SPREAD)),
    "residuals": charts.residual_spread(rows_of(SPREAD.drop(columns=["own", "own_sigma"]))),
    "cpu": charts.backend_ratios(rows_of(CPU)),
    "up": charts.backend_ratios(rows_of(CPU.assign(as_written="rises", low=1.0, high=math.inf))),
    "dots": charts.predicted_scatter(rows_of(DOTS)),
}


def drawings(spec: dict) -> list[ET.Element]:
    """The wide and the narrow drawing, parsed."""
    return list(ET.fromstring(f"<figure>{charts.to_svg(spec, 'What it shows')}</figure>"))


def words(drawing: ET.Element) -> list[str]:
    return [t.text or "" for t in drawing.iter("text")]


def scale(spec: dict, axis: str) -> dict:
    """The first domain of an axis and its length in px."""
    found = next(layer["encoding"][axis]["scale"] for layer in spec["layer"] if (layer["encoding"].get(axis) or {}).get("scale"))
    return {**found, "px": spec["width" if axis == "x" else "height"]}


@pytest.mark.parametrize("name", SPECS)
def test_a_chart_is_fit_for_the_page(name):
    spec = SPECS[name]
    svg = charts.to_svg(spec, "What it shows")
    assert svg == charts.to_svg(spec, "What it shows") and "\n" not in svg
    assert not re.search(r'"#[0-9a-fA-F]{3,8}"|rgb|NaN|undefined', svg)
    assert set(re.findall(r"var\((--[a-z]+)\)", svg)) <= set(re.findall(r"^  (--[a-z]+):", CSS, re.M))
    for drawing, width in zip(drawings(spec), (640, 350), strict=True):
        assert float(drawing.get("width")) == width
        assert [float(e.get("font-size")) >= 11 for e in drawing.iter() if e.get("font-size")] == [True]


@pytest.mark.parametrize("name", SPECS)
def test_what_is_published_is_vega_lite_with_its_rows(name):
    import altair

    spec = json.loads(charts.published(SPECS[name], "What it shows"))
    assert "NaN" not in json.dumps(spec) and spec["description"] == "What it shows"
    schema = json.loads((Path(altair.__file__).parent / "vegalite/v6/schema/vega-lite-schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft7Validator(schema).validate(spec)


def test_marks_of_the_roofline_lie_where_hand_calculation_puts_them():
    """The guess stands above the compute roof by 5.897 / 4.4, decode at 340.7 / (3.256 × 120) of the slope."""
    spec = SPECS["roofline"]
    x, y = scale(spec, "x"), scale(spec, "y")

    def value(px: float, axis: dict) -> float:
        low, high = np.log(axis["domain"])
        return float(np.exp(low + px / axis["px"] * (high - low)))

    lines = [layer for layer in spec["layer"] if layer["mark"]["type"] == "line"]
    corners = [[(p["flops_per_byte"], p["measured"]) for p in layer["data"]["values"]] for layer in lines]
    assert corners[0][1] == corners[1][0] == pytest.approx((36.67, 4.4), rel=1e-3)  # the ridge
    svg = ET.fromstring(charts.standing(spec))
    hollow = next(e for e in svg.iter() if e.get("stroke") == "#1f3fa8" and e.get("fill") == "#fbfaf7")
    places = [(float(dot.get("cx")), float(dot.get("cy"))) for dot in hollow]
    guess = min(places, key=lambda p: p[1])
    assert value(guess[0], x) == pytest.approx(1667.3, rel=2e-3)
    assert value(y["px"] - guess[1], y) == pytest.approx(5.897, rel=2e-3)


def test_the_band_is_the_tolerance_in_log_log():
    corners = chart_layout.band([1, 1000], 0.9, 1.1)
    assert [c["at"] for c in corners] == pytest.approx([1, 1 / 0.9, 1000 / 1.1, 1000])
    for c in corners:
        assert c["from"] == pytest.approx(max(1, 0.9 * c["at"])) and c["to"] == pytest.approx(min(1000, 1.1 * c["at"]))


def test_on_a_phone_dots_have_numbers_and_the_key_says_which():
    wide, narrow = map(words, drawings(SPECS["roofline"]))
    assert "decode, Q4_K_M" in wide and "1 decode, Q4_K_M" in narrow and "1" in narrow


def test_a_missing_roof_and_missing_ink_are_not_drawn():
    assert not any("compute roof" in w for w in words(drawings(SPECS["no-peak"])[0]))
    assert any("compute roof 4.4 TFLOP/s" in w for w in words(drawings(SPECS["roofline"])[0]))
    assert not any("inked" in w for w in words(drawings(SPECS["no-ink"])[0]))


@pytest.mark.parametrize("plot", [270, 560])
@pytest.mark.parametrize("seed", range(8))
def test_labels_beside_dots_cover_no_dot_and_no_label(seed, plot):
    height, rng = 300, np.random.default_rng(seed)
    places = np.column_stack([rng.uniform(20, plot - 20, 5), np.linspace(30, height - 30, 5)])
    texts = ["1", "22", "three", "4", "fifth"]
    found = chart_layout.beside([p[None] for p in places], texts, [chart_layout.boxed(places, 5)], plot, height, 13)
    boxes = [(x, x + 13 * chart_layout.CHARACTER * len(t), y) for (x, y), t in zip(found, texts, strict=True)]
    for i, (left, right, middle) in enumerate(boxes):
        assert left >= 0 and right <= plot + 1 and 0 <= middle <= height
        for x, y in places:
            assert not (left - 4 < x < right + 4 and abs(y - middle) < 6 + 4)
        for other_left, other_right, other in boxes[i + 1 :]:
            assert right < other_left or other_right < left or abs(middle - other) >= 9


@pytest.mark.parametrize("width", [245, 350, 640])
@pytest.mark.parametrize(("roof", "predicted", "measured"), [
    ([23.86, 22.53, 21.36, 19.33], [19.82, 18.73, 17.75, 16.05], [19.82, 19.20, 17.99, 15.97]),  # Day 1
    ([29.2, 24.0, 20.4, 15.7], [15.6, 12.9, 11.0, 8.4], [15.6, 8.7, 6.4, 3.0]),
    ([20, 20, 20, 20], [19, 19, 19, 19], [18, 18, 18, 18]),
])  # fmt: skip
def test_no_label_of_a_depth_chart_lies_under_a_dot(roof, predicted, measured, width):
    rows = pd.DataFrame({"depth_tokens": [0, 2048, 4096, 8192], "measured_tok_s": measured, "sigma_tok_s": [0.3] * 4, "predicted_tok_s": predicted, "roof_tok_s": roof})
    spec = charts.decode_depth(rows_of(rows), size=(width, 120 if width == 245 else 230))
    svg = ET.fromstring(charts.standing(spec))
    ns = "{http://www.w3.org/2000/svg}"
    dots = [(float(e.get("cx")), float(e.get("cy"))) for e in svg.iter(f"{ns}circle")]
    labels = [e for e in svg.iter(f"{ns}text") if any(w in (e.text or "") for w in ("measured", "predicted", "roof"))]
    assert len(labels) == 3 and len(dots) >= 8
    for label in labels:
        left, baseline = float(label.get("x")), float(label.get("y"))
        top, bottom, right = baseline - 10, baseline + 3, left + 13 * 0.5 * len(label.text)
        for x, y in dots:
            assert not (left - 4 < x < right + 4 and top - 4 < y < bottom + 4), label.text


def test_rows_of_day_1_are_those_of_a_hand_calculation():
    lab = labdata.load()
    runs = lab.runs_on("day-01")
    scores = compare.scores(lab, "day-01", runs)
    roof = {(row["test"], row["model"]): row for row in figure_rows.roofline(lab, runs, scores)}
    decode, prefill = roof["tg128", "qwen3-8b-q4_k_m"], roof["pp512", "qwen3-8b-q4_k_m"]
    assert decode["flops_per_byte"] == pytest.approx(3.26, abs=0.01)
    assert prefill["flops_per_byte"] == pytest.approx(512 * 2 * 8.19 / 5.03, rel=1e-3)
    assert prefill["predicted_flops_s"] == pytest.approx(360 * 2 * 8.19e9)
    assert decode["measured_flops_s"] == pytest.approx(20.80 * 2 * 8.19e9)
    assert len(roof) == 4  # the CPU's results are not under the GPU's roofs
    rates = {row["prediction"]: row for row in figure_rows.inked_rates(scores)}
    assert (rates["prefill-guess"]["predicted"], rates["prefill-guess"]["measured"]) == (360, 228.94)
    assert set(rates) == {"decode-ceiling", "prefill-guess", "q8-decode", "q8-prefill"}
    cpu = {row["prediction"]: row for row in figure_rows.without_gpu(lab, scores)}
    assert (cpu["cpu-decode"]["low"], cpu["cpu-decode"]["high"]) == (0.9, 1.1)
    assert cpu["cpu-decode"]["measured"] == pytest.approx(12.69 / 20.80, rel=1e-3)


def test_a_spread_is_that_of_its_values():
    found = figure_rows.spread([*range(1, 102), 5, 5], ["a"] * 101 + ["b"] * 2, 10)
    assert found == [{"label": "a", "n": 101, "low": 11.0, "q1": 26.0, "median": 51.0, "q3": 76.0, "high": 91.0}]
