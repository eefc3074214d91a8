"""One drawing as SVG, straight from its Vega-Lite: the few marks, scales and parts of an axis that the charts use.

Vega draws the same in a hundred times the time, and still does where a reader explores a chart; the tests
hold every kind of chart against its drawing, mark by mark. What is not known here is an error that names it,
never left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from functools import cache
from html import escape
from typing import Any, NamedTuple

from macros import chart_words
from macros.chart_kit import FONT_PX
from macros.chart_svg import COLOURS

VARIABLES = {value: f"var(--{name})" for name, value in COLOURS.items()}
LIGHT = {value: value for value in COLOURS.values()}
# From a text's top and from its middle to its baseline [px], as Vega rounds them.
TOP, MIDDLE = round(0.79 * FONT_PX), round(0.3 * FONT_PX)
HALF = 0.5  # an axis' lines lie in the middle of pixels, or they would be blurred
LOOK = {"labelFontSize": FONT_PX, "titleFontSize": FONT_PX, "titleFontWeight": 400, "ticks": False, "labelFlush": False}  # of an axis, none other is known
ANCHORS = {"left": "", "right": ' text-anchor="end"', "center": ' text-anchor="middle"'}
SUM = re.compile(r"datum\.(\w+) ([-+]) datum\.(\w+)")

Row = dict[str, Any]
Paint = dict[str, str]


class Scale(NamedTuple):
    """A fixed scale of an axis: two ends of what is shown, and where they lie [px]."""

    low: float
    high: float
    start: float
    end: float
    log: bool

    def places(self, values: Iterable[float | None]) -> list[float | None]:
        """Where values lie [px]; on a log axis what is not above 0 lies at its beginning; None where a value is not known."""
        low, start, length = self.low, self.start, self.end - self.start
        if self.log:
            whole = math.log(self.high / low)
            return [None if v is None else start + (math.log(v / low) / whole if v > 0 else 0.0) * length for v in values]
        whole = self.high - low
        return [None if v is None else start + (v - low) / whole * length for v in values]


def drawing(spec: dict, attributes: str, paint: Paint) -> str:
    """A spec of `macros.chart_kit` as an SVG element on one line.

    Args:
        attributes: of the element, beside its size and type
        paint: what stands for each colour of the house, `VARIABLES` or `LIGHT`

    Raises: ValueError for what this cannot draw, or a colour that is none of the house's.
    """
    _only("spec", spec, "$schema width height padding autosize layer config usermeta")
    _same("autosize", spec["autosize"], "none")
    config, layers, width, height, around = spec["config"], spec["layer"], spec["width"], spec["height"], spec["padding"]
    _only("config", config, "font background numberFormat locale view axis")
    _same("background", config["background"], "transparent")
    _same("view", config["view"], {"stroke": None})
    scales = {"x": _scale(layers, "x", 0, width), "y": _scale(layers, "y", height, 0)}
    grids, parts = [], []
    for name in "xy":
        axis, scale = _shared(layers, name, "axis"), scales[name]
        if axis and scale:
            grid, rest = _axis(name, axis, scale, (width, height), config, paint)
            grids.append(grid)
            parts.append(rest)
    for layer in layers:
        parts.append(_mark(layer, scales, paint))
    size = f"{_n(width + around['left'] + around['right'])} {_n(height + around['top'] + around['bottom'])}"
    wide, high = size.split()
    return (
        f'<svg {attributes} width="{wide}" height="{high}" viewBox="{_n(-around["left"])} {_n(-around["top"])} {size}"'
        f' font-family="{config["font"]}" font-size="{FONT_PX}" fill="none">{"".join(grids)}{"".join(parts)}</svg>'
    )


def _only(where: str, given: Iterable[str], known: str) -> None:
    words = _words_of(known)
    if not words.issuperset(given):
        raise ValueError(f"chart: {where}: not drawn; got {', '.join(sorted(set(given) - words))}; known: {known}")


@cache
def _words_of(known: str) -> frozenset[str]:
    return frozenset(known.split())


def _same(where: str, given: object, known: object) -> None:
    if given != known:
        raise ValueError(f"chart: {where}: not drawn; got {given!r}; known: {known!r}")


def _n(number: float) -> str:
    """A length in as few characters as keep it within 0.05 px."""
    text = f"{number:.1f}"
    if text[-1] == "0":
        return "0" if text == "-0.0" else text[:-2]
    if text[-2] != ".":
        raise ValueError(f"chart: a mark without a place: not drawn; got {number}")
    return text


def _colour(paint: Paint, value: str) -> str:
    if value not in paint:
        raise ValueError(f"chart: colour without a CSS variable; got {value}; known {COLOURS}")
    return paint[value]


def _shared(layers: list[dict], name: str, part: str) -> dict:
    """The one scale or axis that all layers share; {} where none has any."""
    found: list[dict] = []
    for layer in layers:
        given = (layer["encoding"].get(name) or {}).get(part)
        if given and given not in found:
            found.append(given)
    if len(found) > 1:
        raise ValueError(f"chart: {name}: {part}: one for all layers; got {found}")
    return found[0] if found else {}


def _scale(layers: list[dict], name: str, start: float, end: float) -> Scale | None:
    given = _shared(layers, name, "scale")
    if not given:
        return None
    _only(f"{name}: scale", given, "type domain nice")
    _same(f"{name}: nice", given["nice"], False)
    kind = given.get("type", "linear")
    if kind not in ("linear", "log"):
        raise ValueError(f"chart: {name}: scale: not drawn; got {kind!r}; known: linear, log")
    low, high = given["domain"]
    return Scale(low, high, start, end, kind == "log")


def _axis(name: str, axis: dict, scale: Scale, plot: tuple[float, float], config: dict, paint: Paint) -> tuple[str, str]:
    """Grid lines, and what lies over them: the axis' own line, its numbers and its title."""
    _only(f"{name}: axis", axis, "values title grid domain format labelOverlap labelSeparation")
    look, (width, height) = config["axis"], plot
    _only("config: axis", look, "labelColor labelFontSize labelPadding titleColor titleFontSize titlePadding titleFontWeight labelFlush ticks gridColor gridDash domainColor")
    for key, known in (*LOOK.items(), ("titleColor", look["labelColor"])):
        _same(key, look[key], known)
    places = scale.places(axis["values"])
    numbers = [chart_words.number(v, axis.get("format", config["numberFormat"])) for v in axis["values"]]
    shown = _clear(places, numbers, name, axis.get("labelOverlap", "greedy" if scale.log else "parity"), axis.get("labelSeparation", 0))
    left, right, top, bottom = (_n(at + HALF) for at in (0, width, 0, height))
    at, pad = [_n(math.floor(p + 0.5) + HALF) for p in places], look["labelPadding"]
    if name == "x":
        steps, base = [f"M{p},{bottom}V{top}" for p in at], f"M{left},{bottom}H{right}"
        level = _n(height + HALF + pad + TOP)
        texts = [f'<text x="{_n(places[i] + HALF)}" y="{level}">{numbers[i]}</text>' for i in shown]
        if axis["title"]:
            under = height + HALF + pad + FONT_PX + look["titlePadding"] + TOP
            texts.append(f'<text x="{_n(width / 2 + HALF)}" y="{_n(under)}">{_words(axis["title"])}</text>')
    else:
        _same("y: axis: title", axis["title"], None)
        steps, base = [f"M{left},{p}H{right}" for p in at], f"M{left},{bottom}V{top}"
        texts = [f'<text x="{_n(HALF - pad)}" y="{_n(places[i] + HALF + MIDDLE)}">{numbers[i]}</text>' for i in shown]
    dash = ",".join(map(str, look["gridDash"]))
    grid = f'<path stroke="{_colour(paint, look["gridColor"])}" stroke-dasharray="{dash}" d="{"".join(steps)}"/>' if axis.get("grid", True) and steps else ""
    line = f'<path stroke="{_colour(paint, look["domainColor"])}" d="{base}"/>' if axis.get("domain", True) else ""
    anchor = ANCHORS["center" if name == "x" else "right"]
    return grid, f'{line}<g fill="{_colour(paint, look["labelColor"])}"{anchor}>{"".join(texts)}</g>'


