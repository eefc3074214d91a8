"""What every chart is made of: Vega-Lite as plain dicts, the house's look, words at places, the hollow mark of a prediction.

A chart library builds the same dicts, and checks each part on the way, in a hundred times the time:
a site has thousands of charts. The tests validate every kind against Vega-Lite's schema instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from macros.chart_svg import COLOURS

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.4.1.json"
WIDE, NARROW = 640, 350  # [px]: the column, and a phone of 390 less its margins
FONT_PX = 13
HOLLOW = {"size": 110, "opacity": 1, "strokeWidth": 1.75}
DOT = {"color": COLOURS["measured"], "size": 60, "opacity": 1}
CONFIG = {
    "font": "Inter, Arial, sans-serif",
    "background": "transparent",
    "numberFormat": ",.6~f",  # without a number of digits d3 takes them from steps of its own: 2.5 became 3
    "locale": {"number": {"decimal": ".", "thousands": ",", "grouping": [3], "currency": ["$", ""], "percent": "\u202f%"}},  # as the text has it: 80 %; d3 wants all five
    "view": {"stroke": None},
    "axis": {
        "labelColor": COLOURS["muted"], "labelFontSize": FONT_PX, "labelPadding": 8,
        "titleColor": COLOURS["muted"], "titleFontSize": FONT_PX, "titlePadding": 8,
        "titleFontWeight": 400, "labelFlush": False, "ticks": False,
        "gridColor": COLOURS["rule"], "gridDash": [1, 3], "domainColor": COLOURS["rule"],
    },
}  # fmt: skip


def both(rows: list[dict], layout: Callable[..., dict], size: tuple[int, int] | None = None, *, zoom: bool = False) -> dict:
    """A chart laid out for the column, with the phone's layout in its usermeta; given a size, for that alone.

    Args:
        layout: given the rows as `records` and a width, or a size
        zoom: Explore lets a reader move and zoom it: many dots, no labels at fixed places
    """
    values = records(rows)
    return layout(values, *size) if size else layout(values, WIDE) | {"usermeta": {"narrow": layout(values, NARROW), "zoom": zoom}}


def spec(layers: list[dict], width: float, height: float, padding: dict) -> dict:
    """Layers as Vega-Lite with fixed sizes [px] and the house's look."""
    return {"$schema": SCHEMA, "width": width, "height": height, "padding": padding, "autosize": "none", "layer": layers, "config": CONFIG}


def records(rows: list[dict]) -> list[dict]:
    """Rows as JSON has them: what is not known, or is no number, is None."""
    return [{name: _plain(value) for name, value in row.items()} for row in rows]


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not -math.inf < value < math.inf else value


def layer(kind: str, values: list[dict], style: dict, calculate: dict[str, str] | None = None, **channels: Any) -> dict:
    """One mark of Vega-Lite over rows.

    Args:
        kind: rule, line, area, point, circle or text
        calculate: field: its formula
        channels: see `place`; text is a second end's field
    """
    encoding = {name: {"field": c} if isinstance(c, str) else c for name, c in channels.items()}
    made = {"data": {"values": values}, "mark": {"type": kind, **style}, "encoding": encoding}
    return made | {"transform": [{"calculate": formula, "as": field} for field, formula in calculate.items()]} if calculate else made


def place(field: str, **how: Any) -> dict:
    """A channel that places a number: its field, and where this layer says them, its scale and axis (None: px, no axis)."""
    return {"field": field, "type": "quantitative", **how}


def linear(low: float, high: float) -> dict:
    """A linear scale between two ends."""
    return {"domain": [low, high], "nice": False}


def log(low: float, high: float) -> dict:
    """A log scale between two ends."""
    return {"type": "log", "domain": [low, high], "nice": False}


def having(rows: list[dict], field: str) -> list[dict]:
    """The rows in which a field is known; the same list where it is in all."""
    known = [row for row in rows if row[field] is not None]
    return rows if len(known) == len(rows) else known


def words(values: list[dict], colour: str, align: str = "left", **style: Any) -> dict:
    """Words at places given in px, a row each: text, x, y."""
    mark = {"color": COLOURS[colour], "align": align, "baseline": "middle", "fontSize": FONT_PX, "clip": False, **style}
    return layer("text", values, mark, text={"field": "text", "type": "nominal"}, x=place("x", scale=None, axis=None), y=place("y", scale=None, axis=None))


def labels(said: list[tuple[str, str, float, float]]) -> list[dict]:
    """Words in colours, a layer a colour: each its colour, text, left end and middle [px]."""
    colours: dict[str, list[dict]] = {}
    for colour, text, x, y in said:
        colours.setdefault(colour, []).append({"text": text, "x": x, "y": y})
    return [words(values, colour) for colour, values in colours.items()]


def hollow(values: list[dict], **channels: Any) -> dict:
    """The mark of a prediction."""
    return layer("point", values, {"fill": COLOURS["paper"], "stroke": COLOURS["predicted"], **HOLLOW}, **channels)


def told(**titles: str) -> list[dict]:
    """What Explore shows at a mark: each field's title, after it its number format where it is a number ("title|,.1f")."""
    parts = {field: title.partition("|") for field, title in titles.items()}
    return [
        {"field": field, "title": title, **({"type": "quantitative", "format": style} if style else {"type": "nominal"})}
        for field, (title, _, style) in parts.items()
    ]
