"""The calibrated predictor: terms by hand, rows in and out, speed, and what it may not look at."""

from __future__ import annotations

import csv
import json
import math
import random
import subprocess
import sys
from dataclasses import replace

import pytest
from conftest import ROOT, run_module

from macros import calibrated, calibration, chip_names, corpus, devices, predict_cli
from macros.calibrated import Device, Load, Setup
from macros.corpus_models import NotPredictable

# Day 1's machine and model by exact work, and the two efficiencies its four depths gave (PHYSICS: η_w 0.81, η_kv 0.70).
M4 = Device("Metal", "apple", "m4", 120e9, 4.04e12)
QWEN = Load("decode", 1, {"weights": 4.6718e9, "kv": 0.0}, {}, 1, 36, 6.9458e9, 128, 4.0, "qwen3", "Q4_K_M", 5.0)
DAY_1 = {"w": math.log(0.81), "kv.fa": math.log(0.70), "t": -99.0, "w.ratio": 0.0, "w.bw": 0.0, "kv.bw": 0.0}
ROW = {
    "id": "x1", "machine": "somebody's", "source_url": "https://example.org", "chip": "RTX 3090", "vendor": "NVIDIA", "backend": "CUDA",
    "mem_bandwidth_gbs": "936", "fp16_tflops": "71", "model": "Llama-3-8B", "arch": "llama", "quant": "Q4_K_M", "model_size_gib": "4.58",
    "n_params_b": "8.03", "is_moe": "0", "active_params_b": "", "n_layer": "32", "n_head": "32", "n_head_kv": "8", "head_dim": "128",
    "kv_type": "f16", "flash_attn": "1", "test": "tg128", "n_prompt": "0", "n_gen": "128", "depth": "0", "n_threads": "", "build": "",
    "date": "", "notes": "", "tok_s": "1", "tok_s_sigma": "",
}  # fmt: skip


