"""What a step of a model touches: its weights by role and ggml type, its layers by kind.

Standard library only; numbers in, numbers out.
Source: llama.cpp, src/models/*.cpp (what each graph reads).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from macros.ggml_types import Tensor
from macros.shapes import Layer, Shape, layers, own_cache_layers

LOOKED_UP = ("token_embd.", "per_layer_token_embd.", "position_embd.", "token_types.")
OTHER_MODELS = ("v.", "mm.", "a.")  # vision and sound encoders that some files carry along
EXPERTS = re.compile(r"_exps\.|\.ffn_(?:gate|up|down)\.\d+\.")  # stacked, or one tensor an expert


@dataclass(frozen=True)
class Weights:
    """All tensors of one role and one ggml type.

    Args:
        role: "body" (read every step), "experts" (those routed to), "head" (once an output),
            "lookup" (a row a token), "unused" (drafting layers, other models)
        params: elements every token, or every token routed there, is multiplied with
    """

    role: str
    type: str
    params: int
    n_bytes: int


@dataclass(frozen=True)
class Structure:
    """What a step of a model touches: its weights by role and type, its layers by kind.

    >>> from macros.recipes import recipe
    >>> eight = Shape("qwen3", 36, 4096, 12288, 151936, 32, 8, 128, tied=False)
    >>> structure(eight, recipe(eight, "Q4_K_M")).body_params
    6945767424
    """

    arch: str
    n_layer: int
    n_expert: int
    n_expert_used: int
    weights: tuple[Weights, ...]
    layers: tuple[Layer, ...]

    @property
    def body_params(self) -> float:
        """Parameters a prompt token is multiplied with: matrices but embedding and output head,
        of the experts the share that is used."""
        share = self.n_expert_used / self.n_expert if self.n_expert else 0
        return sum(w.params * {"body": 1, "experts": share}.get(w.role, 0) for w in self.weights)


def structure(shape: Shape, tensors: Iterable[Tensor]) -> Structure:
    """What a step of this model touches.

    Raises:
        ValueError: the architecture is not known, or experts without a count.
    """
    table = list(tensors)
    tied = not any(t.name == "output.weight" for t in table)
    found: dict[tuple[str, str], list[int]] = {}
    for t in table:
        sums = found.setdefault((role(t.name, shape, tied), t.type), [0, 0])
        # A vector (norm, bias) is read but multiplies nothing; so is an expert's bias.
        sums[0] += t.params if len(t.shape) > 1 and not t.name.endswith(".bias") else 0
        sums[1] += t.n_bytes
    if any(role == "experts" for role, _ in found) and not 0 < shape.n_expert_used <= shape.n_expert:
        raise ValueError(f"experts without their count; got {shape.n_expert_used} used of {shape.n_expert}")
    weights = tuple(Weights(role, kind, params, size) for (role, kind), (params, size) in found.items())
    return Structure(shape.arch, shape.n_layer - shape.n_layer_nextn, shape.n_expert, shape.n_expert_used, weights, layers(shape))


def role(name: str, shape: Shape, tied: bool) -> str:
    """What a tensor is to a step, by its name (see Weights); `*` stands for any layer that runs."""
    if name.startswith(OTHER_MODELS):
        return "unused"
    if name == "output.weight" or (tied and name == "token_embd.weight"):
        return "head"
    if name.startswith(LOOKED_UP):
        return "lookup"
    if name.startswith("blk."):
        _, number, part = name.split(".", 2)
        layer = int(number) if number.isdigit() else 0
        if layer >= shape.n_layer - shape.n_layer_nextn:
            return "unused"
        if layer >= own_cache_layers(shape) and part.startswith(("attn_k.", "attn_v.", "attn_k_norm.")):
            return "unused"  # in the file, but the layer reads another's cache
    return "experts" if EXPERTS.search(name) else "body"


def total_bytes(tensors: Iterable[Tensor]) -> int:
    """Stored size of a whole table [B]; llama-bench prints it as model_size."""
    return sum(t.n_bytes for t in tensors)


def total_params(tensors: Iterable[Tensor]) -> int:
    """Elements in a whole table; llama-bench prints it as model_n_params."""
    return sum(t.params for t in tensors)
