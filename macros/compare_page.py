"""The page "Compare": machines and models side by side, as a plain table that a script filters, sorts and turns over.

The build writes the first rows, and the empty row the script fills for any other; how a number is
printed and when two rates differ is the project's own code, translated.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

from markupsafe import Markup

from macros import compare, evidence, page_script, side_by_side, tables, values
from macros.compare import Measured
from macros.narrative import Book
from macros.side_by_side import Line
from macros.tables import Column

ROWS = 50  # a page of the table
SORTS = {
    "share": "Nearest to the roof", "-share": "Furthest from the roof", "rate": "Fastest", "-rate": "Slowest",
    "ratio": "Most above its prediction", "-ratio": "Most below its prediction", "machine": "Machine",
}  # fmt: skip
SYNTHETIC, OUTSIDE, UNKNOWN = "synthetic weights", "outside its interval", "not known"
AXIS = 100.0  # width of a row's axes [units of their drawing]


def bar(share: float) -> float:
    """Length of a share of the roof on an axis that ends at the roof; past it, a share over 1 stops a little further."""
    return AXIS * min(share, 1.1)


def dot(ratio: float) -> float:
    """Place of measured over predicted on an axis from half to double, the prediction in its middle."""
    return AXIS * min(1.0, max(0.0, 0.5 + math.log(ratio) / math.log(2) / 2))


class View:
    """The lines of a lab and what the page shows of them."""

    def __init__(self, book: Book) -> None:
        self.book, self.lines = book, side_by_side.lines(book.lab, book.lines)
        self.pair = side_by_side.default_pair(self.lines)

    def table(self, id: str, caption: str) -> str:
        """The first rows, the CSV of all, the form above and the pages below."""
        body = [self._row(x) for x in self.lines[:ROWS]]
        columns = [Column("machine", "Machine"), Column("model", "Model"), Column("test", "Test"), Column("rate", "tok/s", "right", "measured"),
                   Column("share", "Of the roof", "right"), Column("ratio", "Measured ÷ predicted", "right")]  # fmt: skip
        html = tables.html_table(columns, body)
        flat = [_flat(x) for x in self.lines]
        figure = tables.table_figure(id, self.book.number("table"), html, caption, evidence.publish(self.book, id, flat))
        spare = tables.html_table(columns, [self._row(None)])
        row = spare[spare.index("<tbody>") + len("<tbody>") : spare.index("</tbody>")]
        count = f"Rows 1–{len(body)} of {len(self.lines)}" if self.lines else "Nothing has been measured yet."
        pages = Markup('<p class="pages"><span id="compare-said" role="status">{}</span> <button type="button" id="compare-back" disabled>Previous</button> '
                       '<button type="button" id="compare-on" disabled>Next</button></p>').format(count)  # fmt: skip
        return f'<div class="broad">{self._form(id)}{figure}<template id="compare-row">{row}</template>{pages}</div>'

    def _row(self, x: Line | None) -> dict[str, object]:
        """One row; None: the empty one."""
        name = self.book.lab.machines[x.machine].name if x else ""
        href = self.book.link(f"machines/{x.machine}/") if x else "."
        axis = Markup('<svg class="axis" viewBox="-4 0 118 10" aria-hidden="true"{}>{}</svg>')
        share = axis.format(_hidden(x and x.share), Markup('<path class="base" d="M0 5H110"/><path class="end" d="M100 0V10"/><path class="bar" data-c="bar" d="M0 5H{}"/>').format(_at(bar(x.share)) if x and x.share else 0))
        ratio = axis.format(_hidden(x and x.ratio), Markup('<path class="base" d="M0 5H100M0 2V8M100 2V8"/><path class="ink" d="M50 0V10"/><circle data-c="dot" cx="{}" cy="5" r="4"/>').format(_at(dot(x.ratio)) if x and x.ratio else 50))
        return {
            "machine": Markup('<a data-c="machine" href="{}">{}</a> {}').format(href, name, _note("backend", x.backend if x else "")),
            "model": Markup("{} {}").format(_span("model", x.model if x else ""), _note("synthetic", SYNTHETIC if x and x.synthetic else "")),
            "test": _span("test", x.test if x else ""),
            "rate": _span("rate", rate_text(x.measured) if x else ""),
            "share": Markup("{}{}").format(share, _span("share", share_text(x.share) if x else "")),
            "ratio": Markup("{}{} {}").format(ratio, _span("ratio", ratio_text(x.ratio) if x else ""), _note("outside", OUTSIDE if x and x.inside is False else "")),
        }

    def _form(self, table: str) -> Markup:
        tests = sorted({x.test for x in self.lines}, key=lambda t: (not t.startswith("tg"), int("".join(filter(str.isdigit, t)) or 0)))
        models = sorted({x.model for x in self.lines}, key=str.lower)
        parts = [
            Markup('<p class="field"><label for="c-find">Machine or chip has</label><input id="c-find" name="find" type="search" autocomplete="off"></p>'),
            _select("sort", "Order", list(SORTS.items())),
            _select("test", "Test", [("", "All tests"), *((t, t) for t in tests)]),
            _select("model", "Model", [("", "All models"), *((m, m) for m in models)]),
        ]
        return Markup('<form id="compare-form" class="fields" aria-label="What the table shows" data-table="{}">{}</form>').format(table, Markup("").join(parts))

    def difference(self, id: str) -> str:
        """Two subjects' tests in common, and whether they differ beyond noise; two of the lab's at first."""
        if not self.pair:
            return "No two have run the same test yet."
        mine = [[x for x in self.lines if x.subject == subject] for subject in self.pair]
        columns = [Column("test", "Test"), Column("a", "First [tok/s]", "right", "measured"), Column("b", "Second [tok/s]", "right", "measured"),
                   Column("ratio", "Second over first", "right"), Column("roofs", "Of the roof", "right"), Column("words", "Do they differ?", "left", "verdict")]  # fmt: skip
        html = tables.html_table(columns, [_pair_row(a, b) for a, b in side_by_side.pairs(*mine)])
        spare = tables.html_table(columns, [_pair_row(None, None)])
        row = spare[spare.index("<tbody>") + len("<tbody>") : spare.index("</tbody>")]
        names = [self.name(x[0]) for x in mine]
        form = Markup('<form id="pair-form" class="fields" aria-label="Two to set against each other" data-table="{}">{}{}</form>').format(
            id, *(_select(k, words, [(m, n)], "wide") for k, words, m, n in zip("ab", ("First", "Second"), self.pair, names, strict=True)))
        caption = Markup('<span data-pair="a">{}</span>, against <span data-pair="b">{}</span>. Mean ± σ.').format(*names)
        figure = tables.table_figure(id, self.book.number("table"), html, str(caption))
        return f'<div>{form}{figure}<template id="pair-row">{row}</template></div>'

    def name(self, x: Line) -> str:
        """A line's subject in words."""
        return subject_words(self.book.lab.machines[x.machine].name, x)

    def script(self) -> Markup:
        """The page's script with all lines."""
        columns = packed(self.lines)
        machines = self.book.lab.machines
        data = {**columns, "machines": [[machines[m].name, machines[m].chip] for m in columns["names"]["machine"]], "rows": ROWS, "sorts": list(SORTS),  # type: ignore[call-overload]
                "synthetic_": SYNTHETIC, "outside_": OUTSIDE, "pair": self.pair or [], "here": self.book.link("machines/")}  # fmt: skip
        roots = (side_by_side.pairs, side_by_side.difference, compare.ratio, subject_words, roofs_text, ratio_text, rate_text, bar, dot, Line, Measured)
        return page_script.element(self.book, "compare", page_script.script(roots, data, ("print", "compare")))


