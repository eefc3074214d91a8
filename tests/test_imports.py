"""A log becomes records: on the right machine, of the right model, all or nothing, once."""

from __future__ import annotations

import json
import random
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from bench import import_cards, imports
from bench.import_cards import ImportRefused
from macros import files as io_files
from macros import labdata, rows
from macros.compare import rate
from macros.fields import Quantity, Source
from macros.labdata import Lab
from macros.records import Run
from tests.conftest import run_module

DATA = Path(__file__).parent / "data/logs"
LOGS = sorted(p for p in DATA.iterdir() if p.suffix in (".txt", ".json", ".jsonl", ".csv", ".sql"))
# What each log is of, for those whose chip the log does not name or the table may not know.
MACHINES = {"7600x": "AMD Ryzen 5 7600X", "m2air": "Apple M2", "ikfork": "Intel Xeon v4", "7900xtx": "AMD Radeon RX 7900 XTX", "rpc": "AMD Radeon 8060S",
            "phi3": "some CPU", "m1ultra": "Apple M1 Ultra", "multi_gpu": "some AMD Instinct", "strixhalo": "AMD Radeon 8060S", "crlf": "AMD Radeon 8060S",
            "gptoss20b": "Radeon 8060S", "clock": "Apple M2"}  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    shutil.copytree(labdata.ROOT, tmp_path / "labdata")
    return tmp_path / "labdata"


def with_machine(root: Path, ident: str, chip: str) -> Lab:
    """A lab with one more machine of this chip."""
    lab = labdata.load(root)
    like = lab.machines["apple-m4-24gb"]
    bandwidth = Quantity(value=100, unit="GB/s", source="test")
    machine = like.model_copy(update={"id": ident, "chip": chip, "name": chip, "other_values": [], "sources": {"test": Source(title="A test", kind="assumed", note="made up")},
                                      "specs": like.specs.model_copy(update={"memory_bandwidth": bandwidth, "memory": None, "peak_compute": None, "cpu_bandwidth": None})})  # fmt: skip
    labdata.write(root / f"machines/{ident}.yml", machine)
    return labdata.load(root)


def take(root: Path, name: str, machine: str | None = None, model: str | None = None) -> tuple[list[Run], list[str]]:
    """Import a log of tests/data; the runs as they load again, and the report."""
    lab = labdata.load(root)
    done = imports.prepare((DATA / name).read_bytes(), name, lab, machine, model)
    paths = imports.write(done, lab, root)
    after = labdata.load(root)
    return [after.runs[f"{p.parent.name}/{p.stem}"] for p in paths], done.report


def files(root: Path) -> set[str]:
    return {p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()}


@pytest.mark.parametrize("log", LOGS, ids=lambda p: p.name)
def test_every_log_loads_and_the_lab_still_does(root: Path, log: Path):
    chip = next((chip for word, chip in MACHINES.items() if word in log.name), None)
    if chip:
        with_machine(root, "theirs", chip)
    runs, report = take(root, log.name, "theirs" if chip else None, "some-model" if "llama_server" in log.name else None)
    assert runs and all(run.ink is None and run.profile == "imported" for run in runs)
    raw = {run.sources["log"].raw for run in runs}
    assert len(raw) == 1
    assert (root / "raw" / raw.pop()).read_bytes() == log.read_bytes()
    assert report[0].startswith("Read ")
    for run in runs:
        text = (root / f"runs/{run.machine}/{run.id}.yml").read_text(encoding="utf-8")
        assert not re.search(r"/home/|kyuz0|mikekey|192\.168", text)
        for r in run.results:
            assert rate(r)
            assert not rows.explained(labdata.load(root), run, r)  # of models nobody described: no roof is set against them


JUNK = [b"-1", b"1e999", b"nan", b"null", b"{}", b"[", b'"', b"|", b"\xff", b"\n", b"true", b"9" * 400, b"/home/x/y", b"0", b"**", b"> ", b"\\ud800", b"GiB", b"pp0", b"'", b"@ d"]


