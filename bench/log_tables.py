"""llama-bench's markdown, csv and sql, as printed or as pasted: lines in, rows out. Pure."""

from __future__ import annotations

import csv
import re
from dataclasses import replace

from bench import log_text
from bench.gpu_parse import Gpu
from bench.log_rows import UNNAMED, Amount, NotARow, Row, from_fields

# Markdown's short column names, as llama-bench's own field names.
COLUMNS = {
    "model": "model_type", "size": "model_size", "params": "model_n_params", "backend": "backends", "ngl": "n_gpu_layers",
    "threads": "n_threads", "fa": "flash_attn", "sm": "split_mode", "mg": "main_gpu", "nkvo": "no_kv_offload", "ts": "tensor_split",
    "mmap": "use_mmap", "dio": "use_direct_io", "embd": "embeddings", "ot": "tensor_buft_overrides", "dev": "devices",
    "ncmoe": "n_cpu_moe", "nopo": "no_op_offload", "noh": "no_host", "fitt": "fit_target", "fitc": "fit_min_ctx",
    "mmq": "mul_mat_q", "lm": "load_mode",
}  # fmt: skip
MAX_ROW = 5000  # characters of a table's row; the widest of forks are 300
RATE_NAMES = ("t/s", "tok/s", "tokens/s")
TEST = re.compile(r"(?:pp\s*(\d{1,9}))?(?:\s*\+\s*(?=tg))?(?:tg\s*(\d{1,9}))?(?:\s*@\s*d\s*(\d{1,9}))?", re.I)
# ± as it arrives: right, read as Latin-1 or as a DOS code page, lost, or typed.
PLUS_MINUS = r"(?:Â?±|┬▒|\ufffd+|\+\s*/?\s*-)"
RATE = re.compile(rf"(\d{{1,15}}(?:\.\d{{1,15}})?)(?:\s*{PLUS_MINUS}\s*(\d{{1,15}}(?:\.\d{{1,15}})?|-?nan(?:\(ind\))?))?", re.I)
SIZE = re.compile(r"(\d{1,15}(?:\.(\d{1,9}))?)\s*(GiB|MiB|KiB|GB|MB|B)")
PARAMS = re.compile(r"(\d{1,15}(?:\.(\d{1,9}))?)\s*([BMK])")
BACKEND = re.compile(r"(?:CUDA|ROCm|HIP|Vulkan|Metal|SYCL|OpenCL|Kompute|CANN|MUSA|CPU|BLAS|RPC|WebGPU|Hexagon|zDNN)(?:,\w+)*", re.I)
DEVICES = re.compile(r"[A-Za-z]+\d+(?:/[A-Za-z]+\d+)*")
RULE = re.compile(r":?-+:?|=+")
BUILD = re.compile(r"[\W_]*build:\W*([0-9a-f]{6,40})\s*\((\d+)\)", re.I)
DEVICE_LINES = (
    re.compile(r"^\s*Device \d+: (?P<name>[^,]+),.*?(?:VRAM: (?P<mib>\d+) MiB.*)?$"),  # CUDA and ROCm
    re.compile(r"^ggml_vulkan: \d+ = (?P<name>.+?)(?: \([^()]*\))? \|"),  # the last bracket is the driver
    re.compile(r"^ggml_metal(?:_device)?_init: GPU name:\s+(?P<name>Apple .+?)\s*$"),
)
INSERT = re.compile(r"INSERT\s+INTO\s+\S+\s*\(([^()]*)\)\s*VALUES\s*\(((?:'(?:[^']|'')*+'|[^'()])*+)\)\s*;?\s*$", re.I)
SQL_VALUE = re.compile(r"\s*(?:'((?:[^']|'')*+)'|([^,']*))\s*(?:,|$)")


def device(line: str) -> Gpu | None:
    """The GPU a line of ggml's start-up names.

    >>> device("  Device 0: NVIDIA GeForce RTX 4090, compute capability 8.9, VMM: yes").name
    'NVIDIA GeForce RTX 4090'
    """
    for pattern in DEVICE_LINES if "Device" in line or "ggml_" in line else ():
        if found := pattern.match(line):
            memory = found.groupdict().get("mib")
            return Gpu(found["name"].strip(), int(memory) * 2**20 if memory else None)
    return None


def build(line: str) -> str | None:
    """The build a table's footer names.

    >>> build("build: 0253fb21f (9187)")
    'build 9187 (0253fb21f)'
    """
    found = BUILD.match(line) if "uild:" in line else None
    return f"build {found[2]} ({found[1]})" if found else None


def is_row(line: str) -> bool:
    """Whether a line is part of a markdown table rather than prose with a pipe in it."""
    if "|" not in line or len(line) > MAX_ROW:
        return False
    parts = log_text.cells(line) if not line.lstrip().startswith("|") else []
    return not parts or len(parts) > 1 and (is_header(parts) or is_rule(parts) or ends(parts) is not None)


def is_header(parts: list[str]) -> bool:
    """Whether cells are llama-bench's header: a model and a rate."""
    low = [p.lower() for p in parts]
    return "model" in low and any(n in low for n in RATE_NAMES)


def is_rule(parts: list[str]) -> bool:
    """Whether cells are the line under a header."""
    return all(RULE.fullmatch(p) for p in parts if p) and any(parts)


def ends(parts: list[str]) -> int | None:
    """Where a row without a header has its test, the rate beside it; None where it has none."""
    for i in range(len(parts) - 1):
        if parts[i] and TEST.fullmatch(parts[i]) and RATE.fullmatch(parts[i + 1]):
            return i
    return None


