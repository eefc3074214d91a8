"""Whose machine and which model a log is about: cards of labdata that fit, or new ones made from the log and the chip table."""

from __future__ import annotations

import re
from dataclasses import replace

from bench import host as hosts
from bench.chips import named
from bench.host import Host
from bench.log_rows import Amount, Row, Sitting
from macros import hardware, work
from macros.cards import Machine, Model, Specs
from macros.fields import Quantity, Source, slug
from macros.labdata import Lab

QUANT = re.compile(r"((?:UD-)?(?:I?Q|TQ)\d\S*(?: - \w+)?|MXFP4(?: MoE)?|NVFP4|BF16|F16|(?:all )?F32)$")
# Words that make another chip of the same name: an "M4" is not an "M4 Pro".
VARIANTS = {"pro", "max", "ultra", "ti", "super", "xt", "xtx", "gre", "laptop", "mobile", "d"}
NOISE = {"amd", "nvidia", "intel", "geforce", "radeon", "graphics", "r", "tm", "cpu", "gpu", "core", "cores", "processor", "with", "w", "gb"}


class ImportRefused(Exception):
    """Why nothing was imported, one line a problem."""


def machine(lab: Lab, sitting: Sitting, name: str | None, made: dict[str, Machine], raw: str, as_chip: str | None = None) -> Machine:
    """The machine a sitting belongs to: the named one if nothing contradicts it, else one made from the chip table.

    Args:
        as_chip: the id of a chip in labdata/chips, where the log alone does not tell which it is

    Raises:
        ImportRefused: another chip than the log's, an unknown chip, several that it could be, or nothing to go by.
    """
    try:
        said = named(as_chip, lab.chips) if as_chip else None
    except LookupError as error:
        raise ImportRefused(str(error)) from None
    names = [g.name for g in sitting.gpus]
    if sitting.cpu and (not names or any(_words(n) <= _words(sitting.cpu) for n in names)):
        names.insert(0, sitting.cpu)  # the chip that computes, or one chip with its GPU; else the roofs are the GPU's
    if name in lab.machines:
        known = lab.machines[name]
        if names and not any(same_chip(known.chip, n) for n in names):
            raise ImportRefused(f"MACHINE: labdata/machines/{name}.yml is about another chip; it says {known.chip!r}, the log {' and '.join(map(repr, names))}")
        if said and not same_chip(known.chip, said.name):
            raise ImportRefused(f"CHIP: labdata/machines/{name}.yml is about another chip; it says {known.chip!r}; got {as_chip!r}")
        return known
    # A driver's remark in brackets is not part of the name: AMD Radeon RX 7900 XTX (RADV NAVI31)
    gpus = list(dict.fromkeys(replace(g, name=re.sub(r" \([^)]*\)$", "", g.name)) for g in sitting.gpus))
    apple = next((g.name for g in gpus if g.name.startswith("Apple ")), None)  # Metal's log names the GPU, which is the chip
    host = Host(cpu=sitting.cpu or apple, gpus=gpus)
    found = hosts.lookup(host, lab.chips)
    said = said or next((c for c in lab.chips if c.id == name), None)
    could, chip = found.could_be, said or found.chip
    if said and names and said not in could and not any(same_chip(said.name, n) for n in names):
        raise ImportRefused(f"{'CHIP' if as_chip else 'MACHINE'}: another chip than the log's; got {said.id!r}, the log says {' and '.join(map(repr, names))}")
    if chip is None:
        why = f"could be {', '.join(f'{c.name}, CHIP={c.id}' for c in could)}" if could else f"{' and '.join(map(repr, names))}: {found.why_not}" if names else "the log names no chip"
        known = f"; known machines: {', '.join(sorted(lab.machines))}"
        if name:
            raise ImportRefused(f"MACHINE: no such file in labdata/machines, and none can be made from the log ({why}); got {name!r}{known}; "
                                f"labdata/machines/{name}.yml with its bandwidth and source would tell (labdata/README.md has every key)")
        raise ImportRefused(f"MACHINE: not given, and the log does not tell ({why}); say MACHINE=<name>{known}; or CHIP=<its id in labdata/chips>")
    ident = name or slug(chip.name)
    if ident in lab.machines:
        return machine(lab, sitting, ident, made, raw, as_chip)
    if ident in made and made[ident].chip != chip.name:
        raise ImportRefused(f"MACHINE: the log is of several machines; got {made[ident].chip!r} and {chip.name!r}; leave MACHINE out, or split the file")
    bandwidth, peak, sources = hardware.roofs(chip, lab.chip_sources)
    memory = next((Quantity(value=g.memory_bytes // 2**20, unit="MiB", source="log") for g in gpus if g.memory_bytes), None)
    if memory is None and len(chip.memory_gb) == 1:
        memory = Quantity(value=chip.memory_gb[0], unit="GB", source=bandwidth.source)
    specs = Specs(memory_bandwidth=bandwidth, memory=memory, peak_compute=peak)
    sources["log"] = Source(title="An imported log", kind="published", raw=raw)
    made[ident] = Machine(schema=1, id=ident, name=chip.name if name in (None, chip.id) else f"{chip.name} ({name})", chip=chip.name, os="not recorded",
                          cores=None, specs=specs, notes=["Known from an imported log and the table of chips alone."], sources=sources)  # fmt: skip
    return made[ident]


def same_chip(ours: str, theirs: str) -> bool:
    """Whether two names may mean the same chip: one's words hold the other's, variants aside.

    >>> same_chip("AMD EPYC", "AMD EPYC 7763 64-Core Processor"), same_chip("Apple M4", "Apple M4 Pro")
    (True, False)
    """
    a, b = _words(ours), _words(theirs)
    return bool(a and b) and (a <= b or b <= a) and not (a ^ b) & VARIANTS


def _words(name: str) -> set[str]:
    """The words of a chip's name that tell it from others."""
    return set(re.findall(r"[a-z0-9]+", re.sub(r"\([^)]*\)", "", name).lower())) - NOISE


class Cards:
    """The model cards a log's rows attach to, each decided once."""

    def __init__(self, lab: Lab, raw: str, shown: str, name: str | None, problems: list[str]) -> None:
        self.lab, self.raw, self.shown, self.name, self.problems = lab, raw, shown, name, problems
        self.sizes: dict[str, tuple[float | None, float | None]] = {
            c.id: (work.total_bytes(c.table()), work.total_params(c.table())) if c.shape else (c.file_size and c.file_size.si, c.params and c.params.si)
            for c in lab.models.values()}  # fmt: skip
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
                raise ImportRefused(f"MODEL: labdata/models/{card.id}.yml is of another size; the log says {printed(row.size)}, {printed(row.params)}; got {card.id!r}")
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
        """Whether a card has the log's size and parameters, as far as both tell them; of tensors, as llama-bench counts."""
        pairs = zip(self.sizes[card.id], (row.size, row.params), strict=True)
        return all(told is None or ours is None or abs(told.si - ours) <= told.slack + tolerance * ours for ours, told in pairs)

    def _reported(self, row: Row) -> Model:
        """A card of what the log says, and no more: no dimensions, so no physics."""
        told = [printed(a) for a in (row.size, row.params) if a]
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


def printed(amount: Amount | None) -> str:
    """A size or a parameter count as llama-bench's table prints it: "3.56 GiB", "6.74 B".

    >>> printed(Amount(3825065984, "B")), printed(Amount(596049920, "params"))
    ('3.56 GiB', '596.05 M')
    """
    if amount is None:
        return "not told"
    units = ((2**30, "GiB"), (2**20, "MiB")) if amount.unit != "params" else ((1e9, "B"), (1e6, "M"))
    scale, word = units[0] if amount.si >= units[0][0] else units[1]
    return f"{amount.si / scale:.2f} {word}"
