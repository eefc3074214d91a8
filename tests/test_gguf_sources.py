"""Headers from parts and URLs, of a 400 GB model, and damaged on purpose: a reason, in bounded memory."""

from __future__ import annotations

import contextlib
import http.server
import json
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from macros import work
from macros.gguf_header import read_header
from macros.recipes import recipe
from macros.shapes import Shape
from macros.structure import structure

ROOT = Path(__file__).parent.parent
SMALL = Shape("llama", 2, 64, 128, 96, 4, 2, 16, tied=False)
SMALL_KEYS = {"llama.block_count": 2, "llama.embedding_length": 64, "llama.feed_forward_length": 128,
              "llama.attention.head_count": 4, "llama.attention.head_count_kv": 2}  # fmt: skip


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def pair(key: str, value: object) -> bytes:
    """One key as the GGUF specification writes it."""
    if isinstance(value, bytes):
        return text(key) + value  # already encoded, type and all
    if isinstance(value, str):
        return text(key) + struct.pack("<I", 8) + text(value)
    if isinstance(value, float):
        return text(key) + struct.pack("<If", 6, value)
    if isinstance(value, bool):
        return text(key) + struct.pack("<I?", 7, value)
    if isinstance(value, list):
        return text(key) + struct.pack(f"<IIQ{len(value)}i", 9, 5, len(value), *value)
    return text(key) + (struct.pack("<Ii", 5, value) if value < 0 else struct.pack("<II", 4, value))