def markdown_row(parts: list[str], header: list[str] | None, line: int, part: int) -> Row:
    """One row of a table.

    Raises:
        NotARow: cut short, no test, no rate, or a number that is none.
    """
    fields: dict[str, object] = {}
    if header is None:
        at = ends(parts)
        if at is None:
            raise NotARow("neither a test nor a rate in it, and no header above")
        named, test, rate = _unnamed(parts[:at]), parts[at], parts[at + 1]
        if parts[at + 2 :] and any(parts[at + 2 :]):
            named[f"{UNNAMED}, after"] = ", ".join(parts[at + 2 :])
    else:
        if len(parts) < len(header):
            raise NotARow(f"cut short: {len(parts)} of {len(header)} cells" if any(parts[1:]) or len(parts) == 1 else "neither a test nor a rate in it")
        low = [h.lower() for h in header]
        if sum(h in RATE_NAMES for h in low) > 1:
            raise NotARow("more than one column of rates: whose is which is not told")
        rate_at = next(i for i, h in enumerate(low) if h in RATE_NAMES)
        named = {COLUMNS.get(h, h): p for h, p in zip(low, parts, strict=False) if h not in ("test", *RATE_NAMES)}
        test, rate = parts[low.index("test")] if "test" in low else "", parts[rate_at]
        if not test and not rate:
            raise NotARow("neither a test nor a rate in it")
        if len(parts) > len(header):
            raise NotARow(f"{len(parts)} cells under a header of {len(header)}")
    fields |= {k: v for k, v in named.items() if v}
    fields |= _test(test) | _rate(rate)
    unread = []
    for key, pattern, scale in (("model_size", SIZE, None), ("model_n_params", PARAMS, {"B": 1e9, "M": 1e6, "K": 1e3})):
        if key in fields:
            text = str(fields[key])
            fields[key] = _printed(text, pattern, scale)
            unread += [f"{key}: not understood; got {text[:40]!r}"] if fields[key] is None else []
    row = from_fields(fields, line, part)
    return replace(row, notes=(*row.notes, *unread)) if unread else row


def _unnamed(parts: list[str]) -> dict[str, str]:
    """Cells of a headerless row by what they can only be; the rest together, not guessed at."""
    found: dict[str, str] = {"model_type": parts[0]} if parts else {}
    rest = []
    for cell in parts[1:]:
        for key, pattern in (("model_size", SIZE), ("model_n_params", PARAMS), ("backends", BACKEND), ("devices", DEVICES)):
            if key not in found and pattern.fullmatch(cell):
                found[key] = cell
                break
        else:
            rest.append(cell)
    return found | ({UNNAMED: ", ".join(rest)} if any(rest) else {})


def _test(text: str) -> dict[str, int]:
    found = TEST.fullmatch(text.strip())
    if not found or not (found[1] or found[2]):
        raise NotARow(f"test: not pp<N>, tg<N> or both; got {text[:40]!r}")
    return {"n_prompt": int(found[1] or 0), "n_gen": int(found[2] or 0), "n_depth": int(found[3] or 0)}


def _rate(text: str) -> dict[str, float | None]:
    found = RATE.fullmatch(text.strip())
    if not found:
        raise NotARow(f"t/s: not a rate; got {text[:40]!r}" if text else "t/s: empty")
    sigma = found[2]
    return {"avg_ts": float(found[1]), "stddev_ts": float(sigma) if sigma and "nan" not in sigma.lower() else None}


def _printed(text: str, pattern: re.Pattern[str], scale: dict[str, float] | None) -> Amount | None:
    """A printed amount; GiB stays GiB. None where the cell holds something else ("?")."""
    found = pattern.fullmatch(text)
    if not found or not float(found[1]):
        return None
    unit = "params" if scale else found[3]
    value = round(float(found[1]) * scale[found[3]]) if scale else float(found[1])
    amount = Amount(value, unit)
    last_digit = 10.0 ** -len(found[2] or "") * (scale[found[3]] if scale else amount.si / value)
    return replace(amount, slack=last_digit / 2)


def is_csv_header(line: str) -> bool:
    """Whether a line heads llama-bench's csv."""
    if "n_gen" not in line:
        return False
    names = {c.strip().strip('"') for c in line.split(",")}
    return {"n_prompt", "n_gen"} <= names and bool(names & {"model_type", "model_filename"})


def csv_cells(line: str) -> list[str]:
    """One line of csv.

    Raises:
        NotARow: not csv.
    """
    try:
        return [c.strip() for c in next(csv.reader([line], strict=True), [])]
    except csv.Error as error:
        raise NotARow(f"cut short or not csv; {error}") from None


def csv_row(line: str, header: list[str], number: int) -> Row:
    """One test of csv.

    Raises:
        NotARow: cut short, or not a test.
    """
    parts = csv_cells(line)
    if line.endswith(","):  # every value is quoted, an empty one too
        parts.pop()
    if len(parts) != len(header):
        raise NotARow(f"cut short: {len(parts)} of {len(header)} cells" if len(parts) < len(header) else f"{len(parts)} cells under a header of {len(header)}")
    return from_fields(dict(zip(header, parts, strict=True)), number)


def sql_row(line: str, number: int) -> Row:
    """One test of sql: an INSERT statement on one line, as llama-bench writes it.

    Raises:
        NotARow: cut short, or not a test.
    """
    found = INSERT.match(line.strip())
    if not found:
        raise NotARow("INSERT cut short, or not as llama-bench writes it")
    names = [n.strip(' "`') for n in found[1].split(",")]
    values = [None if bare.strip().upper() == "NULL" else (quoted or bare).replace("''", "'")
              for quoted, bare in SQL_VALUE.findall(found[2])][: len(names)]  # fmt: skip
    if len(values) != len(names):
        raise NotARow(f"{len(values)} values for {len(names)} columns")
    return from_fields(dict(zip(names, values, strict=True)), number)
