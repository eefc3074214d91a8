"""Exact work: the bytes and FLOPs the engine really moves, from a model's tensor table.

Dense transformers only; what is not known is refused by name, never guessed.
Standard library only; numbers in, numbers out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

# ggml type -> (elements per block, bytes per block), each written as its block layout.
# Source: ggml-common.h block structs; `d`/`dmin` are half floats (2 B).
BLOCKS: dict[str, tuple[int, int]] = {
    "F32": (1, 4),
    "F16": (1, 2),
    "BF16": (1, 2),
    "Q4_0": (32, 2 + 32 // 2),
    "Q4_1": (32, 2 + 2 + 32 // 2),
    "Q5_0": (32, 2 + 32 // 8 + 32 // 2),
    "Q5_1": (32, 2 + 2 + 32 // 8 + 32 // 2),
    "Q8_0": (32, 2 + 32),
    "Q2_K": (256, 256 // 16 + 256 // 4 + 2 + 2),
    "Q3_K": (256, 256 // 8 + 256 // 4 + 12 + 2),
    "Q4_K": (256, 2 + 2 + 12 + 256 // 2),
    "Q5_K": (256, 2 + 2 + 12 + 256 // 8 + 256 // 2),
    "Q6_K": (256, 256 // 2 + 256 // 4 + 256 // 16 + 2),
    "IQ4_NL": (32, 2 + 32 // 2),
    "IQ4_XS": (256, 2 + 2 + 256 // 64 + 256 // 2),
    "IQ3_S": (256, 2 + 256 // 4 + 256 // 32 + 256 // 8 + 256 // 64),
    "IQ3_XXS": (256, 2 + 3 * 256 // 8),
    "IQ2_S": (256, 2 + 256 // 4 + 256 // 16),
    "IQ2_XS": (256, 2 + 256 // 8 * 2 + 256 // 32),
    "IQ2_XXS": (256, 2 + 256 // 8 * 2),
    "MXFP4": (32, 1 + 32 // 2),
}

# Architectures whose step is "every weight once, full attention in every layer".
DENSE = ("gemma", "granite", "llama", "olmo2", "qwen2", "qwen3", "stablelm")
KV_CELL_PAD = 256  # llama.cpp pads the cells attention reads to a multiple of this


@dataclass(frozen=True)
class Shape:
    """A dense decoder's dimensions, as a GGUF header names them [counts]."""

    arch: str
    n_layer: int
    n_embd: int
    n_ff: int
    n_vocab: int
    n_head: int
    n_head_kv: int
    head_dim: int
    tied: bool  # token_embd is also the output head; a property of the file, not of the model


@dataclass(frozen=True)
class Tensor:
    """One tensor, or `count` alike: ggml order, so the row length (ne0) comes first."""

    name: str
    shape: tuple[int, ...]
    type: str
    count: int = 1

    @property
    def params(self) -> int:
        """Elements in all `count` tensors."""
        return math.prod(self.shape) * self.count

    @property
    def n_bytes(self) -> int:
        """Size of all `count` tensors [B]."""
        return tensor_bytes(self.params, self.type)


def tensor_bytes(n_elements: int, type_name: str) -> int:
    """Stored size of a tensor [B].

    Raises:
        ValueError: the type is unknown, or the elements do not fill whole blocks.

    >>> tensor_bytes(256, "Q4_K") * 8 / 256      # bits per weight
    4.5
    """
    if type_name not in BLOCKS:
        raise ValueError(f"unknown ggml type; got {type_name!r}; known: {', '.join(BLOCKS)}")
    per_block, block_bytes = BLOCKS[type_name]
    if n_elements % per_block:
        raise ValueError(f"{n_elements} elements do not fill whole {type_name} blocks of {per_block}")
    return n_elements // per_block * block_bytes


def more_bits(layer: int, n_layer: int) -> bool:
    """Whether Q4_K_M gives this layer's attn_v and ffn_down the larger Q6_K.

    The first and the last eighth of the layers, and every third between.
    Source: llama.cpp src/llama-quant.cpp, use_more_bits.

    >>> sum(more_bits(i, 36) for i in range(36))
    18
    """
    eighth = n_layer // 8
    return layer < eighth or layer >= 7 * n_layer // 8 or (layer - eighth) % 3 == 2


def _matrix_type(quant: str, name: str, layer: int, shape: Shape) -> str:
    if quant == "Q4_K_M":
        head = "token_embd" if shape.tied else "output"
        if name == head or (name in ("attn_v", "ffn_down") and more_bits(layer, shape.n_layer)):
            return "Q6_K"
        return "Q4_K"
    if quant in ("Q8_0", "F16"):
        return quant
    raise ValueError(f"no recipe for this quantisation; got {quant!r}; known: Q4_K_M, Q8_0, F16")


