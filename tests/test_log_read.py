"""Logs of every year and kind, read: expected values were read from the files by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench import log_read, log_text
from bench.log_rows import NotARow, Read, Row, from_fields

DATA = Path(__file__).parent / "data/logs"
GIB, MIB = 2**30, 2**20


def read(name: str) -> Read:
    return log_read.read(log_text.decode((DATA / name).read_bytes()))


def parse(text: str) -> Read:
    return log_read.read(log_text.decode(text.encode()))


def test_name(row: Row) -> str:
    depth = f" @ d{row.depth}" if row.depth else ""
    return "+".join(f"{w}{n}" for w, n in (("pp", row.n_prompt), ("tg", row.n_gen)) if n) + depth


test_name.__test__ = False  # type: ignore[attr-defined]

# file, model of the first row, size [B], parameters, [(test, mean or first sample [ns], sigma)], lines skipped
TABLE = [
    ("DERIVED_md_2026_crlf_bom.txt", "llama 7B Q4_0", 3.56 * GIB, 6.74e9, [("pp512", 1545.36, 22.91), ("tg128", 50.59, 0.03)], []),
    ("csv_2023_cuda_3090ti_old_schema.csv", "llama 7B Q4_0", 3825065984, 6738415616,
     [("pp512", 2413.341687, 8.305961), ("tg128", 132.052051, 0.371342)], []),
    ("sql_2025_cuda_4080_schema_test.sql", "qwen2 7B Q4_K - Medium", 4677120000, 7615616512,
     [("pp512", 7324.546977, 54.032613), ("tg128", 120.346696, 0.504647)], []),
    ("md_2024_cpu_7600x_bold_cells_commit_links.txt", "llama 7B Q4_0", 3.56 * GIB, 6.74e9,
     [("tg128", 13.88, None), ("tg128", 14.88, None), ("tg128", 14.90, None)], []),
    ("md_2024_cuda_4090_multi_model_one_table.txt", "llama 7B F16", 12.55 * GIB, 6.74e9,
     [("pp512", 11048.22, 269.74), ("tg128", 61.03, 0.07), ("pp512", 7664.00, 108.83), ("tg128", 98.13, 0.07), ("pp512", 7979.85, 114.18)], [12]),
    ("md_2024_metal_m2air_no_outer_pipes.txt", "llama 7B Q4_0", 3.83 * GIB, 7.24e9,
     [("pp128", 144.47, 0.22), ("pp256", 142.95, 1.17), ("pp512", 141.36, 0.67), ("tg128", 20.06, 0.66), ("tg256", 20.26, 0.17), ("tg512", 13.96, 1.62)], []),
    ("md_2025_ikfork_cuda_numa_custom_columns.txt", "qwen3moe ?B Q2_K - Medium", 81.96 * GIB, 235.09e9,
     [("pp32", 34.41, 2.53), ("pp64", 44.84, 1.45), ("pp128", 54.11, 0.49), ("pp256", 55.99, 2.86),
      ("tg32", 6.73, 0.14), ("tg64", 7.28, 0.38), ("tg128", 8.29, 0.25), ("tg256", 8.65, 0.20)], [7]),
    ("md_2025_vulkan_7900xtx_three_tables_noise.txt", "llama 7B Q4_0", 3.56 * GIB, 6.74e9,
     [("pp512", 3229.07, 53.81), ("tg128", 150.97, 0.05), ("pp512", 3290.92, 37.67), ("tg128", 172.86, 0.23), ("pp512", 2546.13, 18.25), ("tg128", 129.80, 0.34)], []),
    ("md_2025_vulkan_rpc_gptoss_unknown_size_label.txt", "gpt-oss ?B F16", 60.87 * GIB, 116.83e9, [("pp512", 374.82, 3.68), ("tg128", 28.87, 0.11)], []),
    ("md_2026_cpu_phi3_plusminus_ascii_headerless.txt", "phi3 3B Q4_K - Medium", None, None, [("pp512", 15.60, 1.42), ("tg128", 6.28, 0.07)], []),
    ("md_2026_metal_blas_m1ultra_mib_size_threads.txt", "llama 1B Q4_K - Medium", 636.18 * MIB, 1.10e9,
     [("pp512", 5587.84, 12.06), ("pp4096", 4381.75, 0.41), ("tg128", 242.56, 3.63), ("pp4096+tg128", 2211.38, 15.05)], []),
    ("md_2026_rocm_multi_gpu_dev_column_headerless.txt", "gpt-oss 120B MXFP4 MoE", 59.02 * GIB, 116.83e9,
     [("pp16384", 890.38, 0.56), ("tg1024", 82.44, 0.38), ("pp16384", 639.35, 0.95), ("tg1024", 76.84, 0.24), ("pp16384", 583.18, 0.75)], []),
    ("md_2026_rocm_strixhalo_preamble_fa_mmap.txt", "llama 7B Q4_0", 3.56 * GIB, 6.74e9, [("pp512", 1545.36, 22.91), ("tg128", 50.59, 0.03)], []),
    ("md_2026_vulkan_strixhalo_depth32768_moe.txt", "gpt-oss 20B MXFP4 MoE", 11.27 * GIB, 20.91e9,
     [("pp2048 @ d32768", 555.73, 1.50), ("tg32 @ d32768", 61.12, 0.08)], []),
]  # fmt: skip


@pytest.mark.parametrize(("name", "model", "size", "params", "tests", "skipped"), TABLE, ids=[row[0] for row in TABLE])
def test_what_was_printed_is_what_is_read(name, model, size, params, tests, skipped):
    found = read(name)
    assert [(test_name(r), r.mean_tok_s, r.sigma_tok_s) for r in found.rows] == tests
    first = found.rows[0]
    assert first.model == model
    assert (first.size.si if first.size else None) == (pytest.approx(size) if size else None)
    assert (first.params.si if first.params else None) == (pytest.approx(params) if params else None)
    assert [s.line for s in found.skipped] == skipped
    assert all(r.samples_ns is None for r in found.rows)


def test_three_tables_of_three_models_are_three_sittings():
    found = read("md_2024_cuda_h100_pp_nospace_pg.txt")
    assert len(found.rows) == 27 and not found.skipped
    assert [test_name(r) for r in found.rows[:9]] == "pp512 pp1024 pp4096 pp8192 tg512 tg1024 tg4096 tg8192 pp512+tg128".split()
    assert [found.rows[i].model for i in (0, 9, 18)] == ["llama 8B Q4_K - Medium", "llama 8B F16", "llama 70B Q4_K - Medium"]
    assert [found.rows[i].mean_tok_s for i in (0, 8, 9, 17, 18, 26)] == [8125.45, 567.63, 10815.51, 305.00, 1012.73, 107.03]
    sittings = list(dict.fromkeys(r.sitting for r in found.rows))
    assert [s.build for s in sittings] == ["build 2843 (e8496488)"] * 3
    assert [[g.name for g in s.gpus] for s in sittings] == [["NVIDIA H100 PCIe"]] * 3


def test_samples_of_2023_are_kept_to_the_nanosecond():
    pp, tg = read("json_2023_cuda_3090ti_old_schema.json").rows
    assert pp.samples_ns == (213837238, 211635853, 212328053, 211329715, 212698907)
    assert tg.samples_ns == (984472709, 974901233, 989474741, 970729355, 967548060)
    assert (pp.model, pp.backend, pp.n_batch, pp.n_ubatch, pp.type_k, pp.flash_attn) == ("llama 7B Q4_0", "CUDA", 512, None, "f16", None)
    assert pp.sitting.cpu == "13th Gen Intel(R) Core(TM) i9-13900K"
    assert pp.sitting.build == "build 1275 (3469684)" and not pp.sitting.foreign
    assert tg.tested_at.isoformat() == "2023-09-23T12:09:59+00:00"


def test_jsonl_with_depths():
    found = read("jsonl_2025_hip_gptoss20b_depth.jsonl")
    assert [(test_name(r), r.samples_ns) for r in found.rows] == [
        ("pp512", (347823052,)), ("tg128", (2563887565,)), ("pp512 @ d1024", (368987841,)),
        ("tg128 @ d1024", (2597940671,)), ("pp512 @ d4096", (435478640,)), ("tg128 @ d4096", (2658514885,))]  # fmt: skip
    assert (found.rows[0].flash_attn, found.rows[0].settings) == ("on", {"use_mmap": "0"})
    curve = read("jsonl_2026_rocm_strixhalo_depth_curve.jsonl").rows
    assert [r.depth for r in curve] == [0, 8192, 16384, 24576, 32768, 40960, 49152, 57344, 65536]
    assert curve[-1].samples_ns == (3516796643, 3478744986, 3474756836)
    assert (curve[0].n_ubatch, curve[0].size.si, curve[0].params.si) == (2048, 22842671616, 35505251456)
    assert "kyuz0" not in repr(curve)
    assert curve[0].file == "Qwen3.6-35B-A3B-UD-Q4_K_XL"


def test_what_stands_around_a_table_belongs_to_it():
    rows = read("md_2025_vulkan_7900xtx_three_tables_noise.txt").rows
    assert [len(r.sitting.gpus) for r in rows] == [1, 1, 1, 1, 2, 2]
    assert {r.sitting.build for r in rows} == {"build 7361 (a81a56957)"}
    assert {(r.n_gpu_layers, r.n_batch, r.flash_attn) for r in rows} == {(100, 512, "on")}
    halo = read("md_2026_rocm_strixhalo_preamble_fa_mmap.txt").rows[0]
    assert [(g.name, g.memory_bytes) for g in halo.sitting.gpus] == [("AMD Radeon 8060S Graphics", 126976 * MIB)]
    assert read("md_2024_cuda_4090_multi_model_one_table.txt").rows[0].sitting.build is None  # cut before its footer


def test_columns_llama_bench_does_not_have_make_a_fork():
    fork = read("md_2025_ikfork_cuda_numa_custom_columns.txt").rows[0]
    assert fork.sitting.foreign == ("amb", "ser", "rtr", "fmoe")
    assert fork.settings == {"amb": "512", "ser": "4,1", "rtr": "1", "fmoe": "1"}
    assert (fork.n_gpu_layers, fork.n_threads, fork.flash_attn) == (0, 31, "on")
    edited = read("md_2024_cpu_7600x_bold_cells_commit_links.txt").rows
    assert [(r.n_threads, r.settings.get("speedup"), r.settings["commit id"]) for r in edited] == [
        (4, None, "54ef9cfc"), (4, "6.72%", "54ef9cfc"), (6, None, "54ef9cfc")]  # fmt: skip
    assert len({r.sitting for r in edited}) == 1


def test_a_row_without_its_header_is_not_guessed_at():
    row = read("md_2026_rocm_multi_gpu_dev_column_headerless.txt").rows[2]
    assert row.settings == {"devices": "ROCm0/ROCm1/ROCm2/ROCm3", "columns without a name": "99, 1024, 1, 1"}
    assert (row.n_gpu_layers, row.n_batch, row.backend, row.sitting.foreign) == (None, None, "ROCm", ())


HEAD = "| model | size | params | backend | ngl | test | t/s |\n|---|---:|---:|---|--:|--:|--:|\n"
ONE = "| llama 7B Q4_0 | 3.56 GiB | 6.74 B | CUDA | 99 | pp512 | {} |\n"


@pytest.mark.parametrize("sign", ["1.50 ± 0.02", "1.50 Â± 0.02", "1.50 ┬▒ 0.02", "1.50 \ufffd 0.02", "1.50 +- 0.02", "1.50 +/- 0.02", "**1.50 ± 0.02**",
                                  "1.50 &plusmn; 0.02", "`1.50 ± 0.02`", "1.50±0.02"])  # fmt: skip
def test_plus_minus_survives_its_journey(sign):
    row = parse(HEAD + ONE.format(sign)).rows[0]
    assert (row.mean_tok_s, row.sigma_tok_s) == (1.5, 0.02)


@pytest.mark.parametrize("encode", [lambda t: t.encode("latin-1"), lambda t: t.encode("utf-16"), lambda t: t.encode("utf-8-sig"),
                                    lambda t: t.replace("\n", "\r\n").encode(), lambda t: t.replace("\n", "\r").encode()])  # fmt: skip
def test_every_encoding_gives_the_same_row(encode):
    row = log_read.read(log_text.decode(encode(HEAD + ONE.format("1.50 ± 0.02")))).rows[0]
    assert (row.model, row.mean_tok_s, row.sigma_tok_s) == ("llama 7B Q4_0", 1.5, 0.02)


@pytest.mark.parametrize("sigma", ["0.00", "nan", "-nan", "-nan(ind)"])
def test_no_noise_printed_is_noise_not_known(sigma):
    row = parse(HEAD + ONE.format(f"1.50 ± {sigma}")).rows[0]
    assert (row.mean_tok_s, row.sigma_tok_s) == (1.5, None)


def test_a_quoted_paste_is_the_paste():
    quoted = "".join(f"> > {line}\n" for line in (HEAD + ONE.format("1.50 ± 0.02")).splitlines())
    assert parse(f"Somebody wrote:\n{quoted}\nThanks!").rows == [replace(r, line=4) for r in parse(HEAD + ONE.format("1.50 ± 0.02")).rows]


def test_a_log_line_between_two_rows_does_not_end_the_table():
    found = parse(HEAD + ONE.format("1.50 ± 0.02") + "ggml_cuda_pool: grown\n\n" + ONE.format("1.60 ± 0.02") + "\nbuild: 0253fb21f (9187)\n")
    assert [r.mean_tok_s for r in found.rows] == [1.5, 1.6]
    assert {r.sitting.build for r in found.rows} == {"build 9187 (0253fb21f)"} and len({r.sitting for r in found.rows}) == 1


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("| llama 7B Q4_0 | 3.56 GiB |", "cut short: 2 of 7 cells"),
        ("| llama 7B Q4_0 | 3.56 GiB | 6.74 B | CUDA | 99 | pp512 | 1,234.5 ± 3 |", "t/s: not a rate; got '1,234.5 ± 3'"),
        ("| llama 7B Q4_0 | 3.56 GiB | 6.74 B | CUDA | 99 | pl8 | 1.50 ± 0.1 |", "test: not pp<N>, tg<N> or both; got 'pl8'"),
        ("| llama 7B Q4_0 | 3.56 GiB | 6.74 B | CUDA | many | pp512 | 1.50 ± 0.1 |", "n_gpu_layers: not a whole number from -2; got 'many'"),
        ("|  | 3.56 GiB | 6.74 B | CUDA | 99 | pp512 | 1.50 ± 0.1 |", "no model (model_type)"),
        ("| llama 7B Q4_0 | 3.56 GiB | 6.74 B | CUDA | 99 | pp512 | 0.00 ± 0.00 |", "no rate: neither samples nor avg_ts above 0"),
    ],
)
def test_a_row_that_is_none_is_skipped_for_a_stated_reason(row, why):
    found = parse(HEAD + ONE.format("1.50 ± 0.02") + row + "\n")
    assert len(found.rows) == 1
    assert [(s.line, s.why) for s in found.skipped] == [(4, why)]


def test_two_columns_of_rates_are_not_chosen_between():
    found = parse("| model | test | t/s | t/s |\n|--|--|--|--|\n| a 1B F16 | pp512 | 1.50 ± 0.1 | 1.60 ± 0.1 |\n")
    assert not found.rows and [(s.line, "more than one column of rates" in s.why) for s in found.skipped] == [(3, True)]


def test_several_files_put_together_are_all_read():
    names = ["csv_2023_cuda_3090ti_old_schema.csv", "DERIVED_md_2026_crlf_bom.txt", "json_2023_cuda_3090ti_old_schema.json", "sql_2025_cuda_4080_schema_test.sql",
             "jsonl_2025_hip_gptoss20b_depth.jsonl", "clock_ollama_generate.json", "md_2026_cpu_phi3_plusminus_ascii_headerless.txt"]  # fmt: skip
    found = log_read.read(log_text.decode(b"\n".join((DATA / name).read_bytes() for name in names)))
    assert not found.skipped
    assert found.formats == {"csv": 2, "markdown": 4, "json": 8, "sql": 2, "Ollama": 2}
    alone = [r for name in names for r in read(name).rows]
    assert [replace(r, line=0, sitting=replace(r.sitting, part=0)) for r in found.rows] == [replace(r, line=0, sitting=replace(r.sitting, part=0)) for r in alone]


def test_blank_lines_do_not_end_csv_and_prose_does_not_break_it():
    lines = (DATA / "csv_2023_cuda_3090ti_old_schema.csv").read_text().splitlines()
    found = parse("\n\n".join(lines) + "\nNot bad, I think, for its age.\n")
    assert len(found.rows) == 2 and not found.skipped and found.other_lines == 1
    assert [s.why for s in parse(lines[1]).skipped] == ["csv without its header line: its columns are not known"]


def test_broken_json_is_not_tried_for_ever():
    found = parse('{"a": 1,}\n' * (log_read.MAX_BROKEN + 5))
    assert len(found.skipped) == log_read.MAX_BROKEN + 1 and "none from here on was tried" in found.skipped[-1].why


def test_another_table_is_named_as_such():
    found = parse("| Provider | Price |\n|---|---|\n| A | 3 |\n")
    assert not found.rows
    assert all("not llama-bench's" in s.why for s in found.skipped) and len(found.skipped) == 2


RECORD = {"model_type": "qwen3 8B Q8_0", "n_prompt": 512, "n_gen": 0, "samples_ns": [1_000_000_000, 2_000_000_000], "samples_ts": [512.0, 256.0]}


def test_samples_that_contradict_their_rates_are_refused():
    assert from_fields(RECORD, 1).samples_ns == (1_000_000_000, 2_000_000_000)
    with pytest.raises(NotARow, match="contradict"):
        from_fields({**RECORD, "samples_ts": [512.0, 300.0]}, 1)
    with pytest.raises(NotARow, match="contradict"):
        from_fields({**RECORD, "samples_ts": [512.0]}, 1)
    only_rates = from_fields({k: v for k, v in RECORD.items() if k != "samples_ns"}, 1)
    assert only_rates.samples_ns == (1_000_000_000, 2_000_000_000) and "computed back" in only_rates.notes[0]
    assert "own mean" in from_fields({**RECORD, "avg_ts": 500.0}, 1).notes[0]


@pytest.mark.parametrize("bad", [{"samples_ns": [1, 0]}, {"samples_ns": [1, "x"]}, {"samples_ns": [True]}, {"n_prompt": 1.5}, {"n_prompt": -1}, {"n_prompt": True, "n_gen": "x"},
                                 {"n_prompt": 0}, {"model_type": None}, {"n_prompt": 10**400}, {"samples_ns": None, "samples_ts": [float("nan")]}])  # fmt: skip
def test_a_record_that_cannot_be_is_no_row(bad):
    with pytest.raises(NotARow):
        from_fields({**RECORD, **bad}, 1)


def test_a_path_stays_in_the_raw_text():
    row = from_fields({**RECORD, "model_filename": "/home/jo/m.gguf", "log_dir": "/home/jo/logs", "model_type": "/home/jo/qwen.gguf"}, 1)
    assert "jo" not in repr(row).replace("json", "")
    assert row.model == "qwen" and "log_dir holds a path" in row.notes[0]


def test_nan_as_c_prints_it():
    found = parse('{"model_type": "a 1B F16", "n_prompt": 0, "n_gen": 8, "avg_ts": 12.5, "stddev_ts": -nan}\n')
    assert [(r.mean_tok_s, r.sigma_tok_s) for r in found.rows] == [(12.5, None)]


def test_records_inside_a_wrapper_and_after_prose():
    found = parse('Here you go:\n{"runs": [{"model_type": "a 1B F16", "n_prompt": 0, "n_gen": 8, "avg_ts": 12.5}]}\n{"hello": 1}\nbye\n')
    assert len(found.rows) == 1 and found.rows[0].line == 2
    assert [(s.line, "its keys: hello" in s.why) for s in found.skipped] == [(3, True)]


@pytest.mark.parametrize("name", ["json_2023_cuda_3090ti_old_schema.json", "jsonl_2025_hip_gptoss20b_depth.jsonl", "sql_2025_cuda_4080_schema_test.sql",
                                  "csv_2023_cuda_3090ti_old_schema.csv", "md_2026_rocm_strixhalo_preamble_fa_mmap.txt"])  # fmt: skip
def test_cut_anywhere_what_is_whole_is_read_and_the_rest_is_said(name):
    data = (DATA / name).read_bytes()
    whole = read(name).rows
    step = 1 if len(data) < 3000 else 3
    seen = 0
    for end in range(1, len(data), step):
        try:
            found = log_read.read(log_text.decode(data[:end]))
        except log_text.Refused:
            assert not data[:end].strip()
            continue
        got = [replace(r, sitting=whole[0].sitting) for r in found.rows]
        exact = [replace(r, sitting=whole[0].sitting) for r in whole]
        if name.endswith(".txt"):  # a number cut after a digit is a number: only the last row can differ
            assert got[:-1] == exact[: max(0, len(got) - 1)]
        else:
            assert got == exact[: len(got)]
            # whatever came after the last whole record is there as skipped, or is no more than punctuation and text
            tail = found.rows[-1].line if found.rows else 0
            assert found.skipped or len(found.rows) >= seen, end
            assert all(s.line >= tail for s in found.skipped)
        seen = len(found.rows)


def test_the_cut_json_says_so():
    data = (DATA / "json_2023_cuda_3090ti_old_schema.json").read_bytes()
    found = log_read.read(log_text.decode(data[:1500]))
    assert len(found.rows) == 1
    assert [(s.line, s.why) for s in found.skipped] == [(33, "cut short: the JSON ends inside a record")]


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 50_000, '{"' * 50_000, "{\n" * 20_000, '[{"n_prompt": ' * 3000, "|" * 100_000,
                                  "INSERT INTO test (a) VALUES (" + "'a''" * 50_000, "| a " * 50_000, '"x","' * 30_000])  # fmt: skip
def test_nonsense_is_refused_in_good_time(text):
    assert not parse(text).rows


@pytest.mark.parametrize(
    ("data", "words"),
    [(b"", "nothing in it"), (b" \n\n", "nothing in it"), (b"GGUF\x03\x00", "a model, not a log"), (bytes(range(256)) * 50, "binary"),
     (b"\x89PNG\r\n\x1a\n\x00\x00", "binary"), (b"x" * (log_text.MAX_BYTES + 1), "too large")],
    ids=["empty", "blank", "gguf", "binary", "png", "large"])  # fmt: skip
def test_what_is_no_text_is_refused(data, words):
    with pytest.raises(log_text.Refused, match=words):
        log_text.decode(data)


def test_personal_words_are_found():
    text = "jo@tower:~/llama$ ./llama-bench -m /home/jo/m.gguf\nC:\\Users\\jo\\m.gguf pp512 @ d4096"
    assert log_text.personal(text) == ["/home/jo", "C:\\Users\\jo", "jo@tower"]
    assert log_text.personal((DATA / "jsonl_2026_rocm_strixhalo_depth_curve.jsonl").read_text()) == ["/home/kyuz0"]


# --- other clocks -------------------------------------------------------------------------------


def test_llama_server_says_what_it_timed():
    prefill, decode = read("clock_llama_server_timings.json").rows
    assert (prefill.n_prompt, prefill.n_gen, prefill.depth, prefill.samples_ns) == (1, 0, 236, (30_958_000,))
    assert (decode.n_prompt, decode.n_gen, decode.depth, decode.samples_ns) == (0, 35, 237, (661_064_000,))
    assert 35 / 0.661064 == pytest.approx(52.94494935437416)  # its own predicted_per_second
    assert decode.model == "" and decode.sitting.clock.startswith("llama-server") and decode.sitting.protocol != "llama-bench"


def test_ollama_says_what_it_timed():
    prefill, decode = read("clock_ollama_generate.json").rows
    assert (prefill.model, prefill.n_prompt, prefill.depth, prefill.samples_ns) == ("gemma3", 11, 0, (13_074_791,))
    assert (decode.n_gen, decode.depth, decode.samples_ns) == (18, 11, (52_479_709,))
    assert decode.sitting.engine == "Ollama" and decode.tested_at.isoformat() == "2025-10-17T23:14:07+00:00"
    cached = parse((DATA / "clock_ollama_generate.json").read_text().replace('"eval_count"', '"prompt_eval_cached_count": 8,\n "eval_count"')).rows
    assert [(r.n_prompt, r.n_gen, r.depth) for r in cached] == [(3, 0, 8), (0, 18, 11)]


def test_a_streamed_answer_is_read_at_its_end():
    found = parse('{"model":"gemma3","response":"Hel","done":false}\n{"model":"gemma3","response":"lo","done":false}\n'
                  '{"model":"gemma3","done":true,"eval_count":18,"eval_duration":52479709}\n')  # fmt: skip
    assert [(r.n_gen, r.line) for r in found.rows] == [(18, 3)] and not found.skipped and found.other_lines == 2


def test_lm_studio_gives_a_rate_and_no_times():
    (decode,) = read("clock_lm_studio_chat.json").rows
    assert (decode.n_gen, decode.depth, decode.mean_tok_s, decode.samples_ns) == (53, 24, 51.43709529007664, None)
    assert (decode.quant, decode.sitting.build) == ("Q4_K_M", "llama.cpp-mac-arm64-apple-metal-advsimd 1.3.0")
    assert decode.settings == {"time_to_first_token [s]": "0.111", "generation_time [s]": "0.954"}


def test_lm_studio_of_2026():
    # LM Studio's documentation of POST /api/v1/chat
    (decode,) = parse('{"model_instance_id": "ibm/granite-4-micro", "output": [], "stats": {"input_tokens": 646, "total_output_tokens": 586, "reasoning_output_tokens": 0, '
                      '"tokens_per_second": 29.753900615398926, "time_to_first_token_seconds": 1.088, "model_load_time_seconds": 2.656}}').rows  # fmt: skip
    assert (decode.model, decode.n_gen, decode.depth, decode.mean_tok_s) == ("ibm/granite-4-micro", 586, 646, 29.753900615398926)
    assert decode.settings == {"time_to_first_token [s]": "1.088"}


def test_the_last_chunk_of_a_stream_holds_the_times():
    # captured from llama-server, September 2025; the first chunk has no times
    found = parse('data: {"choices":[],"model":"qwen3coder30b","object":"chat.completion.chunk"}\n\n'
                  'data: {"choices":[],"created":1758541572,"model":"qwen3coder30b","object":"chat.completion.chunk","timings":{"cache_n":0,"prompt_n":463,"prompt_ms":62.703,'
                  '"predicted_n":20,"predicted_ms":102.018}}\n\ndata: [DONE]\n')  # fmt: skip
    assert [(r.model, r.n_prompt, r.n_gen, r.depth, r.samples_ns) for r in found.rows] == [
        ("qwen3coder30b", 463, 0, 0, (62_703_000,)), ("qwen3coder30b", 0, 20, 463, (102_018_000,))]  # fmt: skip
    assert not found.skipped


def test_an_answer_without_times_is_skipped():
    found = parse('{"model":"x","timings":{"prompt_n":0,"prompt_ms":0,"predicted_n":1,"predicted_ms":0.01}}')
    assert not found.rows and "no count of tokens with a time" in found.skipped[0].why
