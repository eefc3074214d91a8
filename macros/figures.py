"""Figures that place results: under both roofs, against the ink, the CPU beside the GPU, formats beside each other."""

from __future__ import annotations

import math

from macros import exhibits, figure_rows, predict, rows
from macros.compare import Score, rate
from macros.evidence import figure
from macros.labdata import Lab
from macros.narrative import Book
from macros.pictures import Chart
from macros.records import Result, Run
from macros.values import THIN, Value, decimals_for, number, percent

PICTURE_BARS = 3  # more than these are too small to read on a phone
LEAST_PUBLIC = 10  # rows of a format, for its spread to say something


def picture_chart(lab: Lab, runs: list[Run]) -> Chart | None:
    """The one chart of a day's or a machine's picture: decode against depth, else the bandwidth decode pulled, else none."""
    deep = [(run, r) for run in runs for r in run.results if r.n_gen and r.depth and not r.mixed and rate(r) and rows.explained(lab, run, r)]
    if deep:
        run, r = max(deep, key=lambda hit: hit[1].depth)
        found = rows.sweep(lab, run, r.test, r.model)
        return Chart("decode_depth", found, exhibits.depth_label(found, r.test))
    reached = [(run, r) for run, r in rows.at_rest(lab, runs) if r.n_gen]
    names = _short([f"{r.backend}, {lab.models[r.model].name.removesuffix(', synthetic weights')}" for _, r in reached])
    found = rows.bandwidth(lab, [(name, run, r) for name, (run, r) in zip(names, reached, strict=True)][-PICTURE_BARS:])
    return Chart("backend_bars", found, exhibits.bandwidth_label(found)) if found else None


def _short(labels: list[str]) -> list[str]:
    """Labels "decode, Qwen3-8B Q4_K_M" without the words all models share."""
    if not labels:
        return []
    parts = [label.partition(", ") for label in labels]
    names = [name.split(" ") for _, _, name in parts]
    while len({tuple(n) for n in names}) > 1 and len({n[0] for n in names}) == 1:
        names = [n[1:] for n in names]
    if len({tuple(n) for n in names}) == 1:
        return [what for what, _, _ in parts]
    return [f"{what}, {' '.join(name)}" for (what, _, _), name in zip(parts, names, strict=True)]


def roofline(book: Book, runs: list[Run], scores: list[Score], id: str, caption: str) -> str:
    """The machine's two roofs, and prefill and decode under them; empty where nothing can be placed."""
    found = figure_rows.roofline(book.lab, runs, scores)
    if not found:
        return ""
    found = [{**row, "label": label} for row, label in zip(found, _short([row["label"] for row in found]), strict=True)]
    peak = found[0]["peak_flops_s"]
    roofs = f"Memory roof {number(found[0]['bandwidth_bytes_s'] / 1e9, 1)} GB/s" + (f", compute roof {number(peak / 1e9, 0)} GFLOP/s" if peak > 0 else ", no compute roof known")
    points = "; ".join(f"{r['label']}: {_giga(r['measured_flops_s'])} GFLOP/s at {r['flops_per_byte']:.3g} FLOPs per byte" + (f", inked {_giga(r['predicted_flops_s'])}" if r["predicted_flops_s"] > 0 else "") for r in found)
    return figure(book, id, "roofline", found, caption, f"Roofline on log axes. {roofs}. {points}.")


def _giga(x: float) -> str:
    return number(x / 1e9, decimals_for(x / 1e9))


def inked_scatter(book: Book, scores: list[Score], id: str, caption: str) -> str:
    """Measured against inked rates; empty where the ink has none."""
    found = figure_rows.inked_rates(scores)
    if not found:
        return ""
    points = "; ".join(f"{r['quantity']}: inked {r['as_written']}, measured {number(r['measured'], decimals_for(r['measured']))}, {r['verdict']}" for r in found)
    return figure(book, id, "inked_scatter", found, caption, f"Measured against inked rates in tokens per second on log axes. {points}.")


def backend_ratios(book: Book, scores: list[Score], id: str, caption: str) -> str:
    """The CPU alone over the GPU, beside the inked words; empty where the ink has no such words."""
    found = figure_rows.without_gpu(book.lab, scores)
    if not found:
        return ""
    points = "; ".join(f"{r['quantity']}: {number(r['measured'], 2)} of the GPU's rate, inked “{r['as_written']}”, {r['verdict']}" for r in found)
    return figure(book, id, "backend_ratios", found, caption, f"CPU rate over GPU rate. {points}.")


def format_shares(book: Book, entries: list[tuple[Run, Result]], id: str, caption: str) -> str:
    """Share of the memory roof by format: public rows of dense decode on GPUs, and results of this lab.

    Args:
        entries: a result of a format each
    """
    public, own = public_shares(), {}
    for run, r in entries:
        card, m = book.lab.models[r.model], rate(r)
        if m is not None and card.quant:
            ceiling = predict.decode_ceiling_tok_s(book.lab.machines[run.machine], card)
            own[card.quant] = (m.mean / ceiling, m.sigma / ceiling)
    nothing = {"n": 0, **dict.fromkeys(figure_rows.PERCENTILES, math.nan)}
    public += [{"label": quant, **nothing} for quant in own if quant not in {row["label"] for row in public}]
    found = [{**row, **dict(zip(("own", "own_sigma"), own.get(row["label"], (math.nan, math.nan)), strict=True))} for row in public]
    found.sort(key=lambda row: -row["median"] if row["n"] else math.inf)
    return figure(book, id, "format_shares", found, caption, f"Share of the memory roof that decode reached, by weight format. {'; '.join(map(_share, found))}.")


def public_shares() -> list[dict]:
    """How much of the memory roof public rows of dense decode on GPUs reached, by format; keys: those of `figure_rows.spread`."""
    from macros import accuracy

    public = [r for r in accuracy.of_phase("decode") if r["kind"] == "dense" and r["depth"] == "at 0" and r["family"] != "CPU"]
    return figure_rows.spread([r["measured_tok_s"] / r["spec_tok_s"] for r in public], [r["quant"] for r in public], LEAST_PUBLIC)


def public_share(quant: str) -> Value:
    """The median share of the memory roof of a format's public rows.

    Raises:
        ValueError: too few rows.
    """
    known = {row["label"]: row for row in public_shares()}
    if quant not in known:
        raise ValueError(f"labdata/corpus/measurements.csv: fewer than {LEAST_PUBLIC} rows of dense decode on a GPU; got {quant!r}; known: {', '.join(known)}")
    return percent(known[quant]["median"], decimals=0, how=f"median of {known[quant]['n']} public rows: rate × bytes / bandwidth")


def _share(row: dict) -> str:
    public = f"median {100 * row['median']:.0f}{THIN}% of {row['n']} public rows" if row["n"] else "no public rows"
    return f"{row['label']}: {public}" + (f", this machine {100 * row['own']:.0f}{THIN}%" if row["own"] > 0 else "")
