"""Public llama-bench results as the predictor's input: one CSV row in, one case out, or the reason why not.

The measured rate is not part of a case: `read` hands it out beside the row, and only the fit and the
accuracy page ask for it. Standard library only.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from macros import devices
from macros.calibrated import Device, Load, Setup

FOLDER = Path(__file__).resolve().parent.parent / "labdata" / "corpus"
MEASUREMENTS, CHIPS = FOLDER / "measurements.csv", FOLDER / "chips.csv"
# What a prediction reads. tok_s and tok_s_sigma are not here, and nothing else of a row is looked at.
INPUTS = (
    "chip", "vendor", "backend", "mem_bandwidth_gbs", "fp16_tflops", "model", "arch", "quant", "model_size_gib", "n_params_b",
    "is_moe", "active_params_b", "n_layer", "n_head", "n_head_kv", "head_dim", "kv_type", "flash_attn", "test", "n_prompt",
    "n_gen", "depth", "n_threads", "build", "date", "notes",
)  # fmt: skip
MEASURED = ("tok_s", "tok_s_sigma")
GIB = 2**30
KV_BYTES = {"": 2.0, "f16": 2.0, "bf16": 2.0, "f32": 4.0, "q8_0": 34 / 32, "q5_1": 24 / 32, "q5_0": 22 / 32, "q4_1": 20 / 32, "q4_0": 18 / 32}
DEFAULT_UBATCH = 512
# llama.cpp b6325 (30 August 2025) made flash attention "auto"; a row that does not say follows it.
FLASH_BY_DEFAULT = 6325
# Bits a weight by llama.cpp's label, for rows without a file size. Source: published 7B and 8B files.
BITS = {
    "F32": 32, "F16": 16, "BF16": 16, "Q8_0": 8.5, "Q6_K": 6.56, "Q5_K_M": 5.69, "Q5_K_S": 5.54, "Q5_1": 6.0, "Q5_0": 5.54,
    "Q4_K_M": 4.89, "Q4_K_S": 4.59, "Q4_1": 5.03, "Q4_0": 4.55, "IQ4_XS": 4.32, "IQ4_NL": 4.56, "MXFP4": 4.25, "Q3_K_L": 4.27,
    "Q3_K_M": 3.91, "Q3_K_S": 3.5, "Q2_K": 3.35,
}  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """What the columns do not say of an architecture: vocabulary, width, windows, experts.

    Args:
        windowed: share of the layers that attend to `window` tokens only
        experts, used, n_ff: of an expert layer; 0: dense
        body_bits: bits of the tensors that are no experts, where they differ from the file's mean
    """

    n_vocab: int
    n_embd: int = 0
    tied: bool = False
    window: int = 0
    windowed: float = 0.0
    experts: int = 0
    used: int = 0
    n_ff: int = 0
    body_bits: float = 0.0


# By the start of the model's name, first match wins; then by architecture. Source: the models' config.json.
SHAPES = (
    ("Llama-2", Shape(32000)), ("TinyLlama", Shape(32000)), ("Mixtral", Shape(32000, 4096, experts=8, used=2, n_ff=14336)),
    ("Llama-3.2", Shape(128256, tied=True)), ("Llama-3", Shape(128256)), ("Mistral-Nemo", Shape(131072, 5120)),
    ("Mistral-7B", Shape(32768)), ("Devstral-Small", Shape(131072, 5120)), ("Mistral-Small", Shape(131072, 5120)),
    ("Gemma-3-1B", Shape(262144, 1152, True, 512, 5 / 6)), ("Gemma-3-4B", Shape(262144, 2560, True, 1024, 5 / 6)),
    ("Gemma-3-12B", Shape(262144, 3840, True, 1024, 5 / 6)), ("Gemma-3-27B", Shape(262144, 5376, True, 1024, 5 / 6)),
    ("Qwen2.5-0.5B", Shape(151936, tied=True)), ("Qwen2.5-1.5B", Shape(151936, tied=True)), ("Qwen2.5-3B", Shape(151936, tied=True)),
    ("Qwen3-0.6B", Shape(151936, 1024, True)), ("Qwen3-1.7B", Shape(151936, 2048, True)), ("Qwen3-4B", Shape(151936, 2560, True)),
    ("Qwen3-32B", Shape(151936, 5120)), ("Qwen3-30B-A3B", Shape(151936, 2048, experts=128, used=8, n_ff=768)),
    ("Qwen3-235B-A22B", Shape(151936, 4096, experts=128, used=8, n_ff=1536)),
    ("gpt-oss-20b", Shape(201088, 2880, False, 128, 0.5, 32, 4, 2880, 8.5)),
    ("gpt-oss-120b", Shape(201088, 2880, False, 128, 0.5, 128, 4, 2880, 8.5)),
    ("Phi-4", Shape(100352)),
)  # fmt: skip
ARCHITECTURES = {
    "llama": Shape(32000), "mistral3": Shape(131072, 5120), "qwen2": Shape(151936), "qwen3": Shape(151936), "phi3": Shape(32064),
    "gemma": Shape(256000, tied=True), "gemma2": Shape(256000, 0, True, 4096, 0.5), "gemma3": Shape(262144, 0, True, 1024, 5 / 6),
    "qwen3moe": Shape(151936, 2048, experts=128, used=8, n_ff=768), "gpt-oss": Shape(201088, 2880, False, 128, 0.5, 32, 4, 2880, 8.5),
    "olmo2": Shape(100352), "granite": Shape(49152), "stablelm": Shape(50304), "starcoder2": Shape(49152), "phi2": Shape(51200),
}  # fmt: skip


class CorpusError(Exception):
    """Every problem of a CSV file, one line each."""

    def __init__(self, problems: list[str]):
        self.problems = problems
        super().__init__("\n".join(problems))


class NotPredictable(ValueError):
    """Why a row gets no number."""


@dataclass(frozen=True)
class Case:
    """A row as the predictor takes it: its loads in turn (a mixed test has two), device and setup."""

    loads: tuple[Load, ...]
    device: Device
    setup: Setup
    assumed: tuple[str, ...]

    @property
    def kind(self) -> str:
        """decode, prefill or mixed."""
        return self.loads[0].phase if len(self.loads) == 1 else "mixed"


def read(path: Path, needed: tuple[str, ...] = INPUTS) -> Iterator[dict[str, str]]:
    """Rows of a results file in the corpus's columns.

    Raises:
        CorpusError: unreadable, not CSV, a column missing or given twice, a row of another length.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(file, strict=True)
            header = next(lines, [])
            problems = [f"{path}: {c}: column missing; got {', '.join(header[:40]) or 'an empty file'}" for c in needed if c not in header]
            problems += [f"{path}: {c}: column given twice" for c in sorted({c for c in header if header.count(c) > 1})]
            rows = []
            for line in lines:
                if len(line) == len(header):
                    rows.append(dict(zip(header, line)))
                elif line:
                    problems.append(f"{path}: line {lines.line_num}: {len(line)} fields; the header has {len(header)}")
    except (OSError, csv.Error, ValueError) as error:
        raise CorpusError([f"{path}: file: cannot be read; {getattr(error, 'strerror', None) or error}"]) from None
    if problems:
        raise CorpusError(problems)
    yield from rows


