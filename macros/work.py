"""Exact work: the bytes and FLOPs the engine really moves, by group, from a model's tensor table.

`structure` turns dimensions and a tensor table into what a step touches; `decode` and `prefill`
count it. Standard library only; numbers in, numbers out.
Source: llama.cpp, src/llama-kv-cache*.cpp, src/llama-memory-recurrent.cpp, src/llama-model.cpp.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from macros.ggml_types import BLOCKS, Tensor, tensor_bytes
from macros.recipes import counted, recipe
from macros.shapes import Layer, Shape
from macros.structure import Structure, structure, total_bytes, total_params

# What a reader of this module needs beside it.
__all__ = ["BLOCKS", "Shape", "Structure", "Tensor", "counted", "recipe", "structure", "tensor_bytes", "total_bytes", "total_params"]

KV_CELL_PAD = 256  # llama.cpp pads the cells attention reads, and a window's cache, to a multiple of this
STATE_BYTES = 4  # recurrent states are f32
# FLOPs an element of a recurrent state costs a token. Mamba: decay, input (2), readout (2). Gated
# delta net: decay, what the key finds (2), its correction (2), readout (2). Assumes the step-by-step
# form; chunked kernels do more, on a part that is under 3 % of a step's FLOPs.
SSM_FLOPS, DELTA_FLOPS = 5, 7


@dataclass(frozen=True)
class Cache:
    """How the KV cache is kept: ggml types, the ubatch, whether windows get a full-size cache.

    llama-bench keeps windows small (swa_full False); llama.cpp's library default is True. Without
    flash attention values lie transposed, and where layers differ each takes the widest's room.
    """

    type_k: str = "F16"
    type_v: str = "F16"
    n_ubatch: int = 512
    swa_full: bool = False
    flash_attn: bool = True


@dataclass(frozen=True)
class Work:
    """Bytes read and FLOPs done, by group.

    Args:
        bytes_by_group: "weights" (body and head), "experts", "kv", "state" [B]
        flops_by_group: "body", "experts", "head", "attention", "state" [FLOP]
        weight_bytes_by_type: weights and experts again, by ggml type [B]
    """

    bytes_by_group: dict[str, float] = field(default_factory=dict)
    flops_by_group: dict[str, float] = field(default_factory=dict)
    weight_bytes_by_type: dict[str, float] = field(default_factory=dict)

    @property
    def n_bytes(self) -> float:
        """All bytes [B]."""
        return sum(self.bytes_by_group.values())

    @property
    def flops(self) -> float:
        """All FLOPs [FLOP]."""
        return sum(self.flops_by_group.values())

    def __add__(self, other: Work) -> Work:
        def both(a: dict[str, float], b: dict[str, float]) -> dict[str, float]:
            return {k: a.get(k, 0) + b.get(k, 0) for k in a | b}

        return Work(both(self.bytes_by_group, other.bytes_by_group), both(self.flops_by_group, other.flops_by_group),
                    both(self.weight_bytes_by_type, other.weight_bytes_by_type))  # fmt: skip


def expected_experts(n_expert: int, n_used: int, tokens: float) -> float:
    """Distinct experts a layer reads for so many tokens [experts].

    Assumes: tokens are routed evenly and independently; real routing repeats itself, so this
    is an upper bound.

    >>> expected_experts(128, 8, 1), round(expected_experts(128, 8, 512), 4)
    (8.0, 128.0)
    """
    return n_expert * (1 - (1 - n_used / n_expert) ** tokens)


def _padded(cells: float) -> int:
    return math.ceil(cells / KV_CELL_PAD) * KV_CELL_PAD


def _blocks(depth_tokens: float, n_gen: int) -> Iterable[tuple[int, int]]:
    """(padded cells, steps that read so many) over n_gen steps from a depth."""
    done = 0
    while done < n_gen:
        cells = _padded(depth_tokens + done + 1)
        steps = min(n_gen - done, max(1, math.floor(cells - depth_tokens - done)))
        yield cells, steps
        done += steps


def kv_cells(depth_tokens: float, n_gen: int = 0) -> float:
    """Cells of KV cache full attention reads in a mean step of a tgN test at a depth [cells].

    Assumes: llama.cpp's padding to a multiple of 256; the mean is over the n_gen steps.

    >>> kv_cells(0, 128), kv_cells(2048, 128), kv_cells(8191)
    (256.0, 2304.0, 8192.0)
    """
    n = n_gen or 1
    return sum(cells * steps for cells, steps in _blocks(depth_tokens, n)) / n


def window_cells(window: int, n_ctx: float, cache: Cache, sequences: int = 1) -> int:
    """Cells the cache of a layer with a sliding window gets [cells].

    Room for the window and for the ubatch being written, padded; never more than the context.

    >>> window_cells(128, 131072, Cache())     # gpt-oss, as its log says
    768
    """
    if cache.swa_full:
        return math.ceil(n_ctx)
    return _padded(min(n_ctx, window * sequences + cache.n_ubatch))


def attended(depth_tokens: int, tokens: int, window: int = 0, chunked: bool = False) -> int:
    """Pairs of a query and a cell it may see, for tokens on top of a depth [pairs].

    >>> attended(0, 4), attended(100, 2), attended(100, 2, window=8), attended(7, 2, 8, chunked=True)
    (10, 203, 16, 9)
    """
    def upto(n: int) -> int:
        if not window or n <= window:
            return n * (n + 1) // 2
        first = window * (window + 1) // 2
        if not chunked:
            return first + (n - window) * window
        rest = n % window
        return n // window * first + rest * (rest + 1) // 2

    return upto(depth_tokens + tokens) - upto(depth_tokens)


def _step(model: Structure, tokens: int, sequences: int, outputs: int, cache: Cache,
          read: Callable[[Layer], float], pairs: Callable[[Layer], float]) -> Work:  # fmt: skip
    """One step: `tokens` of each of `sequences`; read and pairs are a layer's, for one sequence."""
    n = tokens * sequences
    n_bytes = dict.fromkeys(("weights", "experts", "kv", "state"), 0.0)
    flops = dict.fromkeys(("body", "experts", "head", "attention", "state"), 0.0)
    types: dict[str, float] = {}
    for w in model.weights:
        if w.role in ("lookup", "unused") or (w.role == "head" and not outputs):
            continue
        if w.role == "experts":
            size = w.n_bytes * expected_experts(model.n_expert, model.n_expert_used, n) / model.n_expert
            flops["experts"] += 2 * w.params * n * model.n_expert_used / model.n_expert
        else:
            size = w.n_bytes
            flops[w.role] += 2 * w.params * (outputs if w.role == "head" else n)
        n_bytes["experts" if w.role == "experts" else "weights"] += size
        types[w.type] = types.get(w.type, 0.0) + size
    for layer in model.layers:
        if layer.k_cell:
            n_bytes["kv"] += layer.count * sequences * read(layer) * cell_bytes(layer, cache)
            flops["attention"] += layer.count * sequences * pairs(layer) * 2 * layer.n_head * (layer.k_dim + layer.v_dim)
        each = layer.conv_state + layer.ssm_state
        n_bytes["state"] += layer.count * sequences * 2 * STATE_BYTES * each  # read and written
        flops["state"] += layer.count * n * (DELTA_FLOPS if layer.delta else SSM_FLOPS) * layer.ssm_state
    return Work(n_bytes, flops, types)


