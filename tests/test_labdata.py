"""labdata/ refuses what it should, all at once, with file and key."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from macros import labdata, records, schema_docs
from macros.labdata import LabError

MACHINE = "machines/apple-m4-24gb.yml"
MODEL = "models/qwen3-8b-q4_k_m.yml"
INK = "ink/day-01.yml"
RUN = "runs/apple-m4-24gb/day1-baseline.yml"


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    root = tmp_path / "labdata"
    shutil.copytree(labdata.ROOT, root)
    return root


def edit(root: Path, file: str, old: str, new: str) -> None:
    path = root / file
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{file} no longer holds {old!r}"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def problems(root: Path) -> list[str]:
    with pytest.raises(LabError) as caught:
        labdata.load(root)
    return caught.value.problems


def test_the_lab_loads():
    lab = labdata.load()
    assert lab.machines["apple-m4-24gb"].specs.memory_bandwidth.si == 120e9
    assert "apple-m4-24gb/day1-depth" in lab.runs


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        (MACHINE, "os: macOS", "os: macOS\ncolour: grey", ("colour", "unknown key", "cores")),
        (MACHINE, "value: 120", "value: .nan", ("specs.memory_bandwidth.value", "nan")),
        (MACHINE, "value: 120", "value: -120", ("specs.memory_bandwidth.value", "-120")),
        (MACHINE, "value: 120", "value: 1e12", ("specs.memory_bandwidth.value", "'1e12'", "write 1.0e+12")),
        (MACHINE, "unit: GB/s", "unit: Gb/s", ("specs.memory_bandwidth.unit", "'Gb/s'", "GB/s")),
        (MACHINE, "unit: GB/s, source: apple", "unit: GB, source: apple", ("specs.memory_bandwidth.unit", "'GB'")),
        (MACHINE, ", source: apple", "", ("specs.memory_bandwidth.source", "Field required")),
        (MACHINE, "source: apple", "source: aple", ("specs.memory_bandwidth.source", "'aple'", "apple")),
        (MACHINE, "raw: day-01.yml", "raw: gone.yml", ("sources.lab.raw", "'gone.yml'")),
        (MACHINE, "raw: day-01.yml", "raw: ../../../etc/passwd", ("sources.lab.raw", "pattern")),
        (MACHINE, "id: apple-m4-24gb", "id: apple-m5", ("id", "'apple-m5'", "apple-m4-24gb")),
        (MACHINE, "os: macOS", "os: macOS\nos: Linux", ("line 7", "given twice", "'os'")),
        (MACHINE, "os: macOS", "os: [", ("line", "not valid YAML")),
        (MODEL, "quant: Q4_K_M", "quant: Q9_X", ("quant", "'Q9_X'", "Q4_K_M")),
        (MODEL, "arch: qwen3", "arch: bert", ("quant", "'bert'", "qwen3")),
        (MODEL, "arch: qwen3", "arch: mamba", ("shape", "mamba: recurrent layers without a state")),
        (MODEL, "n_layer: 36", "n_layer: 36.5", ("shape.n_layer", "36.5")),
        (MODEL, "n_layer: 36", "n_layer: 10000000000", ("shape.n_layer", "10000000000", "10000")),
        (MODEL, "n_embd: 4096", "n_embd: 4095", ("quant", "blocks of 256")),
        (MODEL, "value: 5.03, unit: GB", "value: 5.03, unit: GB/s", ("file_size.unit", "'GB/s'")),
        (MODEL, "unit: params, source: lab", "unit: GB, source: lab", ("params.unit", "'GB'")),
        (MODEL, "n_layer: 36", "n_layers: 36", ("shape.n_layers", "unknown key", "n_layer, n_embd")),
        (INK, "unit: tok/s", "unit: GB", ("predictions.1.unit", "'GB'")),
        (RUN, "started_at: null", "started_at: 2026-13-45", ("cannot be read", "month must be in 1..12")),
        (RUN, "started_at: null", "? [a, b]\n: c\nstarted_at: null", ("line", "a key must be text; got")),
        (RUN, "n: 5", "n: " + "9" * 5000, ("line", "a number of 5000 characters; at most 64")),
        ("ink/day-01.errata.yml", "ink: day-01", "ink: amd-epyc", ("ink", "'amd-epyc'")),
        (RUN, "model: qwen3-8b-q4_k_m", "model: qwen3-9b", ("results.0.model", "'qwen3-9b'", "qwen3-8b-q4_k_m")),
        (RUN, "machine: apple-m4-24gb", "machine: apple-m5", ("machine", "'apple-m5'", "apple-m4-24gb")),
        (RUN, "n_prompt: 512", "n_prompt: 0", ("results.0", "n_prompt and n_gen")),
        (RUN, "    published: {mean_tok_s: 228.94, sigma_tok_s: 0.1, n: 5}\n", "", ("results.0", "exactly one of samples_ns")),
        (INK, "value: 24", "value: 25", ("day1-baseline.yml", "ink.sha256", "day-01.yml was changed")),
        (INK, "    low: 11.5\n", "", ("predictions.5", "interval takes exactly low, high")),
        (INK, "direction: craters", "direction: explodes", ("predictions.7.direction", "'explodes'", "craters")),
        ("ink/day-01.errata.yml", "prediction: depth-ratio", "prediction: depth", ("corrections.0.prediction", "'depth'", "depth-ratio")),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_file_key_and_value(lab: Path, file: str, old: str, new: str, expected: tuple[str, ...]):
    edit(lab, file, old, new)
    found = problems(lab)
    hit = [p for p in found if all(words in p for words in expected)]
    assert hit, found
    assert hit[0].startswith("labdata/")
    assert "\n" not in hit[0]


def test_what_would_be_passed_over_in_silence_is_a_problem(lab: Path):
    (lab / "machines/new.yaml").write_text("schema: 1\n", encoding="utf-8")
    (lab / "models/link.yml").symlink_to("nowhere.yml")
    (lab / MACHINE).rename(lab / "machines/index.yml")
    edit(lab, "machines/index.yml", "id: apple-m4-24gb", "id: index")
    found = problems(lab)
    for words in ("machines/new.yaml: file: must end in .yml", "models/link.yml: file: a symbolic link; got one to 'nowhere.yml'; put the file itself there", "index.yml: id: is the page"):
        assert any(words in p for p in found), words
    assert problems(lab / "gone")[0].startswith("labdata: no such folder")


def test_all_mistakes_in_all_files_come_in_one_message(lab: Path):
    edit(lab, MACHINE, "value: 120", "value: x")
    edit(lab, MACHINE, "chip: Apple M4", "chip: 4")
    edit(lab, MODEL, "n_layer: 36", "n_layer: 0")
    edit(lab, "runs/apple-m4-24gb/day1-cpu.yml", "n_gen: 128", "n_gen: many")
    text = "\n".join(problems(lab))
    for key in ("specs.memory_bandwidth.value", "chip", "shape.n_layer", "results.1.n_gen"):
        assert key in text


def test_a_name_that_is_not_there_names_those_that_are():
    with pytest.raises(LabError, match=r"'day1-nap'.*known: .*apple-m4-24gb/day1-baseline"):
        labdata.load().get("runs", "day1-nap")


def test_what_is_written_reads_back_the_same(tmp_path: Path):
    for run in labdata.load().runs.values():
        labdata.write(tmp_path / f"{run.id}.yml", run)
        assert labdata.parse(records.Run, tmp_path / f"{run.id}.yml", "x") == run


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "run.yml"
    path.write_text("old", encoding="utf-8")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("macros.labdata.os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        labdata.write_text(path, "new")
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_schema_files_and_readme_are_current():
    for name, text in schema_docs.json_schemas().items():
        assert (labdata.ROOT / "schema" / name).read_text(encoding="utf-8") == text, "run make schema"
    assert (labdata.ROOT / "README.md").read_text(encoding="utf-8") == schema_docs.readme(), "run make schema"


def test_every_key_has_a_meaning():
    for kind in schema_docs.FILES.values():
        for name, info in kind.model_fields.items():
            assert info.description, f"{kind.__name__}.{name}"
