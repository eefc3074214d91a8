"""A GGUF's header: keys, shape and tensor table; never the weights.

Walks the bytes itself, because gguf.GGUFReader makes an array of every token of the
vocabulary (15 s and 550 MB for 151,936 tokens) and has no bounds; names come from `gguf`.
Source: ggml docs/gguf.md.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from macros.work import BLOCKS, DENSE, Shape, Tensor

SYNTHETIC_KEY = "inklab.synthetic"
# GGUF value type -> struct code; strings and arrays are read apart.
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
# The least a thing can take: a string its length, a key its name, type and one byte, a tensor
# its name, number of dimensions, one dimension, type and offset.
STRING_LEAST_BYTES, KEY_LEAST_BYTES, TENSOR_LEAST_BYTES = 8, 8 + 4 + 1, 8 + 4 + 8 + 4 + 8
MAX_DIMS = 4  # GGML_MAX_DIMS
# Keys that change what a step reads: the physics here would be wrong for them.
REFUSED = ("attention.sliding_window", "expert_count", "ssm.state_size")


@dataclass(frozen=True)
class Header:
    """What a GGUF says of itself."""

    name: str
    quant: str  # from general.file_type, such as Q4_K_M
    synthetic: bool
    shape: Shape
    tensors: list[Tensor]
    metadata: dict[str, object]  # scalars and strings; arrays are left out


class _Walk:
    """Reads forward through a buffer; every length is checked against what is left."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data, self.at = data, 0

    def skip(self, n_bytes: int) -> int:
        """Move on and return where we were."""
        start = self.at
        if n_bytes > len(self.data) - start:
            raise ValueError("cut short or damaged: the header runs past the end of the file")
        self.at = start + n_bytes
        return start

    def scalar(self, code: str) -> int | float | bool:
        return struct.unpack_from("<" + code, self.data, self.skip(struct.calcsize("<" + code)))[0]

    def count(self, least_bytes: int) -> int:
        """A number of things that take at least so many bytes each: absurd ones fail at once."""
        number = self.scalar("Q")
        if number * least_bytes > len(self.data) - self.at:
            raise ValueError(f"cut short or damaged: {number} entries do not fit in the file")
        return number

    def string(self) -> str:
        n_bytes = self.scalar("Q")
        start = self.skip(n_bytes)
        return self.data[start : start + n_bytes].decode(errors="replace")

    def value(self, kind: int) -> object:
        """One value; None for an array, which is only walked over."""
        if kind in SCALARS:
            return self.scalar(SCALARS[kind])
        if kind == STRING:
            return self.string()
        if kind != ARRAY:
            raise ValueError(f"damaged: unknown value type {kind}")
        item = self.scalar("I")
        if item in SCALARS:
            self.skip(self.scalar("Q") * struct.calcsize("<" + SCALARS[item]))
        elif item == STRING:
            for _ in range(self.count(STRING_LEAST_BYTES)):
                self.skip(self.scalar("Q"))
        else:
            raise ValueError(f"damaged: arrays of value type {item}")
        return None


def read_header(path: Path) -> Header:
    """Read the header of a dense model's GGUF.

    Raises:
        OSError: the file cannot be opened.
        ValueError: not a GGUF, cut short, or a kind of model the physics does not cover.
    """
    path = Path(path)
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ValueError(f"{path}: not a GGUF: it does not begin with the letters GGUF")
        try:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _read(_Walk(data))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None


