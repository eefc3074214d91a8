"""Synthetic GGUF files: a model's true shapes and types over random bits, no download.

Speed depends on shapes and types, not on values. The file says in its header that it is
synthetic, and every record and page that used it repeats that.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from macros.gguf_header import SYNTHETIC_KEY, read_header
from macros.work import BLOCKS, Shape, Tensor, recipe, total_bytes

if TYPE_CHECKING:
    import numpy as np

OnProgress = Callable[[int, int], None]  # bytes written, bytes in all

# Where ggml-common.h keeps a block's half-float scales, and values small enough for finite
# logits: {type: ((byte offset, value), ...)}.
SCALES = {
    "Q4_K": ((0, 1e-4), (2, 1e-4)),  # d, dmin
    "Q6_K": ((BLOCKS["Q6_K"][1] - 2, 1e-5),),  # d comes last
    "Q8_0": ((0, 1e-4),),  # d
}
PATTERN_BYTES = 16 * 2**20  # random bits made once a type, written from shifting offsets
N_CTX_TRAIN = 40960  # Qwen3's; llama.cpp only warns past it
HEADER_ROOM_BYTES = 2**20  # keys and tensor table; 310 tensors take 20 kB


def write(
    path: Path, shape: Shape, quant: str, seed: int = 0, on_progress: OnProgress | None = None
) -> None:
    """Write a synthetic GGUF; whole or not at all (a temporary file beside it, then a rename).

    Raises:
        ValueError: no recipe for the shape or the quantisation.
        OSError: too little disk space, said before anything is written.
    """
    import gguf

    if shape.arch != "qwen3":
        raise ValueError(f"synthetic weights are written for one dense architecture only; got {shape.arch!r}; known: qwen3")
    table = recipe(shape, quant)
    for name in {t.type for t in table} - {"F32", *SCALES}:
        raise ValueError(f"no synthetic data for this type; got {name!r}; known: {', '.join(['F32', *SCALES])}")
    needed = total_bytes(table)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(path.parent).free
    if free < needed + HEADER_ROOM_BYTES:
        raise OSError(
            f"{path}: too little disk space; needs {needed / 1e9:.2f} GB, has {free / 1e9:.2f} GB free"
        )
    for left in path.parent.glob(f"{path.name}.*.part"):
        left.unlink()  # of a bench that was killed; there is only one at a time
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    writer = gguf.GGUFWriter(partial, shape.arch)
    _add_keys(writer, shape, quant)
    for tensor in table:
        writer.add_tensor_info(
            tensor.name,
            tensor.shape[::-1],  # numpy's order: the row comes last
            "float32",
            tensor.n_bytes,
            raw_dtype=gguf.GGMLQuantizationType[tensor.type],
        )
    try:
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        out = writer.fout[0]
        writer.write_padding(out, out.tell())
        done = 0
        for tensor, data in _tensor_data(table, seed):
            for part in data:
                out.write(part)
                done += part.nbytes
                if on_progress is not None:
                    on_progress(done, needed)
            writer.write_padding(out, tensor.n_bytes)
        writer.close()
        os.replace(partial, path)
    finally:
        writer.close()
        partial.unlink(missing_ok=True)


def ensure(
    cache_dir: Path, shape_id: str, shape: Shape, quant: str, on_progress: OnProgress | None = None
) -> Path:
    """The synthetic file for these shapes, written if it is not there whole already."""
    path = Path(cache_dir) / f"{shape_id}-{quant}-synthetic.gguf"
    if not _intact(path, shape, quant):
        write(path, shape, quant, on_progress=on_progress)
    return path


def _intact(path: Path, shape: Shape, quant: str) -> bool:
    try:
        header = read_header(path)  # refuses a file cut short of its last tensor
    except (OSError, ValueError):
        return False
    return header.synthetic and header.shape == shape and header.tensors == recipe(shape, quant)


def _add_keys(writer, shape: Shape, quant: str) -> None:
    import gguf

    writer.add_name(f"Synthetic {shape.arch} {shape.n_layer}x{shape.n_embd} {quant}, random weights")
    writer.add_bool(SYNTHETIC_KEY, True)
    writer.add_file_type(gguf.LlamaFileType[f"MOSTLY_{quant}"])
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_context_length(N_CTX_TRAIN)
    writer.add_embedding_length(shape.n_embd)
    writer.add_block_count(shape.n_layer)
    writer.add_feed_forward_length(shape.n_ff)
    writer.add_head_count(shape.n_head)
    writer.add_head_count_kv(shape.n_head_kv)
    writer.add_key_length(shape.head_dim)
    writer.add_value_length(shape.head_dim)
    writer.add_rope_freq_base(1e6)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_vocab_size(shape.n_vocab)
    writer.add_tokenizer_model("no_vocab")


def _tensor_data(table: list[Tensor], seed: int) -> Iterator[tuple[Tensor, Iterator[np.ndarray]]]:
    """Each tensor's bytes in parts: F32 is ones (norms), the rest from one pattern a type."""
    import numpy as np

    rng = np.random.default_rng(seed)
    patterns: dict[str, np.ndarray] = {}
    for tensor in table:
        if tensor.type not in patterns:
            patterns[tensor.type] = _pattern(tensor.type, rng)
        pattern = patterns[tensor.type]
        start = int(rng.integers(len(pattern)))  # so that no two tensors are alike
        yield tensor, _repeat(pattern, start, tensor.n_bytes // pattern.shape[1])


def _pattern(type_name: str, rng: np.random.Generator) -> np.ndarray:
    """Whole blocks of one type: rows of bytes."""
    import numpy as np

    if type_name == "F32":
        return np.ones((2**16, 1), np.float32).view(np.uint8)
    block_bytes = BLOCKS[type_name][1]
    blocks = rng.integers(0, 256, (PATTERN_BYTES // block_bytes, block_bytes), np.uint8)
    for offset, value in SCALES[type_name]:
        blocks[:, offset : offset + 2] = np.array([value], np.float16).view(np.uint8)
    return blocks


def _repeat(pattern: np.ndarray, start: int, n_blocks: int) -> Iterator[np.ndarray]:
    while n_blocks:
        part = pattern[start : start + n_blocks]
        yield part
        n_blocks -= len(part)
        start = 0
