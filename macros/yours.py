"""Everything the page "Predict yours" says about a machine and a model, from numbers a reader may type.

The build computes the worked example with `answer`, and `macros.javascript` translates the same function
for the reader's browser: one source, so it keeps to what is translated. Numbers in, numbers out; SI units.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from macros import batching, calibration, predict, roofline, subject_load, work
from macros.calibrated import Device
from macros.memory import allocation
from macros.shapes import Layer
from macros.structure import Structure, Weights
from macros.subject_load import Subject

N_PROMPT, N_GEN = 512, 128  # llama-bench's own tests, and Day 1's
MOST_CONTEXT = 2**24  # a model whose cache does not grow fits any context; told as this many tokens


@dataclass(frozen=True)
class Ask:
    """A reader's machine, model and setting.

    Args:
        device: the machine as the calibrated predictor takes it; its peak is the one the efficiencies were learnt on
        flops_s: compute roof of the derivation [FLOP/s]; None: not known
        memory_bytes: memory for weights and cache [B]; None: not known
        file_bytes, params: of the model, as published or summed from its tensor table [B, parameters]
        depth: tokens already in the context
        batch: sequences decoded together
        kv_type: type of the KV cache ("f16", "q8_0", ...)
    """

    device: Device
    flops_s: float | None
    memory_bytes: float | None
    subject: Subject
    file_bytes: float
    params: float
    depth: int
    batch: int
    kv_type: str


def subject(name: str, quant: str, arch: str, counts: Sequence[int], weights: Sequence[Sequence], layers: Sequence[Sequence]) -> Subject:
    """A model from rows of plain values: its counts (layers, experts, experts used), weights and layers."""
    return Subject(name, quant, Structure(arch, *counts, tuple(Weights(*w) for w in weights), tuple(Layer(*x) for x in layers)))


def answer(ask: Ask, coefficients: Mapping[str, float], intervals: Mapping[str, Mapping]) -> dict[str, float | None]:
    """All numbers of the page by name; None: not known, because the machine's peak or memory is not.

    Args:
        coefficients, intervals: of the committed fit

    Raises:
        ValueError: an unknown type of cache, or a count below its least.
    """
    return {**first_order(ask), **exact(ask), **fitted(ask, coefficients, intervals), **fits(ask)}


def _cache(ask: Ask) -> work.Cache:
    return work.Cache(type_k=ask.kv_type.upper(), type_v=ask.kv_type.upper())


def first_order(ask: Ask) -> dict[str, float | None]:
    """Day 1's derivation, for one sequence: rates [tok/s], sizes [B], intensities [FLOP/B], shares (fractions)."""
    model, bandwidth = ask.subject.structure, ask.device.bandwidth_bytes_s
    idle_bytes, idle_params = work.idle_experts(model)
    token_bytes, token_params = ask.file_bytes - idle_bytes, ask.params - idle_params
    kv_read = work.kv_read_bytes(model, ask.depth, _cache(ask))
    ceiling = roofline.decode_ceiling_tok_s(bandwidth, token_bytes + kv_read)
    low, high = predict.RULE_OF_THUMB
    attention = work.attention_flops_per_token(model, ask.depth)
    peak = ask.flops_s
    return {
        "bandwidth": bandwidth,
        "compute": peak,
        "file_bytes": ask.file_bytes,
        "params": ask.params,
        "token_bytes": token_bytes,
        "token_params": token_params,
        "kv_token": work.kv_token_bytes(model, _cache(ask)),
        "kv_read": kv_read,
        "step_bytes": token_bytes + kv_read,
        "ceiling_empty": roofline.decode_ceiling_tok_s(bandwidth, token_bytes),
        "ceiling": ceiling,
        "thumb_low": low * ceiling,
        "thumb_high": high * ceiling,
        "kept": token_bytes / (token_bytes + kv_read),
        "intensity": roofline.decode_intensity_flops_per_byte(token_params, token_bytes),
        "ridge": roofline.ridge_flops_per_byte(peak, bandwidth) if peak else None,
        "prefill_ceiling": roofline.prefill_ceiling_tok_s(peak, token_params) if peak else None,
        "prefill_kept": 2 * token_params / (2 * token_params + attention),
    }


