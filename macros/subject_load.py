"""A machine and a model of labdata, or a GGUF file, as the calibrated predictor takes them.

The one place where cards meet `macros.calibrated`; exact work comes from `macros.work`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from macros import calibration, chip_names, corpus, devices, memory, work
from macros.calibrated import Device, Load, Setup, prior
from macros.cards import Machine, Model
from macros.corpus import Case
from macros.corpus_models import NotPredictable

BACKENDS = {"apple": "Metal", "nvidia": "CUDA", "amd": "ROCm", "intel": "Vulkan", "qualcomm": "OpenCL"}


@dataclass(frozen=True)
class Subject:
    """A model as its file's header or its card tells it: what a step touches."""

    name: str
    quant: str
    structure: work.Structure


def from_card(model: Model) -> Subject:
    """A model of labdata."""
    return Subject(model.name, model.quant, model.structure())


def from_file(name: str) -> Subject:
    """A GGUF file, here or behind a URL, by its header.

    Raises:
        ValueError: not a GGUF file, or an architecture whose work is not known.
    """
    from macros import gguf_header

    header = gguf_header.read_header(name)
    return Subject(Path(name.partition("?")[0]).stem, header.quant, header.structure)


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
    elif known := chip_names.peak_of(machine.chip):
        flops = devices.full_rate_flops_s(machine.chip, known[0])
        assumed.append(f"compute peak: {known[1]}")
    elif machine.specs.peak_compute:
        flops = devices.full_rate_flops_s(machine.chip, machine.specs.peak_compute.si)
    return Device(family, vendor, generation, bandwidth, flops, "Ultra" in machine.chip and vendor == "apple"), tuple(assumed)


def chip_device(name: str, backend: str | None = None) -> tuple[Device, tuple[str, ...], float | None]:
    """A chip of the hardware table as a device, what was assumed, and the most memory it is sold with [B]; None: any.

    Raises:
        NotPredictable: not in the table.
    """
    chip = chip_names.find(name)
    if not chip:
        close = ", ".join(c.id for c in chip_names.candidates(name)[:8])
        raise NotPredictable(f"machine: neither in labdata/machines nor one chip of labdata/chips; got {name[:60]!r}" + (f"; which of {close}?" if close else ""))
    vendor, generation = devices.family(chip.name)
    family = devices.backend_family(backend or BACKENDS.get(vendor, "CPU"), vendor)
    if family == "CPU":
        raise NotPredictable(f"backend: the CPU beside {chip.id} is not in the table; describe it in labdata/machines")
    peak = chip_names.peak(chip)
    flops = devices.full_rate_flops_s(chip.name, peak[0]) if peak else None
    assumed = (f"roofs: labdata/chips, {chip.id}", *([f"compute peak: {peak[1]}"] if peak else []))
    return Device(family, vendor, generation, chip.memory_bandwidth.si, flops, "Ultra" in chip.name), assumed, chip_names.memory_bytes(chip.id)


def load(subject: Subject, phase: str, tokens: int, depth: int, kv_type: str = "f16", ubatch: int = corpus.DEFAULT_UBATCH) -> Load:
    """What tgN or ppN at a depth asks for.

    Args:
        phase: "decode" or "prefill"
        tokens: N
    """
    model = subject.structure
    kept = [w for w in model.weights if w.role not in ("lookup", "unused")]
    once = work.decode(model).bytes_by_group
    touched = once["weights"] + once["experts"]
    attends = max((x for x in model.layers if x.k_cell), key=lambda x: x.count, default=None)
    shared = (model.n_layer, model.body_params, attends.k_dim if attends else 0, attends.n_head * attends.k_dim / attends.k_cell if attends else 1.0,
              model.arch, subject.quant, 8 * sum(w.n_bytes for w in kept) / sum(w.params for w in kept), bool(model.n_expert), touched)  # fmt: skip
    if phase == "decode":
        kv = work.kv_read_bytes(model, depth + (tokens + 1) / 2, cache(kv_type))
        return Load("decode", 1, {"weights": touched, "kv": kv}, {}, 1, *shared)
    passes = -(-tokens // ubatch)
    head = sum(w.params for w in kept if w.role == "head")
    attention = sum(x.count * work.attended(depth, tokens, x.window, x.chunked) * 2 * x.n_head * (x.k_dim + x.v_dim) for x in model.layers if x.k_cell)
    flops = {"matmul": 2 * model.body_params * tokens + 2 * head * passes, "attention": attention}
    return Load("prefill", tokens, {"weights": sum(w.n_bytes for w in kept)}, flops, passes, *shared)


def cache(kv_type: str) -> work.Cache:
    """A KV cache of one type for keys and values."""
    return work.Cache(type_k=kv_type.upper(), type_v=kv_type.upper())


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
    return memory.allocation(subject.structure, tokens, cache(kv_type)).total


def contributions(features: Mapping[str, float], coefficients: Mapping[str, float]) -> dict[str, float]:
    """Factor each named coefficient puts on an efficiency [1]; those within half a percent left out."""
    found = {name: math.exp(coefficients.get(name, prior(name)[0]) * x) for name, x in features.items()}
    return {name: round(f, 3) for name, f in found.items() if abs(f - 1) > 0.005}