def write(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def run_rows(tmp_path, rows, name="in.csv"):
    out = tmp_path / f"out-{name}"
    assert predict_cli.main(["--rows", str(write(tmp_path / name, rows)), "--out", str(out)]) == 0
    return list(csv.DictReader(out.open()))


@pytest.mark.parametrize("depth, measured", [(0, 19.82), (2048, 19.20), (4096, 17.99), (8192, 15.97)])
def test_day_1_by_two_efficiencies(depth, measured):
    """Day 1's published sweep on an M4; the factors of backend and family are at their neutral priors."""
    load = replace(QWEN, bytes={"weights": 4.6718e9, "kv": (depth + 256) * 147456.0})
    rate = calibrated.rate_tok_s(load, M4, Setup(), DAY_1)
    by_hand = 1 / (4.6718e9 / (0.81 * 120e9) + (depth + 256) * 147456 / (0.70 * 120e9))
    assert rate == pytest.approx(by_hand, rel=1e-6)
    assert rate == pytest.approx(measured, rel=0.06)


def test_prefill_is_the_slower_of_compute_and_streaming():
    load = Load("prefill", 512, {"weights": 5e9}, {"matmul": 7e12, "attention": 0.0}, 1, 36, 7e9, 128, 4.0, "qwen3", "F16", 16.0)
    even = {name: 0.0 for name in calibrated.PRIORS} | {"p": -99.0}
    assert calibrated.rate_tok_s(load, Device("X", "y", "z", 1e15, 7e12), Setup(), even) == pytest.approx(512, rel=1e-3)
    assert calibrated.rate_tok_s(load, Device("X", "y", "z", 5e9, 7e15), Setup(), even) == pytest.approx(512, rel=1e-3)


def test_bytes_and_flops_by_hand():
    decode, prefill = corpus.case(ROW).loads[0], corpus.case(ROW | {"n_prompt": "512", "n_gen": "0", "test": "pp512"}).loads[0]
    # 64.5 cells in the mean, 2 x 32 layers x 8 heads x 128 x 2 B
    assert decode.bytes["kv"] == 64.5 * 131072
    # file less one embedding table of 128256 x 4096 at the file's mean bits
    assert decode.bytes["weights"] == pytest.approx(4.58 * 2**30 * (1 - 128256 * 4096 / 8.03e9), rel=1e-6)
    assert prefill.flops["attention"] == 4 * 32 * 32 * 128 * 512 * 513 / 2
    assert prefill.flops["matmul"] == pytest.approx(2 * 512 * (8.03e9 - 2 * 128256 * 4096) + 2 * 128256 * 4096)


def test_sliding_windows_and_experts():
    gemma = ROW | {"model": "Gemma-3-4B", "arch": "gemma3", "n_params_b": "3.88", "n_layer": "34", "n_head": "8", "n_head_kv": "4", "head_dim": "256"}
    near, far = (corpus.case(gemma | {"depth": d}).loads[0].bytes["kv"] for d in ("10000", "20000"))
    # beyond the window only one layer in six grows
    assert far - near == pytest.approx(10000 * 34 / 6 * 2 * 4 * 256 * 2)
    oss = ROW | {"model": "gpt-oss-20b", "arch": "gpt-oss", "quant": "MXFP4", "model_size_gib": "11.27", "n_params_b": "20.91", "is_moe": "1",
                 "active_params_b": "3.6", "n_layer": "24", "n_head": "64", "head_dim": "64"}  # fmt: skip
    load = corpus.case(oss).loads[0]
    # OpenAI's model card: 3.6 B active parameters, of which the output head is 201088 x 2880
    assert load.ffn_params == pytest.approx(3.61e9 - 201088 * 2880, rel=0.02)


@pytest.mark.parametrize("chip, expected", [
    ("RTX 5000 Ada", ("nvidia", "ada")), ("RTX 5080", ("nvidia", "blackwell")), ("RTX PRO 6000 Max-Q", ("nvidia", "blackwell")),
    ("RTX 6000 Ada", ("nvidia", "ada")), ("RTX A4000", ("nvidia", "ampere")), ("GTX 1080 Ti", ("nvidia", "pascal")), ("H100 PCIe", ("nvidia", "hopper")),
    ("Apple M10 Max", ("apple", "m10")), ("AMD EPYC 9655 (CPU)", ("cpu", "cpu")), ("RX 9070 XT", ("amd", "rdna4")), ("FooChip 1", ("other", "FooChip 1")),
])  # fmt: skip
def test_families(chip, expected):
    assert devices.family(chip) == expected


@pytest.mark.parametrize("name, found", [
    ("RTX 3090", "nvidia-rtx-3090"), ("A100 80GB PCIe", "nvidia-a100-pcie-80gb"), ("Ryzen AI Max+ 395 (Radeon 8060S)", "amd-ryzen-ai-max-395"),
    ("Tesla T4", "nvidia-t4"), ("Apple M4 Max 40c", "apple-m4-max-40c"), ("H100 80 GB", None), ("RTX 3080", None), ("Unheard 1", None), ("", None),
])  # fmt: skip
def test_a_chip_is_found_by_name_or_not_at_all(name, found):
    """H100 80 GB (PCIe or SXM) and RTX 3080 (10 or 12 GB) are two parts each."""
    chip = chip_names.find(name)
    assert (chip.id if chip else None) == found


def test_only_geforce_is_listed_at_half_rate():
    assert devices.full_rate_flops_s("RTX 4080", 1.0) == 2.0
    for chip in ("RTX 4000 Ada", "RTX 5000 Ada", "Quadro RTX 5000", "RTX PRO 5000 Blackwell", "RX 7900 XTX", "GTX 1080 Ti"):
        assert devices.full_rate_flops_s(chip, 1.0) == 1.0


@pytest.mark.parametrize("change, words", [
    ({"mem_bandwidth_gbs": ""}, "without a bandwidth"), ({"mem_bandwidth_gbs": "-3"}, "positive"), ({"mem_bandwidth_gbs": "nan"}, "positive"),
    ({"arch": "mystery"}, "arch: not known; got 'mystery'"), ({"n_layer": "0"}, "n_layer"), ({"n_params_b": "x"}, "not a number; got 'x'"),
    ({"n_params_b": "0.01"}, "smaller than the embeddings"), ({"kv_type": "q3"}, "kv_type: not known"), ({"depth": "-1"}, "depth: a whole number"),
    ({"model_size_gib": "", "quant": "Q99"}, "model_size_gib: not given"), ({"n_gen": "", "n_prompt": ""}, "neither given"),
    ({"flash_attn": "yes"}, "flash_attn"), ({"n_prompt": "512", "fp16_tflops": "", "chip": "Unheard 1"}, "no peak known"),
    ({"n_layer": "1e300"}, "n_layer"), ({"n_head": "0.4"}, "at least 1"),
])  # fmt: skip
def test_a_reason_not_a_number(tmp_path, change, words):
    answer = run_rows(tmp_path, [ROW | change])[0]
    assert answer["pred_tok_s"] == answer["low80_tok_s"] == answer["high80_tok_s"] == ""
    assert answer["basis"].startswith("not predicted: ") and words in answer["basis"]


def test_the_measurement_is_never_read(tmp_path):
    rows = corpus.measurements()[::7]
    plain = run_rows(tmp_path, rows)
    added = [{k: r[k] for k in predict_cli.ADDED} for r in plain]
    assert sum(bool(r["pred_tok_s"]) for r in plain) > 50
    rates = [r["tok_s"] for r in rows]
    random.Random(1).shuffle(rates)
    shuffled = run_rows(tmp_path, [r | {"tok_s": t, "tok_s_sigma": "?"} for r, t in zip(rows, rates)], "shuffled.csv")
    without = run_rows(tmp_path, [{k: v for k, v in r.items() if k not in corpus.MEASURED} for r in rows], "without.csv")
    assert [{k: r[k] for k in predict_cli.ADDED} for r in shuffled] == added
    assert [{k: r[k] for k in predict_cli.ADDED} for r in without] == added


def test_physics_of_the_committed_fit():
    for row in corpus.measurements():
        try:
            case = corpus.case(row)
        except NotPredictable:
            continue
        p = calibration.predict(case)
        assert 0 < p.low_tok_s < p.tok_s < p.high_tok_s
        if case.kind == "decode":
            assert p.tok_s < case.device.bandwidth_bytes_s / sum(case.loads[0].bytes.values()), row["id"]
            deeper = corpus.case(row | {"depth": str(int(row["depth"] or 0) + 8192)})
            assert calibration.predict(deeper).tok_s < p.tok_s


def test_an_own_row_moves_the_others_towards_it():
    tg, q8 = corpus.case(ROW), corpus.case(ROW | {"quant": "Q8_0", "model_size_gib": "7.95"})
    before = calibration.predict(q8)
    half = calibration.after_own_row(q8, tg, calibration.predict(tg).tok_s / 2)
    assert before.tok_s / 2 < half.tok_s < before.tok_s * 0.7
    # The interval narrows where its class is wider than what is left after an own row.
    wide, after = calibration.predict(tg), calibration.after_own_row(tg, q8, before.tok_s)
    assert after.high_tok_s / after.low_tok_s < wide.high_tok_s / wide.low_tok_s
    same = calibration.after_own_row(q8, tg, calibration.predict(tg).tok_s)
    assert same.tok_s == pytest.approx(before.tok_s)


@pytest.mark.parametrize("text, words", [
    ("", "column missing"), ("a,b\n1,2\n", "chip: column missing"), (",".join(ROW) + "\n1,2\n", "line 2: 2 fields"),
    ("chip," + ",".join(ROW) + "\n", "chip: column given twice"), ("\xff\xfe\x00", "file"),
])  # fmt: skip
def test_a_broken_file_is_a_line_and_nothing_is_written(tmp_path, capsys, text, words):
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_bytes(text.encode("latin-1"))
    out.write_text("kept")
    assert predict_cli.main(["--rows", str(source), "--out", str(out)]) == 1
    assert words in capsys.readouterr().err and out.read_text() == "kept"


@pytest.mark.parametrize("arguments, words", [
    (["nowhere", "qwen3-8b-q4_k_m"], "neither in labdata/machines nor"), (["apple-m4-24gb", "nothing"], "neither in labdata/models nor a file"),
    (["apple-m4-24gb", "qwen3-8b-q4_k_m", "--depth", "-1"], "--depth: 0 to"), (["apple-m4-24gb", "qwen3-8b-q4_k_m", "--depth", "1000000"], "does not fit"),
    (["apple-m4-24gb", "qwen3-8b-q4_k_m", "--own", "tg128=no"], "--own: a test and its rate"), ([], "MACHINE and MODEL"), (["../machines/x", "y"], "neither"),
])  # fmt: skip
def test_a_question_without_an_answer_gets_its_reason(capsys, arguments, words):
    assert predict_cli.main(arguments) == 1
    assert words in capsys.readouterr().err


def test_json_says_what_it_rests_on(capsys):
    assert predict_cli.main(["apple-m4-24gb", "qwen3-8b-q4_k_m", "--depth", "2048", "--json"]) == 0
    decode, prefill = json.loads(capsys.readouterr().out)["tests"]
    assert decode["bytes"]["weights"] == pytest.approx(4.6718e9, rel=1e-4)
    assert decode["bytes"]["kv"] == pytest.approx((2048 + 64.5) * 147456, rel=1e-6)
    assert decode["tok_s"] == pytest.approx(1 / sum(p["seconds"] for p in decode["parts"].values()), rel=1e-3)
    assert decode["disprove"].endswith("-p 0 -n 128 -d 2048") and prefill["binds"] == "matmul"


def test_a_prediction_loads_no_views_and_no_solver():
    code = """
import sys
from macros import predict_cli, calibration, corpus
calibration.predict(corpus.case(next(corpus.read(corpus.MEASUREMENTS))))
print(sorted({'pandas', 'altair', 'scipy', 'sklearn', 'numpy', 'mkdocs'} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_command_runs_as_a_module():
    done = run_module(ROOT, "macros.predict", "RTX 3090", "qwen3-8b-q4_k_m", "--kv", "q8_0", "--batch", "4")
    assert done.returncode == 0, done.stderr
    assert "80 % interval" in done.stdout and "-ctk q8_0" in done.stdout and "derived, unscored" in done.stdout
