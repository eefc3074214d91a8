"""Charts: the page's colours only, one name for those who cannot see, the same bytes twice."""

import copy
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from macros import chart_layout, charts

NAN = float("nan")
CSS = Path(__file__).parents[1] / "macros/theme/assets/inklab.css"


def rows_of(frame: pd.DataFrame) -> list[dict]:
    """Rows as a chart takes them."""
    return frame.to_dict("records")


# Day 1 as published: rates from llama-bench, the roof from 120 GB/s over bytes a step.
DAY_1 = pd.DataFrame(
    {
        "depth_tokens": [0, 2048, 4096, 8192],
        "measured_tok_s": [19.82, 19.20, 17.99, 15.97],
        "sigma_tok_s": [0.38, 0.28, 0.26, 0.06],
        "predicted_tok_s": [19.82, 18.73, 17.75, 16.05],
        "roof_tok_s": [23.86, 22.53, 21.36, 19.33],
    }
)
RATIOS = pd.DataFrame(
    {
        "quantity": ["Decode", "Prefill", "Q8_0 decode"],
        "predicted": [23.9, 360, NAN],
        "predicted_low": [NAN, NAN, 11.5],
        "predicted_high": [NAN, NAN, 12.0],
        "measured": [20.80, 228.94, NAN],
        "sigma": [0.05, 0.10, NAN],
    }
)
BARS = pd.DataFrame(
    {"label": ["GPU", "CPU"], "achieved_gb_s": [104.6, NAN], "roof_gb_s": [120.0, 120.0]}
)
SPECS = {
    "decode": charts.decode_depth(rows_of(DAY_1)),
    "prefill": charts.prefill_depth(rows_of(DAY_1)),
    "ratios": charts.predicted_measured(rows_of(RATIOS)),
    "ratios-log": charts.predicted_measured(rows_of(RATIOS), log=True),
    "bars": charts.backend_bars(rows_of(BARS)),
}


def drawings(svg: str) -> list[ET.Element]:
    """The wide and the narrow drawing, parsed."""
    return list(ET.fromstring(f"<figure>{svg}</figure>"))


def words(svg: str) -> str:
    return " ".join(t.text or "" for t in ET.fromstring(f"<f>{svg}</f>").iter("text"))


@pytest.mark.parametrize("name", SPECS)
def test_a_chart_is_fit_for_the_page(name):
    svg = charts.to_svg(SPECS[name], "What it shows")
    assert svg == charts.to_svg(SPECS[name], "What it shows")
    assert len(svg.splitlines()) == 1
    assert not re.search(r'"#[0-9a-fA-F]{3,8}"|rgb', svg)
    assert not re.search(r"\d\.\d{3}", re.sub(r">[^<]*<", "><", svg))
    used = set(re.findall(r"var\((--[a-z]+)\)", svg))
    assert used >= {"--measured", "--rule"}
    assert used <= set(re.findall(r"^  (--[a-z]+):", CSS.read_text(), re.M))
    pair = drawings(svg)
    assert [d.get("class") for d in pair] == ["wide", "narrow"]
    for drawing in pair:
        inside = [e for e in drawing.iter() if e is not drawing]
        assert (drawing.get("role"), drawing.get("aria-label")) == ("img", "What it shows")
        assert not [e for e in inside for key in e.attrib if key == "role" or "aria" in key]


def test_chart_colours_are_the_light_ones_of_the_stylesheet():
    light = dict(re.findall(r"^  --([a-z]+): light-dark\((#[0-9a-f]{6})", CSS.read_text(), re.M))
    assert charts.COLOURS.items() <= light.items()


def test_text_is_readable_on_a_phone():
    """A phone of 390 px leaves 350: text of at least 11 px there."""
    narrow = drawings(charts.to_svg(SPECS["decode"], "b"))[1]
    sizes = [float(e.get("font-size")) for e in narrow.iter() if e.get("font-size")]
    assert sizes and min(sizes) * 350 / float(narrow.get("width")) >= 11


def test_labels_and_names_are_text():
    rows = BARS.assign(label=["<script>alert(1)</script>", 'a"&b'])
    svg = charts.to_svg(charts.backend_bars(rows_of(rows)), '"><script>alert(2)</script>')
    assert "<script" not in svg
    assert drawings(svg)[0].get("aria-label") == '"><script>alert(2)</script>'
    assert "<script>alert(1)</script>" in words(svg)


