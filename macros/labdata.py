"""labdata/ in and out: the only module that knows YAML.

`load` reads every file, collects every problem, and raises once. `write` is atomic.
`python -m macros.schema_docs` rewrites what documents the files.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from macros import units
from macros.cards import Chip, Chips, Machine, Model, ShapeDoc
from macros.fields import Quantity, Source
from macros.inks import Errata, Ink, Prediction
from macros.records import Check, Result, Run

ROOT = Path(__file__).resolve().parent.parent / "labdata"


class LabError(Exception):
    """Every problem found in labdata/, one line each."""

    def __init__(self, problems: list[str]):
        self.problems = problems
        super().__init__("\n".join(problems))


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Safe YAML that refuses a key given twice (plain PyYAML keeps the last one)."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        seen = set()
        for key_node, _ in node.value:
            name = self.construct_object(key_node, deep=True)
            if name in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key given twice: {name!r}", key_node.start_mark
                )
            seen.add(name)
        return super().construct_mapping(node, deep=deep)


class _Dumper(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        return super().increase_indent(flow, False)


def _inline(dumper: yaml.SafeDumper, items: list) -> yaml.Node:
    scalars = all(isinstance(i, (int, float)) for i in items)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=bool(items) and scalars)


_Dumper.add_representer(list, _inline)


def read_yaml(path: Path) -> Any:
    """One YAML file as plain Python.

    Raises:
        LabError: unreadable, not UTF-8, not YAML, or a key given twice; one line.
    """
    try:
        return yaml.load(path.read_text(encoding="utf-8"), _Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}" if mark else "file"
        raise LabError([f"{path}: {where}: not valid YAML; {getattr(error, 'problem', None) or error}"]) from None
    except (OSError, UnicodeDecodeError) as error:
        raise LabError([f"{path}: file: cannot be read; {error}"]) from None


def write(path: Path, document: BaseModel) -> None:
    """A document as YAML, atomically: a reader sees the old file or the new one, never half."""
    kind = type(document).__name__.lower()
    up = "../../" if isinstance(document, Run) else "../"
    head = f"# yaml-language-server: $schema={up}schema/{kind}.schema.json\n"
    data = document.model_dump(by_alias=True, exclude_unset=True)
    data["sources"] = data.pop("sources", {})  # last: a reader wants the values first
    body = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    write_text(path, head + body)


def write_text(path: Path, text: str) -> None:
    """A text file, atomically and flushed to disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def sha256(path: Path) -> str:
    """SHA-256 of a file's bytes [hex]."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


@dataclass(frozen=True)
class Lab:
    """Everything in labdata/, checked. Keys are ids; a run's key is "<machine>/<run>"."""

    machines: dict[str, Machine] = field(default_factory=dict)
    models: dict[str, Model] = field(default_factory=dict)
    inks: dict[str, Ink] = field(default_factory=dict)
    errata: dict[str, Errata] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    checks: dict[str, Check] = field(default_factory=dict)
    chips: list[Chip] = field(default_factory=list)
    chip_sources: dict[str, Source] = field(default_factory=dict)

    def get(self, kind: str, name: str) -> Any:
        """One document by kind ("machines", "models", "inks", "runs") and id.

        Raises:
            LabError: no such document; the known ones are named.
        """
        known = getattr(self, kind)
        if name not in known:
            raise LabError([f"labdata/{kind}: unknown name; got {name!r}; known: {', '.join(sorted(known)) or 'none'}"])
        return known[name]

    def prediction(self, ink: str, name: str) -> Prediction:
        """One prediction of an ink.

        Raises:
            LabError: no such ink or prediction.
        """
        known = {p.id: p for p in self.get("inks", ink).predictions}
        if name not in known:
            raise LabError([f"labdata/ink/{ink}.yml: predictions: unknown name; got {name!r}; known: {', '.join(known)}"])
        return known[name]

    def runs_of(self, machine: str) -> list[Run]:
        """A machine's runs, oldest first; undated ones in order of name."""
        mine = [r for r in self.runs.values() if r.machine == machine]
        return sorted(mine, key=lambda r: (r.started_at.isoformat() if r.started_at else "", r.id))

    def runs_on(self, ink: str) -> list[Run]:
        """The runs made on an ink, oldest first."""
        self.get("inks", ink)
        return [r for m in self.machines for r in self.runs_of(m) if r.ink and r.ink.id == ink]


