"""Reading a GGUF's header: right on a good file, one clear line on any other."""

import struct

import pytest

gguf = pytest.importorskip("gguf")
np = pytest.importorskip("numpy")

from macros.gguf_header import read_header  # noqa: E402


def llama_file(path, *, arch="llama", extra=(), output=False, embd_type=np.float16):
    """A small file as gguf itself writes it: no key_length, a vocabulary of strings."""
    writer = gguf.GGUFWriter(path, arch)
    writer.add_name("Small")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    writer.add_embedding_length(64)
    writer.add_block_count(1)
    writer.add_feed_forward_length(128)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_token_list([f"token {i}".encode() for i in range(96)])
    writer.add_token_scores([0.5] * 96)
    for key, value in extra:
        writer.add_uint32(f"{arch}.{key}", value)
    writer.add_tensor("token_embd.weight", np.zeros((96, 64), embd_type))
    if output:
        writer.add_tensor("output.weight", np.zeros((96, 64), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_llama(tmp_path):
    header = read_header(llama_file(tmp_path / "m.gguf", output=True))
    assert (header.name, header.quant, header.synthetic) == ("Small", "F16", False)
    shape = header.shape
    assert (shape.arch, shape.n_layer, shape.n_embd, shape.n_ff) == ("llama", 1, 64, 128)
    assert (shape.n_vocab, shape.n_head, shape.n_head_kv, shape.head_dim) == (96, 4, 2, 16)
    assert not shape.tied
    assert [(t.name, t.shape, t.type) for t in header.tensors] == [
        ("token_embd.weight", (64, 96), "F16"),
        ("output.weight", (64, 96), "F32"),
    ]
    assert header.metadata["llama.block_count"] == 1


def test_without_an_output_head_the_embedding_is_tied(tmp_path):
    assert read_header(llama_file(tmp_path / "m.gguf")).shape.tied


def test_key_length_wins_over_the_quotient(tmp_path):
    path = llama_file(tmp_path / "m.gguf", arch="qwen3", extra=[("attention.key_length", 128)])
    assert read_header(path).shape.head_dim == 128


@pytest.mark.parametrize(
    ("arch", "extra", "line"),
    [
        ("bert", [], "architecture not covered; got 'bert'; known: .*qwen3"),
        ("llama", [("expert_count", 8)], "llama.expert_used_count: must lie in 1 to 8 .expert_count.; got 0"),
        ("gemma4", [("attention.sliding_window", 512)], "which layers slide is not said"),
    ],
)
def test_models_the_physics_does_not_cover(tmp_path, arch, extra, line):
    with pytest.raises(ValueError, match=line):
        read_header(llama_file(tmp_path / "m.gguf", arch=arch, extra=extra))


def test_unknown_tensor_type_is_named(tmp_path):
    data = bytearray(llama_file(tmp_path / "m.gguf", embd_type=np.float64).read_bytes())
    kind = data.index(b"token_embd.weight") + len(b"token_embd.weight") + 4 + 2 * 8  # dimensions: their number, then two
    struct.pack_into("<I", data, kind, 31)  # Q4_0_4_4, removed from ggml
    path = tmp_path / "old.gguf"
    path.write_bytes(data)
    with pytest.raises(ValueError, match="token_embd.weight: unknown ggml type; got number 31; known: F32"):
        read_header(path)


def test_every_cut_is_one_clear_line(tmp_path):
    whole = llama_file(tmp_path / "m.gguf").read_bytes()
    cut = tmp_path / "cut.gguf"
    for size in [*range(0, 1600, 7), len(whole) - 1]:
        cut.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"cut.gguf: (not a GGUF|cut short)") as refusal:
            read_header(cut)
        assert "\n" not in str(refusal.value)


def test_one_part_of_a_split_model_is_refused(tmp_path):
    path = tmp_path / "part-00002-of-00003.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint16("split.count", 3)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(ValueError, match="one of 3 parts of a split model; missing: part-00001-of-00003.gguf, part-00003"):
        read_header(path)


@pytest.mark.parametrize("count_of", ["tensors", "keys", "strings"])
def test_absurd_counts_fail_at_once(tmp_path, count_of):
    data = bytearray(llama_file(tmp_path / "m.gguf").read_bytes())
    array = data.index(b"tokenizer.ggml.tokens") + len(b"tokenizer.ggml.tokens")
    at = {"tensors": 8, "keys": 16, "strings": array + 4 + 4}[count_of]
    struct.pack_into("<Q", data, at, 2**60)
    path = tmp_path / "absurd.gguf"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=f"absurd.gguf: .*{2**60} entries do not fit"):
        read_header(path)


@pytest.mark.parametrize("seed", range(300))
def test_damaged_bytes_never_raise_anything_else(tmp_path, seed):
    rng = np.random.default_rng(seed)
    data = bytearray(llama_file(tmp_path / "m.gguf").read_bytes())
    for _ in range(8):
        data[rng.integers(4, 2200)] = rng.integers(256)
    path = tmp_path / "damaged.gguf"
    path.write_bytes(data)
    try:
        read_header(path)
    except ValueError as refusal:
        assert str(refusal).startswith(f"{path}: ") and "\n" not in str(refusal)
