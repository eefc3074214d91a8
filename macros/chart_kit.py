"""What every chart is made of: sizes, the house's look, words at places, the hollow mark of a prediction."""

from __future__ import annotations

from collections.abc import Callable

import altair as alt
import pandas as pd
from altair.utils.schemapi import debug_mode

from macros.chart_svg import COLOURS

WIDE, NARROW = 640, 350  # [px]: the column, and a phone of 390 less its margins
FONT_PX = 13
HOLLOW = {"size": 110, "opacity": 1, "strokeWidth": 1.75}
CONFIG = {
    "font": "Inter, Arial, sans-serif",
    "background": "transparent",
    "numberFormat": ",~f",
    "view": {"stroke": None},
    "axis": {
        "labelColor": COLOURS["muted"], "labelFontSize": FONT_PX, "labelPadding": 8,
        "titleColor": COLOURS["muted"], "titleFontSize": FONT_PX, "titlePadding": 8,
        "titleFontWeight": 400, "labelFlush": False, "ticks": False,
        "gridColor": COLOURS["rule"], "gridDash": [1, 3], "domainColor": COLOURS["rule"],
    },
}  # fmt: skip


def both(layout: Callable[..., dict], size: tuple[int, int] | None = None, *, zoom: bool = False) -> dict:
    """A chart laid out for the column, with the phone's layout in its usermeta; given a size, for that alone.

    Args:
        zoom: Explore lets a reader move and zoom it: many dots, no labels at fixed places
    """
    with debug_mode(False):  # altair would validate every part against its schema on the way; tests validate the whole
        return layout(*size) if size else layout(WIDE) | {"usermeta": {"narrow": layout(NARROW), "zoom": zoom}}


def spec(layers: list, width: float, height: float, padding: dict) -> dict:
    """Layers as Vega-Lite with fixed sizes [px] and the house's look."""
    size = {"width": width, "height": height, "padding": padding, "autosize": "none"}
    return alt.layer(*layers).to_dict(validate=False) | size | {"config": CONFIG}


class Chart(alt.Chart):
    """A chart whose channels are named before altair looks for them: it hashes every schema it knows for each text or number."""

    def encode(self, **channels: object) -> alt.Chart:  # type: ignore[override]
        """As altair's, the same spec in a tenth of the time."""
        return super().encode(**{name: _channel(name, value) for name, value in channels.items()})


def _channel(name: str, value: object) -> object:
    kind = name[0].upper() + name[1:]
    if isinstance(value, str):
        return getattr(alt, kind)(value)
    if isinstance(value, dict) and list(value) == ["value"]:
        return getattr(alt, f"{kind}Value")(value["value"])
    return value


def chart(values: list[dict] | pd.DataFrame) -> alt.Chart:
    """A chart over rows; what is not known is null."""
    if isinstance(values, pd.DataFrame):
        values = values.astype(object).where(values.notna(), None).to_dict("records")
    return Chart(alt.Data(values=values))


def words(values: list[dict], colour: str, align: str = "left", **mark) -> alt.Chart:
    """Words at places given in px: text, x, y."""
    return (
        chart(values)
        .mark_text(color=COLOURS[colour], align=align, baseline="middle", fontSize=FONT_PX, clip=False, **mark)
        .encode(text="text:N", y=alt.Y("y:Q", scale=None, axis=None), x=alt.value(values[0]["x"]))
    )


def hollow(base: alt.Chart) -> alt.Chart:
    """The mark of a prediction."""
    return base.mark_point(fill=COLOURS["paper"], stroke=COLOURS["predicted"], **HOLLOW)


def told(**titles: str) -> list[alt.Tooltip]:
    """What Explore shows at a mark: each field's title, after it its number format where it is a number ("title|,.1f")."""
    parts = {field: title.partition("|") for field, title in titles.items()}
    return [
        alt.Tooltip(field=field, title=title, **({"type": "quantitative", "format": style} if style else {"type": "nominal"}))
        for field, (title, _, style) in parts.items()
    ]
