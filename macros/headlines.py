"""A machine in a sentence and in a line: its roof, its decode rate, the share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from markupsafe import Markup

from macros import predict, rows
from macros.cards import Machine
from macros.labdata import Lab
from macros.narrative import Book
from macros.records import Result, Run
from macros.values import Value, percent


@dataclass(frozen=True)
class Sentence:
    """Words with places for Values: coloured and linked on a page, plain in a post.

    Args:
        words: the sentence, `{}` where a part goes
        parts: Values and names, in order
    """

    words: str
    parts: tuple[Any, ...] = ()

    @property
    def html(self) -> Markup:
        return Markup(self.words).format(*self.parts)

    @property
    def text(self) -> str:
        return self.words.format(*(p.text if isinstance(p, Value) else p for p in self.parts))


def best_decode(lab: Lab, runs: list[Run]) -> tuple[Run, Result] | None:
    """The newest baseline decode at depth 0, else any decode the roofs explain, else any at all."""
    hits = [(run, r) for run in runs for r in run.results if r.n_gen and not r.mixed and r.depth == 0 and r.failed is None]
    known = [h for h in hits if rows.explained(lab, *h)]
    base = [h for h in known if h[1].experiment == "baseline"]
    return (base or known or hits or [None])[-1]


class Decode(NamedTuple):
    """A machine's decode in lists of machines: the model's name, the rate, its run's id, its share of the roof in words, empty where none is known."""

    model: str
    rate: Value
    run: str
    share: str


def decode(book: Book, machine: Machine) -> Decode | None:
    """A machine's best-known decode; None: none was measured."""
    hit = best_decode(book.lab, book.lab.runs_of(machine.id))
    if hit is None:
        return None
    run, r = hit
    card, rate = book.lab.models[r.model], book.rate_of(run, r)
    known = rows.explained(book.lab, run, r)
    return Decode(card.name, rate, run.id, percent(rate.n / predict.decode_ceiling_tok_s(machine, card), decimals=0).text if known else "")


def headline(book: Book, machine: Machine, runs: list[Run]) -> Sentence:
    """A machine in a sentence or two: the roof, the rate, the share."""
    roof = book.machine(machine.id).bandwidth
    source = machine.sources[machine.specs.memory_bandwidth.source]
    promise = "A probe measured" if source.kind == "measured" else "Its spec sheet promises"
    hit = best_decode(book.lab, runs)
    if hit is None:
        left = "No decode on an empty context has been measured yet." if runs else "Nothing has been measured yet."
        return Sentence(f"{promise} {{}} of memory bandwidth. {left}", (roof,))
    name, rate, alone = _model(book, hit[1]), book.rate_of(*hit), _alone(*hit)
    top, share = roofed(book, machine, hit)
    if top is None:
        return Sentence(f"{promise} {{}} of memory bandwidth. {{}} decodes at {{}}{alone}; what it should do is not computed for it.", (roof, name, rate))
    return Sentence(f"{promise} {{}} of memory bandwidth, so {{}} may decode at {{}} at most. It decodes at {{}}{alone}: {{}} of that roof.", (roof, name, top, rate, share))


def brief(book: Book, machine: Machine, runs: list[Run]) -> Sentence:
    """A machine in a line: model, roof, rate."""
    hit = best_decode(book.lab, runs)
    if hit is None:
        return headline(book, machine, runs)
    top, share = roofed(book, machine, hit)
    first = (_model(book, hit[1]), book.rate_of(*hit))
    if top is None:
        return Sentence(f"{{}} decodes at {{}}{_alone(*hit)}.", first)
    return Sentence(f"{{}} decodes at {{}}{_alone(*hit)}, {{}} of the {{}} its memory bandwidth allows.", (*first, share, top))


def roofed(book: Book, machine: Machine, hit: tuple[Run, Result]) -> tuple[Value | None, Value | None]:
    """The memory roof of a decode and the share reached; None where none is computed."""
    if not rows.explained(book.lab, *hit):
        return None, None
    card, rate, roof = book.lab.models[hit[1].model], book.rate_of(*hit), book.machine(machine.id).bandwidth
    ceiling = predict.decode_ceiling_tok_s(machine, card)
    top = Value(ceiling, "tok/s", "predicted", how=f"{roof.text} / {book.model(card.id).file.text}", href=f"{book.link(f'machines/{machine.id}/')}#specs")
    return top, percent(rate.n / ceiling, how="measured / (bandwidth / file bytes)", decimals=0)


def _model(book: Book, r: Result) -> str:
    card = book.lab.models[r.model]
    return short(card.name) + (" (synthetic weights)" if card.weights == "synthetic" else "")


def _alone(run: Run, r: Result) -> str:
    """That a GPU stood by."""
    return " on the CPU alone" if r.n_gpu_layers == 0 and "cpu" in r.experiment else ""


def short(name: str) -> str:
    """A model's name without the words that say its weights are synthetic."""
    return name.removesuffix(", synthetic weights")
