"""The colours of the house: what a spec says, and what the page makes of it."""

from __future__ import annotations

import re

# One value in the spec, its CSS variable on the page: the light values of the design.
COLOURS = {
    "predicted": "#1f3fa8",
    "measured": "#a8480f",
    "roof": "#6b6f76",
    "muted": "#5b6069",
    "text": "#1d1f23",
    "paper": "#fbfaf7",
    "rule": "#d9d5cb",
}


_VARIABLES = {f'"{value}"': f'"var(--{name})"' for name, value in COLOURS.items()}
_QUOTED = re.compile("|".join(_VARIABLES))


def in_variables(text: str) -> str:
    """Quoted colours, of SVG or JSON, as the CSS variables of the page."""
    return _QUOTED.sub(lambda found: _VARIABLES[found[0]], text)