def parse(kind: type[BaseModel], path: Path, shown: str) -> Any:
    """One file as its model; problems carry the file as `shown` and the dotted key.

    Raises:
        LabError: every problem in this file.
    """
    try:
        return kind.model_validate(read_yaml(path))
    except LabError as error:
        raise LabError([p.replace(str(path), shown) for p in error.problems]) from None
    except ValidationError as error:
        raise LabError([_line(shown, e) for e in error.errors()]) from None


def _line(shown: str, error: Any) -> str:
    where = ".".join(str(part) for part in error["loc"]) or "file"
    got = error["input"]
    text = f"{shown}: {where}: {error['msg'].removeprefix('Value error, ')}"
    if isinstance(got, (str, int, float)) or got is None:
        text += f"; got {got!r}"
    if isinstance(got, str) and "valid number" in error["msg"]:
        text += "; YAML reads 1e12 as text, write 1.0e+12"
    return text


_parsed: dict[Path, tuple[tuple[int, int], Any]] = {}  # path -> ((mtime, size), document)


def _cached(kind: type[BaseModel], path: Path, shown: str) -> Any:
    """`parse`, skipped while the file is unchanged: `mkdocs serve` builds again in one process."""
    stat = path.stat()
    stamp = (stat.st_mtime_ns, stat.st_size)
    if path not in _parsed or _parsed[path][0] != stamp:
        _parsed[path] = (stamp, parse(kind, path, shown))
    return _parsed[path][1]


def load(root: Path = ROOT) -> Lab:
    """All of labdata/, checked file by file and then across files.

    Raises:
        LabError: every problem in every file, in one message.
    """
    problems: list[str] = []
    broken: set[str] = set()  # files with problems of their own: what names them is not dangling
    found: dict[str, dict[str, Any]] = {k: {} for k in ("machines", "models", "inks", "errata", "runs", "checks", "chips")}

    def read(kind: type[BaseModel], path: Path, into: str, name: str) -> None:
        shown = f"labdata/{path.relative_to(root).as_posix()}"
        try:
            document = _cached(kind, path, shown)
        except LabError as error:
            problems.extend(error.problems)
            broken.add(name)
            return
        found[into][name] = document
        stem = path.name.removesuffix(".yml")
        if hasattr(document, "id") and document.id != stem:
            problems.append(f"{shown}: id: must be the file's name; got {document.id!r}; file is {stem!r}")
        problems.extend(_unsourced(document, shown, root))

    for folder, kind in (("machines", Machine), ("models", Model), ("checks", Check)):
        for path in sorted(root.glob(f"{folder}/*.yml")):
            read(kind, path, folder, path.stem)
    for path in sorted(root.glob("ink/*.yml")):
        if path.name.endswith(".errata.yml"):
            read(Errata, path, "errata", path.name.removesuffix(".errata.yml"))
        else:
            read(Ink, path, "inks", path.stem)
    for path in sorted(root.glob("runs/*/*.yml")):
        read(Run, path, "runs", f"{path.parent.name}/{path.stem}")
    if (root / "chips.yml").exists():
        read(Chips, root / "chips.yml", "chips", "chips")
    chips = found.pop("chips").get("chips")
    lab = Lab(**found, chips=chips.chips if chips else [], chip_sources=chips.sources if chips else {})
    problems += _dangling(lab, root, broken)
    if problems:
        raise LabError(problems)
    return lab