@pytest.mark.parametrize(
    ("named", "change"),
    [
        ("clip", lambda s: s["layer"][0]["mark"].update(clip=True)),
        ("bar", lambda s: s["layer"][0]["mark"].update(type="bar")),
        ("cornerRadius", lambda s: s["layer"][0]["mark"].update(cornerRadius=2)),
        ("size", lambda s: s["layer"][0]["encoding"].update(size={"value": 2})),
        ("sqrt", lambda s: s["layer"][0]["encoding"]["x"]["scale"].update(type="sqrt")),
        ("one for all layers", lambda s: s["layer"][1]["encoding"]["x"].update(scale={"domain": [0, 1], "nice": False})),
        ("labelAngle", lambda s: s["layer"][0]["encoding"]["x"]["axis"].update(labelAngle=45)),
        ("number format", lambda s: [part["encoding"]["x"]["axis"].update(format="~f") for part in s["layer"][:2]]),
        ("filter", lambda s: s["layer"][0].update(transform=[{"filter": "datum.got > 1"}])),
        ("params", lambda s: s.update(params=[])),
    ],
)
def test_what_cannot_be_drawn_is_named_and_never_left_out(named, change):
    spec = copy.deepcopy(charts.backend_bars(rows_of(BARS)))
    change(spec)
    with pytest.raises(ValueError, match=named):
        charts.to_svg(spec, "b")


def test_a_colour_without_a_variable_is_refused():
    spec = charts.backend_bars(rows_of(BARS))
    spec["config"] = spec["config"] | {"background": "#123456"}
    with pytest.raises(ValueError, match="#123456"):
        charts.to_svg(spec, "b")


@pytest.mark.parametrize(
    ("rows", "shown", "absent"),
    [
        (
            DAY_1.drop(columns=["predicted_tok_s", "roof_tok_s"]),
            ["measured"],
            ["predicted", "roof"],
        ),
        (DAY_1.assign(measured_tok_s=NAN), ["predicted", "roof"], ["measured"]),
        (DAY_1.assign(measured_tok_s=None, sigma_tok_s=None), ["predicted"], ["measured"]),
        (DAY_1.iloc[:1], ["measured", "predicted", "roof"], []),
        (DAY_1.iloc[3:].drop(columns="sigma_tok_s"), ["measured", "predicted", "roof"], []),
        (DAY_1.assign(predicted_tok_s=[20, NAN, NAN, 16]), ["measured", "predicted"], []),
    ],
)
def test_missing_series_and_single_depths(rows, shown, absent):
    text = words(charts.to_svg(charts.decode_depth(rows_of(rows)), "b"))
    assert all(word in text for word in shown)
    assert not any(word in text for word in absent)
    assert "NaN" not in text


def test_nothing_to_draw_is_an_error():
    with pytest.raises(ValueError, match="every series is missing"):
        charts.decode_depth(rows_of(DAY_1[["depth_tokens"]]))


def test_absent_measurements_are_said():
    assert "not measured" in words(charts.to_svg(SPECS["bars"], "b"))
    assert "not measured" in words(charts.to_svg(SPECS["ratios"], "b"))
    assert "105 of 120 GB/s · 87\u202f%" in words(charts.to_svg(SPECS["bars"], "b"))


@pytest.mark.parametrize("top", [0.003, 0.8, 1, 9.99, 23.86, 250, 999, 1300, 54321])
def test_ticks_start_at_zero_and_are_few(top):
    ticks = chart_layout.ticks_from_zero(top)
    assert ticks[0] == 0
    assert ticks[-1] >= top
    assert 3 <= len(ticks) <= 8


@pytest.mark.parametrize("slope", [-30, 0, 60])
@pytest.mark.parametrize("apart", [0, 3, 60])
@pytest.mark.parametrize("plot", [290, 580])
def test_labels_keep_clear_of_lines_edges_and_each_other(slope, apart, plot):
    xs = np.linspace(0, plot, 5)
    lines = {
        name: np.column_stack((xs, 90 + apart * i + slope * xs / plot))
        for i, name in enumerate(["roof", "predicted", "measured"])
    }
    text = {
        "roof": "memory roof",
        "predicted": "predicted, and a long label",
        "measured": "measured ± σ",
    }
    boxes = [
        (x, y, 13 * chart_layout.CHARACTER * len(text[name]))
        for name, (x, y) in chart_layout.place_labels(text, lines, plot, 230, 13).items()
    ]
    for x, y, w in boxes:
        assert x >= 0
        assert x + w <= plot + 1
        for points in lines.values():
            across = np.linspace(x, x + w, 50)
            assert (abs(np.interp(across, points[:, 0], points[:, 1]) - y) > 9).all()
    for i, (x, y, w) in enumerate(boxes):
        for other_x, other_y, other_w in boxes[i + 1 :]:
            apart_x = x + w < other_x or other_x + other_w < x
            assert apart_x or abs(y - other_y) >= 13
