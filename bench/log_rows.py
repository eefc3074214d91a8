"""A test as somebody's log tells it: plain values out of llama-bench's fields of any year; nothing is recorded here.

Pure: fields in, a `Row` out, or the reason why there is none.
"""

from __future__ import annotations

import math
import re
import statistics
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from bench.gpu_parse import Gpu
from macros import units


class NotARow(Exception):
    """Why something that looked like a test is not one."""


@dataclass(frozen=True)
class Amount:
    """A size or a parameter count as printed: its unit kept, and half its last digit as slack [base unit]."""

    value: float
    unit: str
    slack: float = 0.0

    @property
    def si(self) -> float:
        """In the base unit (B, params)."""
        return units.to_si(self.value, self.unit)


@dataclass(frozen=True)
class Sitting:
    """What the tests of one invocation share.

    Args:
        part: which table of the log; 0 for records, which name their build and machine themselves
        foreign: columns that llama.cpp's llama-bench does not have
    """

    part: int = 0
    clock: str = "llama-bench"
    protocol: str = "llama-bench"
    engine: str = "llama.cpp"
    build: str | None = None
    cpu: str | None = None
    gpus: tuple[Gpu, ...] = ()
    foreign: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """One test: what was run and what came out; None is "the log does not say"."""

    line: int
    model: str
    n_prompt: int
    n_gen: int
    depth: int = 0
    samples_ns: tuple[int, ...] | None = None
    mean_tok_s: float | None = None
    sigma_tok_s: float | None = None
    size: Amount | None = None
    params: Amount | None = None
    quant: str | None = None
    file: str | None = None  # the model's file, without its folders
    backend: str | None = None
    n_gpu_layers: int | None = None
    n_threads: int | None = None
    n_batch: int | None = None
    n_ubatch: int | None = None
    type_k: str | None = None
    type_v: str | None = None
    flash_attn: str | None = None
    settings: dict[str, str] = field(default_factory=dict)
    tested_at: datetime | None = None
    notes: tuple[str, ...] = ()
    sitting: Sitting = Sitting()


@dataclass(frozen=True)
class Skipped:
    """A line (or more) that looked like a test and was not taken."""

    line: int
    why: str


@dataclass
class Read:
    """All a log held.

    Args:
        formats: how many tests came as what ("markdown", "json", ...)
        other_lines: lines of text around the tests
    """

    rows: list[Row] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    formats: dict[str, int] = field(default_factory=dict)
    other_lines: int = 0

    def take(self, kind: str, rows: list[Row]) -> None:
        """Keep some rows and count where they came from."""
        self.rows += rows
        self.formats[kind] = self.formats.get(kind, 0) + len(rows)


# Settings a record need not repeat, as llama-bench writes them by default (csv and sql write them as text).
DEFAULTS: dict[str, tuple[str, ...]] = {
    "cpu_mask": ("0x0",), "cpu_strict": ("0",), "poll": ("50",), "split_mode": ("layer",), "main_gpu": ("0",),
    "no_kv_offload": ("0",), "devices": ("auto", ""), "tensor_split": ("0.00", "0", ""), "tensor_buft_overrides": ("none", ""),
    "use_mmap": ("1",), "use_direct_io": ("0",), "embeddings": ("0",), "no_op_offload": ("0",), "no_host": ("0",),
    "n_cpu_moe": ("0",), "fit_target": ("0",), "fit_min_ctx": ("0",), "mul_mat_q": ("1",), "low_vram": ("0",),
    "numa": ("0", "disabled"), "repack": ("1",), "load_mode": ("mmap",), "lazy_mode": ("0",), "prio": ("0",), "delay": ("0",),
}  # fmt: skip
# What became a field of its own in `Row` or `Sitting`, or is derived from one that did.
MAPPED = {
    "build_commit", "build_number", "cpu_info", "gpu_info", "backends", "backend", "model_filename", "model_type", "model_size",
    "model_n_params", "n_batch", "n_ubatch", "n_threads", "type_k", "type_v", "n_gpu_layers", "flash_attn", "n_prompt", "n_gen",
    "n_depth", "test_time", "avg_ns", "stddev_ns", "avg_ts", "stddev_ts", "samples_ns", "samples_ts", "f16_kv", "cuda", "opencl",
    "vulkan", "kompute", "metal", "sycl", "rpc", "gpu_blas", "blas", "rpc_servers",
}  # fmt: skip
# The build flags that named the backend before `backends` did, in llama-bench's own order.
FLAGS = {"cuda": "CUDA", "opencl": "OpenCL", "vulkan": "Vulkan", "kompute": "Kompute", "metal": "Metal", "sycl": "SYCL",
         "gpu_blas": "GPU BLAS", "blas": "BLAS"}  # fmt: skip
