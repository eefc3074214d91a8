"""Ink: predictions as they were written, and what was found after it was dry."""

from __future__ import annotations

import datetime
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field, model_validator

from macros import units
from macros.fields import LARGEST, Document, Id, NotNegative, Positive, Strict, key
from macros.seals import Stamp


def label(experiment: str, test: str, depth: int, model: str) -> str:
    """A test's name; see `Target`."""
    deep = f" @ d{depth}" if depth else ""
    return f"{experiment} {test}{deep} {model}"


class Target(Strict):
    """What a prediction is about: one test of one experiment, or a file's size."""

    experiment: str = key("The experiment's name in the plan and in its runs", "depth")
    model: Id = key("A file in labdata/models", "qwen3-8b-q4_k_m")
    test: str = key("pp<N> (prefill), tg<N> (decode) or file_size", "tg128", pattern=r"^(pp[1-9]\d*|tg[1-9]\d*|file_size)$")
    depth: NotNegative = key("Tokens already in the context", 8192, default=0)

    @property
    def label(self) -> str:
        """Name in the terminal and in a run's `planned`."""
        return label(self.experiment, self.test, self.depth, self.model)


class Input(Strict):
    """A number that went into a prediction, copied with its source when the ink was written."""

    name: str = key("Symbol or name in the formula", "bandwidth")
    value: Annotated[float, Field(ge=-LARGEST, le=LARGEST)] = key("The number, in `unit`", 120)
    unit: str = key("Its unit", "GB/s")
    source: str = key("Where it came from", "Apple M4 tech specs")


DIRECTIONS: dict[str, tuple[float, float]] = {
    # word -> the range of measured / reference that bears it out
    "craters": (0.0, 0.5),
    "falls": (0.0, 1.0),
    "barely changes": (0.9, 1.1),
    "rises": (1.0, float("inf")),
}


NEEDS = {"interval": ("low", "high"), "direction": ("direction", "over"), "ratio": ("value", "over"), "ordering": ("slower",)}  # other kinds: value


class Prediction(Strict):
    """One prediction in ink."""

    id: Id = key("Name within this ink", "decode-ceiling")
    quantity: str = key("What is predicted, in words", "Decode rate, short context")
    kind: Literal["ceiling", "point", "interval", "ratio", "ordering", "direction"] = key("How it is scored", "ceiling")
    as_written: str = key("The author's own words; scored through the fields below", "24 tok/s")
    value: Positive | None = key("ceiling, point, ratio: the number, in `unit`", 24, default=None)
    low: Positive | None = key("interval: lower end, in `unit`", 11.5, default=None)
    high: Positive | None = key("interval: upper end, in `unit`", 12.0, default=None)
    direction: Literal[tuple(DIRECTIONS)] | None = key("direction: the claim", "craters", default=None)  # type: ignore[valid-type]
    unit: Literal[tuple(units.UNITS)] = key("Unit; 1 for ratios, orderings and directions", "tok/s")  # type: ignore[valid-type]
    because: str = key("The reason given before measuring", "120 / 5", min_length=1)
    of: Target = key("What it is about; ordering: the fastest", "{experiment: baseline, model: ..., test: tg128}")
    over: Target | None = key("ratio, direction: what it is relative to", default=None)
    slower: list[Target] | None = key("ordering: what is slower than `of`, each slower than the one before it", default=None, min_length=1)
    formula: str | None = key("derived: the formula", "bandwidth / file bytes", default=None)
    inputs: list[Input] = key("derived: the numbers that went in", default_factory=list)

    @model_validator(mode="after")
    def complete(self) -> Prediction:
        needed = NEEDS.get(self.kind, ("value",))
        given = [f for f in ("value", "low", "high", "direction", "over", "slower") if getattr(self, f) is not None]
        if given != list(needed):
            raise ValueError(f"kind {self.kind} takes exactly {', '.join(needed)}; got {', '.join(sorted(given)) or 'none'}")
        if self.kind == "interval" and self.low >= self.high:  # type: ignore[operator]
            raise ValueError(f"low must be under high; got {self.low} and {self.high}")
        return self

    @property
    def targets(self) -> list[Target]:
        """Every test it speaks about."""
        return [self.of, *([self.over] if self.over else []), *(self.slower or [])]


