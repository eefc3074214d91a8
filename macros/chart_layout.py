"""What a chart draws and where its labels go: numbers and pixels, no chart library."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

CHARACTER = 0.58  # mean advance of Inter, in font sizes: a little wide, so nothing touches
LINE_HEIGHT = 11  # from a label's middle to the nearest line [px]
ASTRAY = 1000.0  # what a label on something, or nearer to another line than to its own, costs
OFFSETS = np.array([12, -12, 14, -14, 16, -16, 18, -18, 20, -20, 24, -24, 28, -28, 40, -40, 60, -60, 90, -90])  # of a label from its line [px]
LOG_TICKS = [m * 10.0**e for e in (-2, -1, 0, 1) for m in (1, 1.5, 2, 3, 5, 7)]


def ticks_from_zero(top: float) -> list[float]:
    """Round steps from 0 to the first one above top."""
    if not top > 0:
        raise ValueError(f"chart: a rate axis needs a positive value; got {top}")
    unit = 10 ** np.floor(np.log10(top))
    step = next(s for s in unit * np.array([0.1, 0.2, 0.25, 0.5, 1, 2]) if top * 1.04 <= 6 * s)
    return [round(float(step * i), 10) for i in range(int(np.ceil(top * 1.04 / step)) + 1)]


def thinned(ticks: list[float], length: float) -> list[float]:
    """Every second tick, or every fourth, where they are nearer than 40 px; at least three."""
    while len(ticks) > 4 and len(ticks) > math.ceil(length / 40):
        ticks = ticks[::2]
    return ticks


def place_labels(
    words: dict[str, str],
    pixels: dict[str, np.ndarray],
    plot: float,
    height: float,
    font_px: float,
    marks: Sequence[np.ndarray] = (),
) -> dict[str, tuple[float, float]]:
    """Left end and middle of each label [px]: free of every line and mark, nearest to its own line; a label without such a place is left out.

    Args:
        marks: places that dots and error bars cover, see `boxed`
    """
    inked = {name: along(points) for name, points in pixels.items()}
    taken, places = np.vstack(list(inked.values())), {}
    solid = np.vstack([np.empty((0, 2)), *marks])
    for name, text in words.items():
        w, own = CHARACTER * font_px * len(text), inked[name]
        lefts = np.linspace(max(plot - w, 0), 4, 24)
        near = own[abs(own[:, 0] - (lefts + w / 2)[:, None]).argmin(axis=1)][:, 1]
        left, middle = np.repeat(lefts, len(OFFSETS)), (near[:, None] + OFFSETS).ravel()  # every place to try, at once
        inside = (-20 <= middle) & (middle <= height - 10)
        left, middle = left[inside], middle[inside]
        if not len(left):
            continue
        hits = _under(taken, left - 5, left + w + 5, middle, LINE_HEIGHT) + _under(solid, left - 3, left + w + 3, middle, 8)
        mine = _nearest(own, left + w / 2, middle)
        others = [_nearest(points, left + w / 2, middle) for other, points in inked.items() if other != name]
        astray = np.any([other < mine - 6 for other in others], axis=0) if others else np.zeros(len(left), bool)  # lines that touch share a label's place
        cost = ASTRAY * (hits + astray) + mine + 0.05 * (plot - w - left)
        first = np.lexsort((middle, left, cost))[0]
        best = (float(cost[first]), float(left[first]), float(middle[first]))
        if best[0] >= ASTRAY:
            continue
        places[name] = (round(best[1], 1), round(best[2], 1))
        box = [(x, best[2] + y) for x in np.linspace(best[1], best[1] + w, 30) for y in (-4, 4)]
        taken = np.vstack([taken, box])
    return places


def _under(places: np.ndarray, left: np.ndarray | float, right: np.ndarray | float, middle: np.ndarray | float, reach: float) -> np.ndarray:
    """How many places lie between left and right, and nearer than reach to the middle; for each of some lefts, rights and middles."""
    left, right, middle = (np.asarray(at)[..., None] for at in (left, right, middle))
    return ((places[:, 0] > left) & (places[:, 0] < right) & (abs(places[:, 1] - middle) < reach)).sum(axis=-1)


def _nearest(points: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Distance from each place (x, y) to the nearest of some points [px]."""
    return np.hypot(points[:, 0] - x[:, None], points[:, 1] - y[:, None]).min(axis=1)


def boxed(points: np.ndarray, bars: float | np.ndarray, radius: float) -> np.ndarray:
    """What dots with error bars cover, as places a few px apart.

    Args:
        points: middles of the dots [px]
        bars: half lengths of their error bars [px]
        radius: of a dot [px]
    """
    halves = np.maximum(np.broadcast_to(bars, len(points)), radius)
    bar = [(x, y + up) for (x, y), half in zip(points, halves, strict=True) for up in np.arange(-half, half + 2, 3)]
    dot = [(x + side * radius, y + up) for x, y in points for side in (-1, 1) for up in (-radius / 2, radius / 2)]
    return np.array(bar + dot)


def flowed(words: dict[str, str], width: float, font_px: float) -> list[dict[str, float]]:
    """Words set one after another on lines of a width: on each line, where each begins [px]."""
    lines, left = [{}], 0.0
    for name, text in words.items():
        w = CHARACTER * font_px * len(text)
        if lines[-1] and left + w > width:
            lines.append({})
            left = 0.0
        lines[-1][name] = round(left, 1)
        left += w + 14
    return lines