@pytest.mark.parametrize("seed", range(15))
def test_a_damaged_log_is_imported_or_refused_and_never_crashes(root: Path, monkeypatch: pytest.MonkeyPatch, seed: int):
    monkeypatch.setattr(import_cards, "same_chip", lambda ours, theirs: True)
    chance, lab = random.Random(seed), labdata.load(root)
    for _ in range(5):
        data = bytearray(chance.choice(LOGS).read_bytes())
        for _ in range(chance.randint(1, 5)):
            words = list(re.finditer(rb"[\w.]+", bytes(data)))
            start, end = chance.choice(words).span() if words else (0, 0)
            data[start:end] = chance.choice(JUNK)
        del data[chance.randint(len(data) // 2, len(data)) :]
        try:
            done = imports.prepare(bytes(data), "log", lab, "apple-m4-24gb", None)
        except ImportRefused as error:
            assert all(line.startswith(("log: ", "MACHINE: ")) for line in str(error).splitlines())
            continue
        for _, document in done.documents:  # what would be written reads back the same
            labdata.write(root / "again.yml", document)
            assert labdata.parse(type(document), root / "again.yml", "again") == document


def test_a_machine_is_made_from_the_chip_table(root: Path):
    (run,), report = take(root, "md_2024_cuda_4090_multi_model_one_table.txt")
    machine = labdata.load(root).machines[run.machine]
    assert machine.chip == "NVIDIA GeForce RTX 4090"
    assert machine.specs.memory_bandwidth.si == 1008e9  # NVIDIA's data sheet
    assert "Skipped line 12: cut short: 1 of 7 cells." in report
    assert "of the log's 6 tests, 1 could not be read (line 12)" in run.notes[0]


def test_two_variants_are_named_and_one_is_chosen(root: Path):
    lab = labdata.load(root)
    log = "ggml_metal_init: GPU name:   Apple M2 Ultra\n| model | size | params | backend | test | t/s |\n|--|--|--|--|--|--|\n| a 1B F16 | 2.00 GiB | 1.07 B | Metal | tg128 | 9.00 ± 0.10 |\n"
    with pytest.raises(ImportRefused, match=r"could be Apple M2 Ultra \(60-core GPU\), CHIP=apple-m2-ultra-60c, Apple M2 Ultra \(76-core GPU\), CHIP=apple-m2-ultra-76c"):
        imports.prepare(log.encode(), "log", lab)
    done = imports.prepare(log.encode(), "log", lab, "apple-m2-ultra-76c")
    imports.write(done, lab, root)
    machine = labdata.load(root).machines["apple-m2-ultra-76c"]
    assert (machine.chip, machine.specs.memory_bandwidth.si, machine.specs.memory) == ("Apple M2 Ultra (76-core GPU)", 800e9, None)


def test_what_the_log_does_not_tell_is_null_and_not_our_default(root: Path):
    (run,), _ = take(root, "json_2023_cuda_3090ti_old_schema.json")
    pp, tg = run.results
    assert (pp.n_batch, pp.n_ubatch, pp.type_k, pp.flash_attn) == (512, None, "f16", None)
    assert pp.samples_ns == [213837238, 211635853, 212328053, 211329715, 212698907]
    m = rate(pp)
    assert m and (m.n, round(m.mean, 2), round(m.sigma, 2)) == (5, 2410.97, 11.16)  # the log's own avg_ts and stddev_ts
    assert m.sigma == pytest.approx(statistics.stdev(512e9 / ns for ns in pp.samples_ns))
    assert run.started_at.isoformat() == "2023-09-23T12:09:57+00:00"
    assert (run.instrument.name, run.instrument.engine_version, run.host.os) == ("llama-bench", "build 1275 (3469684)", None)


def test_gib_stays_gib_until_it_is_converted_once(root: Path):
    (run,), _ = take(root, "md_2024_cuda_4090_multi_model_one_table.txt")
    card = labdata.load(root).models[run.results[0].model]
    assert (card.file_size.value, card.file_size.unit, card.weights, card.shape) == (12.55, "GiB", "reported", None)
    assert card.file_bytes() == 12.55 * 2**30
    assert card.param_count() == 6.74e9
    assert run.results[0].published.n is None


def test_the_same_model_in_two_formats_is_one_card(root: Path):
    (md,), _ = take(root, "md_2024_cuda_4090_multi_model_one_table.txt")
    (js,), report = take(root, "json_2023_cuda_3090ti_old_schema.json")
    assert md.results[4].model == js.results[0].model == "llama-7b-q4_0-3.56gib-6.74b-reported"
    assert any("as reported before" in line for line in report)


QWEN = {"build_commit": "abc1234", "build_number": 6000, "cpu_info": "Apple M4", "gpu_info": "Apple M4", "backends": "Metal,BLAS", "model_filename": "q.gguf",
        "model_type": "qwen3 8B Q4_K - Medium", "model_size": 5021417472, "model_n_params": 8190735360, "n_batch": 2048, "n_ubatch": 512, "n_threads": 4,
        "type_k": "f16", "type_v": "f16", "n_gpu_layers": 99, "flash_attn": 0, "n_prompt": 0, "n_gen": 128, "n_depth": 0,
        "test_time": "2025-07-01T10:00:00Z", "samples_ns": [6_190_000_000, 6_200_000_000]}  # fmt: skip


def qwen(lab: Lab, **changed) -> imports.Import:
    return imports.prepare(json.dumps({**QWEN, **changed}).encode(), "log", lab, "apple-m4-24gb")


def test_a_model_we_know_is_recognised_by_its_bytes_and_parameters(root: Path):
    lab = labdata.load(root)
    card = lab.models["qwen3-8b-q4_k_m"]
    size, params = sum(t.n_bytes for t in card.table()), sum(t.params for t in card.table())
    assert params == QWEN["model_n_params"]  # llama-bench's own count for Qwen3-8B
    imports.write(done := qwen(lab, model_size=size), lab, root)
    after = labdata.load(root)
    run = after.runs[next(name for name in after.runs if "imported" in name)]
    assert run.results[0].model == "qwen3-8b-q4_k_m"
    assert rows.explained(after, run, run.results[0])
    assert set(files(root)) - set(files(labdata.ROOT)) == {f"raw/{done.raw_name}", f"runs/apple-m4-24gb/{run.id}.yml"}
    # llama-bench's markdown of the same: two digits, two units
    table = (f"| model | size | params | backend | ngl | test | t/s |\n|--|--|--|--|--|--|--|\n| qwen3 8B Q4_K - Medium | {size / 2**30:.2f} GiB | 8.19 B | Metal,BLAS | 99 "
             "| tg128 | 20.80 ± 0.05 |\n")  # fmt: skip
    (_, run), = [d for d in imports.prepare(table.encode(), "log", after, "apple-m4-24gb").documents if isinstance(d[1], Run)]
    assert run.results[0].model == "qwen3-8b-q4_k_m"


@pytest.mark.parametrize("changed", [{"model_size": 5021417473}, {"model_n_params": 8190735361}, {"model_type": "llama 8B Q4_K - Medium"}, {"model_size": None}])
def test_a_model_that_only_looks_alike_is_not_ours(root: Path, changed):
    lab = labdata.load(root)
    size = sum(t.n_bytes for t in lab.models["qwen3-8b-q4_k_m"].table())
    documents = qwen(lab, **{"model_size": size, **changed}).documents
    assert [d.weights for name, d in documents if name.startswith("models/")] == ["reported"]


@pytest.mark.parametrize(("changed", "known"), [({"n_gpu_layers": 20}, False), ({"n_gpu_layers": -1}, True), ({"backends": "CPU"}, False), ({"backends": "Metal,RPC"}, False),
                                                ({"n_prompt": 512}, False), ({"devices": "MTL0/MTL1"}, False)])  # fmt: skip
def test_roofs_speak_only_of_what_ran_wholly_on_the_chip(root: Path, changed, known):
    lab = labdata.load(root)
    size = sum(t.n_bytes for t in lab.models["qwen3-8b-q4_k_m"].table())
    done = qwen(lab, model_size=size, **changed)
    (run,) = [d for _, d in done.documents if isinstance(d, Run)]
    assert rows.explained(lab, run, run.results[0]) is known


def test_several_devices_are_said(root: Path):
    with_machine(root, "theirs", "AMD Radeon RX 7900 XTX")
    runs, report = take(root, "md_2025_vulkan_7900xtx_three_tables_noise.txt", "theirs")
    assert [[r.n_devices for r in run.results] for run in runs] == [[1, 1], [1, 1], [2, 2]]
    assert any("Up to 2 devices shared the work" in line for line in report)
    assert any("'/home/mikekey'" in line for line in report if line.startswith("Warning"))


def test_a_fork_is_recorded_as_one(root: Path):
    with_machine(root, "theirs", "Intel Xeon v4")
    (run,), report = take(root, "md_2025_ikfork_cuda_numa_custom_columns.txt", "theirs")
    assert run.instrument.name == "llama-bench, of a fork or edited by hand" and "fork" in run.instrument.engine
    assert "Note: Columns that llama.cpp's llama-bench does not have: amb, ser, rtr, fmoe." in report
    assert run.results[0].settings["ser"] == "4,1"


def test_the_same_file_twice_is_said_and_changes_nothing(root: Path):
    take(root, "csv_2023_cuda_3090ti_old_schema.csv")
    before = files(root)
    runs, report = take(root, "csv_2023_cuda_3090ti_old_schema.csv")
    assert runs == [] and files(root) == before
    assert any(line.startswith("Already there: labdata/runs/nvidia-geforce-rtx-3090-ti/imported-") for line in report)
    lab = labdata.load(root)  # the same measurement with other line ends
    other = imports.prepare((DATA / "csv_2023_cuda_3090ti_old_schema.csv").read_bytes().replace(b"\n", b"\r\n"), "x", lab)
    assert not other.documents and any("Already there" in line for line in other.report)
    with_machine(root, "theirs", "NVIDIA GeForce RTX 3090 Ti")
    with pytest.raises(ImportRefused, match="imported before, as measured on nvidia-geforce-rtx-3090-ti"):
        take(root, "csv_2023_cuda_3090ti_old_schema.csv", "theirs")


def test_a_half_import_is_finished_by_the_next(root: Path):
    take(root, "md_2024_cuda_h100_pp_nospace_pg.txt")
    second = next(root.glob("runs/nvidia-h100*/imported-*-2.yml"))
    text = second.read_bytes()
    second.unlink()
    runs, _ = take(root, "md_2024_cuda_h100_pp_nospace_pg.txt")
    assert [run.id for run in runs] == [second.stem] and second.read_bytes() == text


@pytest.mark.parametrize("at", range(1, 7))
def test_a_disk_that_fails_leaves_labdata_as_it_was(root: Path, monkeypatch: pytest.MonkeyPatch, at: int):
    before, lab, calls = files(root), labdata.load(root), iter(range(1, 100))
    real = io_files.write_bytes

    def full(path: Path, data: bytes) -> None:
        if next(calls) == at:
            raise OSError(28, "No space left on device", str(path))
        real(path, data)

    for module in (io_files, labdata):  # a document and a raw text are written by either name
        monkeypatch.setattr(module, "write_bytes", full)
    done = imports.prepare((DATA / "md_2024_cuda_4090_multi_model_one_table.txt").read_bytes(), "x", lab)
    assert len(done.documents) == 5  # a machine, three models, a run; and the raw text makes six files
    with pytest.raises(OSError, match="No space left"):
        imports.write(done, lab, root)
    assert files(root) == before


@pytest.mark.parametrize(
    ("name", "machine", "model", "words"),
    [
        ("md_2026_cpu_phi3_plusminus_ascii_headerless.txt", None, None, ("MACHINE: not given", "names no chip", "apple-m4-24gb")),
        ("md_2026_cpu_phi3_plusminus_ascii_headerless.txt", "nowhere", None, ("MACHINE: no such file", "'nowhere'", "known machines: ", "labdata/README.md")),
        ("md_2026_cpu_phi3_plusminus_ascii_headerless.txt", "No Where", None, ("MACHINE: small letters", "'No Where'")),
        ("md_2024_cuda_4090_multi_model_one_table.txt", "apple-m4-24gb", None, ("MACHINE: ", "another chip", "'Apple M4'", "'NVIDIA GeForce RTX 4090'")),
        ("md_2024_cuda_4090_multi_model_one_table.txt", None, "qwen3-8b-q4_k_m", ("MODEL: the log is of 3 models", "llama 7B Q8_0")),
        ("json_2023_cuda_3090ti_old_schema.json", None, "qwen3-8b-q4_k_m", ("MODEL: ", "another size", "3.56 GiB, 6.74 B")),
        ("json_2023_cuda_3090ti_old_schema.json", None, "qwen9", ("MODEL: no such file", "'qwen9'", "known: ")),
        ("json_2023_cuda_3090ti_old_schema.json", "nvidia-rtx-4090", None, ("MACHINE: another chip than the log's", "'nvidia-rtx-4090'", "RTX 3090 Ti")),
        ("clock_llama_server_timings.json", "apple-m4-24gb", None, ("model: the log names none", "MODEL=")),
        ("README.md", "apple-m4-24gb", None, ("README.md: content: no test found", "known: llama-bench's json")),
    ],
)
def test_a_refusal_is_clear_and_writes_nothing(root: Path, name, machine, model, words):
    before = files(root)
    with pytest.raises(ImportRefused) as error:
        take(root, name, machine, model)
    assert all(word in str(error.value) for word in words), error.value
    assert files(root) == before


def test_a_card_of_the_cpu_is_not_that_of_the_gpu_beside_it(root: Path):
    lab = with_machine(root, "theirs", "13th Gen Intel(R) Core(TM) i9-13900K")
    log = (DATA / "json_2023_cuda_3090ti_old_schema.json").read_bytes()
    with pytest.raises(ImportRefused, match="another chip; it says '13th Gen.*the log 'NVIDIA GeForce RTX 3090 Ti'"):
        imports.prepare(log, "log", lab, "theirs")
    assert imports.prepare(log.replace(b"NVIDIA GeForce RTX 3090 Ti", b""), "log", lab, "theirs").documents
    lab = with_machine(root, "halo", "AMD Ryzen AI Max+ 395")
    assert imports.prepare((DATA / "jsonl_2026_rocm_strixhalo_depth_curve.jsonl").read_bytes(), "log", lab, "halo").documents


@pytest.mark.parametrize(("ours", "theirs", "same"), [
    ("Apple M4", "Apple M4", True), ("Apple M4 (10-core GPU)", "Apple M4", True), ("Apple M4", "Apple M4 Max", False), ("Apple M4", "Apple M2", False),
    ("AMD EPYC", "AMD EPYC 7763 64-Core Processor", True), ("NVIDIA GeForce RTX 4080", "NVIDIA GeForce RTX 4080 SUPER", False),
    ("AMD Radeon 8060S", "AMD Radeon 8060S Graphics (RADV GFX1151)", True), ("AMD", "AMD", False)])  # fmt: skip
def test_chips_are_compared_by_their_words(ours, theirs, same):
    assert import_cards.same_chip(ours, theirs) is same


def test_other_clocks_are_recorded_as_what_they_are(root: Path):
    with_machine(root, "theirs", "Apple M2")
    (ollama,), _ = take(root, "clock_ollama_generate.json", "theirs")
    assert ollama.instrument.name.startswith("Ollama") and ollama.instrument.engine == "Ollama" and ollama.instrument.protocol != "llama-bench"
    assert [(r.test, r.depth, r.samples_ns) for r in ollama.results] == [("pp11", 0, [13074791]), ("tg18", 11, [52479709])]
    (studio,), _ = take(root, "clock_lm_studio_chat.json", "theirs")
    assert (studio.results[0].published.mean_tok_s, studio.results[0].published.n) == (51.43709529007664, None)
    (server,), _ = take(root, "clock_llama_server_timings.json", "theirs", "Qwen3 30B Coder")
    lab = labdata.load(root)
    assert lab.models[server.results[0].model].name == "Qwen3 30B Coder (as reported)"
    assert round(rate(server.results[1]).mean, 2) == 52.94  # its own predicted_per_second


@pytest.mark.parametrize("cut", [0, 1, 700, 1500, 1819])
def test_the_command_says_all_and_fails_in_one_line(project: Path, cut: int):
    log = project / "log.json"
    log.write_bytes((DATA / "json_2023_cuda_3090ti_old_schema.json").read_bytes()[:cut])
    done = run_module(project, "bench", "import", str(log))
    assert "Traceback" not in done.stderr
    assert done.returncode == (0 if cut >= 1500 else 1)
    if cut < 1500:
        assert done.stderr.startswith(f"error: {log}: content: ") and not list(project.glob("labdata/raw/imported-*"))
    elif cut == 1500:
        assert "Read 1 test (1 from json)" in done.stdout and "Skipped line 33: cut short" in done.stdout


def test_the_page_of_an_imported_machine(project: Path):
    piped = (DATA / "md_2024_cuda_h100_pp_nospace_pg.txt").read_text(encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "bench", "import"], cwd=project, input=piped, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    done = run_module(project, "mkdocs", "build", "-q")
    assert done.returncode == 0, done.stderr
    page = (project / "site/machines/nvidia-h100-pcie-80gb/index.html").read_text(encoding="utf-8")
    assert "no prediction was written first" in page
    assert "8,125" in page and "pp512+tg128" in page and "imported: llama-bench" in page
    assert "of the memory roof" not in page  # of models nobody described
    index = (project / "site/machines/index.html").read_text(encoding="utf-8")
    assert "llama 8B F16 (14.96 GiB, 8.03 B, as reported)" in index


def test_a_file_that_cannot_be_read_is_one_line(project: Path):
    for argument, words in (("nowhere.json", "nowhere.json: No such file or directory"), (".", "Is a directory")):
        done = run_module(project, "bench", "import", argument)
        assert done.returncode == 1 and words in done.stderr and "Traceback" not in done.stderr
