"""What a page can name: machines, models, measurements, ink and scores, as Values.

One Book per build; `page` says where links start from. Every method ends in a Value or in
one line of HTML, so a number on a page is one expression away from labdata/.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from posixpath import relpath
from typing import Any

from markupsafe import Markup

from macros import compare, rows
from macros.compare import Score
from macros.history import Version
from macros.inked import InkedText, inked_value, measured_value
from macros.inks import Prediction
from macros.labdata import Lab, LabError
from macros.records import Result, Run
from macros.subjects import MachineView, ModelView
from macros.values import Facts, Value, as_typed, decimals_for, hour, percent, verdict_html


@dataclass(frozen=True)
class Day:
    """A day's page, from its front matter.

    Args:
        answer: one sentence with macros, for the front page; without one the score stands there
        next: a sentence or two on what comes next, for Tomorrow and the post
        formula: what a reader can use at home, in a line; without one it is the lab's (`macros.summary`)
        figure: `run`, `test` and `caption` of the depth chart the front page shows; without one it is the ink's own
        next: what comes after it
        formula: what a reader can do with it on a machine of their own
    """

    number: int
    title: str
    question: str
    ink: str
    address: str
    answer: str = ""
    figure: dict[str, str] = field(default_factory=dict)
    next: str = ""
    formula: str = ""


@dataclass(repr=False)  # mkdocs-macros writes out all it is given, before each build: the whole lab, several times
class Book:
    """The lab as seen from the page being rendered.

    Args:
        here: the page's address below the site's root ("days/01-local-inference/")
        days: the days' pages, in order
        counts: numbered figures and tables so far on this page
        files: what to publish beside the pages, by address below the root; where there is a site it is written at once
        charts: what Explore draws, by page and figure, until the page is complete
        site: the folder being built; None: nothing is
        firsts: what git remembers of ink and runs (`macros.history`)
        open_parts: parts still to be written, all pages
        source: the page's file below docs/
        said: every Value a page's prose printed, by page and text: what a post of it may say
        series_days: how many days the series has; None: it has no end yet
        sentences: a machine's one sentence, once its page was rendered
        lines, decodes: a machine's in the comparison (`macros.side_by_side`) and in the list of machines (`macros.headlines`), where they were made beside its page
        tables: the downloads' (`macros.downloads`), where a site is built
    """

    lab: Lab
    here: str = ""
    days: list[Day] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    files: dict[str, str | bytes] = field(default_factory=dict)
    charts: dict[str, dict[str, str]] = field(default_factory=dict)
    site: Path | None = None
    firsts: dict[str, Version] = field(default_factory=dict)
    open_parts: list[str] = field(default_factory=list)
    source: str = ""
    said: dict[str, dict[str, Value]] = field(default_factory=dict)
    series_days: int | None = None
    sentences: dict[str, str] = field(default_factory=dict)
    lines: dict[str, list[Any]] = field(default_factory=dict)
    decodes: dict[str, Any] = field(default_factory=dict)
    tables: Callable[[], list[Any]] | None = None
    _checked: dict[str, list[dict]] = field(default_factory=dict)

    def turn_to(self, here: str, source: str = "") -> None:
        """Begin a page: links start from it, figures count from one."""
        self.here, self.source, self.counts = here, source, {}

    def publish(self, address: str, data: str | bytes) -> None:
        """A file beside the pages, by its address below the root."""
        if self.site is None:
            self.files[address] = data
            return
        path = f"{self.site}/{address}"  # opened as it is: Path takes half as long again, for many files a page
        try:
            file = open(path, "wb")
        except FileNotFoundError:  # the first of its folder
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            file = open(path, "wb")
        with file:
            file.write(data if isinstance(data, bytes) else data.encode())

    def say(self, printed: object) -> object:
        """Note a Value that the page prints, and hand it on."""
        parts = (printed.low, printed.high) if isinstance(printed, InkedText) else (printed,)
        self.said.setdefault(self.here, {}).update({v.text: v for v in parts if isinstance(v, Value)})
        return printed

    def open_part(self, words: str) -> Markup:
        """A part still to be written: shown in the preview; the published build stops and names it (`macros.hooks`)."""
        self.open_parts.append(f"docs/{self.source}: open: {words}")
        return Markup('<mark class="open">Open: {}</mark>').format(words)

    def wet(self, ink: str) -> Markup | None:
        """An open part where an ink is not sealed yet; None where it is.

        Raises:
            LabError: no such ink, sealed or open.
        """
        if ink in self.lab.inks:
            return None
        if ink not in self.lab.open_inks and ink not in {day.ink for day in self.days}:
            self.lab.get("inks", ink)
        return self.open_part(f"ink {ink} is not sealed yet; make ink opens it, make ink CLOSE=1 seals it")

    def link(self, target: str) -> str:
        """A relative link to an address below the site's root, fragment kept."""
        path, _, fragment = target.partition("#")
        start = self.here if self.here.endswith("/") or not self.here else self.here.rpartition("/")[0]
        relative = _relative(path or ".", start or ".") + ("/" if path.endswith("/") or not path else "")
        return relative + (f"#{fragment}" if fragment else "")

    def number(self, kind: str) -> int:
        """The next number of a kind ("figure", "table") on this page."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        return self.counts[kind]

    def run(self, name: str) -> Run:
        """A run by "<machine>/<run>".

        Raises:
            LabError: no such run, or it was withdrawn; a page never prints what no longer counts.
        """
        run = self.lab.get("runs", name)
        gone = self.lab.withdrawn.get(f"runs/{name}")
        if gone:
            raise LabError([f"labdata/runs/{name}.withdrawn.yml: run: was withdrawn and no longer counts; got {name!r}; because {gone.because}"])
        return run

    def checked(self, name: str) -> list[dict]:
        """A check's rows, see `rows.check`; resampled once a build, for table and prose alike."""
        if name not in self._checked:
            self._checked[name] = rows.check(self.lab.get("checks", name))
        return self._checked[name]

    def machine(self, name: str) -> MachineView:
        """A machine's specs as Values."""
        return MachineView(self, self.lab.get("machines", name))

    def model(self, name: str) -> ModelView:
        """A model's sizes and dimensions as Values."""
        return ModelView(self, self.lab.get("models", name))

    def result(self, run: str, test: str, depth: int = 0, model: str | None = None) -> Result:
        """One result of a run."""
        self.run(run)
        machine, _, name = run.partition("/")
        return compare.result_of(self.lab, machine, name, test, depth, model)

    def measured(self, run: str, test: str, depth: int = 0, model: str | None = None) -> Value:
        """A measured rate with its sigma [tok/s].

        Raises:
            LabError: no such test.
            ValueError: the test failed; a page never prints a stand-in.
        """
        return self.rate_of(self.run(run), self.result(run, test, depth, model))

    def rate_of(self, run: Run, r: Result) -> Value:
        """A result's rate with its sigma [tok/s].

        Raises:
            ValueError: the test failed; a page never prints a stand-in.
        """
        m = compare.rate(r)
        if m is None:
            raise ValueError(f"labdata/runs/{run.machine}/{run.id}.yml: {r.test} @ {r.depth} was not measured: {r.failed}")
        deep = f" at depth {r.depth}" if r.depth else ""
        how_many = "repetitions not told" if m.n is None else f"mean ± σ of {m.n}" if m.n > 1 else "one repetition"
        how = f"{r.test}{deep}, {self.lab.models[r.model].name}, {r.backend}, {how_many}"
        return Value(m.mean, "tok/s", "measured", sigma=m.sigma, how=how, name=f"{r.test}{deep}", facts=self.run_facts(run),
                     href=self.link(f"machines/{run.machine}/#run-{run.id}"))  # fmt: skip

    def run_facts(self, run: Run) -> Facts:
        """What a measured number's note says of its run: machine, file, date, build."""
        when = hour(run.started_at) if run.started_at else "date not recorded"
        build = " ".join(filter(None, (run.instrument.engine, run.instrument.engine_version or "build not recorded")))
        return (("Machine", self.lab.machines[run.machine].name), ("Run", f"labdata/runs/{run.machine}/{run.id}.yml"),
                ("Date", when), ("Build", f"{run.instrument.name} on {build}"))  # fmt: skip

    def inked(self, ink: str, name: str) -> Value | InkedText:
        """A prediction as it was inked."""
        p = self.lab.prediction(ink, name)
        return inked_value(p, self.ink_facts(ink, p), self.ink_href(ink))

    def ink_facts(self, ink: str, p: Prediction) -> Facts:
        """What an inked number's note says: the words, the reason, what went in, the file and its hour."""
        document = self.lab.get("inks", ink)
        given = "; ".join(f"{i.name} {i.value:g} {i.unit} ({i.source})" for i in p.inputs)
        when = hour(document.dry_at) if document.dry_at else "before measuring, hour not recorded"
        return (("As inked", p.as_written), ("Because", p.because), ("Formula", p.formula or ""), ("From", given),
                ("Ink", f"labdata/ink/{ink}.yml"), ("Date", when))  # fmt: skip

    def ink_href(self, ink: str) -> str:
        """Where an ink is shown: the day's page for the lab's own, the machine's for derived ink."""
        document = self.lab.get("inks", ink)
        days = {day.ink: day.address for day in self.days}
        return self.link(f"{days.get(ink, f'machines/{document.machine}/')}#ink")

    def score(self, ink: str, name: str) -> ScoreView:
        """A prediction with its measurement and verdict."""
        return ScoreView(self, compare.score(self.lab, ink, name))

    def measured_of(self, s: Score) -> Value:
        """What a scored prediction's target came to, with its run, or the card it stands on."""
        assert s.measured is not None
        if s.run is None:
            card = self.lab.models[s.prediction.of.model]
            return measured_value(s.prediction, s.measured, (("Model", card.name), ("Card", f"labdata/models/{card.id}.yml")), self.link(f"machines/#model-{card.id}"))
        return measured_value(s.prediction, s.measured, self.run_facts(s.run), self.link(f"machines/{s.run.machine}/#run-{s.run.id}"))

    def correction(self, ink: str, prediction: str) -> Value:
        """The number a slip in the ink used, from its errata.

        Raises:
            LabError: no such slip.
        """
        return self._erratum(ink, "corrections", "prediction", prediction, "as_used")

    def afterthought(self, ink: str, name: str) -> Value:
        """A number the lab derived after measuring, as it wrote it down; never scored.

        Raises:
            LabError: no such number.
        """
        return self._erratum(ink, "afterthoughts", "id", name, "value")

    def _erratum(self, ink: str, part: str, key: str, name: str, number: str) -> Value:
        entries = {getattr(e, key): e for e in getattr(self.lab.get("errata", ink), part)}
        if name not in entries:
            raise LabError([f"labdata/ink/{ink}.errata.yml: {part}: no such entry; got {name!r}; known: {', '.join(entries)}"])
        entry = entries[name]
        n = getattr(entry, number)
        how = f"{getattr(entry, 'slip', 'written after measuring, never scored')} {entry.because}"
        return Value(n, entry.unit, "derived", decimals=as_typed(n), how=how)

    def tally(self, ink: str) -> str:
        """The score in words: "5 held, 3 missed, 1 ceiling unbroken"."""
        return tally_words(compare.scores(self.lab, ink))