def _clear(places: list[float], texts: list[str], name: str, how: str, apart: float) -> list[int]:
    """Which labels of an axis are shown: fewer where they would touch, as Vega thins them out."""
    half = [chart_words.width(t, FONT_PX) / 2 if name == "x" else FONT_PX / 2 for t in texts]

    def touch(a: int, b: int) -> bool:
        return apart > abs(places[a] - places[b]) - half[a] - half[b]

    def crowded(kept: list[int]) -> bool:
        return len(kept) >= 3 and any(touch(a, b) for a, b in zip(kept, kept[1:], strict=False))

    every = kept = list(range(len(places)))
    while crowded(kept):
        if how == "parity":
            kept = kept[::2]
        else:
            fewer = kept[:1]
            for i in kept[1:]:
                if not touch(fewer[-1], i):
                    fewer.append(i)
            kept = fewer
    if len(kept) < 3 and kept and kept[-1] != every[-1]:  # the two ends rather than the first two
        kept = [*kept[:1], every[-1]]
    return kept


def _words(text: str) -> str:
    return escape(" ".join(str(text).strip().split("\n")), quote=False)


def _places(rows: list[Row], encoding: dict, name: str, scales: dict[str, Scale | None]) -> list[float | None]:
    """Where a channel puts each row [px]; None where the row does not say."""
    channel, first = encoding[name], encoding[name[0]]
    _only(name, channel, "field type scale axis value")
    if "value" in channel:
        return [channel["value"]] * len(rows)
    _same(f"{name}: type", channel.get("type", "quantitative"), "quantitative")
    field, scale = channel["field"], scales[name[0]]
    found = [row[field] for row in rows]
    if "scale" in first and first["scale"] is None:
        return found
    if scale is None:
        raise ValueError(f"chart: {name}: no scale with a domain; got {channel}")
    return scale.places(found)


