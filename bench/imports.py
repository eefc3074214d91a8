"""What a log holds, as records of labdata: which machine, which models, which runs; all on disk, or nothing.

`prepare` is pure: bytes and a lab in, documents and a report out. `write` puts them on disk.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from bench import host as hosts
from bench import log_read, log_text
from bench.host import Host
from bench.log_rows import Amount, Read, Row, Sitting
from macros import labdata, references, work
from macros.cards import Machine, Model, Specs
from macros.fields import Compute, Quantity, Source, slug
from macros.labdata import Lab
from macros.records import IMPORTED, HostDoc, Instrument, Published, Result, Run

SHOWN = 12  # skipped lines a report lists one by one; the rest are counted
QUANT = re.compile(r"((?:UD-)?(?:I?Q|TQ)\d\S*(?: - \w+)?|MXFP4(?: MoE)?|NVFP4|BF16|F16|(?:all )?F32)$")
# Words that make another chip of the same name: an "M4" is not an "M4 Pro".
VARIANTS = {"pro", "max", "ultra", "ti", "super", "xt", "xtx", "gre", "laptop", "mobile", "d"}
NOISE = {"amd", "nvidia", "intel", "geforce", "radeon", "graphics", "r", "tm", "cpu", "gpu", "core", "cores", "processor", "with", "w", "gb"}


class ImportRefused(Exception):
    """Why nothing was imported, one line a problem."""


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


def prepare(data: bytes, shown: str, lab: Lab, machine: str | None = None, model: str | None = None) -> Import:
    """The documents a log becomes.

    Args:
        shown: the file's name in messages
        machine: a machine of labdata, or the name of the one to make from the log
        model: a model of labdata that the log is about, or the model's name where the log gives none

    Raises:
        ImportRefused: every reason in one go; nothing was written.
    """
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
    digest = hashlib.sha256(data).hexdigest()[:12]
    done = Import(raw_name=f"{IMPORTED}-{digest}.txt", raw=data)
    sittings: dict[Sitting, list[Row]] = {}
    for row in found.rows:
        sittings.setdefault(row.sitting, []).append(row)
    problems: list[str] = []
    if machine and not re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,79}", machine):
        raise ImportRefused(f"MACHINE: small letters, digits, dots and hyphens only; got {machine!r}")
    machines: dict[str, Machine] = {}
    cards = _Cards(lab, done.raw_name, shown, model, problems)
    runs = []
    for n, (sitting, rows) in enumerate(sittings.items(), 1):
        ident = f"{IMPORTED}-{digest}" + (f"-{n}" if len(sittings) > 1 else "")
        try:
            where = _machine(lab, sitting, machine, machines, done.raw_name)
        except ImportRefused as error:
            problems.append(f"{shown}: {error}")
            continue
        results = [_result(row, card) for row in rows if (card := cards.of(row))]
        runs.append(_run(ident, where, sitting, rows, results, found, done.raw_name))
    if problems:
        raise ImportRefused("\n".join(dict.fromkeys(problems)))
    elsewhere = sorted({r.machine for r in lab.runs.values() if r.id.startswith(f"{IMPORTED}-{digest}")} - {r.machine for r in runs})
    if elsewhere:
        raise ImportRefused(f"MACHINE: this very file was imported before, as measured on {elsewhere[0]}; got {runs[0].machine!r}; "
                            f"if that was wrong, remove labdata/runs/{elsewhere[0]}/{IMPORTED}-{digest}*.yml first")  # fmt: skip
    _fill(done, lab, found, text, runs, machines, cards)
    return done


def _fill(done: Import, lab: Lab, found: Read, text: str, runs: list[Run], machines: dict[str, Machine], cards: _Cards) -> None:
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
            say(f"Machine {ident}: new, its roofs from labdata/chips.yml.")
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


def _machine(lab: Lab, sitting: Sitting, name: str | None, made: dict[str, Machine], raw: str) -> Machine:
    """The machine a sitting belongs to: the named one if nothing contradicts it, else one made from the chip table.

    Raises:
        ImportRefused: another chip than the log's, an unknown chip, several that it could be, or nothing to go by.
    """
    names = [n for n in (sitting.cpu, *(g.name for g in sitting.gpus)) if n]
    if name in lab.machines:
        known = lab.machines[name]
        if names and not any(_same_chip(known.chip, n) for n in names):
            raise ImportRefused(f"MACHINE: labdata/machines/{name}.yml is about another chip; it says {known.chip!r}, the log {' and '.join(map(repr, names))}")
        return known
    # A driver's remark in brackets is not part of the name: AMD Radeon RX 7900 XTX (RADV NAVI31)
    gpus = list(dict.fromkeys(replace(g, name=re.sub(r" \([^)]*\)$", "", g.name)) for g in sitting.gpus))
    host = Host(cpu=sitting.cpu, gpus=gpus)
    chip, could = hosts.find_chip(host, lab.chips), hosts.chip_candidates(host, lab.chips)
    if chip is None:
        why = f"could be {', '.join(c.name for c in could)}" if could else f"{' and '.join(map(repr, names))}: not in labdata/chips.yml" if names else "the log names no chip"
        known = f"; known machines: {', '.join(sorted(lab.machines))}"
        if name:
            raise ImportRefused(f"MACHINE: no such file in labdata/machines, and none can be made from the log ({why}); got {name!r}{known}; "
                                f"labdata/machines/{name}.yml with its bandwidth and source would tell (labdata/README.md has every key)")
        raise ImportRefused(f"MACHINE: not given, and the log does not tell ({why}); say MACHINE=<name>{known}")
    ident = name or slug(chip.name)
    if ident in lab.machines:
        return _machine(lab, sitting, ident, made, raw)
    if ident in made and made[ident].chip != chip.name:
        raise ImportRefused(f"MACHINE: the log is of several machines; got {made[ident].chip!r} and {chip.name!r}; leave MACHINE out, or split the file")
    memory = next((Quantity(value=g.memory_bytes // 2**20, unit="MiB", source="log") for g in gpus if g.memory_bytes), None)
    if memory is None and "memory_gb" in chip.match:
        memory = Quantity(value=chip.match["memory_gb"], unit="GB", source=chip.memory_bandwidth.source)
    specs = Specs(memory_bandwidth=chip.memory_bandwidth, memory=memory,
                  peak_compute=Compute(**chip.peak_fp16.model_dump(exclude_unset=True), precision="fp16") if chip.peak_fp16 else None)
    sources = {q.source: lab.chip_sources[q.source] for q in (chip.memory_bandwidth, chip.peak_fp16) if q}
    sources["log"] = Source(title="An imported log", kind="published", raw=raw)
    made[ident] = Machine(schema=1, id=ident, name=chip.name if not name else f"{chip.name} ({name})", chip=chip.name, os="not recorded",
                          cores=None, specs=specs, notes=["Known from an imported log and the table of chips alone."], sources=sources)  # fmt: skip
    return made[ident]


def _same_chip(ours: str, theirs: str) -> bool:
    """Whether two names may mean the same chip: one's words hold the other's, variants aside.

    >>> _same_chip("AMD EPYC", "AMD EPYC 7763 64-Core Processor"), _same_chip("Apple M4", "Apple M4 Pro")
    (True, False)
    """
    a, b = (set(re.findall(r"[a-z0-9]+", re.sub(r"\([^)]*\)", "", s).lower())) - NOISE for s in (ours, theirs))
    return bool(a and b) and (a <= b or b <= a) and not (a ^ b) & VARIANTS


class _Cards:
    """The model cards a log's rows attach to, each decided once."""

    def __init__(self, lab: Lab, raw: str, shown: str, name: str | None, problems: list[str]) -> None:
        self.lab, self.raw, self.shown, self.name, self.problems = lab, raw, shown, name, problems
        self.tables = {c.id: (work.total_bytes(c.table()), work.total_params(c.table())) for c in lab.models.values() if c.shape}
        self.used: dict[str, Model] = {}
        self.why: dict[str, str] = {}
        self.decided: dict[tuple, Model | None] = {}

    def of(self, row: Row) -> Model | None:
        """A row's card; None where there is none, and the problem is noted."""
        key = (row.model, row.size, row.params, row.file)
        if key not in self.decided:
            try:
                self.decided[key] = self._decide(row)
            except ImportRefused as error:
                self.problems.append(f"{self.shown}: line {row.line}: {error}")
                self.decided[key] = None
        return self.decided[key]

    def _decide(self, row: Row) -> Model:
        if self.name in self.lab.models:
            card = self.lab.models[self.name]
            if not self._fits(card, row, 0.01):
                raise ImportRefused(f"MODEL: labdata/models/{card.id}.yml is of another size; the log says {_printed(row.size)}, {_printed(row.params)}; got {card.id!r}")
            return self._keep(card, "as MODEL says")
        if self.name and row.model:
            raise ImportRefused(f"MODEL: no such file in labdata/models; got {self.name!r}; known: {', '.join(sorted(self.lab.models))}")
        if not row.model and not self.name:
            raise ImportRefused("model: the log names none; MODEL=<name> says which")
        kind = "synthetic" if "synthetic" in (row.file or "") else "published"
        alike = [c for c in self.lab.models.values() if c.weights == kind and row.size and row.params
                 and c.shape and row.model.split()[0] == c.shape.arch and self._fits(c, row, 0.0)]  # fmt: skip
        if len(alike) == 1:
            return self._keep(alike[0], "the log's bytes and parameters are those of its tensor table")
        return self._reported(replace(row, model=row.model or str(self.name)))

    def _fits(self, card: Model, row: Row, tolerance: float) -> bool:
        """Whether a card's tensor table has the log's size and parameters, as far as the log tells them."""
        if card.id not in self.tables:
            return True
        pairs = zip(self.tables[card.id], (row.size, row.params), strict=True)
        return all(told is None or abs(told.si - ours) <= told.slack + tolerance * ours for ours, told in pairs)

    def _reported(self, row: Row) -> Model:
        """A card of what the log says, and no more: no dimensions, so no physics."""
        told = [_printed(a) for a in (row.size, row.params) if a]
        ident = slug(" ".join([row.model[:40], *told]).replace(" GiB", "gib").replace(" MiB", "mib").replace(" B", "b").replace(" M", "m"))[:70] + "-reported"
        if ident in self.lab.models:
            return self._keep(self.lab.models[ident], "as reported before")
        quant = QUANT.search(row.model)
        card = Model(
            schema=1, id=ident, name=f"{row.model} ({', '.join([*told, 'as reported'])})", quant=row.quant or (quant[1] if quant else "not told"),
            weights="reported", hf=None, shape=None,
            params=Quantity(value=row.params.value, unit="params", source="log") if row.params else None,
            file_size=Quantity(value=row.size.value, unit=row.size.unit, source="log") if row.size else None,
            sources={"log": Source(title="An imported log", kind="published", raw=self.raw)})  # fmt: skip
        return self._keep(self.used.get(ident, card), "new, as the log reports it; its dimensions are not known, so nothing is predicted about it")

    def _keep(self, card: Model, why: str) -> Model:
        self.used[card.id], self.why[card.id] = card, self.why.get(card.id, why)
        return card


