"""A machine and a model of labdata, or a GGUF file, as the calibrated predictor takes them.

The one place where cards meet `macros.calibrated`; exact work comes from `macros.work`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from macros import calibration, corpus, devices, work
from macros.calibrated import Device, Load, Setup, prior
from macros.cards import Machine, Model
from macros.corpus import Case
from macros.corpus_models import KV_BYTES, NotPredictable

BACKENDS = {"apple": "Metal", "nvidia": "CUDA", "amd": "ROCm", "intel": "Vulkan", "qualcomm": "OpenCL"}


@dataclass(frozen=True)
class Subject:
    """A model's tensor table with its dimensions."""

    name: str
    quant: str
    dims: work.Shape
    table: tuple[work.Tensor, ...]


def from_card(model: Model) -> Subject:
    """A model of labdata."""
    return Subject(model.name, model.quant, model.dims, tuple(model.table()))


def from_file(path: Path) -> Subject:
    """A GGUF file by its header.

    Raises:
        ValueError: not a GGUF file, or an architecture whose work is not known.
    """
    from macros import gguf_header

    header = gguf_header.read_header(path)
    return Subject(path.stem, header.quant, header.shape, tuple(header.tensors))


def device(machine: Machine, backend: str | None = None) -> tuple[Device, tuple[str, ...]]:
    """A machine as a device, and what was assumed.

    The compute peak is the table's where the chip is in it, because the efficiencies were learnt on it.
    """
    vendor, generation = devices.family(machine.chip)
    family = devices.backend_family(backend or BACKENDS.get(vendor, "CPU"), vendor)
    assumed, flops = [], None
    bandwidth = machine.specs.memory_bandwidth.si
    if family == "CPU":
        vendor, generation = "cpu", "cpu"
        if machine.cores:
            flops = machine.cores * devices.CPU_THREAD_FLOPS_S
            assumed.append(f"compute peak: {machine.cores} cores × 96 GFLOP/s")
    elif known := corpus.peak(machine.chip):
        flops = devices.full_rate_flops_s(machine.chip, known[1])
        assumed.append(f"compute peak: labdata/corpus/chips.csv, {known[0]}")
    elif machine.specs.peak_compute:
        flops = devices.full_rate_flops_s(machine.chip, machine.specs.peak_compute.si)
    return Device(family, vendor, generation, bandwidth, flops, "Ultra" in machine.chip and vendor == "apple"), tuple(assumed)


def chip_device(chip: str, backend: str | None = None) -> tuple[Device, tuple[str, ...]]:
    """A chip of labdata/corpus/chips.csv as a device.

    Raises:
        NotPredictable: not in the table.
    """
    found = corpus.find_chip(chip)
    if not found:
        close = ", ".join(corpus.similar_chips(chip)[:8])
        raise NotPredictable(f"machine: neither in labdata/machines nor one chip of labdata/corpus/chips.csv; got {chip[:60]!r}" + (f"; which of {close}?" if close else ""))
    row = corpus.chips()[found]
    vendor, generation = devices.family(row["name"])
    family = devices.backend_family(backend or BACKENDS.get(vendor, "CPU"), vendor)
    peak = devices.full_rate_flops_s(row["name"], float(row["peak_tflops"]) * 1e12)
    if family == "CPU":
        raise NotPredictable(f"backend: the CPU beside {found} is not in the table; describe it in labdata/machines")
    return Device(family, vendor, generation, float(row["mem_bandwidth_gbs"]) * 1e9, peak, "Ultra" in row["name"]), (f"roofs: labdata/corpus/chips.csv, {found}",)


def load(subject: Subject, phase: str, tokens: int, depth: int, kv_type: str = "f16", ubatch: int = corpus.DEFAULT_UBATCH) -> Load:
    """What tgN or ppN at a depth asks for.

    Args:
        phase: "decode" or "prefill"
        tokens: N
    """
    s, table = subject.dims, subject.table
    body, weights = work.body_params(table), work.decode_weight_bytes(table)
    per_cell = 2 * s.n_layer * s.n_head_kv * s.head_dim * KV_BYTES[kv_type]
    shared = (s.n_layer, body, s.head_dim, s.n_head / s.n_head_kv, s.arch, subject.quant,
              8 * work.total_bytes(table) / work.total_params(table), False, weights)  # fmt: skip
    if phase == "decode":
        return Load("decode", 1, {"weights": weights, "kv": (depth + (tokens + 1) / 2) * per_cell}, {}, 1, *shared)
    passes = -(-tokens // ubatch)
    attended = tokens * depth + tokens * (tokens + 1) / 2
    flops = {"matmul": 2 * body * tokens + 2 * s.n_vocab * s.n_embd * passes, "attention": 4 * s.n_layer * s.n_head * s.head_dim * attended}
    return Load("prefill", tokens, {"weights": weights}, flops, passes, *shared)


def case(of: Load, on: Device, assumed: tuple[str, ...] = (), deep: bool = False, setup: Setup = Setup()) -> Case:
    """One test on one device."""
    return Case((of,), (1,), on, setup, assumed, deep)


def predict(machine: Machine, model: Model, test: str, depth: int = 0) -> calibration.Predicted:
    """The calibrated prediction of tgN or ppN for a machine and a model of labdata [tok/s].

    Raises:
        ValueError: not such a test, or no compute peak known for a prompt.
    """
    found = re.fullmatch(r"(tg|pp)([1-9]\d{0,6})", test)
    if not found:
        raise ValueError(f"test: tgN or ppN needed; got {test!r}")
    on, assumed = device(machine)
    of = load(from_card(model), "decode" if found[1] == "tg" else "prefill", int(found[2]), depth)
    return calibration.predict(case(of, on, assumed, depth > 0))


def needed_bytes(subject: Subject, tokens: int, kv_type: str = "f16") -> float:
    """Memory that weights and a KV cache of that many tokens take [B]. Ignores: compute buffers."""
    s = subject.dims
    return work.total_bytes(subject.table) + tokens * 2 * s.n_layer * s.n_head_kv * s.head_dim * KV_BYTES[kv_type]


def contributions(features: Mapping[str, float], coefficients: Mapping[str, float]) -> dict[str, float]:
    """Factor each named coefficient puts on an efficiency [1]; those within half a percent left out."""
    found = {name: math.exp(coefficients.get(name, prior(name)[0]) * x) for name, x in features.items()}
    return {name: round(f, 3) for name, f in found.items() if abs(f - 1) > 0.005}
