"""The calibrated predictor's form: work over roofs, times efficiencies, plus a fixed cost.

    decode:   t = weights / (η_w · BW) + KV / (η_kv · BW) + layers · τ                    a step
    prefill:  t = max(matmul / (η_l · F), weights · ubatches / (η_s · BW))
                  + attention / (η_a · F) + layers · ubatches · τ                         a prompt

Every efficiency and every τ is exp of a sum of named coefficients: one for the backend, one for the
chip's generation, one for the quantisation, and so on. Each coefficient has a prior, so a group the
measurements say little about stays near what its neighbours share. `macros.fit` learns them; this
module only evaluates. Standard library only; numbers in, numbers out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

# Numbers that make a feature zero for an ordinary machine, so that a prior of zero says "ordinary".
TYPICAL_BANDWIDTH_BYTES_S = 400e9
TYPICAL_FLOPS_S = {"cpu": 1e12}  # others 100e12
TYPICAL_FLOPS_PER_BYTE = {"apple": 33.0, "cpu": 20.0}  # others 100: GPUs with matrix units
TYPICAL_BITS = 5.0
NEW_BUILD, OLD_BUILD = 6000, 2800  # llama.cpp build numbers: August 2025, May 2024
GROUPED_MOE_BUILD = 2700  # April 2024: before it, a prompt's experts ran token by token
# p-norm that stands for "whichever binds": within 19 % of the maximum, and smooth.
BINDING_NORM = 4


@dataclass(frozen=True)
class Load:
    """What a test asks of the machine: work by group, and what the efficiencies depend on.

    Args:
        phase: "decode" (a mean step) or "prefill" (a whole prompt)
        tokens: tokens produced or taken in during the time predicted
        bytes: weights (once through) and kv [B]
        flops: matmul and attention [FLOP]; empty for decode
        passes: times the weights are streamed: 1 for decode, ubatches for prefill
        ffn_params: parameters a token's matmuls use, without embeddings
        gqa: query heads per KV head
    """

    phase: str
    tokens: int
    bytes: Mapping[str, float]
    flops: Mapping[str, float]
    passes: int
    n_layer: int
    ffn_params: float
    head_dim: int
    gqa: float
    arch: str
    quant: str
    bits: float
    moe: bool = False
    active_bytes: float = 0.0  # of the weights, what one token touches [B]


@dataclass(frozen=True)
class Device:
    """A machine as the predictor sees it: two roofs and the family it belongs to.

    Args:
        backend: llama.cpp backend; Vulkan with the vendor, as its drivers differ ("Vulkan-amd")
        flops_s: dense fp16 peak, full rate [FLOP/s]; None: not known, decode only
        two_dies: two chips joined (Apple Ultra)
    """

    backend: str
    vendor: str
    generation: str
    bandwidth_bytes_s: float
    flops_s: float | None
    two_dies: bool = False


@dataclass(frozen=True)
class Setup:
    """How the engine was started; build None: not recorded, taken as new."""

    flash_attn: bool = True
    build: int | None = None


@dataclass(frozen=True)
class Term:
    """A part of the time: work at its roof [s], and the named log efficiency that divides it."""

    roof_s: float
    divide: bool
    features: dict[str, float] = field(default_factory=dict)

    def exponent(self, coefficients: Mapping[str, float]) -> float:
        """Log of the efficiency (or of the fixed cost)."""
        return sum(coefficients.get(name, prior(name)[0]) * x for name, x in self.features.items())

    def seconds(self, coefficients: Mapping[str, float]) -> float:
        """Time this part takes [s]."""
        e = self.exponent(coefficients)
        return self.roof_s * math.exp(-e if self.divide else e)


# Family of a coefficient -> (prior mean, prior standard deviation), in logs. Means are what engines
# are known to reach; deviations say how far a group may stand from its neighbours. Age: releases get
# faster, so an old build starts a little below; few machines ran both, and a slow new one shall not
# pass for a slow new build.
PRIORS: dict[str, tuple[float, float]] = {
    # decode, weights
    "w": (math.log(0.75), 10), "w.backend": (0, 0.2), "w.gen": (0, 0.1), "w.bw": (0, 0.3), "w.bw.backend": (0, 0.08),
    "w.age": (0.05, 0.03), "w.age.backend": (0, 0.02), "w.ratio": (0, 0.1), "w.ratio.backend": (0, 0.06), "w.two_dies": (0, 0.5),
    "w.fa": (0, 0.02), "w.quant": (0, 0.06), "w.quant.backend": (0, 0.06), "w.bits": (0, 0.2), "w.bits.backend": (0, 0.2),
    "w.bits.bw": (0, 0.2), "w.moe": (0, 0.5), "w.arch": (0, 0.05), "w.arch.moe": (0, 0.15),
    # decode, KV cache; with flash attention as Day 1's sweep on an M4 had it (not in the corpus)
    "kv.plain": (math.log(0.5), 1), "kv.fa": (math.log(0.70), 0.3), "kv.backend": (0, 0.2), "kv.gqa": (0, 0.3), "kv.bw": (0, 0.3),
    # decode, fixed cost per layer [log µs]
    "t": (math.log(15), 3), "t.backend": (0, 0.3), "t.bw": (0, 0.2), "t.age": (-0.1, 0.1), "t.moe": (0.5, 1), "t.moe.backend": (0, 0.3),
    # prefill, matmuls
    "l": (math.log(0.4), 10), "l.backend": (0, 0.4), "l.gen": (0, 0.1), "l.gen.backend": (0, 0.1), "l.age": (0.1, 0.08),
    "l.age.backend": (0, 0.05), "l.flops": (0, 0.2), "l.flops.backend": (0, 0.1), "l.ratio": (0, 0.1), "l.quantised": (0, 0.3),
    "l.quantised.backend": (0, 0.3), "l.quantised.gen": (0, 0.15), "l.quantised.age": (0.1, 0.1), "l.quant": (0, 0.08),
    "l.quant.backend": (0, 0.1), "l.size": (0, 0.1), "l.size.flops": (0, 0.1), "l.two_dies": (0, 0.3), "l.fa": (0.05, 0.08),
    "l.moe": (-0.5, 0.7), "l.moe.backend": (0, 0.3), "l.moe.arch": (0, 0.3),
    # prefill, attention: without flash attention the scores go through memory; with it, as Day 1's M4 had it
    "a.plain": (math.log(0.25), 1), "a.fa": (math.log(0.54), 0.3), "a.backend": (0, 0.3), "a.flops": (0, 0.2), "a.head": (0, 0.3), "a.age": (0, 0.3),
    "a.gen": (0, 0.2),
    # prefill, streaming: large sequential reads
    "s": (math.log(0.8), 0.2), "s.backend": (0, 0.1), "s.one_by_one": (0, 0.5),
    # prefill, fixed cost per layer and ubatch [log µs]
    "p": (math.log(60), 2), "p.backend": (0, 0.5),
}  # fmt: skip


def prior(name: str) -> tuple[float, float]:
    """Prior mean and standard deviation of a coefficient; `family:group` belongs to `family`."""
    return PRIORS[name.partition(":")[0]]


def age(build: int | None) -> float:
    """How old a build is: 0 for a new or unrecorded one, −1 at OLD_BUILD.

    >>> age(2800), age(None), age(9000)
    (-1.0, 0.0, 0.0)
    """
    if build is None:
        return 0.0
    return min(0.0, (min(build, NEW_BUILD) - NEW_BUILD) / (NEW_BUILD - OLD_BUILD))


def terms(load: Load, device: Device, setup: Setup) -> dict[str, Term]:
    """The parts of the time by name.

    Raises:
        ValueError: prefill on a device whose peak is not known.
    """
    return _decode(load, device, setup) if load.phase == "decode" else _prefill(load, device, setup)


def _ratio(device: Device) -> float:
    if device.flops_s is None:
        return 0.0
    typical = TYPICAL_FLOPS_PER_BYTE.get(device.vendor, 100.0)
    return math.log(device.flops_s / device.bandwidth_bytes_s / typical)


def _kernel(setup: Setup) -> str:
    """Which attention runs: two bodies of code, each with its own efficiency on a backend."""
    return "fa" if setup.flash_attn else "plain"


def _decode(load: Load, device: Device, setup: Setup) -> dict[str, Term]:
    b, q, old, kernel = device.backend, load.quant, age(setup.build), _kernel(setup)
    bw = math.log(device.bandwidth_bytes_s / TYPICAL_BANDWIDTH_BYTES_S)
    bits, ratio = math.log(load.bits / TYPICAL_BITS), _ratio(device)
    weights = {
        "w": 1, f"w.backend:{b}": 1, f"w.gen:{b}/{device.generation}": 1, "w.bw": bw, f"w.bw.backend:{b}": bw, "w.age": old,
        f"w.age.backend:{b}": old, "w.ratio": ratio, f"w.ratio.backend:{b}": ratio, "w.two_dies": device.two_dies,
        "w.fa": setup.flash_attn, f"w.quant:{q}": 1, f"w.quant.backend:{b}/{q}": 1, "w.bits": bits, f"w.bits.backend:{b}": bits,
        "w.bits.bw": bits * bw, "w.moe": load.moe, f"w.arch{'.moe' * load.moe}:{load.arch}": 1,
    }  # fmt: skip
    kv = {f"kv.{kernel}": 1, f"kv.backend:{b}/{kernel}": 1, "kv.gqa": math.log(load.gqa / 4), "kv.bw": bw}
    fixed = {"t": 1, f"t.backend:{b}": 1, "t.bw": bw, "t.age": old, "t.moe": load.moe, f"t.moe.backend:{b}": load.moe}
    return {
        "weights": _term(load.bytes["weights"] / device.bandwidth_bytes_s, True, weights),
        "kv": _term(load.bytes["kv"] / device.bandwidth_bytes_s, True, kv),
        "fixed": _term(load.n_layer * 1e-6, False, fixed),
    }


def _prefill(load: Load, device: Device, setup: Setup) -> dict[str, Term]:
    if device.flops_s is None:
        raise ValueError("no compute peak known")
    b, q, g, old, moe, kernel = device.backend, load.quant, device.generation, age(setup.build), load.moe, _kernel(setup)
    flops = math.log(device.flops_s / TYPICAL_FLOPS_S.get(device.vendor, 100e12))
    size, quantised = math.log(load.ffn_params / 7e9), q not in ("F32", "F16", "BF16")
    matmul = {
        "l": 1, f"l.backend:{b}": 1, f"l.gen:{g}": 1, f"l.gen.backend:{b}/{g}": 1, "l.age": old, f"l.age.backend:{b}": old,
        "l.flops": flops, f"l.flops.backend:{b}": flops, "l.ratio": _ratio(device), "l.quantised": quantised,
        f"l.quantised.backend:{b}": quantised, f"l.quantised.gen:{b}/{g}": quantised, "l.quantised.age": quantised * old,
        f"l.quant:{q}": 1, f"l.quant.backend:{b}/{q}": 1, "l.size": size, "l.size.flops": size * flops,
        "l.two_dies": device.two_dies, "l.fa": setup.flash_attn, "l.moe": moe, f"l.moe.backend:{b}": moe,
        f"l.moe.arch:{load.arch}": moe,
    }  # fmt: skip
    attention = {f"a.{kernel}": 1, f"a.backend:{b}/{kernel}": 1, "a.flops": flops, "a.head": math.log(128 / load.head_dim),
                 "a.age": old, f"a.gen:{g}": 1}  # fmt: skip
    streamed, stream = load.bytes["weights"] * load.passes, {"s": 1, f"s.backend:{b}": 1}
    if moe and setup.build is not None and setup.build < GROUPED_MOE_BUILD:
        streamed, stream = load.active_bytes * load.tokens, {"s.one_by_one": 1}
    return {
        "matmul": _term(load.flops["matmul"] / device.flops_s, True, matmul),
        "attention": _term(load.flops["attention"] / device.flops_s, True, attention),
        "streaming": _term(streamed / device.bandwidth_bytes_s, True, stream),
        "fixed": _term(load.n_layer * load.passes * 1e-6, False, {"p": 1, f"p.backend:{b}": 1}),
    }


def _term(roof_s: float, divide: bool, features: Mapping[str, float]) -> Term:
    return Term(roof_s, divide, {name: float(x) for name, x in features.items() if x})


def total_s(seconds: Mapping[str, float]) -> float:
    """Whole time from its parts [s]: matmuls and streaming overlap, the rest adds up.

    >>> total_s({"weights": 0.02, "kv": 0.001, "fixed": 0.002})
    0.023
    """
    rest = sum(s for name, s in seconds.items() if name not in ("matmul", "streaming"))
    if "matmul" not in seconds:
        return rest
    both = (seconds["matmul"] ** BINDING_NORM + seconds["streaming"] ** BINDING_NORM) ** (1 / BINDING_NORM)
    return both + rest


def rate_tok_s(load: Load, device: Device, setup: Setup, coefficients: Mapping[str, float]) -> float:
    """Predicted rate [tok/s]."""
    return load.tokens / total_s({name: t.seconds(coefficients) for name, t in terms(load, device, setup).items()})