def recipe(shape: Shape, quant: str) -> list[Tensor]:
    """The tensor table llama.cpp's quantiser would write for these dimensions.

    Qwen3's layout (per-head Q and K norms, no biases); one entry a tensor, in file order.
    Source: llama.cpp src/llama-quant.cpp; checked against the published file sizes.

    Raises:
        ValueError: no recipe for the architecture or the quantisation.

    >>> eight = Shape("qwen3", 36, 4096, 12288, 151936, 32, 8, 128, tied=False)
    >>> round(decode_weight_bytes(recipe(eight, "Q4_K_M")) / 1e9, 4)
    4.6718
    >>> round(decode_weight_bytes(recipe(eight, "Q8_0")) / 1e9, 4)
    8.0423
    """
    if shape.arch != "qwen3":
        raise ValueError(f"no tensor recipe for this architecture; got {shape.arch!r}; known: qwen3")
    embd, ff, head = shape.n_embd, shape.n_ff, shape.head_dim
    q, kv = shape.n_head * head, shape.n_head_kv * head
    per_layer = {
        "attn_norm": (embd,),
        "attn_q": (embd, q),
        "attn_k": (embd, kv),
        "attn_v": (embd, kv),
        "attn_q_norm": (head,),
        "attn_k_norm": (head,),
        "attn_output": (q, embd),
        "ffn_norm": (embd,),
        "ffn_gate": (embd, ff),
        "ffn_up": (embd, ff),
        "ffn_down": (ff, embd),
    }

    def tensor(prefix: str, name: str, dims: tuple[int, ...], layer: int = -1) -> Tensor:
        kind = "F32" if len(dims) == 1 else _matrix_type(quant, name, layer, shape)
        return Tensor(f"{prefix}{name}.weight", dims, kind)

    table = [tensor("", "token_embd", (embd, shape.n_vocab))]
    for i in range(shape.n_layer):
        table += [tensor(f"blk.{i}.", name, dims, i) for name, dims in per_layer.items()]
    table.append(tensor("", "output_norm", (embd,)))
    if not shape.tied:
        table.append(tensor("", "output", (embd, shape.n_vocab)))
    return table


def total_bytes(tensors: Iterable[Tensor]) -> int:
    """Stored size of the whole table [B]; llama-bench prints it as model_size."""
    return sum(t.n_bytes for t in tensors)


def total_params(tensors: Iterable[Tensor]) -> int:
    """Elements in the whole table; llama-bench prints it as model_n_params.

    >>> total_params(recipe(Shape("qwen3", 28, 1024, 3072, 151936, 16, 8, 128, True), "Q8_0"))
    596049920
    """
    return sum(t.params for t in tensors)


def decode_weight_bytes(tensors: Iterable[Tensor]) -> int:
    """Weight bytes one decode step streams at batch 1 [B].

    Every tensor once, but an untied token_embd: there a step looks up one row
    (Ignores: that row, 4 kB of 5 GB).
    """
    table = list(tensors)
    untied = any(t.name == "output.weight" for t in table)
    return sum(t.n_bytes for t in table if not (untied and t.name == "token_embd.weight"))


def body_params(tensors: Iterable[Tensor]) -> int:
    """Parameters every prompt token is multiplied with: matrices but embedding and output head.

    >>> body_params(recipe(Shape("qwen3", 36, 4096, 12288, 151936, 32, 8, 128, False), "Q8_0"))
    6945767424
    """
    heads = ("token_embd.weight", "output.weight")
    return sum(t.params for t in tensors if len(t.shape) > 1 and t.name not in heads)


def kv_cells(depth_tokens: float, n_gen: int = 0) -> float:
    """Cells of KV cache attention reads in a mean step of a tgN test at a depth [cells].

    Assumes: llama.cpp's padding to a multiple of 256; the mean is over the n_gen steps.

    >>> kv_cells(0, 128), kv_cells(2048, 128), kv_cells(8191)
    (256.0, 2304.0, 8192.0)
    """
    steps = range(1, n_gen + 1) if n_gen else (1,)
    padded = (math.ceil((depth_tokens + i) / KV_CELL_PAD) * KV_CELL_PAD for i in steps)
    return sum(padded) / len(steps)


def prefill_flops(
    tensors: Iterable[Tensor], shape: Shape, n_prompt: int, depth_tokens: int = 0, n_batch: int = 2048
) -> float:
    """FLOPs of prefilling `n_prompt` tokens on top of `depth_tokens` [FLOP].

    Body matmuls, attention over every earlier token, the output head once a batch.
    Ignores: norms, RoPE, softmax (under 1 % at these sizes).

    >>> eight = Shape("qwen3", 36, 4096, 12288, 151936, 32, 8, 128, tied=False)
    >>> round(prefill_flops(recipe(eight, "Q4_K_M"), eight, 512) / 512 / 1e9, 2)
    14.05
    """
    attended = n_prompt * depth_tokens + n_prompt * (n_prompt + 1) / 2
    attention = 4 * shape.n_layer * shape.n_head * shape.head_dim * attended
    head = 2 * shape.n_vocab * shape.n_embd * math.ceil(n_prompt / n_batch)
    return 2 * body_params(tensors) * n_prompt + attention + head