def gguf_bytes(keys: dict, tensors: list, n_tensors: int | None = None, dims: tuple | None = None) -> tuple[bytes, int]:
    """A header, padded, and how many bytes of weights follow it."""
    from macros.ggml_types import TYPES

    out = bytearray(b"GGUF" + struct.pack("<IQQ", 3, len(tensors) if n_tensors is None else n_tensors, len(keys)))
    for key, value in keys.items():
        out += pair(key, value)
    offset = 0
    for t in tensors:
        shape = dims or t.shape
        out += text(t.name) + struct.pack(f"<I{len(shape)}q", len(shape), *shape) + struct.pack("<IQ", TYPES[t.type][0], offset)
        offset += -(-t.n_bytes // 32) * 32
    out += bytes(-len(out) % 32)
    return bytes(out), offset


def write(path: Path, keys: dict, tensors: list, **how: object) -> Path:
    head, size = gguf_bytes({"general.architecture": "llama", "general.file_type": 1, **keys}, tensors, **how)
    with path.open("wb") as file:
        file.write(head)
        file.truncate(len(head) + size)  # weights as a hole: nothing reads them
    return path


TABLE = recipe(SMALL, "F16")


@pytest.fixture
def parts(tmp_path: Path) -> list[Path]:
    """One model in three parts, as llama-gguf-split writes it: keys in the first, tensors spread."""
    cut = [TABLE[:7], TABLE[7:12], TABLE[12:]]
    said = {"split.count": 3, "split.tensors.count": len(TABLE)}
    return [write(tmp_path / f"m-{i + 1:05}-of-00003.gguf", {**(SMALL_KEYS if i == 0 else {}), **said, "split.no": i}, part) for i, part in enumerate(cut)]


def test_any_part_gives_the_whole(tmp_path: Path, parts: list[Path]):
    whole = read_header(write(tmp_path / "whole.gguf", SMALL_KEYS, TABLE))
    for part in parts:
        header = read_header(part)
        assert (header.shape, header.tensors, header.structure) == (SMALL, TABLE, whole.structure)
    assert whole.structure == structure(SMALL, TABLE)


def test_parts_that_are_missing_renamed_or_short_are_named(tmp_path: Path, parts: list[Path]):
    renamed = parts[0].rename(tmp_path / "first.gguf")
    with pytest.raises(ValueError, match="first.gguf: one of 3 parts of a split model, but not named so"):
        read_header(renamed)
    renamed.rename(parts[0])
    data = parts[1].read_bytes()
    parts[1].unlink()
    with pytest.raises(ValueError, match="missing: m-00002-of-00003.gguf"):
        read_header(parts[2])
    parts[1].write_bytes(data[:-1])
    with pytest.raises(ValueError, match="m-00002-of-00003.gguf: cut short: 1 bytes of weights are missing"):
        read_header(parts[0])


@contextlib.contextmanager
def served(folder: Path, ranges: bool = True) -> Iterator[tuple[str, list[int]]]:
    """A local server of a folder; the list collects how many bytes each answer held."""
    sent: list[int] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = folder / self.path.lstrip("/")
            if not path.is_file():
                self.send_error(404)
                return
            size = path.stat().st_size
            first, last = (int(n) for n in self.headers["Range"].removeprefix("bytes=").split("-"))
            with path.open("rb") as file:
                file.seek(first if ranges else 0)
                body = file.read(min(last + 1, size) - first) if ranges else file.read(64)
            sent.append(len(body))
            self.send_response(206 if ranges else 200)
            if ranges:
                self.send_header("Content-Range", f"bytes {first}-{first + len(body) - 1}/{size}")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", sent
    finally:
        server.shutdown()
        server.server_close()


def test_a_url_is_read_by_its_first_bytes(tmp_path: Path):
    tokens = struct.pack("<IIQ", 9, 8, 200_000) + b"".join(text(f"token {i}") for i in range(200_000))
    scores = struct.pack("<IIQ", 9, 6, 200_000_000)  # 800 MB, walked over and never fetched
    keys = {**SMALL_KEYS, "tokenizer.ggml.tokens": tokens}
    path = write(tmp_path / "big.gguf", keys, TABLE)
    with served(tmp_path) as (url, sent):
        header = read_header(f"{url}/big.gguf")
        assert header.tensors == TABLE
        assert len(tokens) < sum(sent) < len(tokens) + 2 * 2**20
    head, size = gguf_bytes({"general.architecture": "llama", **SMALL_KEYS, "hole": scores}, TABLE)
    at = head.index(scores) + len(scores)
    with path.open("wb") as file:
        file.write(head[:at])
        file.seek(at + 800_000_000)
        file.write(head[at:])
        file.truncate(file.tell() + 800_000_000 % 32 + size + 64)
    with served(tmp_path) as (url, sent):
        assert read_header(f"{url}/big.gguf").shape == SMALL
        assert sum(sent) < 3 * 2**20


def test_a_url_of_parts(tmp_path: Path, parts: list[Path]):
    with served(tmp_path) as (url, _):
        assert read_header(f"{url}/m-00002-of-00003.gguf").tensors == TABLE
    parts[2].unlink()
    with served(tmp_path) as (url, _), pytest.raises(ValueError, match="m-00003-of-00003.gguf: cannot be fetched: HTTP 404"):
        read_header(f"{url}/m-00001-of-00003.gguf")


def test_a_url_that_cannot_be_read_is_one_line(tmp_path: Path):
    write(tmp_path / "m.gguf", SMALL_KEYS, TABLE)
    with served(tmp_path, ranges=False) as (url, _), pytest.raises(ValueError, match="does not send parts of files .HTTP 200"):
        read_header(f"{url}/m.gguf")
    with served(tmp_path) as (url, _):
        pass
    with pytest.raises(ValueError, match="cannot be fetched: .*refused"):
        read_header(f"{url}/m.gguf")


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ({"llama.block_count": -2}, "llama.block_count: not a positive whole number; got -2"),
        ({"llama.block_count": 2_000_000_000}, "llama.block_count: more layers than any model has"),
        ({"llama.attention.head_count_kv": [2, -2]}, "head_count_kv: not a whole number from 0; got -2"),
        ({"llama.attention.head_count_kv": [2, 2, 2]}, "head_count_kv: 3 entries for 2 layers"),
        ({"llama.embedding_length": 0.5}, "embedding_length: not a positive whole number; got 0.5"),
        ({"llama.embedding_length": "wide"}, "embedding_length: not a positive whole number; got 'wide'"),
        ({"llama.nextn_predict_layers": 2}, "nextn_predict_layers: as many as there are layers"),
        ({"llama.expert_count": 8, "llama.expert_used_count": 9}, "expert_used_count: must lie in 1 to 8"),
        ({"general.architecture": "quokka"}, "architecture not covered; got 'quokka'; known: apertus"),
        ({"general.architecture": 7}, "architecture not covered; got 7"),
        ({"split.count": -1}, "split.count: not a number of parts; got -1"),
        ({"general.alignment": 0}, "general.alignment: not a positive whole number; got 0"),
    ],
)
def test_keys_that_cannot_be(tmp_path: Path, keys: dict, line: str):
    path = write(tmp_path / "m.gguf", {**SMALL_KEYS, **keys}, TABLE)
    with pytest.raises(ValueError, match=f"m.gguf: .*{line}") as refusal:
        read_header(path)
    assert "\n" not in str(refusal.value)


def test_whole_numbers_stored_as_floats_and_arrays_a_layer(tmp_path: Path):
    keys = {**SMALL_KEYS, "llama.block_count": 2.0, "llama.attention.head_count_kv": [2, 2]}
    assert read_header(write(tmp_path / "m.gguf", keys, TABLE)).shape == SMALL


def test_a_label_is_only_a_label(tmp_path: Path):
    header = read_header(write(tmp_path / "m.gguf", {**SMALL_KEYS, "general.file_type": 999}, TABLE))
    assert header.quant == "F16"


@pytest.mark.parametrize("dims", [(64, -96), (-1, -1), (0, 96)])
def test_negative_dims(tmp_path: Path, dims: tuple):
    path = write(tmp_path / "m.gguf", SMALL_KEYS, TABLE, dims=dims)
    with pytest.raises(ValueError, match=r"m.gguf: damaged: tensor 'token_embd.weight': dimensions must be positive; got \["):
        read_header(path)


