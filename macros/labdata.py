"""labdata/ in and out.

`load` reads every file, collects every problem, and raises once. `write` is atomic.
`python -m macros.schema_docs` rewrites what documents the files.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from macros import guard, proof, references, seals, snapshot
from macros.cards import Machine, Model
from macros.costs import Costs
from macros.fields import Source
from macros.files import LabError, all_or_none, dump, from_text, read_yaml, write_bytes, write_text
from macros.hardware import Chip, Chips
from macros.inks import Errata, Ink, OpenInk, Prediction
from macros.latency import Latency
from macros.parsing import parse, said
from macros.records import Check, Result, Run
from macros.seals import Seal, Withdrawal
from macros.seen import GgufFiles, SeenFile
from macros.trials import Trials

__all__ = ["ROOT", "Lab", "LabError", "all_or_none", "from_text", "load", "parse", "read_yaml", "said", "same_setting", "write", "write_bytes", "write_text"]

ROOT = Path(__file__).resolve().parent.parent / "labdata"


def text(path: Path, document: BaseModel) -> str:
    """A document as the YAML that belongs at a place in labdata/, unsealed.

    Raises:
        LabError: a text in it that could not be read back (`macros.guard`).
    """
    kind = type(document).__name__.lower()
    up = "../../" if path.parent.parent.name == "runs" else "../"
    head = f"# yaml-language-server: $schema={up}schema/{kind}.schema.json\n"
    data = document.model_dump(by_alias=True, exclude_unset=True)
    data["sources"] = data.pop("sources", {})  # last: a reader wants the values first
    if unfit := [f"{path}: {problem}" for problem in guard.unfit(data)]:
        raise LabError(unfit)
    return head + dump(data)


def write(path: Path, document: BaseModel) -> None:
    """A document as YAML, atomically: a reader sees the old file or the new one, never half. Ink and runs get their seal.

    Raises:
        LabError: a text in it that could not be read back (`macros.guard`); nothing is written.
        OSError: it cannot be written.
    """
    body = text(path, document)
    write_text(path, seals.close(body) if isinstance(document, (Ink, Run)) else body)


@dataclass(frozen=True)
class Lab:
    """Everything in labdata/, checked. Keys are ids; a run's key is "<machine>/<run>".

    Seals and withdrawals stand beside a file and are kept by its name: "ink/<ink>", "runs/<machine>/<run>".
    """

    machines: dict[str, Machine] = field(default_factory=dict)
    models: dict[str, Model] = field(default_factory=dict)
    inks: Mapping[str, Ink] = field(default_factory=dict)
    errata: dict[str, Errata] = field(default_factory=dict)
    runs: Mapping[str, Run] = field(default_factory=dict)
    ink_of: dict[str, str] = field(default_factory=dict)  # of each run that has one; filled while the runs are checked
    ink_sha256: Mapping[str, str] = field(default_factory=dict)  # of each ink's file
    files: Mapping[str, bytes] = field(default_factory=dict)  # of each file read, by its place: the digest of its content
    gists: Mapping[str, references.Gist] = field(default_factory=dict)  # by "ink/<ink>", "runs/<machine>/<run>", as far as known: the rest is decoded
    open_inks: dict[str, OpenInk] = field(default_factory=dict)
    seals: dict[str, Seal] = field(default_factory=dict)
    withdrawn: dict[str, Withdrawal] = field(default_factory=dict)
    checks: dict[str, Check] = field(default_factory=dict)
    latencies: dict[str, Latency] = field(default_factory=dict)
    trials: dict[str, Trials] = field(default_factory=dict)
    costs: dict[str, Costs] = field(default_factory=dict)
    chips: list[Chip] = field(default_factory=list)
    chip_sources: dict[str, Source] = field(default_factory=dict)
    gguf_files: GgufFiles | None = None

    def file(self, name: str) -> SeenFile:
        """One entry of gguf_files.yml.

        Raises:
            LabError: no such entry; the known ones are named.
        """
        known = {f.id: f for f in self.gguf_files.files} if self.gguf_files else {}
        if name not in known:
            raise LabError([f"labdata/gguf_files.yml: no such file; got {name!r}; known: {', '.join(known)}"])
        return known[name]

    def get(self, kind: str, name: str) -> Any:
        """One document by kind ("machines", "models", "inks", "runs") and id.

        Raises:
            LabError: no such document; the known ones are named.
        """
        known = getattr(self, kind)
        if kind == "inks" and name in self.open_inks:
            raise LabError([f"labdata/ink/{name}.open.yml: ink: not sealed yet, so no page can quote it; got {name!r}; make ink CLOSE=1 seals it"])
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

    @cached_property
    def _names_of(self) -> dict[str, list[str]]:
        """The names of each machine's runs: a run lies in its machine's folder."""
        found: dict[str, list[str]] = {}
        for name in self.runs:
            found.setdefault(name.split("/")[0], []).append(name)
        return found

    def runs_of(self, machine: str) -> list[Run]:
        """A machine's runs, oldest first; undated ones in order of name. A withdrawn run is left out."""
        mine = [self.runs[name] for name in self._names_of.get(machine, []) if f"runs/{name}" not in self.withdrawn]
        return sorted(mine, key=lambda r: (r.started_at.isoformat() if r.started_at else "", r.id))

    def withdrawn_runs(self, machine: str) -> list[Run]:
        """A machine's withdrawn runs, in order of name: they stay in labdata/ and no longer count."""
        return [self.runs[name] for name in sorted(self._names_of.get(machine, [])) if f"runs/{name}" in self.withdrawn]

    def newest(self, machine: str) -> str:
        """When the last of a machine's runs began, in ISO 8601, withdrawn ones left out; "0": none of them says, "": there is none."""
        names = [name for name in self._names_of.get(machine, []) if f"runs/{name}" not in self.withdrawn]
        began = ((self.gists.get(f"runs/{name}") or self.runs[name]).started_at for name in names)
        return max((at.isoformat() if at else "0" for at in began), default="")

    @cached_property
    def _ran_on(self) -> dict[str, set[str]]:
        """The machines that ran on each ink."""
        found: dict[str, set[str]] = {}
        for name, ink in self.ink_of.items():
            found.setdefault(ink, set()).add(name.split("/")[0])
        return found

    def machines_on(self, ink: str) -> set[str]:
        """The machines with a run on an ink, withdrawn ones too."""
        return self._ran_on.get(ink, set())

    @cached_property
    def models_run(self) -> set[str]:
        """The models that any run is of."""
        found: set[str] = set()
        for name in self.runs:
            gist = self.gists.get(f"runs/{name}")
            found.update(gist.models if gist else (r.model for r in self.runs[name].results))
        return found

    def runs_on(self, ink: str) -> list[Run]:
        """The runs made on an ink, oldest first."""
        self.get("inks", ink)
        on = self.machines_on(ink)
        return [r for m in self.machines if m in on for r in self.runs_of(m) if r.ink and r.ink.id == ink]


