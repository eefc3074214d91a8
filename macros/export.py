"""All of labdata/ as flat tables, with a schema: recorded rows from the documents, derived rows as the pages compute them.

The layout comes from the models that check the files: a nested part becomes columns (`specs_memory_bandwidth_value`),
a list of parts a table of its own (`runs_results`), tied to its parent by `document` and a number that counts from 1.
Nothing is left out but ink that is still open, so the documents can be put together again from the tables.
"""

from __future__ import annotations

import datetime
import itertools
import math
import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from macros import cards, compare, hardware, inks, labdata, latency, records, rows, seals, seen
from macros.fields import Source
from macros.flat import SCALARS, Column, Table, flat
from macros.labdata import Lab
from macros.reckoned import Reckoned

DOCUMENT = "Its file below labdata/, without .yml; of chips and gguf_files, the entry's id in place of the file's"


def _kinds(lab: Lab) -> dict[str, tuple[type[BaseModel], Mapping[str, Any], str, str]]:
    """The documents by table: model, what there is by name, folder and ending of its files."""
    return {
        "machines": (cards.Machine, lab.machines, "machines/", ""),
        "models": (cards.Model, lab.models, "models/", ""),
        "chips": (hardware.Chip, {c.id: c for c in lab.chips}, "chips/", ""),
        "inks": (inks.Ink, lab.inks, "ink/", ""),
        "errata": (inks.Errata, lab.errata, "ink/", ".errata"),
        "runs": (records.Run, lab.runs, "runs/", ""),
        "latencies": (latency.Latency, lab.latencies, "latency/", ""),
        "checks": (records.Check, lab.checks, "checks/", ""),
        "seals": (seals.Seal, lab.seals, "", ".seal"),
        "withdrawn": (seals.Withdrawal, lab.withdrawn, "", ".withdrawn"),
        "gguf_files": (seen.SeenFile, {f.id: f for f in lab.gguf_files.files} if lab.gguf_files else {}, "gguf_files/", ""),
    }


def documents(lab: Lab) -> Iterator[tuple[str, str, type[BaseModel], Iterator[tuple[str, BaseModel]]]]:
    """The documents by table: name, what they are, model, and each by its file below labdata/, one at a time."""
    for table, (kind, found, folder, word) in _kinds(lab).items():
        yield table, _about(kind), kind, ((f"{folder}{name}{word}", found[name]) for name in sorted(found))


def _about(kind: type[BaseModel]) -> str:
    return (kind.__doc__ or "").strip().splitlines()[0]


@dataclass(frozen=True)
class Block:
    """Documents that follow one another in a table, all of one machine or all of none.

    Args:
        table: the table they are the rows of
        machine: whose they are; "": nobody's
        names: of the documents, in order
    """

    table: str
    machine: str
    names: tuple[str, ...]


class Rows:
    """Fills the tables block by block: whoever has a machine's documents at hand makes the rows of them.

    Args:
        blocks: all there are, in the order of their rows
    """

    def __init__(self, lab: Lab, root: Path = labdata.ROOT) -> None:
        self.root, self._corpus = root, list[Table]()
        self.lab, self._documents, self._on = lab, _kinds(lab), _runs_on(lab)
        key = [Column("document", "string", "VARCHAR", DOCUMENT)]
        self._filled = {table: flat(table, _about(kind), kind, key) for table, (kind, *_) in self._documents.items()}
        self._sources = flat("sources", "Where values come from, all documents'", Source, [*key, Column("key", "string", "VARCHAR", "Its key, which values name as their source")])
        self._rates, self._scores = _rates(), _scores()
        self.blocks = [Block("sources", "", ()), *(block for table in self._documents for block in self._blocks(table)), Block("corpus_measurements", "", ())]
        self.of: dict[str, list[int]] = {}
        for n, block in enumerate(self.blocks):
            self.of.setdefault(block.machine, []).append(n)

    def _blocks(self, table: str) -> Iterator[Block]:
        for machine, names in itertools.groupby(sorted(self._documents[table][1]), partial(self._machine, table)):
            yield Block(table, machine, tuple(names))

    def _machine(self, table: str, name: str) -> str:
        if table == "inks":
            return (self.lab.gists.get(f"ink/{name}") or self.lab.inks[name]).machine
        return name.partition("/")[0] if table in ("machines", "runs") else ""

    def tables(self) -> list[Table]:
        """The tables as far as they are filled: what was recorded, then what is derived from it."""
        recorded = [table for filled in (*self._filled.values(), self._sources) for table in filled.tables()]
        return [*recorded, *self._corpus, self._rates, self._scores]

    def add(self, block: Block, own: Reckoned | None = None) -> None:
        """A block's rows.

        Args:
            own: what the runs of its machine come to, where that is at hand

        Raises:
            LabError: a result that cannot be scored, as on a page.
            CorpusError: a CSV file of the corpus is broken.
        """
        if block.table == "corpus_measurements":
            self._corpus = [_corpus_table(self.root)]
            return
        if block.table == "sources":  # of files that hold many documents
            for at, cited in (("chips", self.lab.chip_sources), ("gguf_files", self.lab.gguf_files.sources if self.lab.gguf_files else {})):
                self._cite(at, cited)
            return
        _, found, folder, word = self._documents[block.table]
        for name in block.names:
            at, document = f"{folder}{name}{word}", found[name]
            self._filled[block.table].add((at,), document)
            self._cite(at, getattr(document, "sources", {}))
            if isinstance(document, records.Run) and at not in self.lab.withdrawn:
                _derive(self._rates, _rated(at, document, own.results[document.id] if own else rows.results(self.lab, [document])))
            elif isinstance(document, inks.Ink):
                told = {"document": at, "machine": document.machine}
                _derive(self._scores, [{**told, **row} for row in (own and own.all_scored(document.id)) or self._scored(document.id)])

    def _scored(self, ink: str) -> list[dict]:
        runs = sorted((self.lab.runs[name] for name in self._on.get(ink, [])), key=lambda run: (run.started_at.isoformat() if run.started_at else "", run.id))
        return rows.ink(compare.scores(self.lab, ink, runs))

    def _cite(self, at: str, cited: Mapping[str, Source]) -> None:
        for name, source in cited.items():
            self._sources.add((at, name), source)


