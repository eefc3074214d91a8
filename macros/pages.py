"""Pages generated from labdata: one a machine, and the lists of machines and days."""

from __future__ import annotations

import operator
import re
from dataclasses import replace

from markdown.extensions.toc import slugify, unique
from markupsafe import Markup, escape

from macros import anchors, compare, evidence, exhibits, figures, headlines, history, notes, paging, rows, tables
from macros.cards import Machine
from macros.compare import Score
from macros.headlines import Reading
from macros.narrative import Book, gap_value, tally_words
from macros.reckoned import Reckoned
from macros.records import Result, Run
from macros.tables import Column
from macros.values import Value, hour, inert, number, percent


_ID = re.compile(r' id="([^"]+)"')


def machine_page(book: Book, name: str, own: Reckoned | None = None, reading: Reading | None = None) -> str:
    """A machine: its roofs, predictions against measurements, depth, conditions, provenance; HTML that no Markdown makes.

    Args:
        own, reading: what its runs come to and what they say of it, where that is at hand
    """
    lab = book.lab
    machine = lab.get("machines", name)
    own = own or Reckoned(lab, name)
    runs, inks = own.runs, list(own.on)
    found = [row for run in runs for row in own.results[run.id]]
    every = [{"ink": ink, **row} for ink, scored in own.scored.items() for row in scored]
    predictions = evidence.publish(book, "predictions", every) if every else ""
    book.sentences[name] = (reading or headlines.read(book, machine, runs)).headline.html
    parts = [
        f'<p class="lead">{book.sentences[name]}</p>',
        *_warnings(found),
        f'<p class="note">Beside the others: <a href="{book.link("compare/")}">Compare</a>. With another model, format or depth: '
        f'<a href="{book.link("predict/")}?machine={name}">Predict</a>.</p>',
        _heading("Roofs", "specs"),
        specs_table(book, machine),
        *_roofline(book, runs, [s for scores in own.scores.values() for s in scores]),
        *(["\n".join(["<ul>", *(f"<li>{inert(note)}</li>" for note in machine.notes), "</ul>"])] if machine.notes else []),
    ]
    for i, ink in enumerate(inks[:WHOLE]):
        parts += _ink_section(book, own, ink, i, predictions)
    if inks[WHOLE:]:
        parts += [_heading("Earlier ink", "earlier"), _earlier(own, inks[WHOLE:], predictions)]
    if any(r.ink is None for r in runs):
        which = "Some runs" if inks else "The runs"
        parts.append(f'<p class="note">{which} here have no ink: no prediction was written first.</p>')
    parts += [*_sweep_section(book, runs, "tg"), *_sweep_section(book, runs, "pp"), *_waits_section(book, name)]
    if runs:
        parts += _bandwidth_section(book, runs)
        parts += [_heading("Raw measurements", "raw"), _measurements(book, runs, found)]
        parts += [_heading("Provenance", "provenance"), *(provenance(book, run) for run in reversed(runs))]
    else:
        parts.append("<p>Not measured yet. <code>make bench</code> on this machine fills this page.</p>")
    gone = lab.withdrawn_runs(name)
    if gone:
        parts += [_heading("Withdrawn", "withdrawn"), "<p>These runs stay in <code>labdata/</code> and count no more.</p>"]
        parts += [provenance(book, run) for run in gone]
    body = "\n".join(parts)
    title = unique(slugify(machine.name, "-"), set(_ID.findall(body)))
    return f'<p class="kicker">Machine</p>\n<h1 id="{title}">{inert(machine.name)}</h1>\n{body}'


def _heading(words: str, id: str) -> str:
    return f'<h2 id="{id}">{words}</h2>'


def _roofline(book: Book, runs: list[Run], scores: list[Score]) -> list[str]:
    """What prefill and decode reached under the roofs, where the roofs say anything."""
    caption = ("Under the roofs, first order: a dot is what was reached, and how much arithmetic each byte read was good for. "
               "On the slope bytes set the pace, under the flat part arithmetic does.")
    return [found] if (found := figures.roofline(book, runs, scores, "roofline", caption)) else []


