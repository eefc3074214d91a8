"""Machines and models side by side: every test at depth 0 with its rate, its share of the roof and what was predicted.

`pairs` and `difference` say how two machines differ; the page's script uses these very functions, translated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from macros import calibration, compare, rows, subject_load
from macros.calibrated import Device, Load
from macros.cards import Machine, Model
from macros.compare import Measured
from macros.labdata import Lab
from macros.reckoned import Reckoned
from macros.records import Result


@dataclass(frozen=True)
class Line:
    """One test of one machine.

    Args:
        machine, run: ids
        model: the model's name, without the remark on synthetic weights
        share: measured over the roof by exact work (fraction); None: no such roof is known
        ratio: measured over the calibrated prediction [1]; None: nothing was predicted
        inside: whether the measurement lies in the prediction's 80 % interval
    """

    machine: str
    run: str
    model: str
    synthetic: bool
    test: str
    backend: str
    measured: Measured
    share: float | None = None
    ratio: float | None = None
    inside: bool | None = None

    @property
    def subject(self) -> str:
        """What the test was of: machine, model and backend."""
        return f"{self.machine}/{self.model}/{self.backend}{'/synthetic' if self.synthetic else ''}"


def lines(lab: Lab, made: Mapping[str, list[Line]]) -> list[Line]:
    """Every machine's lines, decode first, the nearest to its roof first.

    Args:
        made: by machine, those made before
    """
    maker = Maker()
    found = [x for name in lab.machines for x in (made[name] if name in made else maker.lines(Reckoned(lab, name)))]
    return sorted(found, key=lambda x: (not x.test.startswith("tg"), -(x.share or 0), x.machine, x.model, x.test, x.backend))


class Maker:
    """Makes machines' lines, and keeps work and loads by model and test: a thousand machines share a dozen models."""

    def __init__(self) -> None:
        self._work: dict[tuple[str, str], float] = {}
        self._loads: dict[tuple[str, str], Load] = {}
        self._devices: dict[tuple[str, str], Device] = {}

    def lines(self, of: Reckoned) -> list[Line]:
        """A machine's newest result at depth 0 of each test, model and backend."""
        lab, machine, found = of.lab, of.lab.machines[of.machine], []
        for run, r in rows.at_rest(lab, of.runs, explained_only=False):
            card, m = lab.models[r.model], compare.rate(r)
            if m is None or r.mixed:
                continue
            share = ratio = inside = None
            if rows.explained(lab, run, r):
                share = self._share(machine, card, r, m)
                p = self._rate(machine, card, r)
                ratio, inside = (m.mean / p.tok_s, p.low_tok_s <= m.mean <= p.high_tok_s) if p else (None, None)
            found.append(Line(machine.id, run.id, card.name.removesuffix(", synthetic weights"), card.weights == "synthetic", r.test, r.backend, m, share, ratio, inside))
        return found

    def _share(self, machine: Machine, card: Model, r: Result, m: Measured) -> float | None:
        roof = machine.specs.memory_bandwidth if r.n_gen else machine.specs.peak_compute
        if roof is None:
            return None
        key = (card.id, r.test)
        if key not in self._work:
            self._work[key] = rows.token_work(card, r)[1]
        return m.mean * self._work[key] / roof.si

    def _rate(self, machine: Machine, card: Model, r: Result) -> calibration.Predicted | None:
        where = (machine.id, r.backend)
        if where not in self._devices:
            self._devices[where] = subject_load.device(machine, r.backend)[0]
        on = self._devices[where]
        if r.n_prompt and not on.flops_s:
            return None
        key = (card.id, r.test)
        if key not in self._loads:
            phase, tokens = ("decode", r.n_gen) if r.n_gen else ("prefill", r.n_prompt)
            self._loads[key] = subject_load.load(subject_load.from_card(card), phase, tokens, 0)
        of = self._loads[key]
        return calibration.predict(subject_load.case(of, on)) if of.head_dim else None


def pairs(a: Sequence[Line], b: Sequence[Line]) -> list[tuple[Line, Line]]:
    """The tests that two subjects both ran."""
    return [(x, y) for x in a for y in b if x.test == y.test]


def difference(a: Measured, b: Measured) -> str:
    """How two measured rates differ, in words."""
    apart = compare.differ(a, b)
    return "noise not known" if apart is None else "differ beyond noise" if apart else compare.SAME


def default_pair(all_lines: Sequence[Line]) -> tuple[str, str] | None:
    """Two subjects with a test in common: of one model on two machines where there are such, else on one machine; None: neither."""
    for same in (lambda x: (x.model, x.test), lambda x: (x.machine, x.test)):
        first: dict[tuple[str, str], Line] = {}
        for x in all_lines:
            other = first.setdefault(same(x), x)
            if other.subject != x.subject and (other.machine == x.machine) == (other.model != x.model):
                return other.subject, x.subject
    return None
