"""A GGUF's header: keys, dimensions and tensor table; never the weights.

Walks the bytes itself, because gguf.GGUFReader makes an array of every token of the
vocabulary (15 s and 550 MB for 151,936 tokens), has no bounds and wants the whole file.
Standard library only. Source: ggml docs/gguf.md; llama.cpp src/llama-model.cpp (load_hparams).
"""

from __future__ import annotations

import os
import struct
from collections import Counter
from dataclasses import dataclass

from macros.ggml_types import FILE_TYPES, TYPE_BY_NUMBER, Tensor
from macros.gguf_bytes import Source, is_url, opened, parts
from macros.gguf_shape import shape_of
from macros.shapes import Shape, known
from macros.structure import Structure, structure

SYNTHETIC_KEY = "inklab.synthetic"
VERSIONS = (2, 3)
ALIGNMENT = 32  # where general.alignment does not say
# GGUF value type -> struct code; strings and arrays are read apart.
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
# The least a thing can take: a string its length, a key its name, type and one byte, a tensor
# its name, number of dimensions, one dimension, type and offset.
STRING_LEAST_BYTES, KEY_LEAST_BYTES, TENSOR_LEAST_BYTES = 8, 8 + 4 + 1, 8 + 4 + 8 + 4 + 8
MAX_DIMS, MAX_NAME = 4, 64  # GGML_MAX_DIMS, GGML_MAX_NAME
MAX_LAYERS = 4096  # arrays up to this long are kept: they may be per-layer values
MAX_STRINGS = 2**23  # the largest vocabularies, merges included, are under 2**20
MAX_KEPT_BYTES = 2**25  # texts, names and short arrays together; real headers keep under 2**20
MAX_TENSORS, MAX_KEYS, MAX_PARTS = 2**17, 2**16, 1000


@dataclass(frozen=True)
class Header:
    """What a GGUF says of itself."""

    name: str
    quant: str  # from general.file_type, such as Q4_K_M: a label
    synthetic: bool
    shape: Shape
    tensors: list[Tensor]
    metadata: dict[str, object]  # scalars, strings and short arrays of numbers
    structure: Structure  # what a step touches


class _Walk:
    """Reads forward through a source; every length is checked against what is left."""

    def __init__(self, source: Source) -> None:
        self.source, self.at, self.kept = source, 0, 0

    def keep(self, n_bytes: int) -> None:
        """Account for what stays in memory."""
        self.kept += n_bytes
        if self.kept > MAX_KEPT_BYTES:
            raise ValueError(f"damaged: over {MAX_KEPT_BYTES // 2**20} MiB of texts and values")

    def skip(self, n_bytes: int) -> int:
        """Move on and return where we were."""
        start = self.at
        if n_bytes > self.source.size - start:
            raise ValueError("cut short or damaged: the header runs past the end of the file")
        self.at = start + n_bytes
        return start

    def take(self, code: str) -> tuple:
        size = struct.calcsize("<" + code)
        start = self.skip(size)
        data, begins = self.source.window(start, size)
        return struct.unpack_from("<" + code, data, start - begins)

    def scalar(self, code: str) -> int | float | bool:
        return self.take(code)[0]

    def count(self, least_bytes: int, most: int) -> int:
        """A number of things that take at least so many bytes each: absurd ones fail at once."""
        number = self.scalar("Q")
        if number * least_bytes > self.source.size - self.at:
            raise ValueError(f"cut short or damaged: {number} entries do not fit in the file")
        if number > most:
            raise ValueError(f"damaged: {number} entries where {most} is more than any model has")
        return number

    def string(self) -> str:
        n_bytes = self.scalar("Q")
        start = self.skip(n_bytes)
        self.keep(n_bytes)
        data, begins = self.source.window(start, n_bytes)
        return data[start - begins : start - begins + n_bytes].decode(errors="replace")

    def strings(self) -> None:
        """Walk over an array of strings: the only long loop, so it steps inside the window."""
        left, length = self.count(STRING_LEAST_BYTES, MAX_STRINGS), struct.Struct("<Q").unpack_from
        while left:
            data, begins = self.source.window(self.at, STRING_LEAST_BYTES)
            at, end = self.at - begins, len(data) - STRING_LEAST_BYTES
            while left and at <= end:
                at += STRING_LEAST_BYTES + length(data, at)[0]
                left -= 1
            self.skip(at + begins - self.at)
            if left and self.source.size - self.at < STRING_LEAST_BYTES:
                raise ValueError("cut short or damaged: the header runs past the end of the file")

    def value(self, kind: int) -> object:
        """One value; None for an array that is only walked over."""
        if kind in SCALARS:
            return self.scalar(SCALARS[kind])
        if kind == STRING:
            return self.string()
        if kind != ARRAY:
            raise ValueError(f"damaged: unknown value type {kind}")
        item = self.scalar("I")
        if item == STRING:
            return self.strings()
        if item not in SCALARS:
            raise ValueError(f"damaged: arrays of value type {item}")
        code = SCALARS[item]
        number = self.scalar("Q")
        if number <= MAX_LAYERS:
            self.keep(number * struct.calcsize("<Q"))
            return self.take(f"{number}{code}") if number else ()
        self.skip(number * struct.calcsize("<" + code))
        return None


