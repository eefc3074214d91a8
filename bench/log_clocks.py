"""Other clocks people have: what llama-server, Ollama and LM Studio say of one answer. Pure.

None of them follows llama-bench's protocol: real prompts, sampling inside the clock, one answer and no
repetition. A prompt of an empty context is a prefill at depth 0; the answer is decoded on top of the prompt.
Sources: llama.cpp tools/server (timings), docs.ollama.com/api/usage, lmstudio.ai/docs/developer/rest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bench.log_rows import NotARow, Row, Sitting, clean, number, plain_name, when

SERVER = Sitting(
    clock="llama-server, timings of an answer", engine="llama.cpp",
    protocol="one answer: a real prompt, sampling inside the clock; the first token is timed with the prompt, so a short answer reads high")  # fmt: skip
OLLAMA = Sitting(
    clock="Ollama, durations of an answer", engine="Ollama",
    protocol="one answer: a real prompt, sampling inside the clock; loading the model is left out")  # fmt: skip
LM_STUDIO = Sitting(
    clock="LM Studio, statistics of an answer", engine="LM Studio",
    protocol="one answer: a real prompt, sampling inside the clock; the rate as LM Studio gives it, no times")  # fmt: skip


def kind(found: dict[str, Any]) -> str | None:
    """Whose answer this is, by the keys only it has; None where it is nobody's."""
    if isinstance(found.get("timings"), dict) and {"predicted_n", "prompt_n"} & found["timings"].keys():
        return "llama-server"
    if {"eval_duration", "prompt_eval_duration"} & found.keys():
        return "Ollama"
    if isinstance(found.get("stats"), dict) and "tokens_per_second" in found["stats"]:
        return "LM Studio"
    return None


def is_chunk(found: dict[str, Any]) -> bool:
    """A piece of a streamed answer, before the last one with its times."""
    return found.get("done") is False or str(found.get("object", "")).endswith(".chunk") or found.get("stop") is False


def rows(found: dict[str, Any], line: int) -> list[Row]:
    """The prefill and the decode of one answer.

    Raises:
        NotARow: no times.
    """
    which = kind(found)
    said = {"llama-server": _server, "Ollama": _ollama, "LM Studio": _lm_studio}[str(which)](found)
    model = found.get("model") or found.get("model_instance_id") or (found.get("generation_settings") or {}).get("model") or ""
    if not said:
        raise NotARow(f"{which}: no count of tokens with a time above 0")
    common = {"line": line, "model": plain_name(str(model)), "tested_at": when(found.get("created_at", found.get("created")))}
    return [Row(**common, **row) for row in said]


def _whole(value: Any) -> int:
    found = number(value)
    return int(found) if found and 0 < found < 1e9 and found == int(found) else 0


def _timed(n: int, ns: float | None) -> dict[str, Any] | None:
    """A count and a time [ns], where both are there; a count's one time is its one sample."""
    return {"samples_ns": (max(1, round(ns)),)} if n and ns and 0 < ns < 1e18 else None


def _server(found: dict[str, Any]) -> list[dict[str, Any]]:
    t = found["timings"]
    cached, prompt, answer = (_whole(t.get(k)) for k in ("cache_n", "prompt_n", "predicted_n"))
    fingerprint = clean(str(found.get("system_fingerprint") or ""))[:40] or None
    common: dict[str, Any] = {"sitting": replace(SERVER, build=fingerprint)}
    drafted = _whole(t.get("draft_n"))
    if drafted:  # the rate is then not that of one step a token
        common["settings"] = {"draft_n": str(drafted), "draft_n_accepted": str(_whole(t.get("draft_n_accepted")))}
    parts = []
    if timed := _timed(prompt, (number(t.get("prompt_ms")) or 0) * 1e6):
        parts.append({**common, **timed, "n_prompt": prompt, "n_gen": 0, "depth": cached})
    if answer > 1 and (timed := _timed(answer, (number(t.get("predicted_ms")) or 0) * 1e6)):
        parts.append({**common, **timed, "n_prompt": 0, "n_gen": answer, "depth": cached + prompt})
    return parts


def _ollama(found: dict[str, Any]) -> list[dict[str, Any]]:
    everything, cached, answer = (_whole(found.get(k)) for k in ("prompt_eval_count", "prompt_eval_cached_count", "eval_count"))
    prompt = max(0, everything - cached)
    parts = []
    if timed := _timed(prompt, number(found.get("prompt_eval_duration"))):
        parts.append({"sitting": OLLAMA, **timed, "n_prompt": prompt, "n_gen": 0, "depth": cached})
    if timed := _timed(answer, number(found.get("eval_duration"))):
        parts.append({"sitting": OLLAMA, **timed, "n_prompt": 0, "n_gen": answer, "depth": everything})
    return parts


def _lm_studio(found: dict[str, Any]) -> list[dict[str, Any]]:
    stats, usage, about = found["stats"], found.get("usage") or {}, found.get("model_info") or {}
    runtime = found.get("runtime") or {}
    answer = _whole(usage.get("completion_tokens")) or _whole(stats.get("total_output_tokens"))
    prompt = _whole(usage.get("prompt_tokens")) or _whole(stats.get("input_tokens"))
    rate = number(stats.get("tokens_per_second"))
    if not answer or not rate or not 0 < rate < 1e9:
        return []
    told = {"time_to_first_token": stats.get("time_to_first_token", stats.get("time_to_first_token_seconds")), "generation_time": stats.get("generation_time")}
    settings = {f"{key} [s]": f"{n:g}" for key, value in told.items() if (n := number(value)) is not None}
    build = clean(" ".join(str(runtime[k]) for k in ("name", "version") if runtime.get(k)))[:80] or None
    return [{"sitting": replace(LM_STUDIO, build=build), "n_prompt": 0, "n_gen": answer, "depth": prompt, "mean_tok_s": rate,
             "quant": clean(str(about.get("quant") or ""))[:40] or None, "settings": settings}]  # fmt: skip