def measurements(path: Path = MEASUREMENTS) -> list[dict[str, str]]:
    """The corpus, every row checked.

    Raises:
        CorpusError: every problem of every row.
    """
    rows = list(read(path, ("id", "source_url", "machine", *INPUTS, *MEASURED)))
    problems, seen = [], set()
    for row in rows:
        where = f"{path}: {row['id'] or 'row without id'}"
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


def number(row: Mapping[str, str], column: str) -> float:
    """A positive finite number from a cell.

    Raises:
        NotPredictable: the cell is empty, no number, or not above zero.
    """
    text = row[column].strip()
    try:
        value = float(text)
    except ValueError:
        raise NotPredictable(f"{column}: {'not given' if not text else 'not a number'}; got {text[:40]!r}") from None
    if not (math.isfinite(value) and 0 < value < 1e15):
        raise NotPredictable(f"{column}: a positive number needed; got {text[:40]!r}")
    return value


def whole(row: Mapping[str, str], column: str, default: int | None = None, most: int = 10_000_000) -> int:
    """A whole number ≥ 0 from a cell; empty is the default, where there is one."""
    text = row[column].strip()
    if not text and default is not None:
        return default
    if not re.fullmatch(r"\d{1,9}", text) or int(text) > most:
        raise NotPredictable(f"{column}: a whole number up to {most} needed; got {text[:40]!r}")
    return int(text)