def read_header(path: str | os.PathLike[str]) -> Header:
    """Read the header of a model's GGUF: a file, any part of a split one, or a URL of either.

    Raises:
        OSError: the file cannot be opened.
        ValueError: not a GGUF, cut short, or a model the physics does not cover; with its name.
    """
    name = os.fspath(path)
    first = _read_part(name)
    number = first.metadata.get("split.count", 0)
    if not isinstance(number, int) or not 0 <= number <= MAX_PARTS:
        raise ValueError(f"{name}: split.count: not a number of parts; got {number!r}")
    if number < 2:
        return _header(name, first.metadata, first.tensors)
    try:
        names = parts(name, number)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    if not is_url(name) and (missing := [n for n in names if not os.path.isfile(n)]):
        raise ValueError(f"{name}: one of {number} parts of a split model; missing: {', '.join(os.path.basename(n) for n in missing[:3])}")
    read = [first if n == name else _read_part(n) for n in names]
    tensors = [t for part in read for t in part.tensors]
    said = read[0].metadata.get("split.tensors.count", len(tensors))
    if said != len(tensors):
        raise ValueError(f"{name}: the parts hold {len(tensors)} tensors where split.tensors.count says {said!r}")
    return _header(names[0], read[0].metadata, tensors)


@dataclass(frozen=True)
class _Part:
    metadata: dict[str, object]
    tensors: list[Tensor]


def _read_part(name: str) -> _Part:
    try:
        with opened(name) as source:
            return _walk(_Walk(source))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _walk(walk: _Walk) -> _Part:
    magic = bytes(walk.take("4s")[0]) if walk.source.size >= 4 else b""
    if magic != b"GGUF":
        older = " but an older ggml format, convert it first" if magic[::-1] in (b"ggml", b"ggmf", b"ggjt") else ""
        raise ValueError(f"not a GGUF{older}: it does not begin with the letters GGUF")
    version = walk.scalar("I")
    if version not in VERSIONS:
        swapped = int.from_bytes(version.to_bytes(4, "little"), "big") in VERSIONS
        raise ValueError(f"GGUF version not supported{' (big-endian)' if swapped else ''}; got {version}; known: 2, 3")
    n_tensors, n_keys = walk.count(TENSOR_LEAST_BYTES, MAX_TENSORS), walk.count(KEY_LEAST_BYTES, MAX_KEYS)
    metadata: dict[str, object] = {}
    for _ in range(n_keys):
        key = walk.string()
        metadata[key] = walk.value(walk.scalar("I"))
    tensors, end = [], 0
    for _ in range(n_tensors):
        tensor, offset = _tensor(walk)
        tensors.append(tensor)
        try:
            end = max(end, offset + tensor.n_bytes)
        except ValueError as error:
            raise ValueError(f"damaged: tensor {tensor.name[:64]!r}: {error}") from None
    alignment = metadata.get("general.alignment", ALIGNMENT)
    if not isinstance(alignment, int) or alignment <= 0:
        raise ValueError(f"general.alignment: not a positive whole number; got {alignment!r}")
    missing = -(-walk.at // alignment) * alignment + end - walk.source.size
    if missing > 0 and tensors:
        raise ValueError(f"cut short: {missing} bytes of weights are missing")
    return _Part({key: value for key, value in metadata.items() if value is not None}, tensors)


def _tensor(walk: _Walk) -> tuple[Tensor, int]:
    """One row of the tensor table, and where its data starts [B]."""
    name, n_dims = walk.string(), walk.scalar("I")
    if not 1 <= n_dims <= MAX_DIMS:
        raise ValueError(f"damaged: tensor {name[:64]!r} with {n_dims} dimensions")
    dims = walk.take(f"{n_dims}q")
    type_id, offset = walk.take("IQ")
    if len(name) >= MAX_NAME:
        raise ValueError(f"damaged: tensor {name[:64]!r}…: a name of {len(name)} characters; llama.cpp takes {MAX_NAME - 1}")
    if min(dims) < 1:
        raise ValueError(f"damaged: tensor {name[:64]!r}: dimensions must be positive; got {list(dims)}")
    if type_id not in TYPE_BY_NUMBER:
        raise ValueError(f"tensor {name[:64]}: unknown ggml type; got number {type_id}; known: {', '.join(TYPE_BY_NUMBER.values())}")
    return Tensor(name, dims, TYPE_BY_NUMBER[type_id]), offset


def _header(name: str, metadata: dict[str, object], tensors: list[Tensor]) -> Header:
    try:
        known(metadata.get("general.architecture"))
        shape = shape_of(metadata, tensors)
        touched = structure(shape, tensors)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    return Header(
        name=str(metadata.get("general.name", "unnamed")),
        quant=_label(metadata.get("general.file_type"), tensors),
        synthetic=metadata.get(SYNTHETIC_KEY) is True,
        shape=shape,
        tensors=tensors,
        metadata=metadata,
        structure=touched,
    )


def _label(file_type: object, tensors: list[Tensor]) -> str:
    """The mix's name: as the file says, else the type most of its bytes have."""
    if file_type in FILE_TYPES:
        return FILE_TYPES[file_type]  # type: ignore[index]
    sizes: Counter[str] = Counter()
    for tensor in tensors:
        sizes[tensor.type] += tensor.n_bytes
    return sizes.most_common(1)[0][0]