def hole(path: Path, head: bytes, size: int) -> Path:
    with path.open("wb") as file:
        file.write(head)
        file.truncate(size)
    return path


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda p: write(p, SMALL_KEYS, TABLE, n_tensors=2**60), f"{2**60} entries do not fit in the file"),
        # 2 GB of one-byte values, of empty strings, of strings that are one string, and of keys
        (lambda p: hole(p, b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("a") + struct.pack("<IIQ", 9, 0, 2**31), 2**31), "runs past the end"),
        (lambda p: hole(p, b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("a") + struct.pack("<IIQ", 9, 8, 2**27), 2**31), "134217728 entries where"),
        (lambda p: hole(p, b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 2**30), 2**31), "over 32 MiB of texts"),
        (lambda p: hole(p, b"GGUF" + struct.pack("<IQQ", 3, 0, 2**26), 2**31), "67108864 entries where"),
        (lambda p: hole(p, b"GGUF" + struct.pack("<IQQ", 3, 2**26, 0), 2**31 + 2**29), "67108864 entries where"),
        (lambda p: hole(p, b"tjgg" + bytes(60), 64), "not a GGUF but an older ggml format"),
        (lambda p: hole(p, b"GGUF" + struct.pack(">IQQ", 3, 0, 0), 64), "version not supported (big-endian)"),
        (lambda p: hole(p, b"", 0), "the file is empty"),
    ],
)  # fmt: skip
def test_absurd_files_are_refused_in_bounded_memory(tmp_path: Path, make, line: str):
    seconds, kib, message = measured(make(tmp_path / "absurd.gguf"))
    assert line in message and "\n" not in message
    assert seconds < 2 and kib < 200 * 1024


def measured(path: Path) -> tuple[float, int, str]:
    """CPU seconds and peak memory [KiB] of reading a header in a process of its own, and what was said."""
    code = """
import json, resource, sys, time
from macros.gguf_header import read_header
start = time.process_time()
try:
    header = read_header(sys.argv[1])
    said = f"{header.shape.arch} {len(header.tensors)}"
except ValueError as error:
    said = str(error)
print(json.dumps([time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, said]))
"""
    # Started by a shell: Linux counts the memory of whoever forks a process into the process's own peak.
    command = ["/bin/sh", "-c", '"$0" "$@"; exit $?', sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return tuple(json.loads(done.stdout))


def test_the_header_of_a_400_gb_model(tmp_path: Path):
    """DeepSeek R1's shape at Q4_K_M, 404 GB, with a vocabulary of 129,280 and as many merges: 1 s, 200 MB."""
    shape = Shape("deepseek2", 61, 7168, 18432, 129280, 128, 1, 576, tied=False, head_dim_v=512, n_expert=256, n_expert_used=8, n_ff_exp=2048,
                  n_ff_shared=2048, n_layer_dense=3, q_lora_rank=1536, kv_lora_rank=512, rope_dim=64, head_dim_mla=192, head_dim_v_mla=128)  # fmt: skip
    keys = {"block_count": 61, "embedding_length": 7168, "feed_forward_length": 18432, "attention.head_count": 128, "attention.head_count_kv": 1,
            "attention.key_length": 576, "attention.value_length": 512, "attention.key_length_mla": 192, "attention.value_length_mla": 128,
            "attention.q_lora_rank": 1536, "attention.kv_lora_rank": 512, "rope.dimension_count": 64, "expert_count": 256, "expert_used_count": 8,
            "expert_feed_forward_length": 2048, "expert_shared_count": 1, "leading_dense_block_count": 3}  # fmt: skip
    n = 129_280

    def strings(word: str) -> bytes:
        return struct.pack("<IIQ", 9, 8, n) + b"".join(text(f"{word}{i}") for i in range(n))

    numbers = struct.pack("<IIQ", 9, 6, n) + bytes(4 * n)
    table = recipe(shape, "Q4_K_M")
    path = write(tmp_path / "big.gguf", {
        "general.architecture": "deepseek2", "general.file_type": 15, **{f"deepseek2.{k}": v for k, v in keys.items()},
        "tokenizer.ggml.tokens": strings("token"), "tokenizer.ggml.scores": numbers, "tokenizer.ggml.token_type": numbers,
        "tokenizer.ggml.merges": strings("mer ge")}, table)  # fmt: skip
    assert path.stat().st_size > 400e9
    seconds, kib, said = measured(path)
    assert said == f"deepseek2 {len(table)}"
    assert seconds < 1 and kib < 200 * 1024
    header = read_header(path)
    assert (header.shape, header.structure) == (shape, structure(shape, table))
    assert work.decode(header.structure).n_bytes == work.decode(structure(shape, table)).n_bytes
