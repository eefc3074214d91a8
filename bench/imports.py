"""What a log holds, as records of labdata: which machine, which models, which runs; all on disk, or nothing.

`prepare` is pure: bytes and a lab in, documents and a report out. `write` puts them on disk.
"""

from __future__ import annotations

import hashlib
import re
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from bench import import_cards, log_read, log_text
from bench.import_cards import ImportRefused
from bench.log_rows import Read, Row, Sitting
from macros import labdata, references, snapshot
from macros.cards import Machine, Model
from macros.fields import Source
from macros.labdata import Lab
from macros.records import IMPORTED, HostDoc, Instrument, Published, Result, Run

SHOWN = 12  # skipped lines a report lists one by one; the rest are counted


@dataclass
class Import:
    """All that an import writes, and what it says.

    Args:
        documents: (file below labdata, document) in the order they are written: what others name comes first
    """

    raw_name: str
    raw: bytes
    documents: list[tuple[str, BaseModel]] = field(default_factory=list)
    report: list[str] = field(default_factory=list)


def read_bytes(file: str | None) -> bytes:
    """A log's bytes, from a file or (None or "-") from standard input; never more than one past the limit.

    Raises:
        OSError: the file cannot be read.
        ImportRefused: nobody is writing to standard input.
    """
    if file not in (None, "-"):
        with open(file, "rb") as log:
            return log.read(log_text.MAX_BYTES + 1)
    if sys.stdin.isatty():
        raise ImportRefused("FILE: not given, and nothing is piped in; make import FILE=llama-bench.json MACHINE=my-laptop")
    return sys.stdin.buffer.read(log_text.MAX_BYTES + 1)


def prepare(data: bytes, shown: str, lab: Lab, machine: str | None = None, model: str | None = None, chip: str | None = None) -> Import:
    """The documents a log becomes.

    Args:
        shown: the file's name in messages
        machine: a machine of labdata, or the name of the one to make from the log
        model: a model of labdata that the log is about, or the model's name where the log gives none
        chip: a chip's id in labdata/chips, where the log alone does not tell which it is

    Raises:
        ImportRefused: every reason in one go; nothing was written.
    """
    if machine and not re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,79}", machine):
        raise ImportRefused(f"MACHINE: small letters, digits, dots and hyphens only; got {machine!r}")
    try:
        text = log_text.decode(data)
    except log_text.Refused as error:
        raise ImportRefused(f"{shown}: {error}") from None
    found = log_read.read(text)
    if not found.rows:
        raise ImportRefused("\n".join([
            f"{shown}: content: no test found; got {found.other_lines} lines of other text and {len(found.skipped)} that were no tests; "
            "known: llama-bench's json, jsonl, csv, sql and markdown, answers of llama-server, Ollama and LM Studio as JSON",
            *(f"{shown}: line {s.line}: {s.why}" for s in found.skipped[:SHOWN])]))  # fmt: skip
    names = sorted({row.model for row in found.rows})
    if model and len(names) > 1:
        raise ImportRefused(f"MODEL: the log is of {len(names)} models; got {model!r} for all of {', '.join(names[:SHOWN])}; leave it out")
    digest = hashlib.sha256(data).hexdigest()[:12]
    done = Import(raw_name=f"{IMPORTED}-{digest}.txt", raw=data)
    sittings: dict[Sitting, list[Row]] = {}
    for row in found.rows:
        sittings.setdefault(row.sitting, []).append(row)
    problems: list[str] = []
    machines: dict[str, Machine] = {}
    cards = import_cards.Cards(lab, done.raw_name, shown, model, problems)
    runs = []
    for n, (sitting, rows) in enumerate(sittings.items(), 1):
        ident = f"{IMPORTED}-{digest}" + (f"-{n}" if len(sittings) > 1 else "")
        try:
            where = import_cards.machine(lab, sitting, machine, machines, done.raw_name, chip)
        except (ImportRefused, ValidationError) as error:
            problems += [f"{shown}: {error}"] if isinstance(error, ImportRefused) else labdata.said(Machine, shown, error)
            continue
        try:
            results = [_result(row, card) for row in rows if (card := cards.of(row))]
            runs.append(_run(ident, where, sitting, rows, results, found, done.raw_name))
        except ValidationError as error:  # plain values that no record may hold
            problems += labdata.said(Run, f"{shown}: line {rows[0].line} or below", error)
    if problems:
        raise ImportRefused("\n".join(dict.fromkeys(problems)))
    elsewhere = sorted({r.machine for r in lab.runs.values() if r.id.startswith(f"{IMPORTED}-{digest}")} - {r.machine for r in runs})
    if elsewhere:
        raise ImportRefused(f"MACHINE: this very file was imported before, as measured on {elsewhere[0]}; got {runs[0].machine!r}; "
                            f"if that was wrong, remove labdata/runs/{elsewhere[0]}/{IMPORTED}-{digest}*.yml first")  # fmt: skip
    _fill(done, lab, found, text, runs, machines, cards)
    return done