# A page links to a dozen places, a hundred times; below one root, as where this process stands is not asked for.
_relative = lru_cache(maxsize=256)(lambda path, start: relpath(f"/{path}", f"/{start}"))


def tally_words(scores: list[Score]) -> str:
    """How many predictions got each verdict, in words; verdicts on ceilings are named as such."""
    counted = compare.tally(scores)
    order = ["held", "missed", "undecided", "unbroken", "broken", "not measured"]
    words = []
    for word in (w for w in order if w in counted):
        n = counted[word]
        ceiling = f"ceiling{'s' if n > 1 else ''} " if word in ("unbroken", "broken") else ""
        words.append(f"{n} {ceiling}{word}")
    return ", ".join(words)


@dataclass(frozen=True)
class ScoreView:
    """A score's parts as Values."""

    book: Book
    score: Score

    @property
    def word(self) -> str:
        return self.score.verdict

    @property
    def verdict(self) -> Markup:
        return verdict_html(self.score.verdict)

    @property
    def inked(self) -> Value | InkedText:
        return self.book.inked(self.score.ink, self.score.prediction.id)

    @property
    def measured(self) -> Value:
        s = self.score
        if s.measured is None:
            raise ValueError(f"labdata/ink/{s.ink}.yml: {s.prediction.id} was not measured")
        return self.book.measured_of(s)

    @property
    def gap(self) -> Value:
        if self.score.gap is None:
            raise ValueError(f"labdata/ink/{self.score.ink}.yml: {self.score.prediction.id} has no gap (a direction, or not measured)")
        return gap_value(self.score.gap)

    @property
    def utilisation(self) -> Value:
        if self.score.utilisation is None:
            raise ValueError(f"labdata/ink/{self.score.ink}.yml: {self.score.prediction.id} is not a measured ceiling")
        return percent(self.score.utilisation, how="measured / ceiling", decimals=0)