def _waits_section(book: Book, name: str) -> list[str]:
    """The newest time to first token of each model on a machine."""
    newest = {d.model: d for d in sorted(book.lab.latencies.values(), key=lambda d: d.started_at) if d.machine == name}
    parts = [_heading("Time to first token", "ttft")] if newest else []
    for d in newest.values():
        said = "prompts as text" if d.words else "prompts as token ids: the file has no vocabulary"
        busy = f" Busy machine: {compare.share(d.load_before)} of the cores in use before it." if d.load_before > compare.BUSY_LOAD else ""
        caption = (f"{inert(book.lab.models[d.model].name)}, {inert(d.backend)}, {d.n_threads} threads, {d.started_at:%Y-%m-%d}. From the prompt "
                   f"to the first word of the answer, end to end; {said}. No prediction was written first.{busy}")
        parts.append(exhibits.waits_table(book, d, f"ttft-{d.model}", caption))
    return parts


def _warnings(found: list[dict]) -> list[str]:
    """What every number below is under: synthetic weights, a busy machine, noise, failed tests."""
    words = []
    if any(row["weights"] == "synthetic" for row in found):
        words.append("Synthetic weights: random bits in the real model's shapes and types. Rates depend on shapes and types, not on values.")
    for row in (row for row in found if row["note"]):
        depth = f" at depth {number(row['depth_tokens'], 0)}" if row["depth_tokens"] else ""
        words.append(f"{row['test']}{depth}, {row['model']}: {row['note']} (run {row['run']}).")
    return [f'<p class="note">{inert(w)}</p>' for w in words]


def specs_table(book: Book, machine: Machine) -> str:
    """The machine's specs with where each comes from."""
    entries = [("Memory bandwidth", machine.specs.memory_bandwidth)]
    if machine.specs.peak_compute:
        entries.append((f"Peak compute, {machine.specs.peak_compute.precision}", machine.specs.peak_compute))
    entries += [(f"{o.spec.replace('_', ' ').capitalize()}, cited but not used", o.quantity) for o in machine.other_values]
    if machine.specs.cpu_bandwidth:
        entries.append(("Bandwidth of the CPU cores alone", machine.specs.cpu_bandwidth))
    if machine.specs.memory:
        entries.append(("Memory", machine.specs.memory))
    cells = []
    for words, q in entries:
        source = machine.sources[q.source]
        link = source.url or (f"{REPOSITORY}/blob/main/labdata/raw/{source.raw}" if source.raw and REPOSITORY else None)
        title = f'<a href="{escape(link)}">{escape(source.title)}</a>' if link else escape(source.title)
        note = "; ".join(n for n in (q.note, source.note) if n)
        beside = f' <span class="note">{escape(note)}</span>' if note else ""
        span = f"{q.value:g}–{q.upper:g}" if q.upper else f"{q.value:g}"
        cells.append({"spec": words, "value": f"{span}\u202f{q.unit}", "kind": source.kind,
                      "source": Markup(f"{title}{beside}")})
    columns = [Column("spec", "Spec"), Column("value", "Value", "right"), Column("kind", "Kind"), Column("source", "Source")]
    return tables.html_table(columns, cells)


WHOLE = 2  # newest inks shown prediction by prediction, the newest with its chart; a reader of ten runs wants the last ones
REPOSITORY = ""  # set from mkdocs.yml's repo_url by the glue


def _ink_section(book: Book, own: Reckoned, ink: str, index: int, csv: str) -> list[str]:
    """One ink, scored, which is the so-manieth newest; `csv` links to every ink's."""
    runs, scores = own.on[ink], own.scores[ink]
    tail = "" if index == 0 else f"-{index + 1}"
    document = book.lab.inks[ink]
    parts = [
        _heading(f"Ink against measurement{'' if index == 0 else f', run {runs[-1].id}'}", f"ink{tail}"),
        str(exhibits.seal(book, ink, runs, scores)),
        exhibits.ink_table(book, scores, f"scores{tail}", f"{inert(document.title)} ({tally_words(scores)})", csv),
    ]
    if index == 0 and any(s.gap is not None for s in scores):
        words = "Measured over predicted, for every number that was inked; a ceiling is a bound, so below one is where it should lie."
        parts.append(exhibits.ratio_figure(book, scores, "ratios", words, csv))
    if anchors.of_ink(book.lab, ink):
        words = "Predicted ratios as rates, from the ink alone and re-anchored on a measured rate. The anchor was chosen after measuring."
        parts.append(exhibits.anchor_table(book, ink, f"anchors{tail}", words))
    return parts