class Ink(Document):
    """Predictions written before anything ran. Never edited: every run holds this file's SHA-256."""

    id: Id = key("File name without .yml", "day-01")
    title: str = key("What was predicted", "Day 1: a laptop's token rate from its spec sheet")
    machine: Id = key("A file in labdata/machines", "apple-m4-24gb")
    author: Literal["lab", "derived"] = key("derived: computed from the specs by the bench", "lab")
    written_at: AwareDatetime | None = key("When; null: not recorded", "2026-11-30T04:00:00Z")
    written_note: str = key("How it is known that this came first", "Written before anything ran; the hour was not recorded")
    plan: Id | None = key("Plan whose run it waits for; null: not recorded", "day2", default=None)
    planned: list[str] = key("Tests of that plan when it was sealed", "baseline pp512", default_factory=list)
    sealed: Stamp | None = key("When it was closed, and by what; the hash is the file's last line", default=None)
    predictions: list[Prediction] = key("The predictions", min_length=1)

    @property
    def dry_at(self) -> datetime.datetime | None:
        """When nothing could be added any more; None: not recorded."""
        return self.sealed.at if self.sealed else self.written_at


class OpenInk(Document):
    """Ink still being written; stands as <ink>.open.yml until `make ink CLOSE=1` seals it. The bench measures nothing meanwhile."""

    id: Id = key("Name of the ink it becomes", "day-02")
    title: str = key("What is predicted", "Day 2: what does a rented GPU decode?", min_length=1)
    machine: Id = key("A file in labdata/machines", "apple-m4-24gb")
    plan: Id = key("Plan it is for", "day2")
    opened_at: AwareDatetime = key("When it was opened", "2026-11-30T04:00:00Z")
    tests: list[Target] = key("Tests of the plan, in order", min_length=1)
    control: list[str] = key("Experiments with the GPU switched off", "cpu", default_factory=list)
    guesses: list[Prediction] = key("The author's own predictions; the derived ones are added on closing", default_factory=list)


class Correction(Strict):
    """A slip in the ink, and what it should have been. The ink stays and is scored as written."""

    prediction: Id = key("Its id in the ink", "depth-ratio")
    slip: str = key("What went wrong", "144 KB was taken as 144,000 B")
    name: str = key("The input concerned", "KV cache per token")
    as_used: Positive = key("The number the ink used, in `unit`", 144000)
    right: Positive | None = key("The number it should have used, in `unit`", 147456, default=None)
    unit: Literal[tuple(units.UNITS)] = key("Unit", "B")  # type: ignore[valid-type]
    because: str = key("Why the right value is right", "2 x 36 x 8 x 128 x 2 B = 147,456 B")
    corrected: Positive | None = key("What the prediction would have been, in its own unit; shown beside it, never scored in its place", 0.8064, default=None)


class Afterthought(Strict):
    """A number derived after the measurement: shown, never scored."""

    id: Id = key("Name within this file", "prefill-ceiling")
    quantity: str = key("What it is", "Prefill ceiling")
    value: Positive = key("The number as the lab wrote it, in `unit`", 270)
    unit: Literal[tuple(units.UNITS)] = key("Unit", "tok/s")  # type: ignore[valid-type]
    because: str = key("Its derivation", "4.4e12 / (2 x 8.19e9)")


class Anchor(Strict):
    """A measured rate that a predicted ratio was started from, in place of an inked one."""

    prediction: Id = key("The ratio's id in the ink", "depth-ratio")
    instead_of: Id = key("Id in the ink of the rate that it would start from, a ceiling or a point", "decode-ceiling")
    run: str = key("The anchor, <machine>/<run>: its result for the ratio's `over`", "apple-m4-24gb/day1-depth", pattern=r"^[a-z0-9._-]+/[a-z0-9._-]+$")
    because: str = key("Why this run", "It shares the conditions of the deeper tests", min_length=1)


class Errata(Document):
    """What was found after the ink was dry; stands beside it as <ink>.errata.yml."""

    ink: Id = key("The ink this is about", "day-01")
    corrections: list[Correction] = key("Slips", default_factory=list)
    anchors: list[Anchor] = key("Re-anchored ratios", default_factory=list)
    afterthoughts: list[Afterthought] = key("Numbers derived after the miss", default_factory=list)
