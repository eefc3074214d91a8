"""What a day or a machine comes to, said once: pages, posts, feed and cards read it, and `summary.json` is it on disk."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from dataclasses import dataclass, field
from typing import Any

from macros import compare, headlines, predict, rows, surprises
from macros.cards import Machine
from macros.compare import Score
from macros.headlines import Reading
from macros.inked import measured_value
from macros.labdata import Lab
from macros.narrative import Book, Day, gap_text, remark, tally_words
from macros.pictures import Words
from macros.reckoned import Reckoned
from macros.records import Run
from macros.values import Value, percent

SCHEMA = 1  # of summary.json
FILE = "summary.json"
FORMULA = "tokens per second ≤ memory bandwidth ÷ (file size + tokens in context × KV cache per token)"
NO_INK = "Nothing was predicted first."


@dataclass(frozen=True)
class Scored:
    """One prediction with its score: as printed, and as numbers in its unit (None: there is none).

    Args:
        kind: ceiling, point, interval, ratio, ordering or direction
        inked: as printed; a ceiling says "at most"
        sentence: what was inked and what was measured, in words
        gap: measured / predicted − 1 (fraction)
        remark: "not distinguishable", where noise hides the difference
    """

    id: str
    quantity: str
    kind: str
    unit: str
    because: str
    inked: str
    predicted: float | None
    predicted_low: float | None
    predicted_high: float | None
    measured: str
    measured_mean: float | None
    measured_sigma: float | None
    n: int | None
    gap: float | None
    gap_text: str
    verdict: str
    remark: str
    sentence: str
    run: str | None


@dataclass(frozen=True)
class Summary:
    """A day ("report") or a machine in the few lines that travel.

    Args:
        kind: "report" or "machine"
        id: the ink's name, or the machine's
        label: "Day 1 of 45", or "Machine"
        number: the day's; None: a machine
        address: its page below the site's root
        question, headline, next: sentences, plain; empty where there is none
        brief: the headline in a line
        inked, measured: its two numbers, as printed; empty where there is none
        formula: the one a reader can use at home
        worked: that formula with this machine's numbers, empty where its model is not known
        inked_at, measured_at: ISO 8601, UTC; None: not recorded
        note: what every number is under (synthetic weights, no ink)
        score: the tally in words; counts: the same as numbers
        best_hit, worst_miss: ids among the predictions; None: there is none
        surprises: candidates, the largest first, as {prediction, what, sentence}
        values: every number the page's prose states, as {text, n, unit, sigma, kind, how}
    """

    kind: str
    id: str
    title: str
    label: str
    number: int | None
    address: str
    machine: str
    machine_name: str
    chip: str
    models: list[str]
    question: str
    headline: str
    brief: str
    inked: str
    measured: str
    note: str
    inked_at: str | None
    measured_at: str | None
    score: str
    counts: dict[str, int]
    predictions: list[Scored]
    best_hit: str | None
    worst_miss: str | None
    surprises: list[dict[str, str]]
    formula: str
    worked: str
    next: str
    values: list[dict[str, Any]] = field(default_factory=list)
    schema: int = SCHEMA

    def prediction(self, name: str | None) -> Scored | None:
        """One prediction by its id; None where there is none."""
        return next((p for p in self.predictions if p.id == name), None)

    def sentences(self) -> list[str]:
        """What the summary says in sentences of its own, computed and so true as they stand."""
        said = (self.question, self.headline, self.brief, self.note, self.next, self.formula, *(p.sentence for p in self.predictions), *(s["sentence"] for s in self.surprises))
        return [s for s in said if s]

    @property
    def best(self) -> Scored | None:
        return self.prediction(self.best_hit)

    @property
    def worst(self) -> Scored | None:
        return self.prediction(self.worst_miss)

    def as_json(self) -> str:
        """The file: one key a line, the same bytes for the same rows."""
        document = {"schema": self.schema} | {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "schema"}
        document["predictions"] = [vars(p) for p in self.predictions]
        return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def leading(scores: list[Score]) -> Score | None:
    """What a day's headline is about: the first ceiling that was measured, else the first prediction that was."""
    known = [s for s in scores if s.measured and s.run]
    return next((s for s in known if s.prediction.kind == "ceiling"), known[0] if known else None)


