"""What a chart draws and where its labels go: numbers and pixels, no chart library."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

import numpy as np

CHARACTER = 0.58  # mean advance of Inter, in font sizes: a little wide, so nothing touches
LINE_HEIGHT = 11  # from a label's middle to the nearest line [px]
ASTRAY = 1000.0  # what a label on something, or nearer to another line than to its own, costs
OFFSETS = np.array([12, -12, 14, -14, 16, -16, 18, -18, 20, -20, 24, -24, 28, -28, 40, -40, 60, -60, 90, -90])  # of a label from its line [px]
Point = tuple[float, float]  # x and y [px]
Drawn = tuple[list[float], list[float]]  # see `_by_height`
ASIDE = np.arange(24) / 23  # where a label begins to try, from the end of its line to the beginning [1]
LOG_TICKS = [m * 10.0**e for e in (-2, -1, 0, 1) for m in (1, 1.5, 2, 3, 5, 7)]


def ticks_from_zero(top: float) -> list[float]:
    """Round steps from 0 to the first one above top."""
    if not top > 0:
        raise ValueError(f"chart: a rate axis needs a positive value; got {top}")
    unit = 10.0 ** math.floor(math.log10(top))
    step = next(s * unit for s in (0.1, 0.2, 0.25, 0.5, 1, 2) if top * 1.04 <= 6 * s * unit)
    return [round(step * i, 10) for i in range(math.ceil(top * 1.04 / step) + 1)]


def thinned(ticks: list[float], length: float) -> list[float]:
    """Every second tick, or every fourth, where they are nearer than 40 px; at least three."""
    while len(ticks) > 4 and len(ticks) > math.ceil(length / 40):
        ticks = ticks[::2]
    return ticks


def place_labels(
    words: dict[str, str],
    pixels: dict[str, Sequence[Point]],
    plot: float,
    height: float,
    font_px: float,
    marks: Sequence[list[Point]] = (),
) -> dict[str, tuple[float, float]]:
    """Left end and middle of each label [px]: free of every line and mark, nearest to its own line; a label without such a place is left out.

    Args:
        marks: places that dots and error bars cover, see `boxed`
    """
    dots, begins = along(*pixels.values())
    drawn, taken, names = _by_height(marks), {}, list(pixels)
    widths = np.array([CHARACTER * font_px * len(text) for text in words.values()])
    # Every place to try, at once: for each label, left ends, and at each of them places above and below its line.
    last = (plot - widths).clip(0)[:, None]
    lefts = last + (4 - last) * ASIDE
    rights, centres = lefts + widths[:, None], lefts + widths[:, None] / 2
    middles = np.array([np.interp(at, *zip(*pixels[name], strict=True)) for name, at in zip(words, centres, strict=True)])[..., None] + OFFSETS
    low, high = (y.reshape(-1, *lefts.shape, 1) for y in _between(dots, begins, lefts.ravel() - 5, rights.ravel() + 5))
    free = (-20 <= middles) & (middles <= height - 10) & ((low >= middles + LINE_HEIGHT) | (high <= middles - LINE_HEIGHT)).all(axis=0)
    asides = 0.05 * (plot - widths[:, None] - lefts)  # the end of the line is the best place
    least = asides[..., None] + abs(OFFSETS) / np.array([_slant(pixels[name]) for name in words])[:, None, None]
    for i, (name, w) in enumerate(zip(words, widths.tolist(), strict=True)):
        own, at, aside, ways = names.index(name), lefts[i].tolist(), asides[i].tolist(), middles[i].ravel()
        untried = free[i].ravel().nonzero()[0]
        bounds = least[i].ravel()[untried]
        promising = bounds.argsort(kind="stable")
        best = math.inf, 0.0, 0.0
        for bound, place in zip(bounds[promising].tolist(), untried[promising].tolist(), strict=True):
            if bound > best[0]:
                break
            column, m = place // len(OFFSETS), float(ways[place])
            x = at[column]
            over = any(left < x + w + 5 and right > x - 5 and abs(abs(m - y) - 4) < LINE_HEIGHT for left, right, y in taken.values())
            if over or _under(drawn, x - 3, x + w + 3, m, 8):
                continue
            near = _nearest(dots, begins, x + w / 2, m)
            if min(near) >= near[own] - 6:  # lines that touch share a label's place
                best = min(best, (near[own] + aside[column], x, m))
        if best[0] < math.inf:
            taken[name] = best[1], best[1] + w, best[2]
    return {name: (round(left, 1), round(y, 1)) for name, (left, _, y) in taken.items()}


def _between(dots: np.ndarray, begins: list[int], left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least and the greatest y of lines, each sorted by x, between lefts and rights, a row a line; inf and -inf where it is not there."""
    line = np.zeros(dots.shape[1])
    line[begins[1:]] = 1e6  # [px] one line right of the other, all are sorted
    x, apart = dots[0] + line.cumsum(), 1e6 * np.arange(len(begins))[:, None]
    first, last = x.searchsorted(left + apart, "right"), x.searchsorted(right + apart)
    there, ends, y = first < last, np.stack([first, last], axis=-1).ravel(), np.append(dots[1], 0.0)
    low, high = (f.reduceat(y, ends)[::2].reshape(there.shape) for f in (np.minimum, np.maximum))
    return np.where(there, low, np.inf), np.where(there, high, -np.inf)