def _fill(done: Import, lab: Lab, found: Read, text: str, runs: list[Run], machines: dict[str, Machine], cards: import_cards.Cards) -> None:
    """The documents that are new, in order, and the report."""
    say = done.report.append
    told = ", ".join(f"{n} from {kind}" for kind, n in found.formats.items() if n)
    say(f"Read {len(found.rows)} test{_s(found.rows)} ({told}); {found.other_lines} other line{_s(found.other_lines)} of text.")
    done.report += _skipped(found)
    fresh = []
    for run in runs:
        same = lab.runs.get(f"{run.machine}/{run.id}") or next(
            (r for r in lab.runs_of(run.machine) if (r.profile, r.results, r.instrument) == (IMPORTED, run.results, run.instrument)), None)
        if same:
            say(f"Already there: labdata/runs/{same.machine}/{same.id}.yml holds these {len(run.results)} test{_s(run.results)}; not written again.")
        else:
            fresh.append(run)
    used = {r.machine for r in fresh}
    for ident, card in cards.used.items():
        if any(r.model == ident for run in fresh for r in run.results):
            say(f"Model {ident}: {cards.why[ident]}.")
            if ident not in lab.models:
                done.documents.append((f"models/{ident}.yml", card))
    for ident in dict.fromkeys(r.machine for r in fresh):
        if ident in machines:
            say(f"Machine {ident}: new, its roofs from labdata/chips.")
    done.documents = [(f"machines/{i}.yml", m) for i, m in machines.items() if i in used] + done.documents
    done.documents += [(f"runs/{r.machine}/{r.id}.yml", r) for r in fresh]
    for run in fresh:
        done.report += [f"Note: {note}" for note in run.notes[1:]]
    done.report[:] = dict.fromkeys(done.report)
    if fresh:
        for words in log_text.personal(text)[:5]:
            say(f"Warning: the raw text holds {words!r} and is kept word for word in labdata/raw/{done.raw_name}; the records do not.")
        say("No prediction was written first, and the pages say so.")


def _s(things: Any) -> str:
    return "" if (things if isinstance(things, int) else len(things)) == 1 else "s"


def _skipped(found: Read) -> list[str]:
    lines = [f"Skipped line {s.line}: {s.why}." for s in found.skipped[:SHOWN]]
    more = len(found.skipped) - SHOWN
    return lines + ([f"Skipped {more} more line{_s(more)} of the kind."] if more > 0 else [])


def _result(row: Row, card: Model) -> Result:
    """A row as a result; what the log does not tell is null, not our default."""
    told = {"n_gpu_layers": row.n_gpu_layers, "n_threads": row.n_threads, "settings": row.settings, "started_at": row.tested_at}
    devices = _devices(row)
    return Result(
        experiment=IMPORTED, model=card.id, n_prompt=row.n_prompt, n_gen=row.n_gen, depth=row.depth, backend=row.backend or "not told",
        n_batch=row.n_batch, n_ubatch=row.n_ubatch, type_k=row.type_k, type_v=row.type_v, flash_attn=row.flash_attn,  # type: ignore[arg-type]
        **{k: v for k, v in told.items() if v not in (None, {})}, **({"n_devices": devices} if devices > 1 else {}),
        **({"samples_ns": list(row.samples_ns)} if row.samples_ns else
           {"published": Published(mean_tok_s=row.mean_tok_s, sigma_tok_s=row.sigma_tok_s, n=None)}))  # fmt: skip