def case(row: Mapping[str, str]) -> Case:
    """A row as the predictor takes it.

    Raises:
        NotPredictable: the reason, naming the column.
    """
    row = {column: row[column] for column in INPUTS}
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
    model = _Model(row, assumed)
    loads = []
    if n_prompt:
        if device.flops_s is None:
            raise NotPredictable(f"fp16_tflops: not given, and no peak known for {row['chip'][:60]!r}")
        loads.append(model.prefill(n_prompt, depth, max(1, int(ubatch[1])) if ubatch else DEFAULT_UBATCH))
    if n_gen:
        loads.append(model.decode(n_gen, depth + n_prompt))
    return Case(tuple(loads), device, Setup(on, build), tuple(assumed))


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
    elif known := peak(chip):
        flops = devices.full_rate_flops_s(chip, known[1])
        assumed.append(f"compute peak: labdata/corpus/chips.csv, {known[0]}")
    return Device(backend, vendor, generation, bandwidth, flops, two_dies="Ultra" in chip and vendor == "apple")


@cache
def chips() -> dict[str, dict[str, str]]:
    """The table of chips by id."""
    return {row["id"]: row for row in read(CHIPS, ("id", "name", "mem_bandwidth_gbs", "peak_tflops", "peak_is", "peak_source"))}


def find_chip(name: str) -> str | None:
    """Id of a chip in the table by a name as people write it; None: not known, or not one chip.

    >>> find_chip("RTX 3060"), find_chip("Apple M4 Pro 20c"), find_chip("GeForce 9999")
    ('nvidia-rtx-3060', 'apple-m4-pro-20c', None)
    """
    slug = re.sub(r"[^a-z0-9]+", "-", re.sub(r"max-q", "blackwell-maxq", name.lower().replace("(cores ?)", ""))).strip("-")
    slug = re.sub(r"^(nvidia|amd|intel)-|^geforce-|radeon-(?=rx)", "", slug)
    exact = [i for i in chips() if i == slug or i.partition("-")[2] == slug]
    if exact:
        return exact[0]
    longer = [i for i in chips() if re.match(rf"(\w+-)?{re.escape(slug)}-", i)] if slug else []
    if vendor_cores := [i for i in longer if re.search(r"-\d+c$", i)]:  # Apple, cores not given: the full chip
        whole_chip = [i for i in vendor_cores if re.fullmatch(rf"{re.escape(slug)}-\d+c", i)]
        return max(whole_chip, key=lambda i: float(chips()[i]["peak_tflops"]), default=None)
    return longer[0] if len({chips()[i]["peak_tflops"] for i in longer}) == 1 else None


def peak(name: str) -> tuple[str, float] | None:
    """Id and listed peak of a chip [FLOP/s]."""
    found = find_chip(name)
    return (found, float(chips()[found]["peak_tflops"]) * 1e12) if found else None