def exact(ask: Ask) -> dict[str, float | None]:
    """Bounds from exact work: what a mean step of tg128 and a prompt of pp512 really move, at the roofs."""
    model, bandwidth, peak = ask.subject.structure, ask.device.bandwidth_bytes_s, ask.flops_s or math.inf
    step = work.decode(model, ask.depth, N_GEN, ask.batch, _cache(ask))
    prompt = work.prefill(model, N_PROMPT, ask.depth, cache=_cache(ask))
    return {
        "exact_weights": step.bytes_by_group["weights"] + step.bytes_by_group["experts"],
        "exact_kv": step.bytes_by_group["kv"],
        "exact_state": step.bytes_by_group["state"],
        "exact_bytes": step.n_bytes,
        "exact_flops": step.flops,
        "exact_decode": ask.batch / batching.roof_s(step, bandwidth, peak),
        "exact_compute_share": step.flops / peak / batching.roof_s(step, bandwidth, peak),
        "exact_prompt_flops": prompt.flops / N_PROMPT,
        "exact_prefill": N_PROMPT / batching.roof_s(prompt, bandwidth, peak) if ask.flops_s else None,
    }


def fitted(ask: Ask, coefficients: Mapping[str, float], intervals: Mapping[str, Mapping]) -> dict[str, float | None]:
    """The calibrated prediction of tg128 and pp512 for one sequence, with its interval [tok/s] and the times it adds up [s].

    None where no layer attends: no such model was among the measurements it learnt from.
    """
    found: dict[str, float | None] = {}
    for name, phase, tokens in (("decode", "decode", N_GEN), ("prefill", "prefill", N_PROMPT)):
        of = subject_load.load(ask.subject, phase, tokens, ask.depth, ask.kv_type)
        if not of.head_dim or (phase == "prefill" and not ask.device.flops_s):
            found[name] = found[f"{name}_low"] = found[f"{name}_high"] = None
            continue
        case = subject_load.case(of, ask.device, (), ask.depth > 0)
        predicted = calibration.predicted(case, coefficients, intervals)
        found[name], found[f"{name}_low"], found[f"{name}_high"] = predicted.tok_s, predicted.low_tok_s, predicted.high_tok_s
        for part, took in calibration.seconds(case, coefficients)[0].items():
            found[f"{name}_{part}_s"] = took
    return found


def fits(ask: Ask) -> dict[str, float | None]:
    """What the model takes in memory in this setting, what is left, and the longest context that fits [B, tokens].

    Ignores: compute buffers, the system and whatever else lives in the same memory.
    """
    needed = allocation(ask.subject.structure, ask.depth + max(N_PROMPT, N_GEN), _cache(ask), ask.batch, False)
    return {
        "memory": ask.memory_bytes,
        "need_weights": needed.weights,
        "need_kv": needed.kv,
        "need_state": needed.state,
        "need": needed.total,
        "left": ask.memory_bytes - needed.total if ask.memory_bytes else None,
        "longest": longest_context(ask, ask.memory_bytes) if ask.memory_bytes else None,
    }


def longest_context(ask: Ask, memory_bytes: float) -> float:
    """Longest context of each sequence that fits beside the weights [tokens], in whole steps of the cache; 0: none."""

    def need(steps: int) -> float:
        return allocation(ask.subject.structure, steps * work.KV_CELL_PAD, _cache(ask), ask.batch, False).total

    if need(1) > memory_bytes:
        return 0
    low, high = 1, MOST_CONTEXT // work.KV_CELL_PAD
    if need(high) <= memory_bytes:
        return MOST_CONTEXT
    while high - low > 1:
        middle = (low + high) // 2
        if need(middle) <= memory_bytes:
            low = middle
        else:
            high = middle
    return low * work.KV_CELL_PAD


def words(ask: Ask, found: Mapping[str, float | None]) -> dict[str, str]:
    """What the page says that is no number, by name."""
    left, compute = found["left"], found["exact_compute_share"]
    return {
        "binds": "compute" if compute is not None and compute >= 1 else "memory",
        "fit": "Its memory is not known." if left is None else "It fits." if left >= 0 else "It does not fit: the rates are for a machine that had the room.",
        "sequences": "one sequence" if ask.batch == 1 else f"{ask.batch} sequences together",
    }


def commands(ask: Ask, file: str, hf: str | None) -> dict[str, str]:
    """Commands that would check the prediction.

    Args:
        file: what the model's file may be called
        hf: where to get it, owner/repo:QUANT; None: not known
    """
    deep = f" -d {ask.depth}" if ask.depth else ""
    kept = f" -ctk {ask.kv_type} -ctv {ask.kv_type} -fa 1" if ask.kv_type != "f16" else ""
    depths = f" DEPTHS=0,{ask.depth}" if ask.depth else ""
    return {
        "llama_bench": f"llama-bench {f'-hf {hf}' if hf else f'-m {file}'} -p {N_PROMPT} -n {N_GEN}{deep}{kept}",
        "make_bench": f"make bench MODEL={f'hf:{hf}' if hf else file}{depths}",
    }