def _devices(row: Row) -> int:
    """How many devices shared the work, as far as the log tells; another host over RPC counts as one."""
    if row.settings.get("split_mode") == "none":
        return 1
    chosen = row.settings.get("devices", "")
    return (chosen.count("/") + 1 if chosen else max(1, len(row.sitting.gpus))) + ("RPC" in (row.backend or "") and not chosen)


def _run(ident: str, machine: Machine, sitting: Sitting, rows: list[Row], results: list[Result], found: Read, raw: str) -> Run:
    times = [row.tested_at for row in rows if row.tested_at]
    name = f"{sitting.clock}, of a fork or edited by hand" if sitting.foreign else sitting.clock
    return Run(
        schema=1, id=ident, machine=machine.id, ink=None, profile=IMPORTED, started_at=min(times, default=None),
        command=f"not recorded; the log is labdata/raw/{raw}",
        instrument=Instrument(name=name, version=None, engine="llama.cpp or a fork of it" if sitting.foreign else sitting.engine,
                              engine_version=sitting.build, protocol=sitting.protocol),
        host=HostDoc(os=None, cpu=sitting.cpu, gpus=[g.name for g in sitting.gpus]),
        notes=_notes(sitting, rows, results, found), results=results,
        sources={"log": Source(title="The log as it came, word for word", kind="measured", raw=raw)})  # fmt: skip


def _notes(sitting: Sitting, rows: list[Row], results: list[Result], found: Read) -> list[str]:
    """What a reader of the run must know; the first says where it came from."""
    lines = ", ".join(str(s.line) for s in found.skipped[:SHOWN]) + (", …" if len(found.skipped) > SHOWN else "")
    notes = ["Imported; " + (f"of the log's {len(found.skipped) + len(found.rows)} tests, {len(found.skipped)} could not be read (line {lines})."
                             if found.skipped else "every test of the log was read.")]
    if sitting.foreign:
        notes.append(f"Columns that llama.cpp's llama-bench does not have: {', '.join(sitting.foreign)}.")
    bare = [row for row in rows if row.samples_ns is None]
    if bare and sitting.protocol == "llama-bench":
        notes.append("The log keeps no samples: mean and σ are as printed, and how many repetitions there were is not told.")
    if any(row.sigma_tok_s is None for row in bare):
        n = sum(row.sigma_tok_s is None for row in bare)
        notes.append(f"σ is not known for {n} test{_s(n)}: none was printed, or 0, which llama-bench prints for one repetition too.")
    most = max(r.n_devices for r in results) if results else 1
    if most > 1:
        notes.append(f"Up to {most} devices shared the work; the machine's roofs are those of one.")
    said: dict[str, list[int]] = {}
    for row in rows:
        for note in row.notes:
            said.setdefault(note, []).append(row.line)
    return notes + [f"Line {', '.join(map(str, at[:5]))}{', …' if len(at) > 5 else ''}: {note}." for note, at in said.items()]


def write(done: Import, lab: Lab, root: Path) -> list[Path]:
    """Everything on disk, or nothing: what was written before a failure is taken back.

    Returns: the runs' files.

    Raises:
        ImportRefused: the records contradict what is in labdata.
        OSError: the disk refused; labdata is as before.
    """
    if not done.documents:
        return []
    after = _with(lab, done.documents)
    problems = references.problems(after, set())
    if problems:
        raise ImportRefused("\n".join(problems))
    with labdata.all_or_none() as written:
        raw = root / "raw" / done.raw_name
        if not raw.exists():
            written.append(raw)
            labdata.write_bytes(raw, done.raw)
        for name, document in done.documents:
            written.append(root / name)
            labdata.write(root / name, document)
    return [root / name for name, document in done.documents if isinstance(document, Run)]


def _with(lab: Lab, documents: list[tuple[str, BaseModel]]) -> Lab:
    """The lab as it will be."""
    machines, models, runs = snapshot.Shelf(lab.machines), snapshot.Shelf(lab.models), snapshot.Shelf(lab.runs)
    for name, document in documents:
        table: dict[str, Any] = {"machines": machines, "models": models, "runs": runs}[name.split("/")[0]]
        table[name.partition("/")[2].removesuffix(".yml")] = document
    new = {name.removesuffix(".yml") for name, _ in documents}
    return replace(lab, machines=machines, models=models, runs=runs, gists={name: gist for name, gist in lab.gists.items() if name not in new})
