"""From what a host says of itself to a row of the hardware table: one row, the rows it could be, or none; never a guess."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from bench.gpu_parse import UNNAMED_AMD, Gpu
from bench.host_parse import generic_cpu, rated_cores
from macros.hardware import Chip

# "24 GB" on the box is 24 GiB less what ECC and the driver take (22919 MiB of a Tesla P40)
CARD_TAKES, OVER = 0.08, 0.08
# firmware and a processor's own GPU keep more of a machine's memory
MACHINE_TAKES = 0.2
NOT_LISTED = "not in labdata/chips"


@dataclass(frozen=True)
class Facts:
    """What tells chips apart: CPU and board by name, physical cores, memory [B], the GPUs the engine would use."""

    cpu: str | None = None
    board: str | None = None
    physical_cores: int | None = None
    logical_cores: int | None = None
    memory_bytes: int | None = None
    gpus: tuple[Gpu, ...] = ()


@dataclass(frozen=True)
class Found:
    """The chip whose roofs hold here, or why there is none; `could_be` names the rows still possible."""

    chip: Chip | None
    could_be: list[Chip]
    why_not: str = ""


def bare(name: str) -> str:
    """A device name without what drivers add: vendor, marks, what stands in parentheses, "Graphics".

    >>> bare("AMD Radeon RX 7900 XTX (RADV NAVI31)"), bare("Intel(R) Arc(TM) A770 Graphics")
    ('radeon rx 7900 xtx', 'arc a770')
    >>> bare("AMD RYZEN AI MAX+ 395 w/ Radeon 8060S"), bare("Raspberry Pi 5 Model B Rev 1.0")
    ('ryzen ai max+ 395', 'raspberry pi 5 model b')
    """
    text = re.sub(r"\([^)]*\)|[®™]", " ", name)
    text = re.split(r" w/| with radeon| - | rev \d", text, flags=re.I)[0]
    text = re.sub(r"^\s*(?:nvidia|amd|intel|qualcomm|ati)\b", "", " ".join(text.split()), flags=re.I).strip().lower()
    return text if "laptop" in text else text.removesuffix(" gpu").removesuffix(" graphics")


def names(name: str) -> set[str]:
    """Every name a device's name can mean; a chip of the PCI list stands for several cards.

    >>> sorted(names("Navi 21 [Radeon RX 6800/6800 XT / 6900 XT]"))
    ['radeon rx 6800', 'radeon rx 6800 xt', 'radeon rx 6900 xt']
    """
    listed = [inner for inner in re.findall(r"\[([^\]]+)\]", name) if not inner.startswith("0x")]
    if not listed:
        return {bare(name)}
    cards = [card.strip() for card in listed[-1].split("/") if card.strip()]
    family = re.match(r"\D*", cards[0])[0]  # type: ignore[index]
    return {bare(family + card if card[0].isdigit() else card) for card in cards}


def compute_gpus(gpus: list[Gpu]) -> list[Gpu]:
    """The GPUs an engine computes on: cards where there are any, else the processor's own."""
    return [g for g in gpus if not g.integrated] or gpus


def named(ident: str, table: list[Chip]) -> Chip:
    """The chip that CHIP= names.

    Raises:
        LookupError: no such chip; those with a name close to it.
    """
    chip = next((c for c in table if c.id == ident), None)
    if chip is None:
        close = difflib.get_close_matches(ident, [c.id for c in table], n=5, cutoff=0.3)
        raise LookupError(f"CHIP: no such chip in labdata/chips; got {ident!r}; close to it: {', '.join(close) or 'none'}")
    return chip