def _read(walk: _Walk) -> Header:
    import gguf

    walk.skip(4)
    version = walk.scalar("I")
    if version not in gguf.READER_SUPPORTED_VERSIONS:
        raise ValueError(f"GGUF version not supported; got {version}")
    n_tensors, n_keys = walk.count(TENSOR_LEAST_BYTES), walk.count(KEY_LEAST_BYTES)
    metadata: dict[str, object] = {}
    for _ in range(n_keys):
        key = walk.string()
        metadata[key] = walk.value(walk.scalar("I"))
    _refuse_unknown(metadata)
    tensors, ends = [], [0]
    for _ in range(n_tensors):
        tensor, offset = _tensor(walk, gguf.GGMLQuantizationType)
        tensors.append(tensor)
        ends.append(offset + tensor.n_bytes)
    alignment = metadata.get("general.alignment", gguf.GGUF_DEFAULT_ALIGNMENT)
    if not isinstance(alignment, int) or alignment <= 0:
        raise ValueError(f"general.alignment: not a positive whole number; got {alignment!r}")
    data_start = -(-walk.at // alignment) * alignment
    missing = data_start + max(ends) - len(walk.data)
    if missing > 0:
        raise ValueError(f"cut short: {missing} bytes of weights are missing")
    return Header(
        name=str(metadata.get("general.name", "unnamed")),
        quant=_quant(metadata.get("general.file_type"), gguf.LlamaFileType),
        synthetic=metadata.get(SYNTHETIC_KEY) is True,
        shape=_shape(metadata, tensors),
        tensors=tensors,
        metadata={key: value for key, value in metadata.items() if value is not None},
    )


def _refuse_unknown(metadata: dict[str, object]) -> None:
    arch = metadata.get("general.architecture")
    if arch not in DENSE:
        raise ValueError(f"architecture not covered; got {arch!r}; known: {', '.join(DENSE)}")
    if metadata.get("split.count", 0) not in (0, 1):
        raise ValueError(f"one of {metadata['split.count']} parts of a split model; merge them first")
    for key in REFUSED:
        if metadata.get(f"{arch}.{key}"):
            raise ValueError(
                f"model not covered: {arch}.{key} is set; got {metadata[f'{arch}.{key}']}; "
                "only dense models with full attention in every layer are known"
            )


def _tensor(walk: _Walk, types: Callable) -> tuple[Tensor, int]:
    """One row of the tensor table, and where its data starts [B]."""
    name, n_dims = walk.string(), walk.scalar("I")
    if not 1 <= n_dims <= MAX_DIMS:
        raise ValueError(f"damaged: tensor {name[:64]!r} with {n_dims} dimensions")
    dims = tuple(walk.scalar("Q") for _ in range(n_dims))
    type_id, offset = walk.scalar("I"), walk.scalar("Q")
    try:
        type_name = types(type_id).name
    except ValueError:
        type_name = f"type {type_id}"
    if type_name not in BLOCKS:
        raise ValueError(f"tensor {name}: unknown ggml type; got {type_name}; known: {', '.join(BLOCKS)}")
    return Tensor(name, dims, type_name), offset


def _quant(file_type: object, file_types: Callable) -> str:
    try:
        return file_types(file_type).name.removeprefix("MOSTLY_").removeprefix("ALL_")
    except ValueError:
        raise ValueError(f"general.file_type: unknown quantisation; got {file_type!r}") from None


def _shape(metadata: dict[str, object], tensors: list[Tensor]) -> Shape:
    arch = str(metadata["general.architecture"])
    by_name = {tensor.name: tensor for tensor in tensors}

    def count(key: str) -> int:
        value = metadata.get(f"{arch}.{key}")
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"{arch}.{key}: not a positive whole number; got {value!r}")
        return value

    if "token_embd.weight" not in by_name:
        raise ValueError("no tensor token_embd.weight: not a whole language model")
    n_embd, n_head = count("embedding_length"), count("attention.head_count")
    has_kv, has_key = (f"{arch}.attention.{k}" in metadata for k in ("head_count_kv", "key_length"))
    return Shape(
        arch=arch,
        n_layer=count("block_count"),
        n_embd=n_embd,
        n_ff=count("feed_forward_length"),
        n_vocab=by_name["token_embd.weight"].shape[-1],
        n_head=n_head,
        n_head_kv=count("attention.head_count_kv") if has_kv else n_head,
        head_dim=count("attention.key_length") if has_key else n_embd // n_head,
        tied="output.weight" not in by_name,
    )