def _slant(points: Sequence[Point]) -> float:
    """The greatest length of a line's part over its length in x [1]: a place so far above a line is at least its share of that away."""
    return math.hypot(1, max((abs(b[1] - a[1]) / (b[0] - a[0]) for a, b in zip(points, points[1:], strict=False) if b[0] > a[0]), default=0.0))


def _by_height(blocked: Sequence[list[Point]]) -> Drawn:
    """What is drawn, from above: the y of each place, and its x."""
    known = sorted([(y, x) for some in blocked for x, y in some])
    return [y for y, _ in known], [x for _, x in known]


def _under(drawn: Drawn, left: float, right: float, middle: float, reach: float) -> list[float]:
    """What lies between left and right, and nearer than reach to the middle [px]; drawn as `_by_height`."""
    heights, across = drawn
    return [x for x in across[bisect_right(heights, middle - reach) : bisect_left(heights, middle + reach)] if left < x < right]


def _nearest(dots: np.ndarray, begins: list[int], x: float, y: float) -> list[float]:
    """Distance from a place to the nearest dot of each line [px]; dots and begins as `along`."""
    across, up = dots[0] - x, dots[1] - y
    return np.sqrt(np.minimum.reduceat(across * across + up * up, begins)).tolist()  # of many dots, a tenth of what hypot takes


def boxed(points: Sequence[Point], radius: float, bars: Sequence[float] | None = None) -> list[Point]:
    """What dots with error bars cover, as places a few px apart.

    Args:
        points: middles of the dots [px]
        radius: of a dot [px]
        bars: half lengths of their error bars, where they have any [px]
    """
    halves = [max(half, radius) for half in bars] if bars else [radius] * len(points)
    bar = [(x, y - half + up) for (x, y), half in zip(points, halves, strict=True) for up in range(0, math.ceil(2 * half) + 2, 3)]
    return bar + [(x + side, y + up) for x, y in points for side in (-radius, radius) for up in (-radius / 2, radius / 2)]


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
    places: Sequence[Sequence[Point]], texts: Sequence[str], blocked: Sequence[list[Point]], plot: float, height: float, font_px: float
) -> list[tuple[float, float]]:
    """Left end and middle of a label beside each place [px]: clear of marks, lines and other labels, nearest to its own.

    Args:
        places: for each label where it may stand beside: one dot, or points along a line [px]
        blocked: what is drawn, see `along` and `boxed` [px]
    """
    if not places:
        return []
    found, counts = [], [len(place) for place in places]
    spots, alone = np.vstack(places), np.repeat([n == 1 for n in counts], counts)
    widths = [CHARACTER * font_px * len(text) for text in texts]
    w = np.repeat(widths, counts)[:, None]
    # Every side of every place at once: a row a place.
    left, middle = spots[:, :1] + SIDE - SHARES * w, spots[:, 1:] + DOWN
    outside = (-left).clip(0) + (left + w - plot).clip(0) + (8 - middle).clip(0) + (middle - height + 8).clip(0)
    dots, ends = spots[alone], (left[alone], middle[alone], w[alone])
    others = (dots != dots[:, None]).any(axis=2)
    own = _gap(*ends, dots[:, None]) + 4
    outside[alone] += 0.5 * ((_gap(*(part[..., None] for part in ends), dots) < own[..., None]) & others[:, None]).any(axis=2)
    least = ASTRAY * outside + AWAY
    drawn, last = _by_height(blocked), 0
    x, y, at = (part.ravel().tolist() for part in (left, middle, least))
    for n, w in zip(counts, widths, strict=True):
        first, last = last, last + n * len(AWAY)
        order = sorted(range(first, last), key=at.__getitem__)  # the earlier side where two are as good

        def under(i: int, w: float = w) -> list[float]:
            return _under(drawn, x[i] - 4, x[i] + w + 4, y[i], 9)

        best = next((i for i in order if not under(i)), None)
        if best is None or at[best] >= ASTRAY:  # none is clear of all
            best = min(order, key=lambda i: (ASTRAY * len(under(i)) + at[i], i))
        found.append((round(x[best], 1), round(y[best], 1)))
        for edge in (y[best] - 4, y[best] + 4):
            known = bisect_left(drawn[0], edge)
            drawn[0][known:known] = [edge] * len(ACROSS)
            drawn[1][known:known] = [x[best] + w * share for share in ACROSS]
    return found


