"""What a model takes in memory: weights, KV cache and recurrent state as llama.cpp allocates them.

Standard library only; numbers in, numbers out.
Source: llama.cpp, src/llama-kv-cache.cpp, llama-kv-cache-iswa.cpp, llama-memory-recurrent.cpp;
checked against its logs (docs/architectures.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from macros.work import KV_CELL_PAD, STATE_BYTES, Cache, Structure, cell_bytes, window_cells


@dataclass(frozen=True)
class Allocation:
    """Bytes llama.cpp sets aside [B]: weights, the cache of layers that see everything, the cache
    of layers with a window, recurrent state."""

    weights: float
    kv_full: float
    kv_window: float
    state: float

    @property
    def kv(self) -> float:
        """The whole KV cache [B]."""
        return self.kv_full + self.kv_window

    @property
    def total(self) -> float:
        """Everything counted here [B]."""
        return self.weights + self.kv + self.state


def allocation(
    model: Structure, n_ctx: int, cache: Cache = Cache(), sequences: int = 1, unified: bool = True, kept_states: int = 0,
    pad: int = KV_CELL_PAD,
) -> Allocation:  # fmt: skip
    """Memory a model takes with a context of n_ctx tokens.

    Args:
        n_ctx: context of one stream [tokens]
        sequences: sequences served at once
        unified: they share one cache of n_ctx cells; else each has one
        pad: the context is rounded up to a multiple of this [cells]; builds before 2025 rounded to 32
        kept_states: earlier recurrent states kept a sequence, to undo drafted tokens

    Ignores: compute buffers, some hundreds of MB, more with large vocabularies and batches.

    Raises:
        ValueError: a count below its least, or an unknown type of cache.
    """
    if n_ctx < 1 or sequences < 1 or kept_states < 0:
        raise ValueError(f"n_ctx and sequences: must be at least 1; got {n_ctx} and {sequences}")
    cells = math.ceil(n_ctx / pad) * pad
    streams = 1 if unified else sequences
    full = window = state = 0.0
    hybrid = any(layer.conv_state for layer in model.layers)
    widest = 0 if cache.flash_attn else max(layer.v_cell for layer in model.layers)
    for layer in model.layers:
        state += layer.count * sequences * (1 + kept_states) * STATE_BYTES * (layer.conv_state + layer.ssm_state)
        if not layer.own:
            continue
        if widest and (layer.k_cell or not hybrid):
            layer = replace(layer, v_cell=widest)
        each = layer.count * streams * cell_bytes(layer, cache)
        if layer.window:
            window += each * window_cells(layer.window, cells, cache, sequences if unified else 1)
        else:
            full += each * cells
    return Allocation(sum(w.n_bytes for w in model.weights), full, window, state)


def check_fit(needed: Allocation, memory_bytes: float) -> None:
    """Refuse a model that cannot run in a memory.

    Raises:
        ValueError: it does not fit, with what it needs and what there is.
    """
    if needed.total > memory_bytes:
        parts = ", ".join(f"{name} {size / 1e9:.2f}" for name, size in (("weights", needed.weights), ("KV cache", needed.kv), ("state", needed.state)) if size)
        raise ValueError(f"does not fit in memory: needs {needed.total / 1e9:.2f} GB ({parts}); got {memory_bytes / 1e9:.2f} GB; take a smaller quantisation or context")
