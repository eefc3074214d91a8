"""The hardware table: what spec sheets print of each chip, figure by figure with its source.

labdata/chips/*.yml holds it. A figure nobody published and nothing confirms is left out, and a note says so.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from macros import units
from macros.fields import Compute, Count, Document, Id, Name, Positive, Quantity, Source, Strict, key

BUS_TOLERANCE = 0.03  # vendors round: Apple prints 200 for 204.8 GB/s, NVIDIA 2000 for 2039

Confidence = Literal["high", "medium", "low"]
Page = Annotated[str, Field(pattern=r"^[\w.%-]+(/[\w.%-]+)*$")]


class Spec(Quantity):
    """A spec-sheet figure."""

    page: Page | None = key("Its page under the source's address", "geforce-rtx-3090.c3622", default=None)
    confidence: Confidence = key("high: read in the vendor's own text; medium: one good source, or arithmetic on published figures; low: weaker", "medium", default="medium")


class Peak(Compute):
    """A peak rate of arithmetic, dense (structured sparsity left out), and which one it is."""

    via: Literal["tensor", "matrix", "shader", "dp4a"] = key("What computes: matrix units (NVIDIA: tensor), shader lanes, or their int8 dot product", "tensor")
    accumulate: Literal["fp16", "fp32", "int32"] | None = key("Width of the sums; absent: not stated", "fp32", default=None)
    page: Page | None = key("Its page under the source's address", "geforce-rtx-3090.c3622", default=None)
    confidence: Confidence = key("As for memory_bandwidth", "medium", default="medium")


class Bus(Strict):
    """A memory bus: width times rate is the bandwidth."""

    bits: Count = key("Width [bit]", 384)
    gbit_s: Positive = key("Data rate of a pin [Gbit/s]", 19.5)


class Match(Strict):
    """What a host must say for this chip to be possible; facts it does not tell rule nothing out."""

    names: list[str] = key("Device, CPU or board names, without the vendor's", ["GeForce RTX 3090"], default_factory=list)
    gpu_cores: Count | None = key("GPU cores, where the name alone does not tell", 30, default=None)
    cpu_cores: list[Count] = key("CPU cores it is sold with, where that tells variants apart", [14], default_factory=list)
    pci: list[Annotated[str, Field(pattern=r"^[0-9a-f]{4}:[0-9a-f]{4}$")]] = key("PCI vendor:device ids, for drivers that print no name", ["8086:56a0"], default_factory=list)


class Chip(Strict):
    """A chip, card or memory configuration: its published roofs, looked up and never guessed."""

    id: Id = key("Name", "apple-m4-10c")
    name: Name = key("Name in words", "Apple M4 (10-core GPU)")
    kind: Literal["gpu", "soc", "memory"] = key("gpu: has its own memory; soc: CPU and GPU share it; memory: what any CPU pulls from it at most", "gpu")
    match: Match | None = key("How a host is recognised; null: no host says this of itself", {"names": ["Apple M4"], "gpu_cores": 10})
    cores: str | None = key("Cores in the vendor's words; absent: not recorded", "10 GPU cores", default=None)
    memory_gb: list[Positive] = key("Sizes sold [GB on the box]; between the first and the last there may be more; empty: any", [36, 96])
    bus: Bus | None = key("Memory bus; absent: not recorded", {"bits": 128, "gbit_s": 7.5}, default=None)
    memory_bandwidth: Spec = key("Memory roof [GB/s]")
    peaks: list[Peak] = key("Peak compute rates [TFLOP/s or TOP/s]; empty: none published or confirmed", default_factory=list)
    notes: list[str] = key("What was decided about its figures, and why", default_factory=list)

    @model_validator(mode="after")
    def consistent(self) -> Chip:
        if units.dimension(self.memory_bandwidth.unit) != "bytes_s":
            raise ValueError(f"memory_bandwidth: not a bandwidth's unit; got {self.memory_bandwidth.unit!r}")
        if self.bus:
            wire = self.bus.bits * self.bus.gbit_s / 8
            if abs(wire / (self.memory_bandwidth.si / 1e9) - 1) > BUS_TOLERANCE:
                raise ValueError(f"memory_bandwidth: {self.bus.bits} bit x {self.bus.gbit_s} Gbit/s / 8 is {wire:.1f} GB/s; got {self.memory_bandwidth.value}")
        kinds = [(p.precision, p.accumulate) for p in self.peaks]
        if len(kinds) != len(set(kinds)):
            raise ValueError("peaks: the same precision and accumulator given twice")
        for p in self.peaks:
            if units.dimension(p.unit) != "flops_s":
                raise ValueError(f"peaks: not a compute rate's unit; got {p.unit!r}")
        if sorted(self.memory_gb) != self.memory_gb:
            raise ValueError("memory_gb: not in ascending order")
        return self

    def peak(self, precision: str, accumulate: str | None = None) -> Peak | None:
        """The first peak of a precision (and accumulator, where one is asked for); None: not known."""
        return next((p for p in self.peaks if p.precision == precision and accumulate in (None, p.accumulate)), None)


class Chips(Document):
    """A vendor's part of the hardware table."""

    chips: list[Chip] = key("One entry a variant that differs in a figure")


def roofs(chip: Chip, table: dict[str, Source]) -> tuple[Quantity, Compute | None, dict[str, Source]]:
    """A chip's roofs as a machine's file keeps them: bandwidth, compute (None: not known), and their sources.

    Args:
        table: the hardware table's sources; each is returned with the figure's own page in its address
    """
    sources: dict[str, Source] = {}

    def cite(figure: Spec | Peak, kind: type[Quantity]) -> dict:
        source = table[figure.source]
        if figure.page and source.url:
            source = source.model_copy(update={"url": f"{source.url.rstrip('/')}/{figure.page}"})
        sources[figure.source] = source
        return figure.model_dump(include=set(kind.model_fields), exclude_unset=True)

    best = chip.peak("fp16") or chip.peak("fp32")
    bandwidth = Quantity(**cite(chip.memory_bandwidth, Quantity))
    return bandwidth, Compute(**cite(best, Compute)) if best else None, sources