def day_headline(scores: list[Score]) -> str:
    """A day in a sentence."""
    first = leading(scores)
    if first is None or first.measured is None:
        return ""
    p = first.prediction
    share = f", {percent(first.utilisation, decimals=0).text} of that roof" if first.utilisation is not None else ""
    return f"{p.quantity}: {surprises.inked_words(p)} in ink, {measured_value(p, first.measured).text} measured{share}."


def scored(s: Score) -> Scored:
    """A score as the page prints it and as numbers."""
    p, m = s.prediction, s.measured

    def known(x: float | None) -> float | None:
        return None if x is None or math.isnan(x) else x

    inked, shown = surprises.inked_words(p), measured_value(p, m).text if m else "not measured"
    return Scored(
        id=p.id, quantity=p.quantity, kind=p.kind, unit=p.unit, because=p.because, inked=inked, predicted=p.value,
        predicted_low=p.low, predicted_high=p.high, measured=shown,
        measured_mean=m.mean if m else None, measured_sigma=known(m.sigma) if m else None, n=m.n if m else None, gap=known(s.gap),
        gap_text=gap_text(s), verdict=s.verdict, remark=remark(s), sentence=f"{surprises.said(p, inked, shown)}." if m else f"{p.quantity}: not measured.",
        run=s.run.id if s.run else None)  # fmt: skip


def lacking(book: Book, day: Day) -> list[str]:
    """What a day needs before there is anything to say of it; empty where it has it all."""
    if not day.ink:
        return ["ink: the day's page names none"]
    if day.ink not in book.lab.inks:
        return [f"ink: {day.ink} is not sealed yet; make ink CLOSE=1 seals it"]
    plan = book.lab.inks[day.ink].plan
    return [] if book.lab.runs_on(day.ink) else [f"results: no run on ink {day.ink} yet; make bench{f' PROFILE={plan}' if plan else ''} makes one"]


def of_day(book: Book, day: Day) -> Summary:
    """A day's summary.

    Raises:
        LabError: its ink is unknown or still open.
    """
    ink = book.lab.get("inks", day.ink)
    runs = book.lab.runs_on(day.ink)
    scores = compare.scores(book.lab, day.ink, runs)
    label = f"Day {day.number}" + (f" of {book.series_days}" if day.number <= (book.series_days or 0) else "")
    said = [as_dict(v) for v in book.said.get(day.address, {}).values()]
    first = leading(scores)
    pair = (surprises.inked_words(first.prediction), measured_value(first.prediction, first.measured).text) if first and first.measured else ("", "")
    machine = book.lab.machines[ink.machine]
    return _summary(book, machine, runs, scores, kind="report", id=day.ink, title=day.title, label=label, number=day.number, address=day.address,
                    question=day.question, headline=day_headline(scores), brief=day_headline(scores), inked=pair[0], measured=pair[1], next=day.next, formula=day.formula or FORMULA, values=said)  # fmt: skip


def of_machine(book: Book, name: str, run: Run | None = None, own: Reckoned | None = None, reading: Reading | None = None) -> Summary:
    """A machine's summary, or that of one of its runs: its newest ink with results, scored.

    Args:
        own, reading: what its runs come to and what they say of it, where that is at hand

    Raises:
        LabError: no such machine.
    """
    machine = book.lab.get("machines", name)
    own = own or Reckoned(book.lab, name)
    runs = [run] if run else own.runs
    inked = [r for r in runs if r.ink]
    mine = [r for r in inked if r.ink.id == inked[-1].ink.id]  # type: ignore[union-attr]
    scores = (own.all_scores(mine[0].ink.id) if mine and not run else None) or of_runs(book.lab, inked)  # type: ignore[union-attr]
    found = reading or headlines.read(book, machine, runs)
    line = found.headline
    values = [as_dict(v) for v in line.parts if isinstance(v, Value)]
    return _summary(book, machine, mine or runs, scores, kind="machine", id=run.id if run else name, title=machine.name, label="Machine", number=None,
                    address=f"machines/{name}/", question=f"What should {machine.name} decode, and what does it?",
                    headline=line.text, brief=found.brief.text, inked=f"at most {found.top.text}" if found.top else "", measured=found.rate.text if found.rate else "", next="", formula=FORMULA, values=values)  # fmt: skip