def tables(lab: Lab, root: Path = labdata.ROOT) -> list[Table]:
    """Every table, whole.

    Raises:
        LabError: a result that cannot be scored, as on a page.
        CorpusError: a CSV file of the corpus is broken.
    """
    made = Rows(lab, root)
    for block in made.blocks:
        made.add(block)
    return made.tables()


def _runs_on(lab: Lab) -> dict[str, list[str]]:
    """The names of the runs on each ink that count."""
    on: dict[str, list[str]] = {}
    for name, ink in lab.ink_of.items():
        if f"runs/{name}" not in lab.withdrawn:
            on.setdefault(ink, []).append(name)
    return on


def _corpus_table(root: Path) -> Table:
    """The corpus's CSV file, its columns as they are; one is numbers where all of it is."""
    from macros import corpus

    found = list(corpus.read(root / "corpus" / "measurements.csv", ("id",)))
    columns = [Column(c, *(("number", "DOUBLE") if _all_numbers(found, c) else ("string", "VARCHAR")), f"As gathered: {c}") for c in (found or [{"id": ""}])[0]]
    numbers = {c.name for c in columns if c.type == "number"}
    cells = [tuple(None if v == "" else float(v) if k in numbers else v for k, v in row.items()) for row in found]
    return Table("corpus_measurements", "llama-bench results of others, each with its address, as posted", ("id",), columns, cells=cells)


def _all_numbers(found: list[dict[str, str]], column: str) -> bool:
    try:
        return all(math.isfinite(float(row[column])) for row in found if row[column]) and any(row[column] for row in found)
    except ValueError:
        return False


def _derived(name: str, about: str, key: tuple[str, ...], columns: dict[str, tuple[type, str]]) -> Table:
    return Table(name, about, key, [Column(c, *SCALARS[kind], said) for c, (kind, said) in columns.items()], derived=True)


def _derive(table: Table, found: list[dict]) -> None:
    """Rows more of a derived table; NaN is no value."""
    values = operator.itemgetter(*(c.name for c in table.columns))
    table.cells += [tuple([None if v != v else v for v in values(row)]) for row in found]


def _rates() -> Table:
    """Every test of every run that counts, as the pages show it."""
    columns = {
        "document": (str, "The run's file below labdata/, without .yml"), "results_n": (int, "Its place in runs_results, from 1"), "machine": (str, "Machine"),
        "experiment": (str, "Name in the plan"), "model": (str, "Model"), "weights": (str, "Published, synthetic or reported"),
        "test": (str, "llama-bench's name of the test"), "depth_tokens": (int, "Tokens already in the context"), "backend": (str, "Backend truly used"),
        "n_threads": (int, "CPU threads"), "mean_tok_s": (float, "Mean rate [tok/s]; empty: the test failed"),
        "sigma_tok_s": (float, "Sample standard deviation [tok/s]; empty: not known"), "n": (int, "Repetitions; empty: not told"),
        "load_before": (float, "Share of all cores in use just before the test [1]"), "note": (str, "What a reader must know beside it"),
        "origin": (str, "The instrument, where the run was imported"), "settings": (str, "What was told of the other settings"),
        "started_at": (datetime.datetime, "When the run began"), "engine": (str, "Inference engine"), "engine_version": (str, "Its build or package version"),
    }  # fmt: skip
    return _derived("rates", "Every test of every run that counts, statistics recomputed from the samples", ("document", "results_n"), columns)


def _rated(at: str, run: records.Run, results: list[dict]) -> list[dict]:
    told = {"document": at, "machine": run.machine, "started_at": run.started_at, "engine": run.instrument.engine, "engine_version": run.instrument.engine_version}
    return [{**told, "results_n": n, **row} for n, row in enumerate(results, 1)]


def _scores() -> Table:
    """Every prediction against its measurement, as the pages score it."""
    number, word = float, str
    columns = {
        "document": (word, "The ink's file below labdata/, without .yml"), "machine": (word, "Machine"), "prediction": (word, "Its id in the ink"),
        "quantity": (word, "What is predicted"), "kind": (word, "How it is scored"), "unit": (word, "Unit of the numbers; 1 for ratios"),
        "as_written": (word, "The author's own words"), "predicted": (number, "The number inked"), "predicted_low": (number, "Interval: lower end"),
        "predicted_high": (number, "Interval: upper end"), "measured": (number, "What it came to; empty: not measured"),
        "sigma": (number, "Its standard deviation"), "n": (int, "Repetitions"), "gap": (number, "Measured over predicted, less 1 [1]"),
        "gap_sigma": (number, "Its standard deviation [1]"), "verdict": (word, "held, missed, undecided, unbroken, broken or not measured"),
        "distinguishable": (bool, "Whether the difference passes the noise; empty: nothing to compare"), "run": (word, "The run that was scored"),
    }  # fmt: skip
    return _derived("scores", "Every prediction in ink against its measurement", ("document", "prediction"), columns)
