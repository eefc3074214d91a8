"""From a chip's name as people write it to the hardware table's rows it can mean, and the peak its efficiencies are shares of."""

from __future__ import annotations

import math
import re
from functools import cache

from macros import labdata
from macros.hardware import Chip, Chips

# llama.cpp's usual Metal kernels run on the M5's shaders, not on the matrix units the table lists. Apple gives
# the shaders no clock: the M4's is assumed [FLOP/s a core]. No roof, and no page shows it as one.
M5_CORE_FLOPS_S = 128 * 2 * 1.578e9


@cache
def table() -> dict[str, Chip]:
    """The chips that compute, by id.

    Raises:
        labdata.LabError: every problem of a file.
    """
    files = sorted((labdata.ROOT / "chips").glob("*.yml"))
    every = [chip for path in files for chip in labdata.document(Chips, path).chips]
    return {chip.id: chip for chip in every if chip.kind != "memory"}


@cache
def _by_name() -> dict[str, Chip]:
    """The first chip of each id, with its maker before it and without."""
    found: dict[str, Chip] = {}
    for i, chip in table().items():
        for name in (i, i.partition("-")[2]):
            found.setdefault(name, chip)
    return found


@cache
def candidates(name: str) -> tuple[Chip, ...]:
    """Every chip a name can mean.

    >>> [chip.id for chip in candidates("RTX 3060")], [chip.id for chip in candidates("Apple M4 Pro 20c")]
    (['nvidia-rtx-3060'], ['apple-m4-pro-20c'])
    >>> [chip.id for chip in candidates("H100 80 GB")], candidates("GeForce 9999")
    (['nvidia-h100-pcie-80gb', 'nvidia-h100-sxm5-80gb'], ())
    """
    slug = re.sub(r"[^a-z0-9]+", "-", re.sub(r"max-q", "blackwell-maxq", name.lower().replace("(cores ?)", ""))).strip("-")
    slug = re.sub(r"^(nvidia|amd|intel)-|^geforce-|radeon-(?=rx)", "", slug)
    if not slug:
        return ()
    if slug in _by_name():
        return (_by_name()[slug],)
    begins = f"{slug}-"
    longer = [chip for i, chip in table().items() if i.startswith(begins) or i.partition("-")[2].startswith(begins)]
    if any(re.search(r"-\d+c$", chip.id) for chip in longer):  # Apple, cores not given: the full chip
        cores = [(int(found[1]), chip) for chip in longer if (found := re.fullmatch(rf"{re.escape(slug)}-(\d+)c(-.*)?", chip.id))]
        return tuple(chip for n, chip in cores if n == max(cores, key=lambda c: c[0])[0])
    every = f"-{'-'.join(table())}-"
    said = [words for words in _said(name) if _begin(words, every)]  # a chip of another kind has a word that none has
    return tuple(longer or [chip for i, chip in table().items() if any(_begin(words, f"-{i}-") for words in said)])


def forget() -> None:
    """Read the chips anew when they are asked for next."""
    for kept in (table, _by_name, candidates):
        kept.cache_clear()


def find(name: str) -> Chip | None:
    """The chip a name means; None: not known, or several that differ in a roof."""
    found = candidates(name)
    return found[0] if len({(chip.memory_bandwidth.si, peak(chip)) for chip in found}) == 1 else None


def peak_of(name: str) -> tuple[float, str] | None:
    """`peak` of a chip by its name; None: not known, or not the same for all it can mean."""
    found = {peak(chip) for chip in candidates(name)}
    return found.pop() if len(found) == 1 else None


def peak(chip: Chip) -> tuple[float, str] | None:
    """The listed peak a chip's efficiencies are shares of, and what it is [FLOP/s]; None: not known.

    It is fp16's, with fp32 sums where the table tells, else fp32's.
    """
    if "Apple M5" in chip.name and chip.match and chip.match.gpu_cores:
        return chip.match.gpu_cores * M5_CORE_FLOPS_S, "shaders at the M4's clock, assumed"
    best = chip.peak("fp16") or chip.peak("fp32")
    return (best.si, "labdata/chips") if best else None


def memory_bytes(name: str) -> float | None:
    """The most memory a chip of that name is sold with [B]; None: any, or not known. A box's GB are 2^30 B."""
    sizes = [max(chip.memory_gb, default=math.inf) for chip in candidates(name)]
    most = max(sizes, default=math.inf)
    return None if math.isinf(most) else most * 2**30


def _said(name: str) -> list[list[str]]:
    """The words of a name, of it without its brackets, and of what those hold, as `_begin` takes them; only where there is a digit among them."""
    parts = (name, re.sub(r"\(.*", "", name), *re.findall(r"\(([^()]*)\)", name))
    words = [re.findall(r"[a-z0-9]+", re.sub(r"(\d) gb\b", r"\1gb", part.lower().replace("tesla ", ""))) for part in parts if any(c.isdigit() for c in part)]
    return [[f"-{w}" if len(w) > 2 else f"-{w}-" for w in said] for said in words if said]


def _begin(said: list[str], words: str) -> bool:
    """Whether every word that was said, if a short one whole, begins a word of a chip's id; the id with a hyphen on either side."""
    return all([w in words for w in said])
