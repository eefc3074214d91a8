"""The accuracy page's tables and figures: views of `macros.accuracy`, with the CSV beside each."""

from __future__ import annotations

import math
import statistics

from markupsafe import Markup

from macros import accuracy, calibration, figure_rows, noise
from macros.evidence import figure, table
from macros.narrative import Book
from macros.tables import Column
from macros.values import THIN, Value, decimals_for, number, percent

PREDICTED = "held out: fitted without any row of the chip"
KEPT = 0.05  # how far from its level a class's coverage may lie: the aim


def facts() -> dict:
    """The page's numbers, each a Value."""
    head = accuracy.headline()
    floor, own = accuracy.noise_floor(), calibration.fitted()["own_held_out"]
    same = [*own["same phase, same format"].values(), *own["same phase, other format"].values()]

    def share(x: float, how: str = PREDICTED, decimals: int = 1) -> Value:
        return percent(float(x), how=how, decimals=decimals)

    return {
        **{name: {k: share(v) for k, v in part.items() if k not in ("rows", "chips")} | {"rows": int(part["rows"]), "chips": int(part["chips"])}
           for name, part in head.items() if name != "mixed"},
        "scored": len(accuracy.scored()), "refused": len(calibration.rows()) - len(accuracy.scored()), "mixed": int(head["mixed"]["rows"]),
        "by_chip": {phase: share(x, f"{PREDICTED}; the median over chips of each one's median") for phase, x in accuracy.by_chip().items()},
        "noise": {phase: share(floor[phase], "two posts of one test on one chip") for phase in ("decode", "prefill")}, "noise_pairs": int(floor["pairs"]),
        "noise_sigma": share(floor["sigma"], "σ over mean, as posted"),
        "own_same": share(statistics.median(same), "one own row of the same phase; the median over machines of each one's median"),
        "own_other": share(statistics.median(own["other phase"].values()), "one own row of the other phase"),
        "own_machines": len(set().union(*own.values())),
        "age": {k: percent(v, how="rate of a May 2024 build over a new one's, as fitted, CUDA", decimals=0) for k, v in accuracy.age_effect().items()},
        "width": {phase: Value(x, "×", "derived", decimals=2, how="upper over lower end of the interval, median over rows") for phase, x in accuracy.widths().items()},
        "level": percent(calibration.LEVEL, "spec", 0),
        **_classes_kept(),
        "coefficients": len(calibration.fitted()["coefficients"]),
    }  # fmt: skip


def _classes_kept() -> dict:
    """Classes of at least LEAST_ROWS rows: how many hold 80 ± 5 % of their rows, how many would if each row were held with
    80 % by chance alone, and which others their number of rows tells from 80 %."""
    large = [c for c in accuracy.by_class() if c["rows"] >= accuracy.LEAST_ROWS]
    words: dict[str, list[str]] = {"off": [], "maybe_off": []}
    for c in large:
        if abs(c["coverage"] - calibration.LEVEL) > KEPT + 1e-9:  # 72 of 96 are 75 %
            chance = c["coverage_low"] <= calibration.LEVEL <= c["coverage_high"]
            words["maybe_off" if chance else "off"].append(f"{c['class']} {_coverage(c)}, {_percent(c['one_chip'], 0)} of its rows one chip’s")
    by_chance = sum(noise.share_within(c["rows"], calibration.LEVEL, KEPT) for c in large)
    return {"classes": len(large), "classes_kept": len(large) - sum(map(len, words.values())), "classes_by_chance": round(by_chance),
            **{name: "; ".join(found) for name, found in words.items()}}  # fmt: skip


def _coverage(row: dict) -> str:
    """Share of rows in their interval, with the 95 % interval of that share."""
    return f"{_percent(row['coverage'], 0)} ({number(100 * row['coverage_low'], 0)}–{number(100 * row['coverage_high'], 0)})"


def _percent(x: float, decimals: int = 1) -> str:
    return number(100 * x, decimals) + f"{THIN}%" if not math.isnan(x) else "–"