def document(kind: type[BaseModel], path: Path) -> Any:
    """One file of labdata/ alone, from the snapshot where `load` has found nothing wrong with it.

    Raises:
        LabError: every problem in this file.
    """
    shown = _shown(path, ROOT)
    try:
        data = guard.read_bytes(path)
    except (OSError, guard.Refused):
        return parse(kind, path, shown)  # which says why
    kept = snapshot.of(ROOT)
    key = kept.key(kind, path.name, hashlib.sha256(data).digest())
    return kept.get(kind, key) if kept.whole(key, ROOT / "raw") else parse(kind, path, shown, data)


def split(file: str) -> tuple[str, str]:
    """A file's name and the word that says what it is beside: ("day-01", "errata"), ("day-01", "")."""
    stem, _, word = file.removesuffix(".yml").rpartition(".")
    return (stem, word) if word in seals.BESIDE else (file.removesuffix(".yml"), "")


def _shown(path: Path, root: Path) -> str:
    return f"labdata/{path.relative_to(root).as_posix()}"


def _checked(kind: type[BaseModel], place: str, root: Path, data: bytes) -> tuple[Any, list[str]]:
    """A file's document, and what is wrong with it beyond its layout.

    Args:
        place: where it lies below `root`

    Raises:
        LabError: its layout is wrong.
    """
    shown = f"labdata/{place}"
    document = parse(kind, Path(shown), shown, data)
    stem = place.rpartition("/")[2].removesuffix(".yml").removesuffix(".open")
    own = references.unsourced(document, shown, root) + references.shapeless(document, shown)
    if hasattr(document, "id") and document.id != stem:
        own.append(f"{shown}: id: must be the file's name; got {document.id!r}; file is {stem!r}")
    return document, own


def _gist(document: Any) -> str:
    """What a snapshot keeps beside a document; empty: nothing."""
    gist = references.gist(document)
    return gist.model_dump_json() if gist else ""


def _packed(job: snapshot.Job) -> tuple[bytes, snapshot.Packed, seals.Sums] | None:
    """What a snapshot keeps of a file, and its sums; None where anything is wrong with it, which is said when it is read in its turn."""
    kind, place, root = job
    try:
        data = snapshot.content(place, root)
        document, own = _checked(kind, place, root, data)
    except (OSError, LabError):
        return None
    text = None if own else snapshot.packed(document, _gist(document))
    sums = seals.sums(data)
    return text and (snapshot.Snapshot.key(kind, os.path.basename(place), sums.whole), text, sums)