def lookup(facts: Facts, table: list[Chip]) -> Found:
    """The row of the table that holds for this host."""
    gpus = compute_gpus(list(facts.gpus))
    if len(gpus) > 1:
        each = " + ".join(_words(g, table, facts) for g in gpus)
        return Found(None, [], f"{len(gpus)} GPUs share the work ({each}), and the roofs of one do not hold for all")
    if gpus and gpus[0].partitioned:
        return Found(None, [], f"{gpus[0].name} is cut into slices, and a slice has not the whole card's bandwidth")
    own_names = [Gpu(name) for name in (facts.cpu, facts.board) if name]
    devices = gpus if any(_named(chip, g) for chip in table for g in gpus) or not all(g.integrated for g in gpus) else own_names
    if devices is own_names:
        if generic_cpu(facts.cpu) and not facts.board:
            return Found(None, [], f"{facts.cpu!r} names no chip" if facts.cpu else "no CPU is named")
        rated, here = rated_cores(facts.cpu), facts.physical_cores or facts.logical_cores
        if rated and here and here < rated:
            return Found(None, [], f"{here} cores of {facts.cpu}, which has {rated}: a slice has not the whole socket's bandwidth")
    known = [chip for chip in table if any(_named(chip, g) for g in devices)]
    fit = [chip for chip in known if any(_named(chip, g) and _fits(chip, g, facts) for g in devices)]
    if len(fit) == 1:
        return Found(fit[0], fit)
    if fit:
        return Found(None, fit, f"could be {' or '.join(chip.name for chip in fit)}")
    if known:
        return Found(None, [], "; ".join(_contradiction(known, g, facts) for g in devices if any(_named(c, g) for c in known)))
    return Found(None, [], NOT_LISTED)


def _named(chip: Chip, gpu: Gpu) -> bool:
    match = chip.match
    if match is None:
        return False
    mine = {name.lower() for name in match.names}
    if gpu.name.endswith("..."):  # nvidia-smi's table cuts names: the whole one is longer
        start = bare(gpu.name.removesuffix("..."))
        return any(name.startswith(start + " ") for name in mine)
    said = names(gpu.name)
    return bool(said & mine) or (gpu.pci in match.pci and (gpu.name == UNNAMED_AMD or "[0x" in gpu.name))


def _fits(chip: Chip, gpu: Gpu, facts: Facts) -> bool:
    match = chip.match
    assert match is not None
    if gpu.cores is not None and match.gpu_cores not in (None, gpu.cores):
        return False
    if match.cpu_cores and facts.physical_cores is not None and facts.physical_cores not in match.cpu_cores:
        return False
    size, takes = (gpu.memory_bytes, CARD_TAKES) if chip.kind == "gpu" else (facts.memory_bytes, MACHINE_TAKES)
    if size is None or not chip.memory_gb:
        return True
    return chip.memory_gb[0] * (1 - takes) <= size / 2**30 <= chip.memory_gb[-1] * (1 + OVER)


def _contradiction(known: list[Chip], gpu: Gpu, facts: Facts) -> str:
    """What no row of that name has: a made-up sample, a modified card, or a chip the table lacks."""
    said = []
    if gpu.cores is not None and gpu.cores not in {c.match.gpu_cores for c in known if c.match}:
        said.append(f"{gpu.cores} GPU cores")
    if facts.physical_cores is not None and all(c.match and c.match.cpu_cores and facts.physical_cores not in c.match.cpu_cores for c in known):
        said.append(f"{facts.physical_cores} CPU cores")
    memory = gpu.memory_bytes if known[0].kind == "gpu" else facts.memory_bytes
    if memory and not said:
        said.append(f"{memory / 2**30:.0f} GB")
    return f"no {gpu.name} is sold with {' and '.join(said) or 'these figures'}; known: {', '.join(c.name for c in known)}"


def _words(gpu: Gpu, table: list[Chip], facts: Facts) -> str:
    """A GPU by its row's name where one fits, else by its own."""
    fit = [chip for chip in table if _named(chip, gpu) and _fits(chip, gpu, facts)]
    return fit[0].name if len(fit) == 1 and gpu.name == UNNAMED_AMD else gpu.name