def _unsourced(document: Any, shown: str, root: Path) -> list[str]:
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


def _source_names(value: Any, where: str = "") -> list[tuple[str, str]]:
    """(dotted key, source name) of every sourced value in a document."""
    if isinstance(value, (Quantity, ShapeDoc)):
        return [(where, value.source)]
    if isinstance(value, Check):
        return [("", value.source)]
    if isinstance(value, BaseModel):
        items = [(name, getattr(value, name)) for name in type(value).model_fields]
    elif isinstance(value, list):
        items = [(str(i), v) for i, v in enumerate(value)]
    else:
        return []
    return [found for name, v in items for found in _source_names(v, f"{where}.{name}".lstrip("."))]


_SPEC_DIMENSIONS = {"memory_bandwidth": "bytes_s", "peak_compute": "flops_s", "memory": "bytes", "cpu_bandwidth": "bytes_s"}


def _dangling(lab: Lab, root: Path, broken: set[str]) -> list[str]:
    """References that lead nowhere, units of the wrong dimension, ink changed after its run."""
    problems: list[str] = []

    def known(shown: str, where: str, name: str, table: dict) -> None:
        if name not in table and name not in broken:
            problems.append(f"{shown}: {where}: no such file; got {name!r}; known: {', '.join(sorted(table)) or 'none'}")

    for m in lab.machines.values():
        for spec, wanted in _SPEC_DIMENSIONS.items():
            quantity = getattr(m.specs, spec)
            if quantity and units.dimension(quantity.unit) != wanted:
                problems.append(f"labdata/machines/{m.id}.yml: specs.{spec}.unit: not a unit of {spec}; got {quantity.unit!r}")
    for m in lab.models.values():
        try:
            m.table()
        except ValueError as error:
            problems.append(f"labdata/models/{m.id}.yml: quant: {error}")
    for ink in lab.inks.values():
        shown = f"labdata/ink/{ink.id}.yml"
        known(shown, "machine", ink.machine, lab.machines)
        ids = [p.id for p in ink.predictions]
        problems += [f"{shown}: predictions: id given twice; got {i!r}" for i in sorted(set(ids)) if ids.count(i) > 1]
        for i, p in enumerate(ink.predictions):
            for end, target in (("of", p.of), ("over", p.over)):
                if target:
                    known(shown, f"predictions.{i}.{end}.model", target.model, lab.models)
    for name, errata in lab.errata.items():
        shown = f"labdata/ink/{name}.errata.yml"
        known(shown, "ink", errata.ink, lab.inks)
        if errata.ink in lab.inks:
            ids = {p.id: p for p in lab.inks[errata.ink].predictions}
            for i, c in enumerate(errata.corrections):
                known(shown, f"corrections.{i}.prediction", c.prediction, ids)
    for name, run in lab.runs.items():
        shown = f"labdata/runs/{name}.yml"
        known(shown, "machine", run.machine, lab.machines)
        if name.split("/")[0] != run.machine:
            problems.append(f"{shown}: machine: must be the folder's name; got {run.machine!r}")
        for i, r in enumerate(run.results):
            known(shown, f"results.{i}.model", r.model, lab.models)
        if run.ink:
            known(shown, "ink.id", run.ink.id, lab.inks)
            path = root / "ink" / f"{run.ink.id}.yml"
            if run.ink.id in lab.inks and sha256(path) != run.ink.sha256:
                problems.append(
                    f"{shown}: ink.sha256: labdata/ink/{run.ink.id}.yml was changed after this run; "
                    f"got {sha256(path)[:12]}…, the run holds {run.ink.sha256[:12]}…; restore the ink"
                )
    return problems


def same_setting(result: Result, experiment: str, test: str, depth: int, model: str | None) -> bool:
    """Whether a result is of this experiment, test, depth and model (any, where None)."""
    return (
        result.experiment == experiment
        and result.test == test
        and result.depth == depth
        and model in (None, result.model)
    )