def load(root: Path = ROOT) -> Lab:
    """All of labdata/, checked file by file and then across files.

    Raises:
        LabError: every problem in every file, in one message.
    """
    if not root.is_dir():
        raise LabError([f"labdata: no such folder; got {str(root)!r}"])
    strange, names = guard.tree(root)
    runs = sorted(place for place in names if place.startswith("runs/") and place.count("/") == 1)
    folders = [root / place for place in (*(place for place in names if "/" not in place), *runs)]
    problems = [f"{_shown(p, root)}: folder: cannot be read" for p in folders if not os.access(p, os.R_OK | os.X_OK)]
    problems += [f"{_shown(p, root)}: {why}" for p, why in sorted(strange.items())]
    problems += [f"{_shown(root / place / n, root)}: file: must end in .yml" for place in names if place.split("/")[0] != "raw" for n in names[place] if n.endswith(".yaml")]
    odd = {p.relative_to(root).as_posix() for p in strange}
    kept, raw = snapshot.of(root), root / "raw"
    used: set[bytes] = set()
    broken: set[str] = set()  # files with problems of their own: what names them is not dangling
    gists: dict[str, references.Gist] = {}
    ink_sha256: dict[str, str] = {}
    digests: dict[str, bytes] = {}
    found: dict[str, Any] = {
        k: snapshot.Shelf() for k in ("machines", "models", "inks", "errata", "runs", "open_inks", "seals", "withdrawn", "checks", "chips", "files", "latencies", "trials", "costs")
    }

    def read(kind: type[BaseModel], place: str, into: str, name: str) -> None:
        folder, _, file = place.rpartition("/")
        if place in odd or folder in odd:  # said above, and never opened
            broken.add(name)
            return
        try:
            data = b"" if place in told else snapshot.content(place, root)
        except OSError as error:
            problems.append(f"labdata/{place}: file: cannot be read; {error.strerror}")
            broken.add(name)
            return
        sums = told.get(place) or seals.sums(data)
        beside = f"{'ink' if kind is Ink else 'runs'}/{name}"
        if kind in (Ink, Run):
            later_seal = found["seals"].get(beside)
            wrong = seals.problem(sums, f"labdata/{place}", later_seal and later_seal.sha256)
            problems.extend([wrong] if wrong else [])
        if kind is Ink:
            ink_sha256[name] = sums.whole.hex()
        key = digests[place] = kept.key(kind, file, sums.whole)
        used.add(key)
        if place not in told and not kept.whole(key, raw):
            try:
                document, own = _checked(kind, place, root, data)
            except LabError as error:
                problems.extend(error.problems)
                broken.add(name)
                return
            problems.extend(own)
            if own or not kept.put(key, document, _gist(document)):
                found[into][name] = document
                return
        found[into][name] = snapshot.Kept(kept, kind, key)
        if kind in (Ink, Run):
            with contextlib.suppress(ValueError):  # damaged: the document itself is asked, and says so
                gists[beside] = references.Gist.model_validate_json(kept.gist(key))

    def listed(folder: str) -> list[str]:
        return sorted(n for n in names.get(folder, ()) if n.endswith(".yml"))

    files = [(folder, n, *split(n)) for folder in ("ink", *runs) for n in listed(folder)]
    # By hand is written what takes longest to read: first, lest one process ends long after the others.
    jobs = [(GgufFiles, "gguf_files.yml"), *((Chips, f"chips/{n}") for n in listed("chips")), *((Ink if f == "ink" else Run, f"{f}/{n}") for f, n, _, word in files if not word)]
    told = kept.fill(_packed, [(kind, place, root) for kind, place in jobs if not {place, place.rpartition("/")[0]} & odd])
    for folder, kind, into in (("machines", Machine, ""), ("models", Model, ""), ("checks", Check, ""), ("latency", Latency, "latencies"), ("trials", Trials, ""), ("costs", Costs, "")):
        for n in listed(folder):
            read(kind, f"{folder}/{n}", into or folder, n.removesuffix(".yml"))
    kinds = {"seal": (Seal, "seals"), "withdrawn": (Withdrawal, "withdrawn"), "errata": (Errata, "errata"), "open": (OpenInk, "open_inks")}
    for folder, n, stem, word in sorted(files, key=lambda f: f[3] != "seal"):  # seals first: what they seal is checked by them
        if folder != "ink" and word in ("errata", "open"):
            problems.append(f"labdata/{folder}/{n}: file: belongs to ink, not to runs")
        elif not word:
            kind, into = (Ink, "inks") if folder == "ink" else (Run, "runs")
            read(kind, f"{folder}/{n}", into, f"{folder}/{stem}".split("/", 1)[1])
        else:
            kind, into = kinds[word]
            read(kind, f"{folder}/{n}", into, f"{folder}/{stem}" if word in ("seal", "withdrawn") else stem)
    for n in listed("chips"):
        read(Chips, f"chips/{n}", "chips", n.removesuffix(".yml"))
    if "gguf_files.yml" in names[""]:
        read(GgufFiles, "gguf_files.yml", "files", "gguf_files")
    tables, gguf_files = found.pop("chips"), found.pop("files").get("gguf_files")
    problems += references.chips_given_twice(tables)
    kept.done(used)
    lab = Lab(**found, files=digests, gists=gists, ink_sha256=ink_sha256, gguf_files=gguf_files, chips=[c for table in tables.values() for c in table.chips],
              chip_sources={name: source for table in tables.values() for name, source in table.sources.items()})
    problems += references.problems(lab, broken) + proof.problems(lab, broken)
    if problems:
        raise LabError(problems)
    return lab


def same_setting(result: Result, experiment: str, test: str, depth: int, model: str | None) -> bool:
    """Whether a result is of this experiment, test, depth and model (any, where None)."""
    return (
        result.experiment == experiment
        and result.test == test
        and result.depth == depth
        and model in (None, result.model)
    )