def score_table(book: Book, phase: str, id: str, caption: str) -> str:
    """Error, bias and coverage by class, the naive baselines on the same rows beside them."""
    found = [c for c in accuracy.by_class() if c["class"].startswith(phase)]
    cells = [
        {
            "class": r["class"].removeprefix(f"{phase}, ").replace(phase, "all").replace("deep", "depth over 0").replace("at 0", "depth 0"),
            "rows": Markup('{} <span class="note">{} chips</span>').format(r["rows"], r["chips"]),
            "median": _percent(r["median"]), "p90": _percent(r["p90"], 0), "bias": _percent(r["bias"]),
            "coverage": _coverage(r), "naive": _percent(r["naive"], 0), "flat": _percent(r["flat"], 0), "groups": _percent(r["groups"], 0),
        }
        for r in found
    ]  # fmt: skip
    columns = [
        Column("class", phase.capitalize()), Column("rows", "Rows", "right"), Column("median", "Median error", "right", "predicted"),
        Column("p90", "90th percentile", "right"), Column("bias", "Bias", "right"), Column("coverage", "In the interval", "right"),
        Column("naive", "Spec sheet", "right"), Column("flat", "× one factor", "right"), Column("groups", "× group median", "right"),
    ]  # fmt: skip
    return table(book, id, columns, cells, found, caption)


def scatter(book: Book, phase: str, id: str, caption: str) -> str:
    """Measured against predicted for a phase, the furthest machines numbered as in the table of misses."""
    numbers = {row["id"]: str(i) for i, row in enumerate(accuracy.worst(), 1)}
    kept = ("id", "chip", "backend", "model", "quant", "test", "predicted_tok_s", "low80_tok_s", "high80_tok_s", "measured_tok_s", "inside")
    rows = [{**{k: row[k] for k in kept}, "number": numbers.get(row["id"], "")} for row in accuracy.of_phase(phase)]
    label = f"{phase.capitalize()} rate measured against predicted, {len(rows)} rows on log axes; {sum(row['inside'] for row in rows)} lie in their 80 % interval."
    return figure(book, id, "predicted_scatter", rows, caption, label)


def residuals(book: Book, phase: str, id: str, caption: str) -> str:
    """Measured over predicted by backend and by format, classes of at least LEAST_ROWS rows."""
    rows = accuracy.of_phase(phase)
    spread = []
    for by in ("backend", "quant"):
        spread += sorted(figure_rows.spread([r["ratio"] for r in rows], [r[by] for r in rows], accuracy.LEAST_ROWS), key=lambda row: -row["n"])
    points = "; ".join(f"{r['label']}: median {number(r['median'], 2)}, middle 80 % from {number(r['low'], 2)} to {number(r['high'], 2)}" for r in spread)
    return figure(book, id, "residual_spread", spread, caption, f"{phase.capitalize()}, measured over predicted. {points}.")


def worst_table(book: Book, id: str, caption: str) -> str:
    """The furthest machines: what was predicted, what came, the likeliest cause, and what the poster says."""
    far = accuracy.worst()
    cells = [
        {
            "what": Markup('{}. {} <span class="note">{} {}, {}, {}</span>').format(i, r["machine"], r["model"], r["quant"], r["test"], r["backend"]),
            "predicted": number(r["predicted_tok_s"], decimals_for(r["predicted_tok_s"])),
            "measured": number(r["measured_tok_s"], decimals_for(r["measured_tok_s"])),
            "ratio": number(r["ratio"], 2) + "×",
            "cause": Markup('{} <span class="note long">{}</span>').format(r["cause"], "; ".join(part for part in r["notes"].split("; ") if not part.startswith("via "))),
        }
        for i, r in enumerate(far, 1)
    ]
    columns = [
        Column("what", "Machine and test"), Column("predicted", "Predicted", "right", "predicted"),
        Column("measured", "Measured", "right", "measured"), Column("ratio", "Ratio", "right"), Column("cause", "Diagnosis, and the corpus’s note"),
    ]  # fmt: skip
    kept = ["id", "machine", "chip", "backend", "model", "quant", "test", "predicted_tok_s", "low80_tok_s", "high80_tok_s", "measured_tok_s", "cause", "notes", "source_url"]
    return table(book, id, columns, cells, [{k: row[k] for k in kept} for row in far], caption)
