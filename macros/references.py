"""What no file of labdata/ can know alone: sources, references, units of the right dimension, ink that stayed as it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from functools import cache
from pathlib import Path
from typing import Any, get_args

from pydantic import AwareDatetime, BaseModel

from macros import proof, shapes, units
from macros.cards import Model, ShapeDoc
from macros.fields import Quantity, Strict
from macros.inks import Ink, Prediction
from macros.records import Check, InkRef, Run
from macros.seals import sha256
from macros.seen import GgufFiles

__all__ = ["Gist", "gist", "problems", "sha256", "shapeless", "unsourced"]


def unsourced(document: Any, shown: str, root: Path) -> list[str]:
    """Values whose source is not in the file's table, sources whose raw file is missing."""
    problems = []
    for where, name in _source_names(document):
        if name not in document.sources:
            known = ", ".join(document.sources) or "none"
            problems.append(f"{shown}: {f'{where}.source'.lstrip('.')}: not in this file's sources; got {name!r}; known: {known}")
    for name, source in document.sources.items():
        if source.raw and not (root / "raw" / source.raw).is_file():
            problems.append(f"{shown}: sources.{name}.raw: no such file in labdata/raw; got {source.raw!r}")
    return problems


def shapeless(document: Any, shown: str) -> list[str]:
    """Models whose tensors llama.cpp's recipes do not give, or whose sizes are no sizes.

    For a file alone, since the code decides it: what is kept of a file was found whole by the same code (`macros.snapshot`).
    """
    found = []
    if isinstance(document, Model):
        for size, wanted in (("file_size", "bytes"), ("params", "params")):
            quantity = getattr(document, size)
            if quantity and units.dimension(quantity.unit) != wanted:
                found.append(f"{shown}: {size}.unit: not a unit of {size}; got {quantity.unit!r}")
        part = "quant"
        try:
            if document.shape is not None:
                document.table()
                part = "shape"
                document.structure()
        except ValueError as error:
            found.append(f"{shown}: {part}: {error}")
    for file in document.files if isinstance(document, GgufFiles) else []:
        try:
            shapes.layers(file.shape.dims)
            if file.mix:
                file.table()
        except ValueError as error:
            found.append(f"{shown}: {file.id}: {error}")
    return found


def _source_names(value: Any, where: str = "") -> list[tuple[str, str]]:
    """(dotted key, source name) of every sourced value in a document."""
    if isinstance(value, (Quantity, ShapeDoc)):
        return [(where, value.source)]
    if isinstance(value, Check):
        return [("", value.source)]
    if isinstance(value, BaseModel):
        items = [(name, getattr(value, name)) for name in type(value).model_fields] if _may_name(type(value)) else []
    elif isinstance(value, list):
        items = [(str(i), v) for i, v in enumerate(value)]
    else:
        return []
    return [found for name, v in items for found in _source_names(v, f"{where}.{name}".lstrip("."))]


@cache
def _may_name(kind: Any) -> bool:
    """Whether a type can hold a sourced value: a run's thousand fields cannot, and are not looked through."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return issubclass(kind, (Quantity, ShapeDoc, Check)) or any(_may_name(f.annotation) for f in kind.model_fields.values())
    return any(_may_name(part) for part in get_args(kind))


def chips_given_twice(tables: dict[str, Any]) -> list[str]:
    """Ids that two chips share, and source names that mean two things in two files."""
    found, ids, sources = [], {}, {}
    for stem, table in tables.items():
        shown = f"labdata/chips/{stem}.yml"
        for i, chip in enumerate(table.chips):
            if chip.id in ids:
                found.append(f"{shown}: chips.{i}.id: given twice; got {chip.id!r}; the other is in {ids[chip.id]}")
            ids[chip.id] = shown
        for name, source in table.sources.items():
            other, where = sources.setdefault(name, (source, shown))
            if other != source:
                found.append(f"{shown}: sources.{name}: differs from the source of that name in {where}; give it another name")
    return found


_SPEC_DIMENSIONS = {"memory_bandwidth": "bytes_s", "peak_compute": "flops_s", "memory": "bytes", "cpu_bandwidth": "bytes_s"}


class Gist(Strict):
    """What the checks across files need of an ink or a run: where it passes them all, it is not decoded for them."""

    sound: bool  # whether it passes those that it answers alone
    machine: str
    models: list[str]  # every one it names, once
    at: AwareDatetime | None  # an ink: when it was dry; a run: when it began; None: not recorded
    ink: InkRef | None = None  # of a run


def gist(document: Any) -> Gist | None:
    """The gist of an ink or a run; None: a document of another kind."""
    if isinstance(document, Ink):
        ids = {p.id for p in document.predictions}
        sound = len(ids) == len(document.predictions) and all(units.dimension(p.unit) == _dimension(p) for p in document.predictions)
        models = {t.model for p in document.predictions for t in p.targets}
        return Gist(sound=sound and not proof.of_ink((), document), machine=document.machine, models=sorted(models), at=document.dry_at)
    if isinstance(document, Run):
        return Gist(sound=not proof.clock(document, ""), machine=document.machine, models=sorted({r.model for r in document.results}),
                    at=proof.began(document), ink=document.ink)  # fmt: skip
    return None


def _dimension(p: Prediction) -> str:
    """What a prediction's unit must be one of."""
    return "ratio" if p.over or p.slower else "bytes" if p.of.test == "file_size" else "tok_s"


