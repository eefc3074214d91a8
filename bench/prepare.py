"""Before anything is timed: which machine this is, which weights, and the ink."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from bench import host as hosts
from bench import hub, plan, probe, surroundings, weights
from bench.chips import NOT_LISTED, Found, compute_gpus, named
from bench.host import Host
from bench.plan import PlanError, Test
from macros import gguf_header, hardware, history, labdata, predict
from macros.cards import Machine, Model, ShapeDoc, Specs, TensorDoc
from macros.fields import Compute, Quantity, Source, slug
from macros.guard import visible, words
from macros.inks import Ink
from macros.labdata import Lab
from macros.seals import TOOL, Stamp
from macros.structure import role


TRIES = 3  # of a probe, on a machine that others use meanwhile
PROBED_BUSY = "Its roofs were probed on a busy machine"


class UnknownChip(PlanError):
    """A GPU whose roofs are in no spec sheet the lab has; a probe of the CPU says nothing of it."""


@dataclass(frozen=True)
class Weights:
    """The files to run, by quantisation, and their cards."""

    cards: dict[str, Model]
    paths: dict[str, Path]

    @property
    def by_model(self) -> dict[str, Path]:
        """The files by their model's name."""
        return {card.id: self.paths[quant] for quant, card in self.cards.items()}


