"""Public llama-bench results as the predictor's input: one CSV row in, one case out, or the reason why not.

The measured rate is not part of a case: `read` hands it out beside the row, and only the fit and the
accuracy page ask for it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from macros import chip_names, devices
from macros.calibrated import Device, Load, Setup
from macros.corpus_models import GIB, Model, NotPredictable, number, whole

FOLDER = Path(__file__).resolve().parent.parent / "labdata" / "corpus"
MEASUREMENTS = FOLDER / "measurements.csv"
# What a prediction reads. tok_s and tok_s_sigma are not here, and nothing else of a row is looked at.
INPUTS = (
    "chip", "vendor", "backend", "mem_bandwidth_gbs", "fp16_tflops", "model", "arch", "quant", "model_size_gib", "n_params_b",
    "is_moe", "active_params_b", "n_layer", "n_head", "n_head_kv", "head_dim", "kv_type", "flash_attn", "test", "n_prompt",
    "n_gen", "depth", "n_threads", "build", "date", "notes",
)  # fmt: skip
OPTIONAL = {"vendor", "fp16_tflops", "model_size_gib", "active_params_b", "kv_type", "flash_attn", "test", "depth", "n_threads", "build", "date", "notes"}
NEEDED = tuple(c for c in INPUTS if c not in OPTIONAL)
MEASURED = ("tok_s", "tok_s_sigma")
DEFAULT_UBATCH = 512
# llama.cpp b6325 (30 August 2025) made flash attention "auto"; a row that does not say follows it.
FLASH_BY_DEFAULT = 6325


class CorpusError(Exception):
    """Every problem of a CSV file, one line each."""

    def __init__(self, problems: list[str]):
        self.problems = problems
        super().__init__("\n".join(problems))


@dataclass(frozen=True)
class Case:
    """A row as the predictor takes it: its loads in turn (a mixed test has two), device and setup."""

    loads: tuple[Load, ...]
    steps: tuple[int, ...]  # how often each load is run: 1 for a prompt, the tokens generated for a step
    device: Device
    setup: Setup
    assumed: tuple[str, ...]
    deep: bool = False  # tokens already in the context

    @property
    def kind(self) -> str:
        """decode, prefill or mixed."""
        return self.loads[0].phase if len(self.loads) == 1 else "mixed"


def shown(path: Path) -> str:
    """A file as messages name it: from the project's folder where it lies there.

    >>> shown(MEASUREMENTS)
    'labdata/corpus/measurements.csv'
    """
    home = FOLDER.parent.parent
    return path.relative_to(home).as_posix() if path.is_relative_to(home) else str(path)


def read(path: Path, needed: tuple[str, ...] = NEEDED) -> Iterator[dict[str, str]]:
    """Rows of a results file in the corpus's columns.

    Raises:
        CorpusError: unreadable, not CSV, a column missing or given twice, a row of another length.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(file, strict=True)
            header = next(lines, [])
            problems = [f"{shown(path)}: {c}: column missing; got {', '.join(header[:40]) or 'an empty file'}" for c in needed if c not in header]
            problems += [f"{shown(path)}: {c}: column given twice" for c in sorted({c for c in header if header.count(c) > 1})]
            rows = []
            for line in lines:
                if len(line) == len(header):
                    rows.append(dict(zip(header, line)))
                elif line:
                    problems.append(f"{shown(path)}: line {lines.line_num}: {len(line)} fields; the header has {len(header)}")
    except (OSError, csv.Error, ValueError) as error:
        raise CorpusError([f"{shown(path)}: file: cannot be read; {getattr(error, 'strerror', None) or error}"]) from None
    if problems:
        raise CorpusError(problems)
    yield from rows


