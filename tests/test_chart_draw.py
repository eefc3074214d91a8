"""A chart's SVG shows what Vega draws from the same spec: the same marks and words at the same places."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest
import vl_convert

from macros import chart_words, charts
from macros.chart_kit import CONFIG
from tests import test_chart_kinds, test_charts
from tests.test_charts import DAY_1, NAN, RATIOS, rows_of

WITHIN_PX = 0.1  # Vega's own numbers are exact, ours have one decimal
NS = "{http://www.w3.org/2000/svg}"
SEEN = ("stroke", "stroke-width", "stroke-dasharray", "stroke-opacity", "fill", "fill-opacity", "text-anchor")
LONG = 'An unreasonably long name, with <b> & "quotes", of a machine that somebody typed without a thought for charts '


def vega(spec: dict) -> ET.Element:
    charts._register_fonts()
    return ET.fromstring(vl_convert.vegalite_to_svg({k: v for k, v in spec.items() if k != "usermeta"}, vl_version=charts._version()))


def marks(svg: ET.Element) -> tuple[list[tuple], list[tuple]]:
    """What is seen: (look, places) in painting order; the words (look, text, places)."""
    drawn, words = [], []

    def walk(e: ET.Element, x: float, y: float, look: dict) -> None:
        look = look | {k: v for k in SEEN if (v := e.get(k)) not in (None, "")}
        move = re.fullmatch(r"translate\(([-\d.e]+),([-\d.e]+)\)", e.get("transform") or "translate(0,0)")
        x, y = x + float(move[1]), y + float(move[2])
        tag = e.tag.removeprefix(NS)
        if "ground" in (e.get("class") or "") or (tag == "text" and e.get("opacity") == "0"):
            return
        if tag == "line" and ": null" in (e.get("aria-label") or ""):
            return  # Vega draws a rule to nowhere without a length
        if e.get("opacity") not in (None, "1"):
            look = look | {"fill-opacity": e.get("opacity")}
        if tag == "text":
            at = (x + float(e.get("x", 0)), y + float(e.get("y", 0)))
            words.append((look.get("fill"), look.get("text-anchor", "start"), e.text, at))
        elif tag == "line":
            seen(look, [(x, y), (x + float(e.get("x2")), y + float(e.get("y2")))])
        elif tag == "circle":
            dot(look, x + float(e.get("cx")), y + float(e.get("cy")), float(e.get("r")))
        elif tag == "path" and "A" in e.get("d"):
            dot(look, x, y, float(re.match(r"M([\d.]+),", e.get("d"))[1]))
        elif tag == "path":
            for part in re.findall(r"M[^M]*", e.get("d")):
                seen(look, [(x + a, y + b) for a, b in corners(part)])
        for inner in e:
            walk(inner, x, y, look)

    def seen(look: dict, places: list[tuple[float, float]]) -> None:
        paint = {"stroke-width": "1"} | {k: v for k, v in look.items() if k != "text-anchor"}
        ends = sorted(places) if len(places) == 2 else places
        drawn.append((tuple(sorted(paint.items())), [n for place in ends for n in place]))

    def dot(look: dict, x: float, y: float, radius: float) -> None:
        paint = {k: v for k, v in look.items() if k in ("fill", "fill-opacity", *(("stroke", "stroke-width") if "stroke" in look else ()))}
        drawn.append((tuple(sorted(paint.items())), [x, y, radius]))

    walk(svg, *(-n for n in map(float, svg.get("viewBox").split()[:2])), {})
    return drawn, words


def corners(d: str) -> list[tuple[float, float]]:
    """The corners of a path of straight lines, one part."""
    found: list[tuple[float, float]] = []
    for letter, numbers in re.findall(r"([MLHVZ])([^A-Za-z]*)", d):
        values = [float(n) for n in re.findall(r"-?[\d.]+", numbers)]
        if letter == "H":
            found.append((values[0], found[-1][1]))
        elif letter == "V":
            found.append((found[-1][0], values[0]))
        else:
            found += zip(values[::2], values[1::2], strict=True)
    return found


def same(ours: list, theirs: list, what: str) -> None:
    assert [m[:-1] for m in ours] == [m[:-1] for m in theirs], what
    for (*look, places), (*_, known) in zip(ours, theirs, strict=True):
        assert np.shape(places) == np.shape(known), look
        assert np.abs(np.subtract(places, known)).max() <= WITHIN_PX, (look, places, known)


def as_vega_draws(spec: dict) -> None:
    """Both drawings of a spec: grid and axes in any order, marks in painting order, words by their place."""
    for part in (spec, spec.get("usermeta", {}).get("narrow")):
        if part is None:
            continue
        ours, theirs = ET.fromstring(charts.standing(part)), vega(part)
        assert [ours.get(k) for k in ("width", "height")] == [theirs.get(k) for k in ("width", "height")]
        frame, (found, words), (known, known_words) = charts.COLOURS["rule"], marks(ours), marks(theirs)
        same([m for m in found if ("stroke", frame) not in m[0]], [m for m in known if ("stroke", frame) not in m[0]], "marks")
        lines = [sorted((m for m in side if ("stroke", frame) in m[0]), key=lambda m: (m[0], np.round(m[1]).tolist())) for side in (found, known)]
        same(*lines, "grid and axes")
        texts = [sorted(side, key=lambda w: (w[2], *np.round(w[3]).tolist())) for side in (words, known_words)]
        same(*texts, "words")


MANY = np.random.default_rng(3)
SETS = {
    **{f"charts-{name}": spec for name, spec in test_charts.SPECS.items()},
    **{f"kinds-{name}": spec for name, spec in test_chart_kinds.SPECS.items()},
    "one-depth": charts.decode_depth(rows_of(DAY_1.iloc[:1])),
    "gaps": charts.decode_depth(rows_of(DAY_1.assign(predicted_tok_s=[20, NAN, NAN, 16]))),
    "picture": charts.decode_depth(rows_of(DAY_1), size=(260, 120)),
    "crowded-depths": charts.decode_depth(rows_of(pd.DataFrame({"depth_tokens": [0, *(2**n for n in range(5, 18))], "measured_tok_s": np.linspace(900, 3, 14)}))),
    **{f"rates-{top:g}": charts.prefill_depth(rows_of(DAY_1[["depth_tokens"]].assign(measured_tok_s=[top, top / 2, top / 3, top / 4]))) for top in (1e-3, 0.7, 1e6, 1e12)},
    "ratios-over-zero": charts.predicted_measured(rows_of(RATIOS.assign(sigma=[30, 1, NAN]))),
    "ratios-wide": charts.predicted_measured(rows_of(RATIOS.assign(measured=[23.9 / 60, 360 * 150, NAN])), log=True),
    "roofs-1e12": charts.roofline(rows_of(test_chart_kinds.ROOF.assign(measured_flops_s=[3e7, 8e14], predicted_flops_s=NAN, peak_flops_s=1e15, label=["decode", LONG[:20]]))),
    "inked-interval": charts.inked_scatter(rows_of(test_chart_kinds.INK.assign(sigma=[400, 0.08]))),
    "dots": charts.predicted_scatter(
        rows_of(pd.DataFrame({"chip": "A", "model": "m", "quant": "Q4_0", "test": "tg128", "predicted_tok_s": (p := 10 ** MANY.uniform(0, 3, 80)), "low80_tok_s": 0.8 * p,
                      "high80_tok_s": 1.2 * p, "measured_tok_s": p * np.exp(MANY.normal(0, 0.3, 80)), "inside": [i > 3 for i in range(80)],
                      "number": [str(i + 1) if i < 4 else "" for i in range(80)]}))),
    "long-labels": charts.backend_bars(rows_of(test_charts.BARS.assign(label=[LONG * 2, "CPU"]))),
    "growth": charts.growth(rows_of(pd.DataFrame({"what": ["a", "a", "b & c", "b & c"], "machines": [20, 200, 20, 200], "wall_s": [0.5, 4, 3, 44.0]}))),
}  # fmt: skip


@pytest.mark.parametrize("name", SETS)
def test_a_drawing_is_as_vega_draws_it(name):
    as_vega_draws(SETS[name])


def in_d3(value: float, style: str) -> str:
    """A number as d3 writes it on an axis: Vega runs it."""
    axis = {"values": [value], "format": style, "title": None}
    spec = {"data": {"values": [{"x": value}]}, "mark": "point", "encoding": {"x": {"field": "x", "type": "quantitative", "axis": axis}}}
    spec["config"] = {"locale": CONFIG["locale"]}
    spec["encoding"]["x"]["scale"] = {"domain": [value - 1, value + 1], "nice": False}
    svg = ET.fromstring(vl_convert.vegalite_to_svg(spec, vl_version=charts._version()))
    return next(t.text for t in svg.iter(f"{NS}text"))


@pytest.mark.parametrize(
    ("style", "values"),
    [
        (",.6~f", [0, 12.5, 1234567, 0.0001, -3.25]),
        (",.6~g", [1e-7, 0.001, 0.25, 999999, 1e6, 123456.7, 2.5e12]),
        (",.2~f", [1.005, 0.125, 0.375, 1.5, 1234.5]),
        (".0%", [0, 0.125, 0.875, 1.2]),
        (",d", [1, 20, 1000]),
    ],
)
def test_axes_print_numbers_as_d3_does(style, values):
    assert [chart_words.number(v, style) for v in values] == [in_d3(v, style) for v in values]


def test_a_per_cent_sign_stands_off_its_number_as_in_the_text():
    assert chart_words.number(0.8, ".0%") == in_d3(0.8, ".0%") == "80\N{NARROW NO-BREAK SPACE}%"


@pytest.mark.parametrize("top", [12, 0.13, 1.3])
def test_an_axis_prints_its_ticks_as_they_are(top):
    """12 tok/s have ticks 2.5 apart; Vega printed 3, 5, 8 for them."""
    spec = charts.decode_depth(rows_of(DAY_1[["depth_tokens"]].assign(measured_tok_s=[top, top / 2, top / 3, top / 4])))
    ticks = next(part["encoding"]["y"]["axis"]["values"] for part in spec["layer"] if part["encoding"]["y"].get("axis"))
    for svg in (vega(spec), ET.fromstring(charts.standing(spec))):
        assert [float(text) for _, anchor, text, _ in marks(svg)[1] if anchor == "end"] == ticks


def test_words_are_as_long_as_they_are_set_and_long_ones_are_cut():
    assert chart_words.width("", 13) == 0
    cut = chart_words.fitted(LONG, 13, 200)
    assert cut.endswith("…") and LONG.startswith(cut[:-1]) and 180 < chart_words.width(cut, 13) <= 200
    assert chart_words.fitted("CPU", 13, 200) == "CPU"
    assert chart_words.width("中文", 10) == 20