class _Model:
    """A model from the columns: bytes and FLOPs by group."""

    def __init__(self, row: Mapping[str, str], assumed: list[str]):
        self.arch, self.quant = row["arch"].strip(), row["quant"].strip()
        if self.arch not in ARCHITECTURES:
            raise NotPredictable(f"arch: not known; got {self.arch[:40]!r}; known: {', '.join(ARCHITECTURES)}")
        self.shape = next((s for start, s in SHAPES if row["model"].startswith(start)), ARCHITECTURES[self.arch])
        self.params = number(row, "n_params_b") * 1e9
        self.n_layer, self.n_head, self.n_kv, self.head_dim = (
            int(number(row, c)) for c in ("n_layer", "n_head", "n_head_kv", "head_dim"))
        if min(self.n_layer, self.n_head, self.n_kv, self.head_dim) < 1:
            raise NotPredictable("n_layer, n_head, n_head_kv, head_dim: at least 1 needed")
        if row["kv_type"].strip() not in KV_BYTES:
            raise NotPredictable(f"kv_type: not known; got {row['kv_type'][:20]!r}; known: {', '.join(filter(None, KV_BYTES))}")
        self.kv_element_bytes = KV_BYTES[row["kv_type"].strip()]
        self.moe = row["is_moe"].strip() == "1"
        if row["model_size_gib"].strip():
            self.file_bytes = number(row, "model_size_gib") * GIB
        elif self.quant in BITS:
            self.file_bytes = self.params * BITS[self.quant] / 8
            assumed.append(f"file size: {BITS[self.quant]} bits a weight")
        else:
            raise NotPredictable(f"model_size_gib: not given, and {self.quant[:20]!r} has no usual bits a weight")
        self.bits = 8 * self.file_bytes / self.params
        self.embedding = self.shape.n_vocab * (self.shape.n_embd or self.n_head * self.head_dim)
        if self.embedding * 2 > self.params:
            raise NotPredictable(f"n_params_b: smaller than the embeddings of {self.arch}; got {row['n_params_b'][:20]!r}")
        self._groups(row)

    def _groups(self, row: Mapping[str, str]) -> None:
        """Weights read once in a step, touched by one token, and parameters of a token's matmuls."""
        s, unread = self.shape, 0 if self.shape.tied else self.embedding
        if not self.moe:
            self.step_bytes = self.all_bytes = self.file_bytes - unread * self.bits / 8
            self.body = self.params - self.embedding - unread
            return
        experts = self.n_layer * s.experts * 3 * s.n_embd * s.n_ff
        if s.experts and experts < self.params:
            rest, share = self.params - experts, s.used / s.experts
            rest_bits = s.body_bits or self.bits
            expert_bytes = self.file_bytes - rest * rest_bits / 8
            self.step_bytes = expert_bytes * share + (rest - unread) * rest_bits / 8
            self.body = rest - self.embedding - unread + experts * share
        else:  # shapes not known: the active share of everything
            rest_bits, active = self.bits, number(row, "active_params_b") * 1e9
            self.step_bytes, self.body = active * self.bits / 8, max(active - self.embedding, active / 2)
        self.all_bytes = self.file_bytes - unread * rest_bits / 8

    def _cells(self, tokens: float) -> float:
        """KV cells read over all layers, sliding windows counted."""
        seen = min(tokens, self.shape.window) if self.shape.window else tokens
        return self.n_layer * ((1 - self.shape.windowed) * tokens + self.shape.windowed * seen)

    def _load(self, phase: str, tokens: int, bytes: dict, flops: dict, passes: int) -> Load:
        return Load(phase, tokens, bytes, flops, passes, self.n_layer, self.body, self.head_dim, self.n_head / self.n_kv, self.arch,
                    self.quant, self.bits, self.moe, self.step_bytes)  # fmt: skip

    def decode(self, n_gen: int, depth: int) -> Load:
        """A mean step of tgN: the cache grows from depth to depth + N."""
        kv = self._cells(depth + (n_gen + 1) / 2) * 2 * self.n_kv * self.head_dim * self.kv_element_bytes
        return self._load("decode", 1, {"weights": self.step_bytes, "kv": kv}, {}, 1)

    def prefill(self, n: int, depth: int, ubatch: int) -> Load:
        """A whole prompt of N tokens after a depth."""
        passes = -(-n // ubatch)
        attended = (1 - self.shape.windowed) * _attended(n, depth, None) + self.shape.windowed * _attended(n, depth, self.shape.window or None)
        flops = {"matmul": 2 * self.body * n + 2 * self.embedding * passes, "attention": 4 * self.n_layer * self.n_head * self.head_dim * attended}
        return self._load("prefill", n, {"weights": self.all_bytes}, flops, passes)


def _attended(n: int, depth: int, window: int | None) -> float:
    """Σ over the prompt of the tokens each one attends to: min(depth + j, window) for j = 1..n.

    >>> _attended(3, 10, None), _attended(3, 10, 12)
    (36.0, 35.0)
    """
    if window is None or depth + n <= window:
        return n * depth + n * (n + 1) / 2
    short = max(0, min(n, window - depth))
    return short * depth + short * (short + 1) / 2 + (n - short) * float(window)