def of_runs(lab: Lab, runs: list[Run]) -> list[Score]:
    """The newest ink of some runs, scored on them; one run alone is compared with the others on its ink, and only what it measured counts."""
    inked = [r for r in runs if r.ink]
    if not inked:
        return []
    ink = inked[-1].ink.id  # type: ignore[union-attr]
    others = [r for r in lab.runs_on(ink) if r not in inked]
    known = compare.scores(lab, ink, [*others, *(r for r in inked if r.ink.id == ink)])  # type: ignore[union-attr]
    return [s for s in known if s.run in inked] if len(runs) == 1 and others else known


def _summary(book: Book, machine: Machine, runs: list[Run], scores: list[Score], **head: Any) -> Summary:
    found = surprises.candidates(scores)
    wrong = [c for c in found if c.what in ("miss", "broken ceiling", "broken direction")]
    models = list(dict.fromkeys(r.model for run in runs for r in run.results))
    notes = [*(["Synthetic weights: random bits in the real model's shapes."] if any(book.lab.models[m].weights == "synthetic" for m in models) else []),
             *([NO_INK] if runs and not scores else [])]  # fmt: skip
    inks = [book.lab.inks[r.ink.id] for r in runs if r.ink and r.ink.id in book.lab.inks]
    hours = sorted(r.started_at for r in runs if r.started_at)
    return Summary(
        **head, machine=machine.id, machine_name=machine.name, chip=machine.chip, models=[headlines.short(book.lab.models[m].name) for m in models], note=" ".join(notes),
        inked_at=inks[-1].dry_at.isoformat() if inks and inks[-1].dry_at else None, measured_at=hours[-1].isoformat() if hours else None,
        score=tally_words(scores), counts=compare.tally(scores), predictions=[scored(s) for s in scores],
        best_hit=next((c.prediction for c in found if c.what == "best hit"), None), worst_miss=wrong[0].prediction if wrong else None,
        surprises=[{"prediction": c.prediction, "what": c.what, "sentence": c.sentence} for c in found], worked=_worked(book, machine, runs))  # fmt: skip


def _worked(book: Book, machine: Machine, runs: list[Run]) -> str:
    """The formula on an empty context with a machine's own numbers."""
    hit = headlines.best_decode(book.lab, runs)
    if hit is None or not rows.explained(book.lab, *hit):
        return ""
    card = book.lab.models[hit[1].model]
    ceiling = Value(predict.decode_ceiling_tok_s(machine, card), "tok/s", "predicted")
    return f"{book.machine(machine.id).bandwidth.text} ÷ {book.model(card.id).file.text} = {ceiling.text} at most"


def picture_words(summary: Summary) -> Words:
    """A summary as a picture says it."""
    predicted = summary.inked.replace("at most ", "≤ ")
    score = re.sub(r"(?<=\d) ", "\u00a0", summary.score)  # a count stays with what it counts
    return Words(summary.label, summary.title, predicted, summary.measured, score, f"Inklab · {summary.chip}")


def as_dict(value: Value) -> dict[str, Any]:
    """A Value as JSON holds it."""
    return {"text": value.text, "n": value.n, "unit": value.unit, "sigma": value.sigma, "kind": value.kind, "how": value.how}


def publish(book: Book, found: Summary) -> Summary:
    """A summary, its file beside the page it is of."""
    book.publish(f"{found.address}{FILE}", found.as_json())
    return found


def days(book: Book) -> list[Summary]:
    """The summary of each day that has results, their files published."""
    return [publish(book, of_day(book, d)) for d in book.days if not lacking(book, d)]
