"""Computed sizes and caches against what llama.cpp printed for real files, and the page that shows them."""

from __future__ import annotations

import pytest

from macros import architectures, labdata
from macros.cards import Model, ShapeDoc
from macros.fields import Source
from macros.seen import SeenFile
from macros.structure import structure

LAB = labdata.load()
assert LAB.gguf_files is not None
FILES = LAB.gguf_files.files


def ids(row: architectures.Compared) -> str:
    return f"{row.file.id} {row.what} {row.setting}"


@pytest.mark.parametrize("row", architectures.sizes(FILES), ids=ids)
def test_sizes_and_parameters_within_1_percent(row: architectures.Compared):
    assert abs(row.apart) <= 0.01


@pytest.mark.parametrize("row", architectures.caches(FILES), ids=ids)
def test_logged_caches_within_1_percent_or_the_digits_printed(row: architectures.Compared):
    assert row.agrees


@pytest.mark.parametrize("file", [f for f in FILES if f.types], ids=lambda f: f.id)
def test_as_many_tensors_of_each_type_as_logged(file: SeenFile):
    assert architectures.types_differ(file) == {}


def test_every_kind_of_architecture_was_logged():
    assert {"deepseek2", "gemma2", "gemma3", "gemma3n", "gemma4", "gpt-oss", "granitehybrid", "lfm2", "llama", "llama4", "mamba", "mamba2",
            "nemotron_h", "phi3", "qwen2", "qwen3", "qwen35", "qwen35moe", "qwen3moe"} <= {f.shape.arch for f in FILES}  # fmt: skip
    assert len(FILES) >= 50


def test_a_card_of_any_known_layout_gives_its_work_marked_approximate():
    file = LAB.file("gpt-oss-20b-mxfp4")
    card = Model(schema=1, id="a", name="A", quant="MXFP4_MOE", weights="published", hf=None, shape=file.shape,
                 sources={file.shape.source: Source(title="config", kind="published", note="config.json")})  # fmt: skip
    assert card.approximate
    assert card.structure() == structure(file.shape.dims, file.table())
    assert card.file_bytes() / 2**30 == pytest.approx(11.27, abs=0.005)
    read = card.model_copy(update={"tensors": []})
    assert not read.approximate


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.id)
def test_dims_survive_the_document(file: SeenFile):
    assert ShapeDoc.of(file.shape.dims, file.shape.source).dims == file.shape.dims


def test_an_unknown_file_names_the_known():
    with pytest.raises(labdata.LabError, match="no such file; got 'gpt-6'; known: deepseek-r1-q8_0"):
        LAB.file("gpt-6")


def book():
    from macros.narrative import Book

    made = Book(LAB, days=[])
    made.turn_to("architectures/")
    return made


def test_the_tables_show_a_row_each_with_source_and_csv():
    from macros import file_tables

    made = book()
    rows = architectures.caches(FILES)
    html = file_tables.compared_table(made, rows, "caches", "Caches")
    assert html.count("<tr>") == len(rows) + 1
    assert "https://github.com/ggml-org/llama.cpp/pull/9126" in html and "263.50" in html
    csv = made.files["data/architectures-caches.csv"]
    assert len(csv.splitlines()) == len(rows) + 1
    known = file_tables.known_table(made, "known", "Known")
    assert all(f"<code>{name}</code>" in known for name in ("falcon-h1", "gpt-oss", "deepseek2"))


def test_batches_that_do_not_fit_get_no_rate():
    from macros import file_tables

    html = file_tables.batch_table(book(), [LAB.file("gemma-3-27b-q4_k_m")], "apple-m4-24gb", [1, 64], 512, "batch", "Batches")
    # 120e9 B/s over 15.404 GiB of weights and 768 cells x 62 layers x 2 x 16 x 128 x 2 B of cache
    assert 120e9 / (15.404 * 2**30 + 768 * 62 * 8192) == pytest.approx(7.09, abs=0.005)
    assert ">7.09<" in html
    assert html.count("does not fit") == 1


def test_a_sentence_takes_its_bytes_from_the_file():
    from macros import file_tables

    view = file_tables.FileView(LAB.file("gpt-oss-20b-mxfp4"))
    assert "830" in str(view.read("kv", 32768)) and "1,623" in str(view.read("kv", 32768, full=True))
    scout = file_tables.FileView(LAB.file("llama-4-scout"))
    assert scout.stored().n == pytest.approx(107.77, rel=1e-3) and scout.active().n == pytest.approx(17, rel=0.06)


def card_of(name: str) -> Model:
    file = LAB.file(name)
    return Model(schema=1, id=name, name=name, quant=file.mix or "F16", weights="published", hf=None, shape=file.shape,
                 sources={file.shape.source: Source(title="config", kind="published", note="config.json")})  # fmt: skip


def test_the_napkin_counts_the_experts_of_one_token_and_stops_at_the_window():
    from macros import predict

    machine, oss = LAB.machines["apple-m4-24gb"], card_of("gpt-oss-20b-mxfp4")
    # 24 layers x 32 experts x (3 x 2880 x 2880 x 17/32 B + 3 x 2880 x 4 B of biases); 28 of 32 stay unread
    experts = 24 * 32 * (3 * 2880 * 2880 * 17 / 32 + 3 * 2880 * 4)
    assert predict.token_bytes(oss) == pytest.approx(oss.file_bytes() - experts * 28 / 32)
    assert predict.decode_ceiling_tok_s(machine, oss) == pytest.approx(120e9 / (oss.file_bytes() - experts * 28 / 32))
    # 12 layers see all 10,000 tokens, 12 see 128: 2 x 8 x 64 x 2 B each
    assert predict.step_bytes(oss, 10_000) - predict.token_bytes(oss) == 12 * 2048 * (10_000 + 128)
    assert predict.token_params(oss) == pytest.approx(20.915e9 - 24 * 28 * 3 * 2880 * 2880, rel=1e-3)
    dense = LAB.models["qwen3-8b-q4_k_m"]
    assert predict.token_bytes(dense) == dense.file_bytes() and predict.token_params(dense) == dense.param_count()


def test_a_recurrent_model_is_as_quick_at_every_depth():
    from macros import predict

    mamba = card_of("mamba-codestral-7b")
    assert predict.decode_depth_ratio(mamba, 100_000) == 1 == predict.prefill_depth_ratio(mamba, 100_000)
