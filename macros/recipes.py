"""Which type llama.cpp's quantiser gives each tensor: approximate tables for model cards.

Standard library only. Source: llama.cpp src/llama-quant.cpp; checked against published file
sizes and logged tables (docs/architectures.md). Many published files are mixes of their own.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from macros.ggml_types import BLOCKS, Tensor
from macros.layouts import layout, parts
from macros.shapes import Shape, at, own_cache_layers

# Mix -> the type most matrices get.
BASE = {
    "F32": "F32", "F16": "F16", "BF16": "BF16", "Q8_0": "Q8_0", "Q6_K": "Q6_K", "Q4_0": "Q4_0", "Q4_1": "Q4_1", "Q5_0": "Q5_0",
    "Q5_1": "Q5_1", "Q5_K_M": "Q5_K", "Q5_K_S": "Q5_K", "Q4_K_M": "Q4_K", "Q4_K_S": "Q4_K", "Q3_K_L": "Q3_K", "Q3_K_M": "Q3_K",
    "Q3_K_S": "Q3_K", "Q2_K": "Q2_K", "IQ4_XS": "IQ4_XS", "IQ4_NL": "IQ4_NL", "MXFP4_MOE": "MXFP4",
}  # fmt: skip
# A row that does not fill a block of 256 gets a type with blocks of 32.
NARROW = {"Q2_K": "Q4_0", "Q3_K": "Q4_0", "Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0", "IQ4_XS": "IQ4_NL"}
KEPT_F32 = re.compile(r"_norm\.weight|ffn_gate_inp\.weight|ssm_conv1d|shortconv\.conv\.weight")
KEPT_F16 = re.compile(r"altup|laurel|per_layer_model_proj")
FULL = ("F32", "F16", "BF16")
EVEN = (*FULL, "Q8_0", "Q6_K", "MXFP4_MOE")  # the same type wherever a tensor stands
PLACED = re.compile(r"attn_v\.weight|ffn_down")  # their type depends on where they stand: `_value`, `_down`


def more_bits(layer: int, n_layer: int) -> bool:
    """Whether a Q4_K_M or Q5_K_M gives this layer's attn_v and ffn_down the larger Q6_K.

    The first and the last eighth of the layers, and every third between.
    Source: llama.cpp src/llama-quant.cpp, use_more_bits.

    >>> sum(more_bits(i, 36) for i in range(36))
    18
    """
    eighth = n_layer // 8
    return layer < eighth or layer >= 7 * n_layer // 8 or (layer - eighth) % 3 == 2


class _Place(NamedTuple):
    """Where a tensor stands: its layer, its rank among the attention values, and the matrix used."""

    layer: int
    n_layer: int
    value: int
    n_values: int
    imatrix: bool


def recipe(shape: Shape, quant: str, imatrix: bool = False) -> list[Tensor]:
    """The tensor table llama.cpp's quantiser would write for these dimensions, in file order.

    Args:
        imatrix: it had an importance matrix, which changes some of the first layers' types

    Raises:
        ValueError: no layout for the architecture, or no recipe for the mix.

    >>> eight = Shape("qwen3", 36, 4096, 12288, 151936, 32, 8, 128, tied=False)
    >>> len(recipe(eight, "Q4_K_M")), sum(t.params for t in recipe(eight, "Q8_0"))
    (399, 8190735360)
    """
    _known(quant)
    return [Tensor(name, dims, _type(shape, quant, name, dims, place)) for name, dims, place in _placed(shape, imatrix)]


def counted(shape: Shape, quant: str, imatrix: bool = False) -> list[Tensor]:
    """`recipe` with alike tensors counted under the first one's name: the same sums, a tenth of the work. Raises what it does.

    >>> eight = Shape("qwen3", 36, 4096, 12288, 151936, 32, 8, 128, tied=False)
    >>> [(t.name, t.type, t.count) for t in counted(eight, "Q4_K_M") if "ffn_down" in t.name]
    [('blk.0.ffn_down.weight', 'Q6_K', 18), ('blk.4.ffn_down.weight', 'Q4_K', 18)]
    """
    return list(_counted(shape, quant, imatrix))


@lru_cache(maxsize=512)  # a page asks for its files' tables several times, a rebuild for the same again
def _counted(shape: Shape, quant: str, imatrix: bool) -> tuple[Tensor, ...]:
    _known(quant)
    found: list[Tensor] = []
    for dims, placed, count in _alike(shape, imatrix):
        kinds: dict[str, list] = {}
        for name, place in placed[:1] if quant in EVEN else placed:
            first = kinds.setdefault(_type(shape, quant, name, dims, place), [name, 0])
            first[1] += 1
        if len(kinds) == 1:
            next(iter(kinds.values()))[1] = count
        found += [Tensor(name, dims, kind, n) for kind, (name, n) in kinds.items()]
    return tuple(found)


def _known(quant: str) -> None:
    if quant not in BASE:
        raise ValueError(f"no recipe for this quantisation; got {quant!r}; known: {', '.join(sorted(BASE))}")


def _placed(shape: Shape, imatrix: bool) -> list[tuple[str, tuple[int, ...], _Place]]:
    """Every tensor of a model, in file order: name, dimensions, where it stands."""
    table = layout(shape)
    n_values = sum(".attn_v.weight" in name for name, _ in table)
    value, found = 0, []
    for name, dims in table:
        layer = int(name.split(".", 2)[1]) if name.startswith("blk.") else -1
        found.append((name, dims, _Place(layer, shape.n_layer, value, n_values, imatrix)))
        value += ".attn_v.weight" in name
    return found


@lru_cache(maxsize=128)  # a page asks for every format of some fifty models, another for their logged files
def _alike(shape: Shape, imatrix: bool) -> list[tuple[tuple[int, ...], list[tuple[str, _Place]], int]]:
    """Those tensors in groups of one name and one size, in layers with a cache of their own or in layers without.

    For each its dimensions, where its tensors stand (all of them where their type depends on it, else the first), how many it has.
    """
    before, kinds, after = parts(shape)
    own = own_cache_layers(shape)
    groups: dict[tuple[str, tuple[int, ...], bool], list[int]] = {}
    for layers, tensors in kinds:
        for tensor in tensors:
            groups.setdefault((*tensor, layers[0] >= own), []).extend(layers)
    rank = {layer: i for i, layer in enumerate(sorted(i for layers, tensors in kinds for name, _ in tensors if name == "attn_v.weight" for i in layers))}

    def placed(name: str, layers: list[int]) -> list[tuple[str, _Place]]:
        found = sorted(layers) if PLACED.search(name) else layers[:1]
        return [(f"blk.{i}.{name}", _Place(i, shape.n_layer, rank.get(i, 0), len(rank), imatrix)) for i in found]

    def alone(tensors: list[tuple[str, tuple[int, ...]]]) -> list[tuple[tuple[int, ...], list[tuple[str, _Place]], int]]:
        return [(dims, [(name, _Place(-1, shape.n_layer, 0, len(rank), imatrix))], 1) for name, dims in tensors]

    return [*alone(before), *((dims, placed(name, layers), len(layers)) for (name, dims, _), layers in groups.items()), *alone(after)]


def _type(shape: Shape, quant: str, name: str, dims: tuple[int, ...], place: _Place) -> str:
    if len(dims) < 2 or not name.endswith("weight") or KEPT_F32.search(name):
        return "F32"
    if KEPT_F16.search(name):
        return quant if quant in FULL else "F16"
    kind = _chosen(shape, quant, name, dims, place)
    for fitting in (kind, NARROW.get(kind, kind)):
        if dims[0] % BLOCKS[fitting][0] == 0:
            return fitting
    if ".ssm_" in name:
        return "F16"  # what the quantiser falls back to; small
    raise ValueError(f"{name}: rows of {dims[0]} fill neither {kind} blocks of {BLOCKS[kind][0]} nor blocks of 32")


def _chosen(shape: Shape, quant: str, name: str, dims: tuple[int, ...], place: _Place) -> str:
    base = BASE[quant]
    if quant in FULL or quant == "Q8_0":
        return base
    if name == ("token_embd.weight" if shape.tied else "output.weight"):
        return "Q8_0" if quant == "MXFP4_MOE" else "Q6_K"
    if quant == "MXFP4_MOE":
        return base if len(dims) > 2 and "_exps" in name else "Q8_0"
    for part, choose in (("attn_v.weight", _value), ("ffn_down", _down), ("attn_output.weight", _output),
                         ("attn_qkv.weight", _fused), ("attn_k.weight", _key)):  # fmt: skip
        if part in name:
            return choose(shape, quant, place) or base
    return base


def _gqa(shape: Shape) -> int:
    n_kv = at(shape.n_head_kv, 0)
    return at(shape.n_head, 0) // n_kv if n_kv else 0


def _value(shape: Shape, quant: str, place: _Place) -> str:
    if shape.n_expert == 8:
        return "Q8_0"
    big = "Q4_K" if _gqa(shape) >= 4 else "Q3_K"
    kind = {"Q2_K": big, "Q3_K_M": "Q5_K" if place.value < 2 else "Q4_K", "Q3_K_L": "Q5_K"}.get(quant, "")
    if quant in ("Q4_K_M", "Q5_K_M") and more_bits(place.value, place.n_values):
        kind = "Q6_K"
    if quant in ("IQ4_XS", "IQ4_NL") and _gqa(shape) >= 4:
        kind = "Q5_K"
    if quant == "Q4_K_S" and place.value < 4:
        kind = "Q5_K"
    # Llama's 70B: eight heads share a value, so more bits cost little.
    if shape.arch == "llama" and shape.n_layer == 80 and _gqa(shape) > 1 and (kind or BASE[quant]) in ("Q3_K", "Q4_K"):
        kind = "Q5_K"
    return kind


def _key(shape: Shape, quant: str, place: _Place) -> str:
    return "Q8_0" if shape.n_expert == 8 else ""


def _down(shape: Shape, quant: str, place: _Place) -> str:
    first = place.layer < place.n_layer // 8
    if quant in ("Q4_K_M", "Q5_K_M"):
        return "Q6_K" if more_bits(place.layer, place.n_layer) else ""
    if quant == "Q3_K_M":
        return "Q5_K" if place.layer < place.n_layer // 16 else "Q4_K"
    if quant == "Q4_K_S" or (quant in ("IQ4_XS", "IQ4_NL") and not place.imatrix):
        return "Q5_K" if first else ""
    if quant in ("Q4_0", "Q5_0") and place.imatrix and first:
        return {"Q4_0": "Q4_1", "Q5_0": "Q5_1"}[quant]
    return {"Q2_K": "Q3_K", "Q3_K_L": "Q5_K"}.get(quant, "")


def _output(shape: Shape, quant: str, place: _Place) -> str:
    if shape.n_expert == 8:
        return "Q5_K" if quant in ("Q2_K", "Q3_K_S", "Q3_K_M", "IQ4_NL", "IQ4_XS", "Q4_K_S", "Q4_K_M") else ""
    return {"Q2_K": "Q3_K", "Q3_K_M": "Q4_K", "Q3_K_L": "Q5_K"}.get(quant, "")


def _fused(shape: Shape, quant: str, place: _Place) -> str:
    return {"Q3_K_M": "Q4_K", "Q3_K_L": "Q4_K", "Q4_K_M": "Q5_K", "Q5_K_M": "Q6_K"}.get(quant, "")
