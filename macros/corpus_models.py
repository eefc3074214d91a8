"""A model as the corpus's columns describe it: bytes and FLOPs by group, or the reason why not.

The columns say nothing of vocabulary, windows or experts; these come from the models' own
configurations, by name and else by architecture. Exact work from a file's header is `macros.work`.
Standard library only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from macros.calibrated import Load

GIB = 2**30
KV_BYTES = {"": 2.0, "f16": 2.0, "bf16": 2.0, "f32": 4.0, "q8_0": 34 / 32, "q5_1": 24 / 32, "q5_0": 22 / 32, "q4_1": 20 / 32, "q4_0": 18 / 32}
# Bits a weight by llama.cpp's label, for rows without a file size. Source: published 7B and 8B files.
BITS = {
    "F32": 32, "F16": 16, "BF16": 16, "Q8_0": 8.5, "Q6_K": 6.56, "Q5_K_M": 5.69, "Q5_K_S": 5.54, "Q5_1": 6.0, "Q5_0": 5.54,
    "Q4_K_M": 4.89, "Q4_K_S": 4.59, "Q4_1": 5.03, "Q4_0": 4.55, "IQ4_XS": 4.32, "IQ4_NL": 4.56, "MXFP4": 4.25, "Q3_K_L": 4.27,
    "Q3_K_M": 3.91, "Q3_K_S": 3.5, "Q2_K": 3.35,
}  # fmt: skip


class NotPredictable(ValueError):
    """Why a row gets no number."""


@dataclass(frozen=True)
class Config:
    """What a model's config.json says and the columns do not: vocabulary, width, windows, experts.

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
BY_NAME = (
    ("Llama-2", Config(32000)), ("TinyLlama", Config(32000)), ("Mixtral", Config(32000, 4096, experts=8, used=2, n_ff=14336)),
    ("Llama-3.2", Config(128256, tied=True)), ("Llama-3", Config(128256)), ("Mistral-Nemo", Config(131072, 5120)),
    ("Mistral-7B", Config(32768)), ("Devstral-Small", Config(131072, 5120)), ("Mistral-Small", Config(131072, 5120)),
    ("Gemma-3-1B", Config(262144, 1152, True, 512, 5 / 6)), ("Gemma-3-4B", Config(262144, 2560, True, 1024, 5 / 6)),
    ("Gemma-3-12B", Config(262144, 3840, True, 1024, 5 / 6)), ("Gemma-3-27B", Config(262144, 5376, True, 1024, 5 / 6)),
    ("Qwen2.5-0.5B", Config(151936, tied=True)), ("Qwen2.5-1.5B", Config(151936, tied=True)), ("Qwen2.5-3B", Config(151936, tied=True)),
    ("Qwen3-0.6B", Config(151936, 1024, True)), ("Qwen3-1.7B", Config(151936, 2048, True)), ("Qwen3-4B", Config(151936, 2560, True)),
    ("Qwen3-32B", Config(151936, 5120)), ("Qwen3-30B-A3B", Config(151936, 2048, experts=128, used=8, n_ff=768)),
    ("Qwen3-235B-A22B", Config(151936, 4096, experts=128, used=8, n_ff=1536)),
    ("gpt-oss-20b", Config(201088, 2880, False, 128, 0.5, 32, 4, 2880, 8.5)),
    ("gpt-oss-120b", Config(201088, 2880, False, 128, 0.5, 128, 4, 2880, 8.5)),
    ("Phi-4", Config(100352)),
)  # fmt: skip
BY_ARCHITECTURE = {
    "llama": Config(32000), "mistral3": Config(131072, 5120), "qwen2": Config(151936), "qwen3": Config(151936), "phi3": Config(32064),
    "gemma": Config(256000, tied=True), "gemma2": Config(256000, 0, True, 4096, 0.5), "gemma3": Config(262144, 0, True, 1024, 5 / 6),
    "qwen3moe": Config(151936, 2048, experts=128, used=8, n_ff=768), "gpt-oss": Config(201088, 2880, False, 128, 0.5, 32, 4, 2880, 8.5),
    "olmo2": Config(100352), "granite": Config(49152), "stablelm": Config(50304), "starcoder2": Config(49152), "phi2": Config(51200),
}  # fmt: skip


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


class Model:
    """A model from the columns: bytes and FLOPs by group."""

    def __init__(self, row: Mapping[str, str], assumed: list[str]):
        self.arch, self.quant = row["arch"].strip(), row["quant"].strip()
        if self.arch not in BY_ARCHITECTURE:
            raise NotPredictable(f"arch: not known; got {self.arch[:40]!r}; known: {', '.join(BY_ARCHITECTURE)}")
        self.config = next((s for start, s in BY_NAME if row["model"].startswith(start)), BY_ARCHITECTURE[self.arch])
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
        self.embedding = self.config.n_vocab * (self.config.n_embd or self.n_head * self.head_dim)
        if self.embedding * 2 > self.params:
            raise NotPredictable(f"n_params_b: smaller than the embeddings of {self.arch}; got {row['n_params_b'][:20]!r}")
        self._groups(row)

    def _groups(self, row: Mapping[str, str]) -> None:
        """Weights read once in a step, touched by one token, and parameters of a token's matmuls."""
        s, unread = self.config, 0 if self.config.tied else self.embedding
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

    def kv_bytes(self, tokens: float) -> float:
        """KV cache of a context of so many tokens, sliding windows counted [B]."""
        seen = min(tokens, self.config.window) if self.config.window else tokens
        cells = self.n_layer * ((1 - self.config.windowed) * tokens + self.config.windowed * seen)
        return cells * 2 * self.n_kv * self.head_dim * self.kv_element_bytes

    def _load(self, phase: str, tokens: int, bytes: dict, flops: dict, passes: int) -> Load:
        return Load(phase, tokens, bytes, flops, passes, self.n_layer, self.body, self.head_dim, self.n_head / self.n_kv, self.arch,
                    self.quant, self.bits, self.moe, self.step_bytes)  # fmt: skip

    def decode(self, n_gen: int, depth: int) -> Load:
        """A mean step of tgN: the cache grows from depth to depth + N."""
        return self._load("decode", 1, {"weights": self.step_bytes, "kv": self.kv_bytes(depth + (n_gen + 1) / 2)}, {}, 1)

    def prefill(self, n: int, depth: int, ubatch: int) -> Load:
        """A whole prompt of N tokens after a depth."""
        passes = -(-n // ubatch)
        attended = (1 - self.config.windowed) * _attended(n, depth, None) + self.config.windowed * _attended(n, depth, self.config.window or None)
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