def cell_bytes(layer: Layer, cache: Cache) -> float:
    """Bytes one token leaves in a layer's cache [B]."""
    (per_k, size_k), (per_v, size_v) = (BLOCKS[_type(t)] for t in (cache.type_k, cache.type_v))
    return layer.k_cell * size_k / per_k + layer.v_cell * size_v / per_v


def kv_token_bytes(model: Structure, cache: Cache = Cache()) -> float:
    """KV cache one token adds while no window is full [B]."""
    return sum(layer.count * cell_bytes(layer, cache) for layer in model.layers if layer.own)


def kv_read_bytes(model: Structure, depth_tokens: float, cache: Cache = Cache()) -> float:
    """KV cache a token reads at a depth, to first order: no padding, no token of its own [B]."""
    return sum(x.count * min(depth_tokens, x.window or math.inf) * cell_bytes(x, cache) for x in model.layers)


def attention_flops_per_token(model: Structure, depth_tokens: float) -> float:
    """Attention FLOPs of one token at a depth, to first order [FLOP]."""
    return sum(x.count * min(depth_tokens, x.window or math.inf) * 2 * x.n_head * (x.k_dim + x.v_dim) for x in model.layers)


def idle_experts(model: Structure) -> tuple[float, float]:
    """Bytes and parameters of the experts a token is not routed to [B, params].

    >>> idle_experts(structure(Shape("llama", 1, 8, 8, 8, 1, 1, 8, tied=True), []))
    (0.0, 0.0)
    """
    share = 1 - model.n_expert_used / model.n_expert if model.n_expert else 0.0
    experts = [w for w in model.weights if w.role == "experts"]
    return share * sum(w.n_bytes for w in experts), share * sum(w.params for w in experts)