UNNAMED = "columns without a name"  # of a table pasted without its header
PATH = re.compile(r"(?:^|[\s\"'=,])(?:~?/|[A-Za-z]:\\)[^/\\\s]+[/\\]|\b(?:home|Users)[/\\]")
AGREE = 1e-3  # of samples_ts, which llama-bench prints with six digits, with samples_ns
TOP = 10**12  # no count of a log is larger


def from_fields(fields: dict[str, Any], line: int, part: int = 0) -> Row:
    """A test from llama-bench's own fields (json, jsonl, csv, sql; markdown once its columns are named so).

    Statistics are left to whoever has the samples: `mean_tok_s` is kept only where there are none.

    Raises:
        NotARow: a required field is missing or not what it should be.
    """
    name = _text(fields.get("model_type")) or bare_name(_text(fields.get("model_filename")))
    if not name:
        raise NotARow("no model (model_type)")
    n_prompt, n_gen = (_count(fields, key, 0) or 0 for key in ("n_prompt", "n_gen"))
    if not n_prompt and not n_gen:
        raise NotARow("neither n_prompt nor n_gen is above 0")
    n_tokens = n_prompt + n_gen
    samples, notes = _samples(fields, n_tokens)
    mean, sigma = (None, None) if samples else _statistics(fields, n_tokens)
    settings, foreign, hidden = _settings(fields)
    flash, moment = _flash(fields.get("flash_attn")), when(fields.get("test_time"))
    for key, understood in (("flash_attn", flash), ("test_time", moment)):
        if understood is None and (text := _text(fields.get(key))):
            notes.append(f"{key}: not understood; got {text[:40]!r}")
    return Row(
        line=line, model=plain_name(name), file=bare_name(_text(fields.get("model_filename"))) or None, n_prompt=n_prompt, n_gen=n_gen, depth=_count(fields, "n_depth", 0) or 0,
        samples_ns=samples, mean_tok_s=mean, sigma_tok_s=sigma,
        size=_amount(fields, "model_size", "B"), params=_amount(fields, "model_n_params", "params"), backend=_backend(fields),
        n_gpu_layers=_count(fields, "n_gpu_layers", -2), n_threads=_count(fields, "n_threads", 1), n_batch=_count(fields, "n_batch", 1),
        n_ubatch=_count(fields, "n_ubatch", 1), type_k=_cache(fields, "type_k"), type_v=_cache(fields, "type_v"),
        flash_attn=flash, settings=settings, tested_at=moment,
        notes=(*notes, *(f"{key} holds a path, which stays in the raw text" for key in hidden)),
        sitting=Sitting(part=part, build=_build(fields), cpu=_text(fields.get("cpu_info")) or None,
                        gpus=tuple(Gpu(g) for g in _text(fields.get("gpu_info")).split(", ") if g), foreign=foreign))  # fmt: skip


def bare_name(path: str) -> str:
    """A model file's name without its folders and its ending.

    >>> bare_name("/home/someone/models/Qwen3-8B-Q4_K_M.gguf"), bare_name("gemma3:4b")
    ('Qwen3-8B-Q4_K_M', 'gemma3:4b')
    """
    return re.split(r"[/\\]", path)[-1].removesuffix(".gguf")


def plain_name(name: str) -> str:
    """llama.cpp's description of a model, the same for every year ("mostly" was dropped in 2023).

    >>> plain_name("llama 7B mostly Q4_0")
    'llama 7B Q4_0'
    """
    name = clean(name)
    return " ".join((bare_name(name) if PATH.search(name) or name.endswith(".gguf") else name).replace(" mostly ", " ").split())[:200]


def clean(text: str) -> str:
    r"""A name out of a log, fit for a record: no control characters, no half surrogates.

    >>> clean("llama\x1b 7B\ud800")
    'llama  7B'
    """
    return (text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)).strip()


def when(value: Any) -> datetime | None:
    """A moment from ISO text with a zone, or from Unix seconds; None where it is neither."""
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        # Ollama writes nanoseconds, which fromisoformat of Python 3.11 cuts itself
        moment = datetime.fromisoformat(_text(value))
    except (ValueError, OverflowError, OSError):
        return None
    return moment.astimezone(UTC).replace(microsecond=0) if moment.tzinfo else None


def number(value: Any) -> float | None:
    """A finite number, from a number or its text; None for anything else."""
    try:
        found = float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def _text(value: Any) -> str:
    """A scalar as text, true and false as llama-bench's older formats wrote them."""
    if isinstance(value, bool):
        return str(int(value))
    return clean(str(value)) if isinstance(value, (str, int, float)) else ""


def _count(fields: dict[str, Any], key: str, low: int) -> int | None:
    """A whole number of at least `low`; None where the log is silent."""
    given = fields.get(key)
    if type(given) is int and low <= given <= TOP:  # what json holds; csv, sql and markdown hold text
        return given
    text = _text(given)
    if not text:
        return None
    found = re.fullmatch(r"(-?\d{1,15})(?:\.0+)?(?:\s*\(.*\))?", text)  # "6 (Default)": somebody's remark
    if not found or not low <= int(found[1]) <= TOP:
        raise NotARow(f"{key}: not a whole number from {low}; got {text[:40]!r}")
    return int(found[1])


