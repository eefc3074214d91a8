"""Numbered tables and figures: rows in, one line of HTML out, with the CSV beside each."""

from __future__ import annotations

import pandas as pd
from markupsafe import Markup

from macros import chart_cache, compare, rows, tables
from macros.compare import Score
from macros.narrative import Book, InkedText, gap_text, gap_value, inked_value, measured_value
from macros.records import Result, Run
from macros.tables import Column
from macros.values import (
    Value,
    decimals_for,
    number,
    percent,
    sigma_decimals,
    verdict_html,
)

NOT_MEASURED = "not measured"


def _publish(book: Book, id: str, frame: pd.DataFrame) -> str:
    """Keep a CSV for the build to write, and link to it."""
    page = book.here.strip("/").replace("/", "-") or "index"
    address = f"data/{page}-{id}.csv"
    book.files[address] = frame.to_csv(index=False, lineterminator="\n")
    return book.link(address)


def _table(book: Book, id: str, columns: list[Column], cells: list[dict], frame: pd.DataFrame, caption: str) -> str:
    html = tables.html_table(columns, cells)
    return tables.table_figure(id, book.number("table"), html, caption, _publish(book, id, frame))


def _figure(book: Book, id: str, kind: str, frame: pd.DataFrame, caption: str, label: str) -> str:
    svg = chart_cache.draw(kind, frame, id, label)
    return tables.figure(id, book.number("figure"), svg, caption, _publish(book, id, frame))


def _cell(value: Value | InkedText) -> Markup:
    return Markup(str(value))


def ink_table(book: Book, scores: list[Score], id: str, caption: str) -> str:
    """Predictions against measurements with their verdicts."""
    cells = []
    for s in scores:
        p, m = s.prediction, s.measured
        inked = inked_value(p, how=f'inked: "{p.as_written}", because {p.because}', href=f"#{id}")
        shown: str | Markup = NOT_MEASURED
        if m:
            where = f"machines/{book.lab.inks[s.ink].machine}/" + (f"#run-{s.run.id}" if s.run else "")
            shown = _cell(measured_value(p, m, f"run {s.run.id}" if s.run else "the model's card", book.link(where)))
        cells.append(
            {
                "quantity": p.quantity,
                "inked": Markup("{}{}").format("≤ " if p.kind == "ceiling" else "", _cell(inked)),
                "measured": shown,
                "gap": gap_text(s),
                "verdict": verdict_html(s.verdict),
            }
        )
    columns = [
        Column("quantity", "Quantity"),
        Column("inked", "Inked", "right"),
        Column("measured", "Measured", "right"),
        Column("gap", "Gap", "right"),
        Column("verdict", "Verdict", "left", "verdict"),
    ]
    return _table(book, id, columns, cells, rows.ink(scores), caption)


def results_table(book: Book, runs: list[Run], id: str, caption: str) -> str:
    """Raw measurements with sigma, one row a test, conditions beside them."""
    frame = rows.results(book.lab, runs)
    cells = []
    for row in frame.to_dict("records"):
        decimals = sigma_decimals(row["mean_tok_s"], row["sigma_tok_s"]) if row["n"] else 0
        cells.append(
            {
                "test": Markup('{} <span class="note">{}</span>').format(
                    row["test"], "; ".join(filter(None, (book.lab.models[row["model"]].name, row["note"])))),
                "backend": row["backend"],
                "depth": number(row["depth_tokens"], 0),
                "rate": number(row["mean_tok_s"], decimals) if row["n"] else NOT_MEASURED,
                "sigma": number(row["sigma_tok_s"], decimals) if row["n"] > 1 else "",
                "n": str(row["n"]),
                "run": Markup('<a href="{}">{}</a>').format(
                    book.link(f"machines/{runs[0].machine}/#run-{row['run']}"), row["run"]),
            }
        )
    columns = [
        Column("test", "Test"),
        Column("backend", "Backend"),
        Column("depth", "Depth", "right"),
        Column("rate", "tok/s", "right", "measured"),
        Column("sigma", "σ", "right"),
        Column("n", "n", "right"),
        Column("run", "Run"),
    ]
    return _table(book, id, columns, cells, frame, caption)


def sweep_table(book: Book, run: Run, test: str, model: str, id: str, caption: str, anchor: Result | None = None) -> str:
    """A depth sweep: bytes a step, anchored prediction, measurement, gap."""
    frame = rows.sweep(book.lab, run, test, model, anchor)
    cells = []
    for i, row in enumerate(frame.to_dict("records")):
        measured = Value(row["measured_tok_s"], "tok/s", "measured", sigma=row["sigma_tok_s"])
        cells.append(
            {
                "depth": number(row["depth_tokens"], 0),
                "bytes": number(row["step_bytes"] / 1e9, 3) if "step_bytes" in row else "",
                "predicted": "anchor" if i == 0 and row["depth_tokens"] == 0 else number(row["predicted_tok_s"], 2),
                "measured": measured.bare,
                "gap": "" if i == 0 and row["depth_tokens"] == 0 else gap_value(row["gap"]).text,
            }
        )
    columns = [
        Column("depth", "Depth [tokens]", "right"),
        Column("bytes", "Bytes a step [GB]", "right"),
        Column("predicted", "Predicted [tok/s]", "right", "predicted"),
        Column("measured", "Measured [tok/s]", "right", "measured"),
        Column("gap", "Gap", "right"),
    ]
    if "step_bytes" not in frame:
        columns = [c for c in columns if c.key != "bytes"]
    return _table(book, id, columns, cells, frame, caption)