def gap_value(fraction: float) -> Value:
    """A signed gap: whole per cents from 10 %, one digit below, two under 0.1 %."""
    size = abs(fraction) * 100
    return percent(fraction, how="measured / predicted − 1", signed=True, decimals=0 if size >= 9.95 else 1 if size >= 0.095 else 2)


def gap_text(s: Score) -> str:
    """A score's distance in plain text: share of the roof for a ceiling, signed gap with the measurement's own sigma,
    or nothing inside an interval."""
    if s.utilisation is not None:
        return f"{percent(s.utilisation, decimals=0).text} of roof ({'MBU' if s.prediction.of.test.startswith('tg') else 'MFU'})"
    if not s.gap:
        return ""
    if not s.gap_sigma or math.isnan(s.gap_sigma):
        return gap_value(s.gap).text
    return Value(s.gap * 100, "%", "derived", sigma=s.gap_sigma * 100, decimals=min(2, decimals_for(s.gap_sigma * 100, 2)), signed=True).text


def verdict_text(s: Score) -> str:
    """The verdict's word, and whether the two numbers differ at all beyond noise."""
    return ", ".join(filter(None, (s.verdict, remark(s))))


def remark(s: Score) -> str:
    """What a verdict does not say: that the two numbers do not differ beyond noise; empty where they do."""
    return compare.SAME if s.same and s.prediction.kind != "interval" else ""
