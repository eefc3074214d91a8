"""ggml's storage types: numbers, block layouts and sizes of tensors.

Standard library only; numbers in, numbers out.
Source: ggml.h (numbers), ggml-common.h (block structs; `d` and `dmin` are half floats, 2 B),
llama.h (file types).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

# type -> (its number in a GGUF, elements per block, bytes per block written as the block's layout)
TYPES: dict[str, tuple[int, int, int]] = {
    "F32": (0, 1, 4),
    "F16": (1, 1, 2),
    "Q4_0": (2, 32, 2 + 32 // 2),
    "Q4_1": (3, 32, 2 + 2 + 32 // 2),
    "Q5_0": (6, 32, 2 + 32 // 8 + 32 // 2),
    "Q5_1": (7, 32, 2 + 2 + 32 // 8 + 32 // 2),
    "Q8_0": (8, 32, 2 + 32),
    "Q8_1": (9, 32, 2 + 2 + 32),
    "Q2_K": (10, 256, 256 // 16 + 256 // 4 + 2 + 2),
    "Q3_K": (11, 256, 256 // 8 + 256 // 4 + 12 + 2),
    "Q4_K": (12, 256, 2 + 2 + 12 + 256 // 2),
    "Q5_K": (13, 256, 2 + 2 + 12 + 256 // 8 + 256 // 2),
    "Q6_K": (14, 256, 256 // 2 + 256 // 4 + 256 // 16 + 2),
    "Q8_K": (15, 256, 4 + 256 + 2 * 256 // 16),
    "IQ2_XXS": (16, 256, 2 + 256 // 8 * 2),
    "IQ2_XS": (17, 256, 2 + 256 // 8 * 2 + 256 // 32),
    "IQ3_XXS": (18, 256, 2 + 3 * 256 // 8),
    "IQ1_S": (19, 256, 2 + 256 // 8 + 2 * 256 // 32),
    "IQ4_NL": (20, 32, 2 + 32 // 2),
    "IQ3_S": (21, 256, 2 + 256 // 4 + 256 // 32 + 256 // 8 + 256 // 64),
    "IQ2_S": (22, 256, 2 + 256 // 4 + 256 // 32 + 256 // 32),
    "IQ4_XS": (23, 256, 2 + 2 + 256 // 64 + 256 // 2),
    "I8": (24, 1, 1),
    "I16": (25, 1, 2),
    "I32": (26, 1, 4),
    "I64": (27, 1, 8),
    "F64": (28, 1, 8),
    "IQ1_M": (29, 256, 256 // 8 + 256 // 16 + 256 // 32),  # its scale hides in the block scales
    "BF16": (30, 1, 2),
    "TQ1_0": (34, 256, (256 - 4 * 256 // 64) // 5 + 256 // 64 + 2),
    "TQ2_0": (35, 256, 256 // 4 + 2),
    "MXFP4": (39, 32, 1 + 32 // 2),
    "NVFP4": (40, 64, 64 // 16 + 64 // 2),
    "Q1_0": (41, 128, 2 + 128 // 8),
    "Q2_0": (42, 64, 2 + 64 // 4),
}
BLOCKS: dict[str, tuple[int, int]] = {name: (per_block, size) for name, (_, per_block, size) in TYPES.items()}
TYPE_BY_NUMBER: dict[int, str] = {number: name for name, (number, _, _) in TYPES.items()}

# general.file_type: a label for the mix, never what a size is computed from.
FILE_TYPES: dict[int, str] = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M",
    13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS",
    21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S",
    29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4_MOE", 39: "NVFP4",
    40: "Q1_0", 41: "Q2_0",
}  # fmt: skip


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