def _earlier(own: Reckoned, inks: list[str], csv: str) -> str:
    """Older inks on one line each, the run and the score in words; `csv` links to every scored prediction of the machine."""
    cells = []
    for ink in inks:
        links = (f'<a href="#run-{run.id}">{run.id}</a>' for run in reversed(own.on[ink]))
        cells.append({"run": Markup(", ".join(links)), "score": tally_words(own.scores[ink])})
    link = f'<p class="note">Every prediction of every ink, scored: <a class="csv" href="{escape(csv)}" download>CSV</a></p>'
    return f"{tables.html_table([Column('run', 'Run'), Column('score', 'Score')], cells)}\n{link}"


def _measurements(book: Book, runs: list[Run], found: list[dict]) -> str:
    """The newest run's results of each test and setting, all of them as CSV; `found` are the runs' `rows.results`."""

    setting = operator.itemgetter("experiment", "model", "test", "depth_tokens", "backend", "settings", "origin")
    newest = {setting(row): row["run"] for row in found}
    shown = [row for row in found if newest[setting(row)] == row["run"]]
    words = "Every test, statistics recomputed from the raw samples where they were kept."
    if len(shown) < len(found):
        words = words.replace("Every test", "The newest result of each test", 1) + f" The CSV has all {len(found)}, of {len(runs)} runs."
    return exhibits.results_table(book, runs, "measurements", words, found, shown)


def _sweep_section(book: Book, runs: list[Run], phase: str) -> list[str]:
    """Rate against depth, of the newest run with ink that has it from depth 0 on.

    Args:
        phase: "tg" or "pp", as the names of its tests begin
    """
    for run in reversed(runs):
        deep = [r for r in run.results if run.ink and r.depth and r.failed is None and r.test.startswith(phase)]
        if deep:
            result = max(deep, key=lambda r: r.depth)
            found = rows.sweep(book.lab, run, result.test, result.model)
            if found[0]["depth_tokens"] == 0:
                return _sweep(book, result, found)
    return []


def _sweep(book: Book, result: Result, found: list[dict]) -> list[str]:
    last = found[-1]
    phase, what, law = ("tg", "Decode", "the KV cache's bytes") if result.n_gen else ("pp", "Prefill", "attention's FLOPs")
    kept = last["measured_tok_s"] / found[0]["measured_tok_s"]
    caption = (
        f"{what} rate against context depth, {inert(book.lab.models[result.model].name)}, run {last['run']}. "
        f"At {number(last['depth_tokens'], 0)} tokens {percent(kept, how='rate at depth / rate at 0', decimals=0)} "
        f"of the rate at depth 0 is left; {law} alone, anchored at depth 0, put it {_side(last['gap'])}."
    )
    figure = evidence.figure(book, f"{phase}-chart", f"{what.lower()}_depth", found, caption, exhibits.depth_label(found, result.test))
    return [_heading(f"{what} against depth", f"{phase}-depth"), figure]


def _side(gap: float) -> str:
    """Where a prediction stood relative to the measurement, in words that hold for any number."""
    size = gap_value(-gap / (1 + gap))  # predicted / measured - 1
    words = "too high" if gap < 0 else "too low"
    return f"{Value(abs(size.n), '%', 'derived', decimals=size.decimals, how='predicted / measured − 1')} {words}"


def _bandwidth_section(book: Book, runs: list[Run]) -> list[str]:
    resting = rows.at_rest(book.lab, runs)
    entries = [(f"{headlines.short(book.lab.models[r.model].name)}, {r.backend}", run, r) for run, r in resting if r.n_gen]
    if not entries:
        return []
    caption = "Bandwidth that decode really pulled at depth 0: rate × bytes per step, first order. The roof is the machine's memory bandwidth."
    shares = ("Share of the roof at depth 0. First order takes the whole file and two FLOPs per parameter; exact work counts "
              "the bytes and FLOPs of the tensor table.")
    return [
        _heading("What was really reached", "reached"),
        exhibits.bandwidth_figure(book, entries, "bandwidth-chart", caption),
        exhibits.shares_table(book, resting, "shares", shares),
    ]