def problems(lab: Any, broken: Container[str]) -> list[str]:
    """References that lead nowhere, units of the wrong dimension, ink changed or written after its run, clocks that ran backwards.

    Args:
        broken: names of files with problems of their own: what names them is not dangling
    """
    found: list[str] = []

    def known(shown: str, where: str, name: str, table: dict) -> None:
        if name not in table and name not in broken:
            found.append(f"{shown}: {where}: no such file; got {name!r}; known: {', '.join(sorted(table)) or 'none'}")

    for m in lab.machines.values():
        if m.id == "index":
            found.append("labdata/machines/index.yml: id: is the page of all machines; got 'index'")
        for spec, wanted in _SPEC_DIMENSIONS.items():
            quantity = getattr(m.specs, spec)
            if quantity and units.dimension(quantity.unit) != wanted:
                found.append(f"labdata/machines/{m.id}.yml: specs.{spec}.unit: not a unit of {spec}; got {quantity.unit!r}")
    from_logs = {name for name, model in lab.models.items() if model.shape is None}

    def predicted(shown: str, where: str, predictions: list) -> None:
        ids = Counter(p.id for p in predictions)
        found.extend(f"{shown}: {where}: id given twice; got {i!r}" for i, times in sorted(ids.items()) if times > 1)
        for i, p in enumerate(predictions):
            if units.dimension(p.unit) != _dimension(p):
                found.append(f"{shown}: {where}.{i}.unit: not a unit of what is predicted; got {p.unit!r}")
            for target in p.targets:
                end = "of" if target is p.of else "over" if target is p.over else "slower"
                known(shown, f"{where}.{i}.{end}.model", target.model, lab.models)
                if target.model in from_logs:
                    found.append(f"{shown}: {where}.{i}.{end}.model: known from a log alone, nothing can be predicted about it; got {target.model!r}")

    dry: dict[str, Any] = {}
    inkable = lab.models.keys() - from_logs
    for name in lab.inks:
        of = lab.gists.get(f"ink/{name}")
        dry[name] = of and of.at
        if of and of.sound and of.machine in lab.machines and inkable.issuperset(of.models):
            continue
        ink = lab.inks[name]
        shown = f"labdata/ink/{ink.id}.yml"
        dry[ink.id] = ink.dry_at
        found += proof.of_ink(lab.withdrawn, ink)
        known(shown, "machine", ink.machine, lab.machines)
        predicted(shown, "predictions", ink.predictions)
    for ink in lab.open_inks.values():
        shown = f"labdata/ink/{ink.id}.open.yml"
        known(shown, "machine", ink.machine, lab.machines)
        predicted(shown, "guesses", ink.guesses)
        for i, p in enumerate(ink.guesses):
            for target in p.targets:
                if target.test != "file_size" and target not in ink.tests:
                    runs = "; ".join(t.label for t in ink.tests)
                    found.append(f"{shown}: guesses.{i}: about a test its plan does not run; got {target.label!r}; known: {runs}")
    for name, errata in lab.errata.items():
        shown = f"labdata/ink/{name}.errata.yml"
        known(shown, "ink", errata.ink, lab.inks)
        if errata.ink != name:
            found.append(f"{shown}: ink: must be the file's name; got {errata.ink!r}")
        if errata.ink in lab.inks:
            ids = {p.id: p for p in lab.inks[errata.ink].predictions}
            for i, c in enumerate(errata.corrections):
                known(shown, f"corrections.{i}.prediction", c.prediction, ids)
            for i, a in enumerate(errata.anchors):
                for end, kinds in (("prediction", ("ratio",)), ("instead_of", ("ceiling", "point"))):
                    fit = {name: p for name, p in ids.items() if p.kind in kinds and p.of.test != "file_size"}
                    known(shown, f"anchors.{i}.{end}", getattr(a, end), fit)
                known(shown, f"anchors.{i}.run", a.run, lab.runs)
    for one in lab.latencies.values():
        known(f"labdata/latency/{one.id}.yml", "machine", one.machine, lab.machines)
        known(f"labdata/latency/{one.id}.yml", "model", one.model, lab.models)
    for name in lab.runs:
        of = lab.gists.get(f"runs/{name}")
        if of and of.ink:
            lab.ink_of[name] = of.ink.id
        if of and of.sound and of.machine in lab.machines and name.split("/")[0] == of.machine and lab.models.keys() >= set(of.models):
            dry_at = dry.get(of.ink.id) if of.ink else None
            if not of.ink or f"ink/{of.ink.id}" not in lab.withdrawn and lab.ink_sha256.get(of.ink.id) == of.ink.sha256 and not (dry_at and of.at and of.at < dry_at):
                continue
        run = lab.runs[name]
        shown = f"labdata/runs/{name}.yml"
        known(shown, "machine", run.machine, lab.machines)
        if name.split("/")[0] != run.machine:
            found.append(f"{shown}: machine: must be the folder's name; got {run.machine!r}")
        for i, r in enumerate(run.results):
            known(shown, f"results.{i}.model", r.model, lab.models)
        found += proof.of_run(lab, name, run, run.ink and dry.get(run.ink.id))
        if run.ink:
            lab.ink_of[name] = run.ink.id
            known(shown, "ink.id", run.ink.id, lab.inks)
            if run.ink.id in lab.inks and (now := lab.ink_sha256[run.ink.id]) != run.ink.sha256:
                found.append(
                    f"{shown}: ink.sha256: labdata/ink/{run.ink.id}.yml was changed after this run; "
                    f"got {now[:12]}…, the run holds {run.ink.sha256[:12]}…; restore the ink"
                )
    return found