def measurements(path: Path = MEASUREMENTS) -> list[dict[str, str]]:
    """The corpus, every row checked.

    Raises:
        CorpusError: every problem of every row.
    """
    rows = list(read(path, ("id", "source_url", "machine", *INPUTS, *MEASURED)))
    problems, seen, file = [], set(), shown(path)
    for row in rows:
        where = f"{file}: {row['id'] or 'row without id'}"
        if row["id"] in seen or not row["id"]:
            problems.append(f"{where}: id: missing or given twice")
        seen.add(row["id"])
        if not row["source_url"]:
            problems.append(f"{where}: source_url: not given; every row has its source")
        for column in ("tok_s", "n_params_b", "n_layer", "n_head", "n_head_kv", "head_dim"):
            try:
                number(row, column)
            except NotPredictable as error:
                problems.append(f"{where}: {error}")
    if problems:
        raise CorpusError(problems)
    return rows


def case(row: Mapping[str, str]) -> Case:
    """A row as the predictor takes it.

    Raises:
        NotPredictable: the reason, naming the column.
    """
    row = {column: row.get(column, "") for column in INPUTS}
    assumed: list[str] = []
    build = devices.build_number(row["build"], row["date"])
    device = _device(row, assumed)
    flash = row["flash_attn"].strip()
    if flash not in ("", "0", "1"):
        raise NotPredictable(f"flash_attn: 0, 1 or nothing; got {flash[:20]!r}")
    on = flash == "1" or (flash == "" and (build or FLASH_BY_DEFAULT) >= FLASH_BY_DEFAULT)
    ubatch = re.search(r"n_ubatch (\d{1,6})", row["notes"])
    n_prompt, n_gen, depth = (whole(row, c, 0) for c in ("n_prompt", "n_gen", "depth"))
    if not (n_prompt or n_gen):
        raise NotPredictable(f"n_prompt, n_gen: neither given; test is {row['test'][:40]!r}")
    model = Model(row, assumed)
    has, needs = chip_names.memory_bytes(row["chip"]), model.file_bytes + model.kv_bytes(n_prompt + n_gen + depth)
    if device.backend != "CPU" and has and needs > has:
        raise NotPredictable(f"model_size_gib: does not fit: weights and KV cache take {needs / GIB:.1f} GiB; {row['chip'][:60]} has {has / GIB:.0f}")
    loads, steps = [], []
    if n_prompt:
        if device.flops_s is None:
            raise NotPredictable(f"fp16_tflops: not given, and no peak known for {row['chip'][:60]!r}")
        loads.append(model.prefill(n_prompt, depth, max(1, int(ubatch[1])) if ubatch else DEFAULT_UBATCH))
        steps.append(1)
    if n_gen:
        loads.append(model.decode(n_gen, depth + n_prompt))
        steps.append(n_gen)
    return Case(tuple(loads), tuple(steps), device, Setup(on, build), tuple(assumed), depth > 0)


def _device(row: Mapping[str, str], assumed: list[str]) -> Device:
    chip = row["chip"].strip()
    vendor, generation = devices.family(chip)
    backend = devices.backend_family(row["backend"], vendor)
    if not row["mem_bandwidth_gbs"].strip():
        raise NotPredictable(f"mem_bandwidth_gbs: not given for {chip[:60]!r}; without a bandwidth there is no roof")
    bandwidth = number(row, "mem_bandwidth_gbs") * 1e9
    flops = None
    if backend == "CPU":
        vendor, generation = "cpu", "cpu"
        if row["n_threads"].strip():
            flops = whole(row, "n_threads", most=100_000) * devices.CPU_THREAD_FLOPS_S or None
            assumed.append("compute peak: threads × 96 GFLOP/s")
    elif row["fp16_tflops"].strip():
        flops = devices.full_rate_flops_s(chip, number(row, "fp16_tflops") * 1e12)
    elif known := chip_names.peak_of(chip):
        flops = devices.full_rate_flops_s(chip, known[0])
        assumed.append(f"compute peak: {known[1]}")
    return Device(backend, vendor, generation, bandwidth, flops, two_dies="Ultra" in chip and vendor == "apple")