def rate_decimals(mean: float, sigma: float) -> int:
    """Digits past the point that a rate is printed with."""
    return values.sigma_decimals(mean, sigma) if sigma > 0 else values.decimals_for(mean)


def rate_text(m: Measured) -> str:
    """A rate with its σ, where that is known."""
    d = rate_decimals(m.mean, m.sigma)
    return values.number(m.mean, d) + (f"\u00a0±\u00a0{values.number(m.sigma, d)}" if m.sigma > 0 else "")


def share_decimals(fraction: float) -> int:
    """Digits of a percentage: none from ten per cent on."""
    return 0 if fraction >= 0.1 else 1


def share_text(share: float | None) -> str:
    """A share of the roof."""
    return UNKNOWN if share is None else f"{values.number(share * 100, share_decimals(share))}{values.THIN}%"


def ratio_text(ratio: float | None) -> str:
    """Measured over predicted."""
    return UNKNOWN if ratio is None else f"{values.number(ratio, 2)}×"


def subject_words(machine: str, x: Line) -> str:
    """A line's subject in words, its machine by name."""
    return f"{machine}: {x.model}, {x.backend}{', synthetic weights' if x.synthetic else ''}"


def packed(lines: Sequence[Line]) -> dict[str, list]:
    """The lines column by column, names as numbers and figures no longer than what is printed needs: light enough to send a thousand machines.

    Columns: machine, model, synthetic, test, backend, mean, sigma, n, share, ratio, inside; names: the lists those number.
    """
    names: dict[str, dict[str, int]] = {k: {} for k in ("machine", "model", "test", "backend")}
    columns: dict[str, list] = {k: [names[k].setdefault(getattr(x, k), len(names[k])) for x in lines] for k in names}
    columns["synthetic"] = [int(x.synthetic) for x in lines]
    columns["mean"] = [_short(x.measured) for x in lines]
    columns["sigma"] = [None if math.isnan(x.measured.sigma) else float(f"{x.measured.sigma:.3g}") for x in lines]
    columns["n"] = [x.measured.n for x in lines]
    columns["share"] = [x.share if x.share is None else _fewest(x.share, 2, share_text) for x in lines]
    columns["ratio"] = [x.ratio if x.ratio is None else _fewest(x.ratio, 2, ratio_text) for x in lines]
    columns["inside"] = [x.inside if x.inside is None else int(x.inside) for x in lines]
    return {**columns, "names": {k: list(v) for k, v in names.items()}}  # type: ignore[dict-item]