def provenance(book: Book, run: Run) -> str:
    """Run id, date, instrument, host, command to repeat."""
    when = hour(run.started_at) if run.started_at else "date not recorded"
    host = run.host
    facts = {
        "Run": run.id,
        "Measured": when,
        "Instrument": " ".join(filter(None, (run.instrument.name, run.instrument.version))),
        **({} if run.instrument.protocol == "llama-bench" else {"Clock": run.instrument.protocol}),
        "Engine": f"{run.instrument.engine}, {run.instrument.engine_version or 'build not recorded'}",
        "Host": ", ".join(filter(None, (host.os, host.kernel, host.cpu, f"{host.physical_cores} cores" if host.physical_cores else None, *host.gpus))) or "not recorded",
        "Power": host.power or "not recorded",
        "Ink": f"{run.ink.id}, SHA-256 {run.ink.sha256[:12]}…" if run.ink else "none: no prediction was written first",
        "Repeat": run.command,
    }
    tried = {r.label for r in run.results}
    missing = [t for t in run.planned if t not in tried]
    if missing:
        facts["Not run"] = "; ".join(missing)
    for note in run.notes:
        facts["Note"] = f"{facts['Note']} {note}" if "Note" in facts else note
    name = f"runs/{run.machine}/{run.id}"
    if name in book.lab.seals:
        later = book.lab.seals[name]
        facts["Seal"] = f"unaltered since {later.at:%-d %B %Y}; sealed later: {later.because}"
    else:
        facts["Seal"] = "unaltered since it was written"
    remembered = history.order(book.firsts, run)
    if remembered:
        facts["Git"] = remembered
    if name in book.lab.withdrawn:
        taken = book.lab.withdrawn[name]
        facts["Withdrawn"] = f"{hour(taken.at)}: {taken.because}"
    return notes.described(list(facts.items()), f' class="provenance" id="run-{escape(run.id)}"')


def machine_index(book: Book, page: int = 1) -> str:
    """Machines on one line each, a hundred a page, newest baseline decode against its roof; on the first page the models too."""
    cells = []
    machines = sorted(book.lab.machines.values(), key=lambda m: m.name)
    for machine in paging.cut(machines, page):
        best = book.decodes[machine.id] if machine.id in book.decodes else headlines.read(book, machine, book.lab.runs_of(machine.id)).decode
        rate = replace(best.rate, href=book.link(f"machines/{machine.id}/#run-{best.run}")).linked if best else exhibits.NOT_MEASURED
        cells.append({"machine": Markup('<a href="{}">{}</a>').format(book.link(f"machines/{machine.id}/"), machine.name),
                      "roof": book.machine(machine.id).bandwidth.linked, "model": best.model if best else "", "decode": rate, "share": best.share if best else ""})
    columns = [Column("machine", "Machine"), Column("roof", "Memory roof", "right"), Column("model", "Model"),
               Column("decode", "Decode", "right"), Column("share", "Of the roof", "right")]
    parts = [tables.html_table(columns, cells), *paging.links(book, len(machines), page)]
    if page == 1:
        parts += ["## Models {#models}", _models(book)]
    return "\n\n".join(parts)


def _models(book: Book) -> str:
    used = book.lab.models_run
    cells = []
    for card in sorted(book.lab.models.values(), key=lambda m: m.id):
        if card.id not in used:
            continue
        view = book.model(card.id)
        if card.shape is None:  # as a log reported it
            told = {"params": view.params.text if card.params else "not told", "file": view.file.text if card.file_size else "not told"}
            cells.append({"model": Markup('<span id="model-{}">{}</span>').format(card.id, card.name), **told, "bits": "", "step": "", "kv": ""})
            continue
        cells.append({"model": Markup('<span id="model-{}">{}</span>').format(card.id, card.name), "file": view.file.text,
                      "params": view.params.text, "bits": view.bits.text, "step": view.exact_step_bytes().text,
                      "kv": view.kv_token.to("KiB").text})
    columns = [Column("model", "Model"), Column("params", "Parameters", "right"), Column("file", "Weights", "right"),
               Column("bits", "Per weight", "right"), Column("step", "Streamed a token", "right"), Column("kv", "KV cache a token", "right")]
    return tables.html_table(columns, cells)