def _amount(fields: dict[str, Any], key: str, unit: str) -> Amount | None:
    given = fields.get(key)
    if given is None or isinstance(given, Amount):
        return given
    found = _count(fields, key, 0)
    return Amount(found, unit) if found else None


def _samples(fields: dict[str, Any], n_tokens: int) -> tuple[tuple[int, ...] | None, list[str]]:
    """The repetitions' wall times [ns], and what a reader should know of them."""
    times, rates = ([number(x) for x in v] if isinstance(v := fields.get(key), list) and v else None for key in ("samples_ns", "samples_ts"))
    for key, found in (("samples_ns", times), ("samples_ts", rates)):
        if found and not all(x is not None and 0 < x < 1e18 for x in found):
            raise NotARow(f"{key}: not all of them are numbers above 0")
    notes: list[str] = []
    if times is None:
        if rates is None:
            return None, notes
        times, notes = [n_tokens / x * 1e9 for x in rates], ["wall times computed back from samples_ts, as samples_ns is not there"]  # type: ignore[operator]
    elif rates is not None:
        pairs = list(zip(times, rates, strict=False))
        if len(times) != len(rates) or any(abs(n_tokens / (ns / 1e9) / ts - 1) > AGREE for ns, ts in pairs):  # type: ignore[operator]
            raise NotARow("samples_ns and samples_ts contradict each other")
    own = number(fields.get("avg_ts"))
    mean = statistics.fmean(n_tokens / (ns / 1e9) for ns in times)  # type: ignore[operator]
    if own and abs(own / mean - 1) > AGREE:
        notes.append(f"the log's own mean, {own:g} tok/s, is not that of its samples, {mean:.6g}; the samples count")
    return tuple(max(1, round(ns)) for ns in times), notes  # type: ignore[arg-type]


def _statistics(fields: dict[str, Any], n_tokens: int) -> tuple[float, float | None]:
    """Mean and sigma [tok/s] where no samples were kept.

    A sigma of 0 is what llama-bench prints for one repetition, or for noise below its digits: not known.
    """
    mean, sigma = number(fields.get("avg_ts")), number(fields.get("stddev_ts"))
    if mean is None and (ns := number(fields.get("avg_ns"))):
        mean = n_tokens / (ns / 1e9)
    if mean is None or not 0 < mean < TOP:
        raise NotARow("no rate: neither samples nor avg_ts above 0")
    return mean, sigma if sigma and 0 < sigma < TOP else None


def _settings(fields: dict[str, Any]) -> tuple[dict[str, str], tuple[str, ...], list[str]]:
    """(settings that are not llama-bench's defaults, columns it does not have, keys left out because they hold a path)."""
    kept, foreign, hidden = {}, [], []
    for key, value in fields.items():
        if key in MAPPED or value is None:
            continue
        text = _text(value) if not isinstance(value, (list, dict)) else "[…]"
        name = " ".join(clean(key).split())[:40]
        if key not in DEFAULTS and not key.startswith(UNNAMED):
            foreign.append(name)
        if ("/" in text or "\\" in text) and PATH.search(text):
            hidden.append(name)
        elif text and text not in DEFAULTS.get(key, ()):
            kept[name] = text[:80]
    return kept, tuple(foreign), hidden


def _build(fields: dict[str, Any]) -> str | None:
    commit, n = _text(fields.get("build_commit")), _text(fields.get("build_number"))
    known = [x for x in (commit, n) if x and x not in ("unknown", "0")]
    return f"build {n} ({commit})" if len(known) == 2 else f"build {known[0]}" if known else None


def _backend(fields: dict[str, Any]) -> str | None:
    told = _text(fields.get("backends")) or _text(fields.get("backend"))
    if told or not any(flag in fields for flag in FLAGS):
        return told or None
    named = [word for flag, word in FLAGS.items() if _text(fields.get(flag)).lower() in ("1", "true")]
    # HIP builds set the CUDA flag too; the card's name tells
    amd = re.search(r"\b(amd|radeon|instinct)\b", _text(fields.get("gpu_info")), re.I)
    return ("ROCm" if named[0] == "CUDA" and amd else named[0]) if named else "CPU"


def _cache(fields: dict[str, Any], key: str) -> str | None:
    told = _text(fields.get(key))
    old = _text(fields.get("f16_kv")).lower()  # 2023: one flag for both
    return told or ({"1": "f16", "true": "f16", "0": "f32", "false": "f32"}.get(old))


def _flash(value: Any) -> str | None:
    return {"1": "on", "true": "on", "on": "on", "0": "off", "false": "off", "off": "off", "-1": "auto", "auto": "auto"}.get(_text(value).lower())