def _short(m: Measured) -> float:
    """A mean with one digit more than is printed, for its noise's sake."""
    least = rate_decimals(m.mean, m.sigma) + 1
    return _fewest(m.mean, least, lambda mean: rate_text(Measured(mean, m.sigma, m.n)))


def _fewest(x: float, least: int, text: Callable[[float], str]) -> float:
    """A number with the fewest digits past the point that print as all of it do, rounded once and not twice."""
    whole = text(x)
    return next((s for s in (round(x, n) for n in range(least, 16)) if text(s) == whole), x)


def _pair_row(a: Line | None, b: Line | None) -> dict[str, object]:
    ratio = compare.ratio(b.measured, a.measured) if a and b else None
    return {
        "test": _span("test", a.test if a else ""),
        "a": _span("a", rate_text(a.measured) if a else ""),
        "b": _span("b", rate_text(b.measured) if b else ""),
        "ratio": _span("ratio", f"{rate_text(ratio)}×" if ratio else ""),
        "roofs": _span("roofs", roofs_text(a, b) if a and b else ""),
        "words": _span("words", side_by_side.difference(a.measured, b.measured) if a and b else ""),
    }


def roofs_text(a: Line, b: Line) -> str:
    """Two shares of the roof, one after the other."""
    return f"{share_text(a.share)}, {share_text(b.share)}"


def _flat(x: Line) -> dict[str, object]:
    m = x.measured
    rest = {f.name: getattr(x, f.name) for f in dataclasses.fields(x) if f.name not in ("measured", "share", "ratio", "inside")}
    return {**rest, "mean_tok_s": m.mean, "sigma_tok_s": m.sigma, "n": m.n, "share_of_roof": x.share, "over_predicted": x.ratio, "inside_interval": x.inside}


def _hidden(known: object) -> Markup:
    return Markup("" if known else " hidden")


def _at(x: float) -> str:
    return f"{x:.1f}"


def _span(name: str, words: str) -> Markup:
    return Markup('<span data-c="{}">{}</span>').format(name, words)


def _note(name: str, words: str) -> Markup:
    return Markup('<span class="note" data-c="{}">{}</span>').format(name, words)


def _select(name: str, label: str, entries: Sequence[tuple[str, str]], css: str = "") -> Markup:
    made = Markup("").join(Markup('<option value="{}">{}</option>').format(*entry) for entry in entries)
    return Markup('<p class="field {}"><label for="c-{}">{}</label><select id="c-{}" name="{}">{}</select></p>').format(css, name, label, name, name, made)