ACROSS = np.linspace(0, 1, 30).tolist()  # where a label is solid, of its length
# Where a label may stand beside a place: right, left, below and above, ever farther away.
AWAY = np.repeat([0.0, 6.0, 14.0, 26.0, 40.0], 8)
SHARES = np.tile([0, 1, 0.5, 0.1, 0.9, 0.5, 0.1, 0.9], 5)  # of the label that lies left of the place
SIDE = np.tile([10, -10, 0, 0, 0, 0, 0, 0], 5) + AWAY * np.tile([1, -1, 0, 0, 0, 0, 0, 0], 5)
DOWN = (17 + AWAY) * np.tile([0, 0, 1, 1, 1, -1, -1, -1], 5)


def _gap(left: np.ndarray, middle: np.ndarray, w: np.ndarray, dot: np.ndarray) -> np.ndarray:
    """From labels to dots [px]."""
    across = np.maximum(left - dot[..., 0], dot[..., 0] - left - w).clip(0)
    up = (abs(middle - dot[..., 1]) - 6).clip(0)
    return np.sqrt(across * across + up * up)


def log_ticks(low: float, high: float) -> list[float]:
    """The powers of ten between two ends; 2 and 5 times them too where they are few."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1,) if math.log10(high / low) > 3 else (1, 2, 5)
    return [tick for e in powers for tick in (step * 10.0**e for step in steps) if low <= tick <= high]


def on_log(values: Iterable[float], ends: Sequence[float], length: float) -> list[float]:
    """Where values lie on a log axis between two ends [px from its beginning]; what is not above 0 lies there."""
    low, high = map(math.log, ends)
    return [(math.log(value) - low) / (high - low) * length if value > 0 else 0.0 for value in values]


def band(ends: Sequence[float], low: float, high: float) -> list[dict[str, float]]:
    """The corners of low × x to high × x inside a square of two log axes: at, from, to."""
    first, last = ends
    corners = sorted({x for x in (first, last, first / low, first / high, last / low, last / high) if first <= x <= last})
    return [{"at": x, "from": min(max(low * x, first), last), "to": min(max(high * x, first), last)} for x in corners]


def dotted(*lines: Sequence[Point]) -> list[Point]:
    """What lines cover, as places a few px apart."""
    return list(zip(*along(*lines)[0].tolist(), strict=True))


def along(*lines: Sequence[Point]) -> tuple[np.ndarray, list[int]]:
    """Lines as dots 3 px apart, one after another, each in its order: a row of x, a row of y; and the index of the first dot of each."""
    parts, begins, known = [], [], 0
    for line in lines:
        begins.append(known)
        for (x, y), (to_x, to_y) in zip(line, line[1:] if len(line) > 1 else line, strict=False):
            count = max(int(math.hypot(to_x - x, to_y - y) / 3), 2)
            parts.append((x, y, to_x - x, to_y - y, known, count - 1))
            known += count
    beginning, step, first, last = np.split(np.array(parts).T.repeat([part[-1] + 1 for part in parts], axis=1), (2, 4, 5))
    return beginning + (np.arange(known) - first) / last * step, begins


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