def depth_figure(book: Book, run: Run, test: str, model: str, id: str, caption: str, anchor: Result | None = None) -> str:
    """Rate against depth: measured with sigma, the anchored prediction as a line, the roof."""
    frame = rows.sweep(book.lab, run, test, model, anchor)
    kind = "decode_depth" if test.startswith("tg") else "prefill_depth"
    what = "Decode" if test.startswith("tg") else "Prefill"
    points = "; ".join(
        f"depth {r.depth_tokens:,}: measured {r.measured_tok_s:.1f}, predicted {r.predicted_tok_s:.1f}" for r in frame.itertuples()
    )
    label = f"{what} rate in tokens per second against context depth. {points}."
    return _figure(book, id, kind, frame, caption, label)


def bandwidth_figure(book: Book, entries: list[tuple[str, Run, Result]], id: str, caption: str) -> str:
    """Bandwidth each backend or format really pulled, against the roof."""
    frame = rows.bandwidth(book.lab, entries)
    label = "Bandwidth in GB/s against the roof. " + "; ".join(
        f"{r.label}: {r.achieved_gb_s:.1f} of {r.roof_gb_s:.0f}" for r in frame.itertuples()
    )
    return _figure(book, id, "backend_bars", frame, caption, label)


def ratio_figure(book: Book, scores: list[Score], id: str, caption: str) -> str:
    """Measured over predicted for every scored number of an ink."""
    frame = rows.ink([s for s in scores if s.measured and s.prediction.kind != "direction"])
    label = "Measured over predicted. " + "; ".join(
        f"{s.prediction.quantity}: {s.verdict}" for s in scores if s.measured
    )
    return _figure(book, id, "predicted_measured", frame, caption, label)


def shares_table(book: Book, runs: list[Run], id: str, caption: str) -> str:
    """Share of the roof by the napkin and by exact work, side by side."""
    frame = rows.shares(book.lab, runs).dropna()
    cells = [
        {
            "test": Markup('{} <span class="note">{}, {}</span>').format(r.test, book.lab.models[r.model].name, r.backend),
            "first": percent(r.first_order, decimals=0).text,
            "exact": percent(r.exact, decimals=0).text,
        }
        for r in frame.itertuples()
    ]
    columns = [Column("test", "Test"), Column("first", "First order", "right"), Column("exact", "Exact work", "right")]
    return _table(book, id, columns, cells, frame, caption)


def check_table(book: Book, name: str, id: str, caption: str) -> str:
    """A check of the instrument: medians of both ways, their ratio b / a and its interval."""
    check = book.lab.get("checks", name)
    cells = []
    for r in book.checked(name):
        decimals = decimals_for(r["median_a"])
        cells.append(
            {
                "test": r["test"],
                "a": number(r["median_a"], decimals),
                "b": number(r["median_b"], decimals),
                "ratio": number(r["ratio"], 3),
                "spread": f"{number(r['ratio_low'], 3)}–{number(r['ratio_high'], 3)}",
                "pairs": str(r["pairs"]),
            }
        )
    unit = check.pairs[0].unit
    columns = [
        Column("test", "Test"),
        Column("a", f"{check.a} [{unit}]", "right"),
        Column("b", f"{check.b} [{unit}]", "right"),
        Column("ratio", "Ratio of medians", "right"),
        Column("spread", "95\u202f% interval", "right"),
        Column("pairs", "Pairs", "right"),
    ]
    return _table(book, id, columns, cells, rows.pairs(check), caption)


def seal(book: Book, ink: str, runs: list[Run] | None = None) -> Markup:
    """The seal: when it was inked, that no run's copy of its hash disagrees, and the score in words.

    A changed ink does not load (`macros.labdata`), so a page that shows this block has checked it.
    """
    from macros.narrative import tally_words

    document = book.lab.get("inks", ink)
    scores = compare.scores(book.lab, ink, runs)
    when = document.written_at.strftime("%-d %B %Y, %H:%M UTC") if document.written_at else "before measuring"
    count = len(document.predictions)
    words = f"Inked {when} · {count} prediction{'s' if count != 1 else ''} · unaltered since the run · {tally_words(scores)}"
    return Markup('<p class="seal" title="{}">{}</p>').format(document.written_note, words)