def _type(name: str) -> str:
    if name not in BLOCKS:
        raise ValueError(f"KV cache: unknown ggml type; got {name!r}; known: {', '.join(BLOCKS)}")
    return name


def _held(layer: Layer, cells: float, cache: Cache) -> float:
    """Cells read where `cells` (padded) are filled: a window's cache is not larger than it needs."""
    if layer.window and not cache.swa_full:
        return min(cells, window_cells(layer.window, math.inf, cache))
    return cells


def decode(model: Structure, depth_tokens: int = 0, n_gen: int = 1, batch: int = 1, cache: Cache = Cache()) -> Work:
    """Mean work of a decode step of a tgN test at a depth, for `batch` sequences.

    Assumes: each sequence reads its own cells (no unified cache shared by the batch).
    Ignores: writing the new cells (1 of thousands read), norms, RoPE and softmax.

    Raises:
        ValueError: a count below its least, or an unknown type of cache.

    >>> eight = Shape("qwen3", 36, 4096, 12288, 151936, 32, 8, 128, tied=False)
    >>> model = structure(eight, recipe(eight, "Q4_K_M"))
    >>> round(decode(model).bytes_by_group["weights"] / 1e9, 4)
    4.6718
    >>> round(prefill(model, 512).flops / 512 / 1e9, 2)     # GFLOP a prompt token
    14.05
    """
    _at_least({"depth_tokens": (depth_tokens, 0), "n_gen": (n_gen, 1), "batch": (batch, 1)})

    def read(layer: Layer) -> float:
        return sum(_held(layer, cells, cache) * steps for cells, steps in _blocks(depth_tokens, n_gen)) / n_gen

    def pairs(layer: Layer) -> float:
        return attended(depth_tokens, n_gen, layer.window, layer.chunked) / n_gen

    return _step(model, 1, batch, batch, cache, read, pairs)


def verify(model: Structure, depth_tokens: int, tokens: int, cache: Cache = Cache(), outputs: int | None = None) -> Work:
    """Work of one step over several tokens of one sequence: a ubatch, or drafts being checked.

    Args:
        outputs: tokens that get logits; None: all
    """
    _at_least({"depth_tokens": (depth_tokens, 0), "tokens": (tokens, 1)})
    cells = _padded(depth_tokens + tokens)
    return _step(
        model, tokens, 1, tokens if outputs is None else outputs, cache,
        lambda layer: _held(layer, cells, cache),
        lambda layer: attended(depth_tokens, tokens, layer.window, layer.chunked))  # fmt: skip


def prefill(model: Structure, n_prompt: int, depth_tokens: int = 0, n_batch: int = 2048, cache: Cache = Cache()) -> Work:
    """Work of prefilling n_prompt tokens on top of a depth, ubatch by ubatch.

    Weights are read once a ubatch; the output head runs for the last token of each batch.
    Ignores: norms, RoPE, softmax (under 1 % at usual sizes), pairs the mask hides.
    """
    _at_least({"n_prompt": (n_prompt, 1), "depth_tokens": (depth_tokens, 0), "n_batch": (n_batch, 1), "n_ubatch": (cache.n_ubatch, 1)})
    total = Work()
    for start in range(0, n_prompt, n_batch):
        end = min(n_prompt, start + n_batch)
        for at in range(start, end, cache.n_ubatch):
            tokens = min(cache.n_ubatch, end - at)
            total += verify(model, depth_tokens + at, tokens, cache, outputs=int(at + tokens == end))
    return total


def _at_least(counts: dict[str, tuple[int, int]]) -> None:
    for name, (value, least) in counts.items():
        if value < least:
            raise ValueError(f"{name}: must be at least {least}; got {value}")