def _placed(rows: list[Row], encoding: dict, scales: dict[str, Scale | None], *names: str) -> list[tuple[float, ...]]:
    """Each row's places; a row that lacks one has no mark."""
    return [row for row in zip(*(_places(rows, encoding, name, scales) for name in names), strict=True) if None not in row]  # type: ignore[misc]


def _mark(layer: dict, scales: dict[str, Scale | None], paint: Paint) -> str:
    _only("layer", layer, "data mark encoding transform")
    rows = _calculated(layer["data"]["values"], layer.get("transform", []))
    style, encoding = dict(layer["mark"]), layer["encoding"]
    kind = style.pop("type")
    if kind not in MARKS:
        raise ValueError(f"chart: mark: not drawn; got {kind!r}; known: {', '.join(MARKS)}")
    _same(f"{kind}: clip", style.pop("clip", False), False)
    channels, styles, draw = MARKS[kind]
    _only(kind, encoding, channels)
    _only(kind, style, styles)
    return draw(rows, style, encoding, scales, paint) if rows else ""


def _calculated(rows: list[Row], transforms: list[dict]) -> list[Row]:
    for given in transforms:
        match = SUM.fullmatch(given.get("calculate", ""))
        if not match:
            raise ValueError(f"chart: transform: not drawn; got {given}; known: calculate datum.a + datum.b or datum.a - datum.b")
        first, sign, second = match.groups()
        rows = [{**row, given["as"]: row[first] + (row[second] if sign == "+" else -row[second])} for row in rows]
    return rows


def _stroke(style: dict, paint: Paint) -> str:
    dash = f' stroke-dasharray="{",".join(map(str, style["strokeDash"]))}"' if "strokeDash" in style else ""
    clear = f' stroke-opacity="{style["strokeOpacity"]}"' if "strokeOpacity" in style else ""
    return f'stroke="{_colour(paint, style["color"])}" stroke-width="{style["strokeWidth"]}"{dash}{clear}'


def _rule(rows: list[Row], style: dict, encoding: dict, scales: dict, paint: Paint) -> str:
    second = "x2" if "x2" in encoding else "y2"
    ends = _placed(rows, encoding, scales, "x", "y", second)
    steps = [f"M{_n(x)},{_n(y)}{'H' if second == 'x2' else 'V'}{_n(to)}" for x, y, to in ends]
    if "strokeOpacity" in style:  # where two lie over each other both are seen
        return f"<g {_stroke(style, paint)}>" + "".join(f'<path d="{step}"/>' for step in steps) + "</g>" if steps else ""
    return f'<path {_stroke(style, paint)} d="{"".join(steps)}"/>' if steps else ""