def _printed(amount: Amount | None) -> str:
    """A size or a parameter count as llama-bench's table prints it: "3.56 GiB", "6.74 B".

    >>> _printed(Amount(3825065984, "B")), _printed(Amount(596049920, "params"))
    ('3.56 GiB', '596.05 M')
    """
    if amount is None:
        return "not told"
    units = ((2**30, "GiB"), (2**20, "MiB")) if amount.unit != "params" else ((1e9, "B"), (1e6, "M"))
    scale, word = units[0] if amount.si >= units[0][0] else units[1]
    return f"{amount.si / scale:.2f} {word}"


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
    problems = references.problems(after, root, set())
    if problems:
        raise ImportRefused("\n".join(problems))
    written: list[Path] = []
    try:
        raw = root / "raw" / done.raw_name
        if not raw.exists():
            written.append(raw)
            labdata.write_bytes(raw, done.raw)
        for name, document in done.documents:
            written.append(root / name)
            labdata.write(root / name, document)
    except BaseException:
        for path in reversed(written):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        raise
    return [root / name for name, document in done.documents if isinstance(document, Run)]


def _with(lab: Lab, documents: list[tuple[str, BaseModel]]) -> Lab:
    """The lab as it will be."""
    machines, models, runs = dict(lab.machines), dict(lab.models), dict(lab.runs)
    for name, document in documents:
        table: dict[str, Any] = {"machines": machines, "models": models, "runs": runs}[name.split("/")[0]]
        table[name.partition("/")[2].removesuffix(".yml")] = document
    return replace(lab, machines=machines, models=models, runs=runs)
