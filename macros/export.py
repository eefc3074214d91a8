"""All of labdata/ as flat tables, with a schema: recorded rows from the documents, derived rows as the pages compute them.

The layout comes from the models that check the files: a nested part becomes columns (`specs_memory_bandwidth_value`),
a list of parts a table of its own (`runs_results`), tied to its parent by `document` and a number that counts from 1.
Nothing is left out but ink that is still open, so the documents can be put together again from the tables.
"""

from __future__ import annotations

import datetime
import math
import operator
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import AwareDatetime, BaseModel

from macros import cards, compare, hardware, inks, labdata, latency, records, rows, seals, seen
from macros.fields import Source
from macros.labdata import Lab

SCALARS = {bool: ("boolean", "BOOLEAN"), int: ("integer", "BIGINT"), float: ("number", "DOUBLE"), str: ("string", "VARCHAR"),
           AwareDatetime: ("datetime", "TIMESTAMPTZ"), datetime.datetime: ("datetime", "TIMESTAMPTZ"), datetime.date: ("date", "DATE")}  # fmt: skip
AT_A_TIME = 500  # documents whose rows are held, some 15,000
DOCUMENT = "Its file below labdata/, without .yml; of chips and gguf_files, the entry's id in place of the file's"


@dataclass(frozen=True)
class Column:
    """One column.

    Args:
        type: of a Table Schema field (string, integer, number, boolean, date, datetime, array, object, any)
        sql: of the Parquet file
        about: what it is, unit included
        path: where it lies in its part of a document
    """

    name: str
    type: str
    sql: str
    about: str
    path: tuple[str, ...] = ()


@dataclass
class Table:
    """A table with its rows, None where there is no value.

    Args:
        key: columns that name a row
        derived: computed at build from recorded rows, not recorded
        cells: each row's values in the columns' order: a large lab has half a million rows
    """

    name: str
    about: str
    key: tuple[str, ...]
    columns: list[Column]
    parent: str = ""
    derived: bool = False
    cells: list[tuple[Any, ...]] = field(default_factory=list)

    @property
    def rows(self) -> Iterator[dict[str, Any]]:
        """Each row by column."""
        names = [c.name for c in self.columns]
        return (dict(zip(names, row, strict=True)) for row in self.cells)


@dataclass(frozen=True)
class Child:
    """A list of parts inside a part, which becomes a table."""

    path: tuple[str, ...]
    name: str
    about: str
    kind: type[BaseModel]


def kinds(annotation: Any) -> tuple[Any, ...]:
    """What a field may hold, None left out.

    >>> kinds(int | list[int] | None)
    (<class 'int'>, list[int])
    """
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return kinds(args[0])
    if origin in (typing.Union, types.UnionType):
        found = [k for a in args for k in kinds(a)]
    elif origin is typing.Literal:
        found = [type(a) for a in args]
    else:
        found = [] if annotation is types.NoneType else [annotation]
    return tuple(dict.fromkeys(found))


def value_type(annotation: Any) -> tuple[str, str]:
    """A value's types, (Table Schema, SQL); what may be one thing or a list of it is `any`, as JSON.

    >>> value_type(list[float | None]), value_type(dict[str, int]), value_type(int | list[int])
    (('array', 'DOUBLE[]'), ('object', 'MAP(VARCHAR, BIGINT)'), ('any', 'JSON'))
    """
    found = kinds(annotation)
    if len(found) != 1:
        return "any", "JSON"
    if found[0] in SCALARS:
        return SCALARS[found[0]]
    origin, args = typing.get_origin(found[0]), typing.get_args(found[0])
    if origin is list:
        return "array", f"{value_type(args[0])[1]}[]"
    if origin is dict:
        return "object", f"MAP(VARCHAR, {value_type(args[1])[1]})"
    raise TypeError(f"no column holds {found[0]}")


def layout(kind: type[BaseModel], path: tuple[str, ...] = (), prefix: str = "", about: str = "") -> tuple[list[Column], list[Child]]:
    """The columns of a part and the lists in it; `sources` is left out, all documents' stand in one table."""
    columns, children = [], []
    for name, info in kind.model_fields.items():
        if name == "sources":
            continue
        at, shown, said = (*path, name), prefix + (info.alias or name), about + (info.description or "")
        found = kinds(info.annotation)
        inner = kinds(typing.get_args(found[0])[0]) if len(found) == 1 and typing.get_origin(found[0]) is list else ()
        if len(found) == 1 and isinstance(found[0], type) and issubclass(found[0], BaseModel):
            deeper = layout(found[0], at, f"{shown}_", f"{said}: ")
            columns, children = columns + deeper[0], children + deeper[1]
        elif len(inner) == 1 and isinstance(inner[0], type) and issubclass(inner[0], BaseModel):
            children.append(Child(at, shown, said, inner[0]))
        else:
            columns.append(Column(shown, *value_type(info.annotation), said, at))
    return columns, children


def _getter(path: tuple[str, ...]) -> Callable[[Any], Any]:
    """What finds the value at a path; None where a part on the way is not given."""
    if len(path) == 1:
        return operator.attrgetter(path[0])
    outer, inner = operator.attrgetter(path[0]), _getter(path[1:])
    return lambda part: None if (found := outer(part)) is None else inner(found)


