"""MODEL=hf:owner/repo:QUANT: find the one GGUF file and fetch it through the hub's own client."""

from __future__ import annotations

import re
from pathlib import Path

from bench.plan import PlanError


def fetch(spec: str) -> Path:
    """The local path of a hub model, downloaded (with the client's progress bar) if it is not cached.

    Raises:
        PlanError: a malformed name, no or several files of that quantisation, no network.
    """
    match = re.fullmatch(r"hf:([\w.-]+/[\w.-]+):([\w.-]+)", spec)
    if not match:
        raise PlanError(f"MODEL: not a hub name; got {spec!r}; write hf:owner/repo:QUANT, such as hf:ggml-org/Qwen3-8B-GGUF:Q4_K_M")
    repo, quant = match.groups()
    import huggingface_hub as hub

    try:
        files = [f for f in hub.list_repo_files(repo) if f.lower().endswith(".gguf")]
        path = hub.hf_hub_download(repo, pick(files, quant, repo))
    except PlanError:
        raise
    except Exception as error:  # the client raises its own, httpx's and OSError's kinds
        raise PlanError(f"MODEL: {spec}: cannot be fetched; {str(error).strip().splitlines()[0][:200]}") from None
    return Path(path)


def pick(files: list[str], quant: str, repo: str) -> str:
    """The one file of a quantisation.

    Raises:
        PlanError: none, several, or one split into parts; the files there are named.

    >>> pick(["Qwen3-8B-Q4_K_M.gguf", "Qwen3-8B-Q8_0.gguf"], "q8_0", "ggml-org/Qwen3-8B-GGUF")
    'Qwen3-8B-Q8_0.gguf'
    """
    hits = [f for f in files if re.search(rf"(^|[-._/]){re.escape(quant)}(\.gguf$|-\d+-of-\d+\.gguf$)", f, re.I)]
    if len(hits) != 1:
        found = "no file" if not hits else "several files"
        shown = ", ".join(sorted(files)[:12]) or "no GGUF file"
        raise PlanError(f"MODEL: {found} of {quant} in {repo}; there: {shown}")
    return hits[0]
