"""A machine in a sentence and in a line: its roof, its decode rate, the share."""

from __future__ import annotations

import itertools
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
    hits = [(run, r) for run in reversed(runs) for r in reversed(run.results) if r.n_gen and not r.mixed and r.depth == 0 and r.failed is None]
    base = (h for h in hits if h[1].experiment == "baseline" and rows.explained(lab, *h))
    known = (h for h in hits if rows.explained(lab, *h))
    return next(itertools.chain(base, known, hits), None)


class Decode(NamedTuple):
    """A machine's decode in lists of machines: the model's name, the rate, its run's id, its share of the roof in words, empty where none is known."""

    model: str
    rate: Value
    run: str
    share: str


@dataclass(frozen=True)
class Reading:
    """What a machine decodes, in words.

    Args:
        runs: all that count, or those it is about
        roof: its memory bandwidth
        hit: their `best_decode`, and its rate; None: there is none
        top, share: the memory roof of that decode and the share reached; None where none is computed
    """

    book: Book
    machine: Machine
    runs: list[Run]
    roof: Value
    hit: tuple[Run, Result] | None = None
    rate: Value | None = None
    top: Value | None = None
    share: Value | None = None

    @property
    def headline(self) -> Sentence:
        """A machine in a sentence or two: the roof, the rate, the share."""
        source = self.machine.sources[self.machine.specs.memory_bandwidth.source]
        promise = "A probe measured" if source.kind == "measured" else "Its spec sheet promises"
        if self.hit is None:
            left = "No decode on an empty context has been measured yet." if self.runs else "Nothing has been measured yet."
            return Sentence(f"{promise} {{}} of memory bandwidth. {left}", (self.roof,))
        name, alone = _model(self.book, self.hit[1]), _alone(*self.hit)
        if self.top is None:
            return Sentence(f"{promise} {{}} of memory bandwidth. {{}} decodes at {{}}{alone}; what it should do is not computed for it.", (self.roof, name, self.rate))
        return Sentence(f"{promise} {{}} of memory bandwidth, so {{}} may decode at {{}} at most. It decodes at {{}}{alone}: {{}} of that roof.",
                        (self.roof, name, self.top, self.rate, self.share))  # fmt: skip

    @property
    def decode(self) -> Decode | None:
        """The same for a list of machines; None: none was measured."""
        if self.hit is None:
            return None
        run, r = self.hit
        return Decode(self.book.lab.models[r.model].name, self.rate, run.id, self.share.text if self.share else "")

    @property
    def brief(self) -> Sentence:
        """A machine in a line: model, roof, rate."""
        if self.hit is None:
            return self.headline
        first = (_model(self.book, self.hit[1]), self.rate)
        if self.top is None:
            return Sentence(f"{{}} decodes at {{}}{_alone(*self.hit)}.", first)
        return Sentence(f"{{}} decodes at {{}}{_alone(*self.hit)}, {{}} of the {{}} its memory bandwidth allows.", (*first, self.share, self.top))


def read(book: Book, machine: Machine, runs: list[Run]) -> Reading:
    """What some runs of a machine say of it."""
    roof, hit = book.machine(machine.id).bandwidth, best_decode(book.lab, runs)
    if hit is None:
        return Reading(book, machine, runs, roof)
    rate = book.rate_of(*hit)
    if not rows.explained(book.lab, *hit):
        return Reading(book, machine, runs, roof, hit, rate)
    card = book.lab.models[hit[1].model]
    ceiling = predict.decode_ceiling_tok_s(machine, card)
    top = Value(ceiling, "tok/s", "predicted", how=f"{roof.text} / {book.model(card.id).file.text}", href=f"{book.link(f'machines/{machine.id}/')}#specs")
    return Reading(book, machine, runs, roof, hit, rate, top, percent(rate.n / ceiling, how="measured / (bandwidth / file bytes)", decimals=0))


def _model(book: Book, r: Result) -> str:
    card = book.lab.models[r.model]
    return short(card.name) + (" (synthetic weights)" if card.weights == "synthetic" else "")


def _alone(run: Run, r: Result) -> str:
    """That a GPU stood by."""
    return " on the CPU alone" if r.n_gpu_layers == 0 and "cpu" in r.experiment else ""


def short(name: str) -> str:
    """A model's name without the words that say its weights are synthetic."""
    return name.removesuffix(", synthetic weights")