@dataclass(frozen=True)
class Filled:
    """A kind's table while it is filled, and those of the lists in it."""

    table: Table
    values: list[Callable[[Any], Any]]
    below: list[tuple[Callable[[Any], Any], Filled]]

    def add(self, key: tuple[Any, ...], part: BaseModel) -> None:
        """A part's row, and those of the lists in it."""
        self.table.cells.append((*key, *[value(part) for value in self.values]))
        for items, inner in self.below:
            for n, item in enumerate(items(part) or (), 1):
                inner.add((*key, n), item)

    def tables(self) -> list[Table]:
        """This table and those below it."""
        return [self.table, *(table for _, inner in self.below for table in inner.tables())]


def flat(name: str, about: str, kind: type[BaseModel], keys: list[Column], parent: str = "") -> Filled:
    """A kind's table and those of the lists in it, empty.

    Args:
        keys: the columns that name a row
    """
    columns, children = layout(kind)
    table = Table(name, about, tuple(c.name for c in keys), [*keys, *columns], parent)
    below = []
    for child in children:
        number = Column(f"{child.name}_n", "integer", "BIGINT", f"Its place in the list {child.name}, from 1")
        below.append((_getter(child.path), flat(f"{name}_{child.name}", child.about, child.kind, [*keys, number], name)))
    return Filled(table, [_getter(c.path) for c in columns], below)


def documents(lab: Lab) -> Iterator[tuple[str, str, type[BaseModel], Iterator[tuple[str, BaseModel]]]]:
    """The documents by table: name, what they are, model, and each by its file below labdata/, one at a time."""
    def named(kind: type[BaseModel], found: Mapping[str, Any], folder: str, word: str = "") -> tuple[str, type[BaseModel], Iterator[tuple[str, Any]]]:
        about = (kind.__doc__ or "").strip().splitlines()[0]
        return about, kind, ((f"{folder}{name}{word}", found[name]) for name in sorted(found))

    yield "machines", *named(cards.Machine, lab.machines, "machines/")
    yield "models", *named(cards.Model, lab.models, "models/")
    yield "chips", *named(hardware.Chip, {c.id: c for c in lab.chips}, "chips/")
    yield "inks", *named(inks.Ink, lab.inks, "ink/")
    yield "errata", *named(inks.Errata, lab.errata, "ink/", ".errata")
    yield "runs", *named(records.Run, lab.runs, "runs/")
    yield "latencies", *named(latency.Latency, lab.latencies, "latency/")
    yield "checks", *named(records.Check, lab.checks, "checks/")
    yield "seals", *named(seals.Seal, lab.seals, "", ".seal")
    yield "withdrawn", *named(seals.Withdrawal, lab.withdrawn, "", ".withdrawn")
    files = {f.id: f for f in lab.gguf_files.files} if lab.gguf_files else {}
    yield "gguf_files", *named(seen.SeenFile, files, "gguf_files/")


def tables(lab: Lab, root: Path = labdata.ROOT, take: Callable[[list[Table]], None] | None = None) -> list[Table]:
    """Every table: what was recorded, then what is derived from it. Each document is looked at once: ten thousand do not fit at a time.

    Args:
        take: called with the tables that are being filled after every few hundred documents, to take their cells away;
            None: every table is returned with all of its own

    Raises:
        LabError: a result that cannot be scored, as on a page.
        CorpusError: a CSV file of the corpus is broken.
    """
    key = [Column("document", "string", "VARCHAR", DOCUMENT)]
    sources = flat("sources", "Where values come from, all documents'", Source, [*key, Column("key", "string", "VARCHAR", "Its key, which values name as their source")])
    for at, cited in (("chips", lab.chip_sources), ("gguf_files", lab.gguf_files.sources if lab.gguf_files else {})):
        for name, source in cited.items():
            sources.add((at, name), source)
    made: list[Table] = []
    rates, scores = _rates(), _scores()
    on = _runs_on(lab)
    for name, about, kind, found in documents(lab):
        filled = flat(name, about, kind, key)
        for count, (at, document) in enumerate(found, 1):
            filled.add((at,), document)
            for name_of, source in getattr(document, "sources", {}).items():
                sources.add((at, name_of), source)
            if isinstance(document, records.Run) and at not in lab.withdrawn:
                _derive(rates, _rated(lab, at, document))
            elif isinstance(document, inks.Ink):
                runs = sorted((lab.runs[name] for name in on.get(document.id, [])), key=lambda run: (run.started_at.isoformat() if run.started_at else "", run.id))
                scored = rows.ink(compare.scores(lab, document.id, runs))
                _derive(scores, [{"document": at, "machine": document.machine, **row} for row in scored])
            if take and count % AT_A_TIME == 0:
                take([*filled.tables(), sources.table, rates, scores])
        made += filled.tables()
    return [*made, *sources.tables(), _corpus(root), rates, scores]


def _runs_on(lab: Lab) -> dict[str, list[str]]:
    """The names of the runs on each ink that count."""
    on: dict[str, list[str]] = {}
    for name, ink in lab.ink_of.items():
        if f"runs/{name}" not in lab.withdrawn:
            on.setdefault(ink, []).append(name)
    return on


def _corpus(root: Path) -> Table:
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


def _rated(lab: Lab, at: str, run: records.Run) -> list[dict]:
    told = {"document": at, "machine": run.machine, "started_at": run.started_at, "engine": run.instrument.engine, "engine_version": run.instrument.engine_version}
    return [{**told, "results_n": n, **row} for n, row in enumerate(rows.results(lab, [run]), 1)]


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
