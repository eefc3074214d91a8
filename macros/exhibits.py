"""The tables and figures of runs, ink and checks: what the lab holds in, numbered exhibits out."""

from __future__ import annotations

import math

from markupsafe import Markup, escape

from macros import anchors, compare, labdata, notes, rows
from macros.compare import Score
from macros.evidence import figure, table
from macros.latency import Latency
from macros.inked import InkedText, inked_value
from macros.narrative import Book, gap_text, gap_value, remark, tally_words
from macros.records import Result, Run
from macros.tables import Column
from macros.values import (
    Value,
    decimals_for,
    hour,
    number,
    percent,
    sigma_decimals,
    verdict_html,
)

NOT_MEASURED = "not measured"
AT_MOST = "≤\u00a0"  # a bound stays with its value


def _cell(value: Value | InkedText) -> Markup:
    return Markup(str(value))


def ink_table(book: Book, scores: list[Score], id: str, caption: str, csv: str = "") -> str:
    """Predictions against measurements with their verdicts; `csv` links to their `rows.ink` where these are published."""
    cells = []
    for s in scores:
        p, m = s.prediction, s.measured
        inked = inked_value(p, book.ink_facts(s.ink, p), f"#{id}")
        shown: str | Markup = _cell(book.measured_of(s)) if m else NOT_MEASURED
        cells.append(
            {
                "quantity": Markup(f"{notes.safe(p.quantity)}{_beside(book, s.ink, p.id)}"),
                "inked": Markup(f"{AT_MOST if p.kind == 'ceiling' else ''}{inked}"),
                "measured": shown,
                "gap": gap_text(s),
                "verdict": _verdict(s),
            }
        )
    columns = [
        Column("quantity", "Quantity"),
        Column("inked", "Inked", "right"),
        Column("measured", "Measured", "right"),
        Column("gap", "Gap", "right"),
        Column("verdict", "Verdict", "left", "verdict"),
    ]
    return table(book, id, columns, cells, csv or rows.ink(scores), caption)


def _verdict(s: Score) -> Markup:
    """A verdict, and below it that noise hides the difference."""
    said = remark(s)
    return Markup(f'{verdict_html(s.verdict)} <span class="note long">{escape(said)}</span>') if said else verdict_html(s.verdict)


def _beside(book: Book, ink: str, name: str) -> Markup:
    """What the errata say of one prediction, marked as written after."""
    errata = book.lab.errata.get(ink)
    if errata is None:
        return Markup("")
    notes = []
    for c in errata.corrections:
        if c.prediction == name:
            p = book.lab.prediction(ink, name)
            value = inked_value(p.model_copy(update={"value": c.corrected})).text if c.corrected and p.value else ""
            notes.append(Markup(' <span class="note long" title="{}">Erratum, written after, not scored: {}{}</span>').format(
                c.because, c.slip, f" Corrected: {value}." if value else ""))
    return Markup("").join(notes)


def anchor_table(book: Book, ink: str, id: str, caption: str) -> str:
    """Each re-anchored ratio as a rate: from the ink alone, anchored on which run and why, and with its slip corrected."""
    found = anchors.of_ink(book.lab, ink)
    if not found:
        raise labdata.LabError([f"labdata/ink/{ink}.errata.yml: anchors: none that was measured; got {len(found)}"])
    cells, scores = [], []
    for a in found:
        machine, _, run = a.anchor.run.partition("/")
        start = Value(a.start.mean, "tok/s", "measured", sigma=a.start.sigma, how="the rate it is anchored on",
                      facts=book.run_facts(book.run(a.anchor.run)), href=book.link(f"machines/{machine}/#run-{run}"))  # fmt: skip
        inked = inked_value(a.ratio).text
        bound = AT_MOST if a.base.kind == "ceiling" else ""
        entries = [
            (Markup("From the ink alone: {}{} × {}").format(bound, inked_value(a.base).text, inked), a.alone),
            (Markup("Anchored: {} × {} <span class=\"note long\">on run {}, chosen after measuring: {}</span>").format(
                _cell(start.mean), inked, run, a.anchor.because), a.anchored),
        ]  # fmt: skip
        if a.corrected:
            right = a.ratio.model_copy(update={"value": a.corrected.prediction.value / a.start.mean})
            entries.append((Markup("Anchored, slip corrected: {} × {}").format(_cell(start.mean), inked_value(right).text), a.corrected))
        for words, s in entries:
            scores.append(s)
            predicted = Value(s.prediction.value, "tok/s", "predicted", decimals=2)
            cells.append({"from": words, "predicted": Markup("{}{}").format(AT_MOST if s.prediction.kind == "ceiling" else "", _cell(predicted)),
                          "measured": _cell(Value(a.rate.mean, "tok/s", "measured", sigma=a.rate.sigma)),
                          "gap": gap_text(s), "verdict": "not scored" if s is a.corrected else _verdict(s)})  # fmt: skip
    columns = [
        Column("from", "Rate × ratio"),
        Column("predicted", "Predicted", "right"),
        Column("measured", "Measured", "right"),
        Column("gap", "Gap", "right"),
        Column("verdict", "Verdict", "left", "verdict"),
    ]
    return table(book, id, columns, cells, rows.ink(scores), caption)


