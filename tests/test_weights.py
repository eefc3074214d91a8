"""The synthetic GGUF: loads nowhere here, but its bytes are those of the recipe."""

import ctypes
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

gguf = pytest.importorskip("gguf")

from bench import weights  # noqa: E402
from macros import work  # noqa: E402
from macros.ggml_types import FILE_TYPES, TYPE_BY_NUMBER, TYPES  # noqa: E402

TINY = work.Shape("qwen3", 4, 256, 512, 1024, 4, 2, 64, tied=True)


def test_blocks_are_ggmls():
    """Against the engine's own tables: ggml's name, elements and bytes of each type."""
    llama_cpp = pytest.importorskip("llama_cpp")
    ggml = ctypes.CDLL(str(next((Path(llama_cpp.__file__).parent / "lib").glob("libggml-base.*"))))
    ggml.ggml_type_name.restype, ggml.ggml_type_size.restype, ggml.ggml_blck_size.restype = ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int64
    found = {}
    for number in TYPE_BY_NUMBER:
        name = ggml.ggml_type_name(number).decode().upper()
        found[name] = (number, ggml.ggml_blck_size(number), ggml.ggml_type_size(number))
    assert found == TYPES


def test_names_are_gguf_pythons():
    for kind in gguf.GGMLQuantizationType:
        assert TYPE_BY_NUMBER[int(kind)] == kind.name
    for kind in gguf.LlamaFileType:
        if kind is not gguf.LlamaFileType.GUESSED:
            assert kind.name == f"MOSTLY_{FILE_TYPES[int(kind)]}" or kind.name == f"ALL_{FILE_TYPES[int(kind)]}"


@pytest.mark.parametrize("quant", ["Q4_K_M", "Q8_0"])
def test_gguf_reads_what_was_written(tmp_path, quant):
    path = tmp_path / "tiny.gguf"
    weights.write(path, TINY, quant)
    reader = gguf.GGUFReader(path)
    table = work.recipe(TINY, quant)
    assert [(t.name, tuple(t.shape), t.tensor_type.name, t.n_bytes) for t in reader.tensors] == [
        (t.name, t.shape, t.type, t.n_bytes) for t in table
    ]
    assert reader.get_field("inklab.synthetic").contents() is True
    assert "synthetic" in reader.get_field("general.name").contents().lower()
    for tensor in reader.tensors:
        values = gguf.dequantize(tensor.data, tensor.tensor_type)
        assert np.isfinite(values).all() and values.std() < 0.1, tensor.name


def test_same_seed_same_file(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        weights.write(tmp_path / name, TINY, "Q4_K_M", seed=seed)
    a, b, c = ((tmp_path / name).read_bytes() for name in "abc")
    assert a == b and a != c


def test_progress_ends_at_the_total(tmp_path):
    seen = []
    weights.write(tmp_path / "t", TINY, "Q8_0", on_progress=lambda *done: seen.append(done))
    total = work.total_bytes(work.recipe(TINY, "Q8_0"))
    assert seen[-1] == (total, total)
    assert seen == sorted(seen)


def test_full_disk_is_said_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(OSError, match=r"too little disk space; needs .* GB, has .* GB free"):
        weights.write(tmp_path / "t.gguf", TINY, "Q8_0")
    assert not list(tmp_path.iterdir())


def test_what_a_killed_write_left_is_removed(tmp_path):
    left = tmp_path / "x.gguf.1.part"
    left.write_bytes(b"half")
    weights.write(tmp_path / "x.gguf", TINY, "Q8_0")
    assert [p.name for p in tmp_path.iterdir()] == ["x.gguf"]


def test_interrupted_write_leaves_nothing(tmp_path):
    def interrupt(_done, _total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        weights.write(tmp_path / "t.gguf", TINY, "Q8_0", on_progress=interrupt)
    assert not list(tmp_path.iterdir())


def test_ensure_keeps_a_whole_file_and_replaces_a_broken_one(tmp_path):
    path = weights.ensure(tmp_path, "tiny", TINY, "Q8_0")
    first = path.stat()
    assert weights.ensure(tmp_path, "tiny", TINY, "Q8_0").stat().st_mtime_ns == first.st_mtime_ns
    with path.open("r+b") as file:
        file.truncate(first.st_size - 5000)
    assert weights.ensure(tmp_path, "tiny", TINY, "Q8_0").stat().st_size == first.st_size


def test_unknown_quantisation_names_the_known(tmp_path):
    for quant, line in (("Q9_X", "known: .*Q4_K_M"), ("Q3_K_L", "no synthetic data for this type; got 'Q[35]_K'; known: F32, Q4_K")):
        with pytest.raises(ValueError, match=line):
            weights.write(tmp_path / "t.gguf", TINY, quant)
    assert not list(tmp_path.iterdir())
