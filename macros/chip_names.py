"""From a chip's name as people write it to the hardware table's rows it can mean, and the peak its efficiencies are shares of."""

from __future__ import annotations

import re
from functools import cache

from macros import labdata
from macros.hardware import Chip, Chips

# Apple gives the M5's shaders no clock, and llama.cpp's usual Metal kernels run on them, not on the
# matrix units the table lists: their rate is taken at the M4's clock. Assumed, and no roof.
APPLE_CORE_FLOPS_S = 128 * 2 * 1.578e9


@cache
def table() -> dict[str, Chip]:
    """The chips that compute, by id.

    Raises:
        labdata.LabError: every problem of a file.
    """
    files = sorted((labdata.ROOT / "chips").glob("*.yml"))
    every = [chip for path in files for chip in labdata.parse(Chips, path, f"labdata/chips/{path.name}").chips]
    return {chip.id: chip for chip in every if chip.kind != "memory"}


@cache
def candidates(name: str) -> tuple[Chip, ...]:
    """Every chip a name can mean.

    >>> [chip.id for chip in candidates("RTX 3060")], [chip.id for chip in candidates("Apple M4 Pro 20c")]
    (['nvidia-rtx-3060'], ['apple-m4-pro-20c'])
    >>> [chip.id for chip in candidates("RTX 3080")], candidates("GeForce 9999")
    (['nvidia-rtx-3080-10gb', 'nvidia-rtx-3080-12gb'], ())
    """
    slug = re.sub(r"[^a-z0-9]+", "-", re.sub(r"max-q", "blackwell-maxq", name.lower().replace("(cores ?)", ""))).strip("-")
    slug = re.sub(r"^(nvidia|amd|intel)-|^geforce-|radeon-(?=rx)", "", slug)
    if not slug:
        return ()
    exact = [chip for i, chip in table().items() if i == slug or i.partition("-")[2] == slug]
    if exact:
        return (exact[0],)
    longer = [chip for i, chip in table().items() if re.match(rf"(\w+-)?{re.escape(slug)}-", i)]
    if any(re.search(r"-\d+c$", chip.id) for chip in longer):  # Apple, cores not given: the full chip
        cores = {int(found[1]): chip for chip in longer if (found := re.fullmatch(rf"{re.escape(slug)}-(\d+)c", chip.id))}
        return (cores[max(cores)],) if cores else ()
    return tuple(longer or [chip for chip in table().values() if _begin(name, chip.id)])


def find(name: str) -> Chip | None:
    """The chip a name means; None: not known, or several that differ in a roof."""
    found = candidates(name)
    return found[0] if len({(chip.memory_bandwidth.si, listed_flops_s(chip)) for chip in found}) == 1 else None


def peak(name: str) -> tuple[str, float] | None:
    """Id and listed peak of a chip by its name [FLOP/s]; None: not known, or not the same for all it can mean."""
    found = candidates(name)
    peaks = {listed_flops_s(chip) for chip in found}
    only = peaks.pop() if len(peaks) == 1 else None
    return (found[0].id, only) if only else None


def listed_flops_s(chip: Chip) -> float | None:
    """The peak a chip's efficiencies are shares of [FLOP/s]: fp16, first with fp32 sums, else fp32; None: not known."""
    if "Apple M5" in chip.name:
        return chip.match.gpu_cores * APPLE_CORE_FLOPS_S if chip.match and chip.match.gpu_cores else None
    best = chip.peak("fp16") or chip.peak("fp32")
    return best.si if best else None


def memory_bytes(chip: Chip) -> float | None:
    """The most memory a chip is sold with [B]: its box's GB are 2^30 B; None: any."""
    return chip.memory_gb[-1] * 2**30 if chip.memory_gb else None


def _begin(name: str, id: str) -> bool:
    """Whether every word of a name, or of what it has in brackets, begins a word of a chip's id."""
    words = id.split("-")
    for part in (name, re.sub(r"\(.*", "", name), *re.findall(r"\(([^()]*)\)", name)):
        said = re.findall(r"[a-z0-9]+", re.sub(r"(\d) gb\b", r"\1gb", part.lower().replace("tesla ", "")))
        if said and any(c.isdigit() for c in part) and all(any(w == s or (len(s) > 2 and w.startswith(s)) for w in words) for s in said):
            return True
    return False