def beside(
    places: Sequence[np.ndarray], texts: Sequence[str], blocked: Sequence[np.ndarray], plot: float, height: float, font_px: float
) -> list[tuple[float, float]]:
    """Left end and middle of a label beside each place [px]: clear of marks, lines and other labels, nearest to its own.

    Args:
        places: for each label where it may stand beside, a row a place: one dot, or points along a line [px]
        blocked: what is drawn, see `along` and `boxed` [px]
    """
    solid = np.vstack([np.empty((0, 2)), *blocked])
    dots = [place[0] for place in places if len(place) == 1]
    found = []
    for place, text in zip(places, texts, strict=True):
        w, best = CHARACTER * font_px * len(text), (np.inf, 0.0, 0.0)
        others = [dot for dot in dots if len(place) == 1 and not np.array_equal(dot, place[0])]
        for x, y in place:
            for away in (0, 6, 14, 26, 40):
                for left, middle in _sides(x, y, w, away):
                    outside = max(0, -left) + max(0, left + w - plot) + max(0, 8 - middle) + max(0, middle - height + 8)
                    own = _gap(left, middle, w, (x, y))
                    astray = any(_gap(left, middle, w, dot) < own + 4 for dot in others)
                    cost = ASTRAY * (_under(solid, left - 4, left + w + 4, middle, 9) + outside + 0.5 * astray) + away
                    if cost < best[0]:  # the earlier side where two are as good
                        best = (cost, float(left), float(middle))
        found.append((round(best[1], 1), round(best[2], 1)))
        box = [(at, best[2] + up) for at in np.linspace(best[1], best[1] + w, 30) for up in (-4, 4)]
        solid = np.vstack([solid, box])
    return found


def _sides(x: float, y: float, w: float, away: float) -> list[tuple[float, float]]:
    """Left end and middle of a label to the right of a place, to its left, below and above it."""
    level = [(x + 10 + away, y), (x - 10 - away - w, y)]
    return level + [(x - share * w, y + up) for up in (17 + away, -17 - away) for share in (0.5, 0.1, 0.9)]


def _gap(left: float, middle: float, w: float, dot: Sequence[float]) -> float:
    """From a label to a dot [px]."""
    across = max(left - dot[0], 0, dot[0] - left - w)
    return math.hypot(across, max(abs(middle - dot[1]) - 6, 0))


def log_ticks(low: float, high: float) -> list[float]:
    """The powers of ten between two ends; 2 and 5 times them too where they are few."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1,) if math.log10(high / low) > 3 else (1, 2, 5)
    return [tick for e in powers for tick in (step * 10.0**e for step in steps) if low <= tick <= high]


def on_log(values: Sequence[float], ends: Sequence[float], length: float) -> np.ndarray:
    """Where values lie on a log axis between two ends [px from its beginning]."""
    low, high = np.log(ends)
    return (np.log(np.asarray(values, dtype=float)) - low) / (high - low) * length


def band(ends: Sequence[float], low: float, high: float) -> list[dict[str, float]]:
    """The corners of low × x to high × x inside a square of two log axes: at, from, to."""
    first, last = ends
    corners = sorted({x for x in (first, last, first / low, first / high, last / low, last / high) if first <= x <= last})
    return [{"at": x, "from": min(max(low * x, first), last), "to": min(max(high * x, first), last)} for x in corners]


def along(points: np.ndarray) -> np.ndarray:
    """The line as dots 3 px apart."""
    parts = [
        np.linspace(a, b, max(2, int(np.hypot(*(b - a)) / 3)))
        for a, b in zip(points, points[1:], strict=False)
    ]
    return np.vstack([points, *parts])


def depth_series(rows: list[dict]) -> dict[str, list[dict]]:
    """What can be drawn, by name: x, y, s (sigma), sorted by depth."""
    series = {}
    for name in ("roof", "predicted", "measured"):
        sigma = "sigma_tok_s" if name == "measured" else ""
        known = [{"x": float(r["depth_tokens"] or 0), "y": float(y), "s": float(r.get(sigma) or 0)} for r in rows if (y := r.get(f"{name}_tok_s")) is not None]
        if known:
            series[name] = sorted(known, key=lambda point: point["x"])
    if not series:
        raise ValueError("chart: no rate to draw: every series is missing")
    return series


def ratio_rows(rows: list[dict]) -> list[dict]:
    """Quantities divided by what was predicted [1]: one, low, high, ratio, from, to; None where not known."""
    found = []
    for row in rows:
        low, high, middle = row.get("predicted_low"), row.get("predicted_high"), row["predicted"]
        if middle is None and low is not None and high is not None:
            middle = (low + high) / 2

        def share(value: float | None, of: float | None = middle) -> float | None:
            return None if value is None or not of else value / of

        ratio, sigma = share(row["measured"]), share(row.get("sigma")) or 0.0
        ends = (None, None) if ratio is None else (ratio - sigma, ratio + sigma)
        found.append({"one": 1.0, "low": share(low), "high": share(high), "ratio": ratio, "from": ends[0], "to": ends[1], "quantity": row["quantity"]})
    return found


def ratio_axis(rows: list[dict], log: bool) -> tuple[list[float], list[float]]:
    """Both ends and the ticks of an axis that holds every ratio [1]; rows as `ratio_rows`."""
    seen = [v for row in rows for name, v in row.items() if name != "quantity" and v is not None]
    if not log:
        ticks = ticks_from_zero(max(seen))
        return [0.0, ticks[-1]], ticks
    ends = [min(v for v in seen if v > 0) / 1.2, max(seen) * 1.2]
    return ends, [t for t in LOG_TICKS if ends[0] <= t <= ends[1]]


def of_roof(got: float, roof: float, short: bool = False) -> str:
    """The words of one bar: "105 of 120 GB/s · 87 %", in short "87 %"."""
    first, second = (f"{v:,.0f}" if v >= 100 else f"{v:.1f}" for v in (got, roof))
    share = f"{100 * got / roof:.0f}\u202f%"
    return share if short else f"{first} of {second} GB/s · {share}"