def _line(rows: list[Row], style: dict, encoding: dict, scales: dict, paint: Paint) -> str:
    points = sorted(_whole(rows, encoding, scales, "x", "y"), key=lambda point: point[0])
    return f'<path {_stroke(style, paint)} d="M{_path(points)}"/>'


def _area(rows: list[Row], style: dict, encoding: dict, scales: dict, paint: Paint) -> str:
    ends = sorted(_whole(rows, encoding, scales, "x", "y", "y2"), key=lambda point: point[0])
    edge = [(x, y) for x, y, _ in ends] + [(x, to) for x, _, to in reversed(ends)]
    return f'<path fill="{_colour(paint, style["color"])}" fill-opacity="{style["opacity"]}" d="M{_path(edge)}Z"/>'


def _whole(rows: list[Row], encoding: dict, scales: dict, *names: str) -> list[tuple[float, ...]]:
    found = _placed(rows, encoding, scales, *names)
    if len(found) < len(rows):
        raise ValueError(f"chart: a line with a gap: not drawn; got {len(rows) - len(found)} points without a place")
    return found


def _path(points: Iterable[tuple[float, ...]]) -> str:
    return " ".join(f"{_n(x)},{_n(y)}" for x, y in points)


def _point(rows: list[Row], style: dict, encoding: dict, scales: dict, paint: Paint) -> str:
    _same("point: opacity", style["opacity"], 1)
    look = f'fill="{_colour(paint, style["fill"])}" stroke="{_colour(paint, style["stroke"])}" stroke-width="{style["strokeWidth"]}"'
    return _dots(rows, look, style["size"], encoding, scales)


def _circle(rows: list[Row], style: dict, encoding: dict, scales: dict, paint: Paint) -> str:
    clear = f' fill-opacity="{style["opacity"]}"' if style["opacity"] != 1 else ""
    return _dots(rows, f'fill="{_colour(paint, style["color"])}"{clear}', style["size"], encoding, scales)


def _dots(rows: list[Row], look: str, area: float, encoding: dict, scales: dict) -> str:
    radius = _n(math.sqrt(area) / 2)
    dots = [f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{radius}"/>' for x, y in _placed(rows, encoding, scales, "x", "y")]
    return f"<g {look}>{''.join(dots)}</g>"


def _text(rows: list[Row], style: dict, encoding: dict, scales: dict, paint: Paint) -> str:
    _same("text: baseline and size", (style["baseline"], style["fontSize"]), ("middle", FONT_PX))
    places, field = zip(_places(rows, encoding, "x", scales), _places(rows, encoding, "y", scales), strict=True), encoding["text"]["field"]
    right, down, limit = style.get("dx", 0), style.get("dy", 0) + MIDDLE, style.get("limit")
    look = f'fill="{_colour(paint, style["color"])}"{ANCHORS[style["align"]]}'
    found = []
    for row, (left, middle) in zip(rows, places, strict=True):
        if left is not None and middle is not None:
            text = str(row[field])
            text = _words(text if limit is None else chart_words.fitted(text, FONT_PX, limit))
            found.append((f'x="{_n(left + right)}" y="{_n(middle + down)}"', text))
    if len(found) == 1:
        return f"<text {found[0][0]} {look}>{found[0][1]}</text>"
    return f"<g {look}>{''.join(f'<text {at}>{text}</text>' for at, text in found)}</g>"


# mark: its channels, its style, what draws it
MARKS: dict[str, tuple[str, str, Callable[..., str]]] = {
    "rule": ("x y x2 y2 tooltip", "color strokeWidth strokeDash strokeOpacity", _rule),
    "line": ("x y tooltip", "color strokeWidth strokeDash", _line),
    "area": ("x y y2 tooltip", "color opacity", _area),
    "point": ("x y tooltip", "fill stroke strokeWidth size opacity", _point),
    "circle": ("x y tooltip", "color size opacity", _circle),
    "text": ("x y text tooltip", "color align baseline fontSize limit dx dy", _text),
}