def machine(lab: Lab, host: Host, name: str | None, gpu: bool, say: Callable[[str], None], chosen: str | None = None, quiet: bool = False) -> Machine:
    """This machine's file, written now if there is none: spec sheet where the chip is known, else a probe.

    Args:
        gpu: the engine will compute on a GPU; its roofs, not the CPU's, are then what counts
        chosen: the id of a chip in labdata/chips, where the host alone does not tell which it is
        quiet: a probe waits for an idle machine

    Raises:
        PlanError: MACHINE names a file about other hardware, CHIP a chip this host is not.
        UnknownChip: the GPU's roofs are not known.
        probe.ProbeFailed: the probe gave no result.
    """
    unified = (host.cpu or "").startswith("Apple")
    if chosen and not (gpu or unified):
        raise PlanError(f"CHIP: no GPU computes here, and a CPU's roofs are probed; got {chosen!r}; leave it out")
    found = _chosen(lab, host, chosen) if chosen else hosts.lookup(host, lab.chips)
    chip = found.chip if gpu or unified else None
    chip_name = chip.name if chip else (hosts.chip_key(host) if gpu else host.board or host.cpu) or "unknown chip"
    # A box is sold by the GiB its firmware then takes a little from: 23.4 read is 24 on the label.
    # A card's own memory is what the weights must fit in.
    card = next((g.memory_bytes for g in compute_gpus(host.gpus)), None) if chip and chip.kind == "gpu" else None
    memory = card or host.memory_bytes or 1
    memory_gib = -(-memory // 2**30)
    cores = hosts.default_threads(host)  # whatever THREADS says: a roof is the machine's
    title = f"{chip_name}, {memory_gib} GB" if gpu else f"{chip_name}, {cores} core{'s' if cores > 1 else ''}, {memory_gib} GB"
    ident = name or slug(title)
    if ident in lab.machines:
        known = lab.machines[ident]
        if known.chip not in (chip_name, host.cpu) and not chip_name.startswith(known.chip):
            raise PlanError(f"MACHINE: labdata/machines/{ident}.yml is about another chip; it says {known.chip!r}, this is {chip_name!r}")
        if any(note.startswith(PROBED_BUSY) for note in known.notes):
            say(f"labdata/machines/{ident}.yml: specs: probed on a busy machine, perhaps too low; without the file the next bench probes anew")
        return known
    sources = {"host": Source(title="The operating system", kind="measured", note="memory as the system reports it")}
    notes = ["A virtual machine."] if host.virtual else []
    if chip:
        bandwidth, peak, cited = hardware.roofs(chip, lab.chip_sources)
        sources |= cited
    elif gpu:
        why = "; ".join([found.why_not, *host.remarks])
        choose = f"; CHIP={'|'.join(c.id for c in found.could_be)} chooses" if found.could_be else ""
        raise UnknownChip(f"machine: the roofs of {chip_name} are not known ({why}){choose}; "
                          f"labdata/machines/{ident}.yml with its bandwidth and source would tell (labdata/README.md has every key)")
    else:
        swept = probe.sweep(cores, min(host.logical_cores or cores, host.usable_cpus or cores))
        say(f"No spec sheet for this chip: probing read bandwidth and matmul rate, about {3 + 2 * len(swept)} s")
        bandwidth, peak, sources["probe-read"], sources["probe-matmul"], busy = _probe(cores, swept, quiet, say)
        if busy > surroundings.QUIET_LOAD:
            notes.append(f"{PROBED_BUSY}, others on {busy:.0%} of its cores: they may be too low.")
    document = Machine(
        schema=1, id=ident, name=title, chip=chip_name, os=host.os or "unknown", cores=host.physical_cores,
        specs=Specs(memory_bandwidth=bandwidth, peak_compute=peak,
                    memory=Quantity(value=round(memory / 2**30, 1), unit="GiB", source="host")),
        notes=notes, sources=sources)  # fmt: skip
    labdata.write(labdata.ROOT / "machines" / f"{ident}.yml", document)
    return document


def _chosen(lab: Lab, host: Host, ident: str) -> Found:
    """The chip the user says this is, unless the host says otherwise.

    Raises:
        PlanError: no such chip, or not one this host could be.
    """
    try:
        chip = named(ident, lab.chips)
    except LookupError as error:
        raise PlanError(str(error)) from None
    seen = hosts.lookup(host, lab.chips)
    if chip not in seen.could_be and seen.why_not != NOT_LISTED:
        why = f"this host could be {', '.join(c.id for c in seen.could_be)}" if seen.could_be else seen.why_not
        raise PlanError(f"CHIP: not this host; got {ident!r}; {why}")
    return Found(chip, [chip])


def _probe(threads: int, swept: list[int], quiet: bool, say: Callable[[str], None]) -> tuple[Quantity, Compute, Source, Source, float]:
    """Both roofs; reading at each number of threads, of which the best is the roof; and the share of the cores others used meanwhile (fraction).

    What others take is missing from a roof: a probe they disturbed is repeated, and the best of all is kept.
    """
    patience = surroundings.Patience(surroundings.PATIENCE_S if quiet else 0)
    look = partial(surroundings.look, hosts.busy_share)
    tries: list[list[probe.ProbeResult]] = []
    shares: list[float] = []
    while not tries or (shares[-1] > surroundings.QUIET_LOAD and len(tries) < TRIES):
        if tries:
            say(f"Others used {shares[-1]:.0%} of the cores meanwhile: probing again, {len(tries) + 1} of at most {TRIES}")
        if quiet:
            patience.wait(look(), say, look)
        watch = hosts.Watch()
        tries.append([*(probe.read_bandwidth(n) for n in swept), probe.matmul_flops(threads)])
        shares.append(watch.share())
    *reads, matmul = (max(same, key=lambda r: r.value) for same in zip(*tries, strict=True))
    read = max(reads, key=lambda r: r.value)
    by_threads = "; best by threads in GB/s: " + ", ".join(f"{r.n_threads}: {r.value / 1e9:.2f}" for r in reads)
    when = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {', '.join(f'{s:.0%}' for s in shares)} of the cores in use by others meanwhile"
    if len(tries) > 1:
        when += f", the best of {len(tries)} probes"

    def source(title: str, result: probe.ProbeResult, more: str = "") -> Source:
        samples = ", ".join(f"{s / 1e9:.2f}" for s in result.samples)
        note = f"{result.method}; {result.n_threads} threads; numpy {result.numpy}, {result.blas}; {when}; rounds in G{result.unit}: {samples}{more}"
        return Source(title=title, kind="measured", note=note)

    bandwidth = Quantity(value=round(read.value / 1e9, 2), unit="GB/s", source="probe-read", note="measured by a probe, not a spec sheet's figure")
    peak = Compute(value=round(matmul.value / 1e9, 1), unit="GFLOP/s", source="probe-matmul", precision="fp32", note="measured by a probe, not a spec sheet's figure")
    return bandwidth, peak, source("Read-bandwidth probe of the CPU", read, by_threads), source("Matmul probe of the CPU", matmul), shares[-1]


def cache_dir() -> Path:
    """Where synthetic weights are kept between runs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "inklab" / "models"


def shapes(lab: Lab) -> list[str]:
    """The synthetic shapes labdata/models has in both formats."""
    ids = [m.id for m in lab.models.values() if m.weights == "synthetic"]
    return sorted(i.removesuffix("-q8_0-synthetic") for i in ids if i.endswith("-q8_0-synthetic"))


def synthetic(lab: Lab, shape: str, quants: list[str]) -> dict[str, Model]:
    """The cards of a synthetic shape by quantisation.

    Raises:
        LabError: no such card.
    """
    return {q: lab.get("models", f"{shape}-{q.lower()}-synthetic") for q in quants}


def write_weights(cards: dict[str, Model], on_progress: Callable[[Model], Callable[[int, int], None]]) -> Weights:
    """The synthetic files of some cards, written where they are not there yet.

    Raises:
        PlanError: too little disk space.
    """
    paths = {}
    for quant, card in cards.items():
        shape_id = card.id.removesuffix(f"-{quant.lower()}-synthetic")
        try:
            paths[quant] = weights.ensure(cache_dir(), shape_id, card.dims, quant, on_progress(card))
        except OSError as error:
            raise PlanError(f"weights: {card.id} cannot be written; {error}") from None
    return Weights(cards, paths)


def own_model(lab: Lab, spec: str, quant: str) -> Weights:
    """The user's file in the place of the plan's `quant`, its card written from its header if there is none.

    Raises:
        PlanError: no such file, not a GGUF, or an architecture the physics here does not know.
    """
    path = hub.fetch(spec) if spec.startswith("hf:") else Path(spec).expanduser()
    if not path.is_file():
        raise PlanError(f"MODEL: no such file; got {spec!r}")
    try:
        header = gguf_header.read_header(path)
    except (ValueError, OSError) as error:
        raise PlanError(f"MODEL: {path.name}: {str(error).removeprefix(f'{path}: ')}") from None
    kind = "synthetic" if header.synthetic else "published"
    ident = slug(path.stem)
    try:
        card = Model(
            schema=1, id=ident, name=_named(header.name, path.stem) + (", synthetic weights" if header.synthetic else ""),
            quant=header.quant, weights=kind, hf=spec.removeprefix("hf:") if spec.startswith("hf:") else None,
            shape=ShapeDoc.of(header.shape, "header"), tensors=_grouped(header),
            sources={"header": Source(title="The file's own GGUF header", kind="published", note=f"read from {path.name}")})  # fmt: skip
    except ValidationError as error:  # a header that is whole and says what cannot be
        raise PlanError("\n".join(labdata.said(Model, f"MODEL: {path.name}", error))) from None
    if ident in lab.models:
        known = lab.models[ident]
        if (known.dims, sorted(t.n_bytes for t in known.table())) != (card.dims, sorted(t.n_bytes for t in card.table())):
            raise PlanError(f"MODEL: labdata/models/{ident}.yml describes another file of that name; rename {path.name}")
        card = known
    else:
        labdata.write(labdata.ROOT / "models" / f"{ident}.yml", card)
    return Weights({quant: card}, {quant: path})


def _named(said: str, stem: str) -> str:
    """A model's name as its header gives it, where it is fit to be one; else its file's."""
    said = " ".join(visible(said).split())[:150]
    return stem[:150] if not said or words(said) else said


def _grouped(header: gguf_header.Header) -> list[TensorDoc]:
    """Tensors alike in all but the layer number, as one entry each; those no step reads keep theirs."""
    counts: dict[tuple, int] = {}
    for t in header.tensors:
        reads = role(t.name, header.shape, header.shape.tied) != "unused"
        key = (re.sub(r"\.\d+\.", ".*.", t.name, count=1) if reads else t.name, tuple(t.shape), t.type)
        counts[key] = counts.get(key, 0) + t.count
    return [TensorDoc(name=n, shape=list(s), type=k, count=c) for (n, s, k), c in counts.items()]


def ink(lab: Lab, machine: Machine, ident: str, profile: str, tests: list[Test], cards: dict[str, Model]) -> Path:
    """Write the derived ink of a plan, before anything runs; the very same predictions that still wait for a run are not written twice."""
    models = {c.id: c for c in cards.values()}
    control = {t.target.experiment for t in tests if t.cpu_control}
    predictions = predict.derive(machine, models, [t.target for t in tests], control, plan.kv_types(tests))
    written_at = datetime.now(UTC).replace(microsecond=0)
    document = Ink(
        schema=1, id=ident, title=f"What {machine.name} should do, plan {profile}", machine=machine.id, author="derived",
        written_at=written_at, plan=profile, planned=[t.target.label for t in tests], predictions=predictions,
        sealed=Stamp(at=written_at, tool=TOOL, commit=history.head(labdata.ROOT)),
        written_note="Computed from the machine's roofs and the model's shapes; written by the bench before its first test.")  # fmt: skip
    path = labdata.ROOT / "ink" / f"{ident}.yml"
    for old in lab.inks.values():  # of a bench that died between its ink and its run
        same = (old.author, old.machine, old.plan, old.planned, old.predictions) == ("derived", machine.id, profile, document.planned, predictions)
        if same and old.dry_at <= written_at and f"ink/{old.id}" not in lab.withdrawn and not any(r.ink and r.ink.id == old.id for r in lab.runs.values()):
            return path.with_name(f"{old.id}.yml")
    labdata.write(path, document)
    return path