def results_table(book: Book, runs: list[Run], id: str, caption: str, found: list[dict] | None = None, shown: list[dict] | None = None) -> str:
    """Raw measurements with sigma, one row a test, conditions beside them.

    Args:
        found: their `rows.results`, where they are at hand: what the CSV holds
        shown: those of them that the table shows; None: all
    """
    found, cells = found or rows.results(book.lab, runs), []
    shown = found if shown is None else shown
    name = {model: book.lab.models[model].name for model in {row["model"] for row in shown}}
    run_links = {run.id: Markup(f'<a href="{escape(book.link(f"machines/{run.machine}/#run-{run.id}"))}">{escape(run.id)}</a>') for run in runs}
    for row in shown:
        measured = row["mean_tok_s"] > 0  # NaN where the test failed
        decimals = sigma_decimals(row["mean_tok_s"], row["sigma_tok_s"]) if measured else 0
        cells.append(
            {
                "test": _noted(row["test"], "; ".join(filter(None, (name[row["model"]], row["origin"], row["settings"] if row["origin"] else "", row["note"])))),
                "backend": row["backend"],
                "depth": number(row["depth_tokens"], 0),
                "rate": number(row["mean_tok_s"], decimals) if measured else NOT_MEASURED,
                "sigma": number(row["sigma_tok_s"], decimals) if row["sigma_tok_s"] >= 0 else "",
                "n": "" if row["n"] is None else str(row["n"]),
                "run": run_links[row["run"]],
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
    return table(book, id, columns, cells, found, caption)


def _noted(words: str, note: str) -> Markup:
    """A cell's words with a note below them."""
    return Markup(f'{notes.safe(words)} <span class="note">{notes.safe(note)}</span>')


def sweep_table(book: Book, run: Run, test: str, model: str, id: str, caption: str, anchor: Result | None = None) -> str:
    """A depth sweep: bytes a step, anchored prediction, measurement, gap."""
    found = rows.sweep(book.lab, run, test, model, anchor)
    cells = []
    for i, row in enumerate(found):
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
    if "step_bytes" not in found[0]:
        columns = [c for c in columns if c.key != "bytes"]
    return table(book, id, columns, cells, found, caption)


def depth_figure(book: Book, run: Run, test: str, model: str, id: str, caption: str, anchor: Result | None = None) -> str:
    """Rate against depth: measured with sigma, the anchored prediction as a line, the roof."""
    found = rows.sweep(book.lab, run, test, model, anchor)
    kind = "decode_depth" if test.startswith("tg") else "prefill_depth"
    return figure(book, id, kind, found, caption, depth_label(found, test))


def depth_label(found: list[dict], test: str) -> str:
    """What a chart of rates against depth shows, in words."""
    what = "Decode" if test.startswith("tg") else "Prefill"
    points = "; ".join(
        f"depth {r['depth_tokens']:,}: measured {r['measured_tok_s']:.1f}" + (f", predicted {r['predicted_tok_s']:.1f}" if r["predicted_tok_s"] > 0 else "")
        for r in found
    )
    return f"{what} rate in tokens per second against context depth. {points}."


def bandwidth_figure(book: Book, entries: list[tuple[str, Run, Result]], id: str, caption: str) -> str:
    """Bandwidth each backend or format really pulled, against the roof."""
    found = rows.bandwidth(book.lab, entries)
    return figure(book, id, "backend_bars", found, caption, bandwidth_label(found))


def bandwidth_label(found: list[dict]) -> str:
    """What a chart of bandwidths pulled shows, in words."""
    return "Bandwidth in GB/s against the roof. " + "; ".join(
        f"{r['label']}: {r['achieved_gb_s']:.1f} of {r['roof_gb_s']:.0f}" for r in found
    )


def ratio_figure(book: Book, scores: list[Score], id: str, caption: str, csv: str = "") -> str:
    """Measured over predicted for every scored number of an ink; `csv` as `ink_table`."""
    found = rows.ink([s for s in scores if s.gap is not None])
    label = "Measured over predicted. " + "; ".join(
        f"{s.prediction.quantity}: {s.verdict}" for s in scores if s.measured
    )
    return figure(book, id, "predicted_measured", found, caption, label, csv)


def shares_table(book: Book, resting: list[tuple[Run, Result]], id: str, caption: str) -> str:
    """Share of the roof by the napkin and by exact work, side by side, of what `rows.at_rest` found."""
    found = [row for row in rows.shares(book.lab, resting) if math.isfinite(row["first_order"])]
    cells = [
        {
            "test": _noted(row["test"], f"{book.lab.models[row['model']].name}, {row['backend']}"),
            "first": percent(row["first_order"], decimals=0).text,
            "exact": percent(row["exact"], decimals=0).text,
        }
        for row in found
    ]
    columns = [Column("test", "Test"), Column("first", "First order", "right"), Column("exact", "Exact work", "right")]
    return table(book, id, columns, cells, found, caption)


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
    return table(book, id, columns, cells, rows.pairs(check), caption)


def trials_table(book: Book, name: str, id: str, caption: str) -> str:
    """Faults done on purpose: what, how often, and what was lost."""
    document = book.lab.get("trials", name)
    keys = ("fault", "command", "times", "hit", "lost", "half", "went_on", "outcome")
    found = [{k: getattr(t, k) for k in keys} for t in document.trials]
    cells = [{k: number(v, 0) if isinstance(v, int) else v for k, v in row.items()} for row in found]
    for cell, trial in zip(cells, document.trials, strict=True):
        if trial.planned:  # broken off: what is left to do is said
            cell["times"] += f" of {number(trial.planned, 0)}"
    columns = [Column("fault", "What was done"), Column("command", "To"), Column("times", "Times", "right"), Column("hit", "In time", "right"),
               Column("lost", "Lost", "right"), Column("half", "Half-written", "right"), Column("went_on", "Went on", "right"), Column("outcome", "Outcome")]  # fmt: skip
    return table(book, id, columns, cells, found, caption)


def waits_table(book: Book, document: Latency, id: str, caption: str) -> str:
    """Time to first token by length of the prompt."""
    found = rows.waits(document)
    cells = [{"n": number(r["n_prompt"], 0), "wait": Value(r["mean_s"], "s", "measured", sigma=r["sigma_s"]).text,
              "rate": number(r["rate_tok_s"], decimals_for(r["rate_tok_s"])), "reps": str(r["n"])} for r in found]  # fmt: skip
    columns = [Column("n", "Prompt [tokens]", "right"), Column("wait", "Time to first token", "right"),
               Column("rate", "Prompt tokens ÷ wait [tok/s]", "right"), Column("reps", "n", "right")]  # fmt: skip
    return table(book, id, columns, cells, found, caption)


def seal(book: Book, ink: str, runs: list[Run] | None = None, scores: list[Score] | None = None) -> Markup:
    """The seal: inked when, measured when, unaltered, and the score in words; of all runs on the ink and its scores, where none are given.

    Ink or a run with a changed byte does not load (`macros.labdata`), so a page that shows this block has checked it.
    """
    lab = book.lab
    document = lab.get("inks", ink)
    runs = lab.runs_on(ink) if runs is None else runs
    count = len(document.predictions)
    later = lab.seals.get(f"ink/{ink}")
    taken = lab.withdrawn.get(f"ink/{ink}")
    gone = sum(r.ink is not None and r.ink.id == ink for r in lab.withdrawn_runs(document.machine))
    parts = [
        f"Inked {hour(document.dry_at) if document.dry_at else 'before measuring, hour not recorded'}",
        f"measured {_span(runs)}" if runs else "not measured yet",
        f"{count} prediction{'s' if count != 1 else ''}",
        "unaltered" + (f", sealed later ({later.at:%-d %B %Y})" if later else " since"),
        *([f"{gone} run{'s' if gone > 1 else ''} withdrawn"] if gone else []),
        *([f"ink withdrawn {hour(taken.at)}: {taken.because}"] if taken else []),
        *([tally_words(compare.scores(lab, ink, runs) if scores is None else scores)] if runs else []),
    ]
    note = notes.facts(f"The seal of ink {escape(ink)}", (
        ("Written", document.written_note or ""), ("Sealed later", f"{later.because}." if later else ""),
        ("SHA-256", lab.ink_sha256[ink]), ("File", f"labdata/ink/{ink}.yml"),
        ("See", Markup(f'<a href="{book.link("method/")}#seal">what a seal shows</a>'))))  # fmt: skip
    words = [notes.refer(part, "v", note) if part.startswith("unaltered") else escape(part) for part in parts]
    return Markup(f'<p class="seal"><span>{" · ".join(words)}</span></p>')


def _span(runs: list[Run]) -> str:
    """When some runs began: one hour, or the first and the last."""
    hours = sorted(r.started_at for r in runs if r.started_at)
    if not hours:
        return "on a day not recorded"
    return hour(hours[0]) + (f" to {hour(hours[-1])}" if len(hours) > 1 else "")
