"""A llama.cpp model and its contexts, with the few steps llama-bench's protocol needs.

Imported by the engine's child process only: a crash here is a crash of that child.
"""

from __future__ import annotations

import ctypes
import random
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import llama_cpp
import psutil

if TYPE_CHECKING:
    from bench.engine import Job

FLASH_ATTN = {"auto": -1, "off": 0, "on": 1}  # enum llama_flash_attn_type
GGML_LOG_ERROR = 4  # enum ggml_log_level
# A ggml device is named after its backend, with a number (MTL0, CUDA1).
BACKENDS = {"MTL": "Metal"}


def installed() -> dict[str, object]:
    """What the installed library is and whether it sees a GPU."""
    llama_cpp.llama_backend_init()
    return {"python": llama_cpp.__version__, "build": llama_cpp.llama_version().decode(),
            "system": llama_cpp.llama_print_system_info().decode(), "gpu": bool(llama_cpp.llama_supports_gpu_offload())}  # fmt: skip


class Weights:
    """A loaded model, and what llama.cpp said meanwhile; contexts come and go over it."""

    def __init__(self, job: Job) -> None:
        self.path, self.n_gpu_layers = job.model_path, job.n_gpu_layers
        self.log: list[tuple[int, str]] = []
        self._callback = llama_cpp.llama_log_callback(self._on_log)
        llama_cpp.llama_log_set(self._callback, None)
        llama_cpp.llama_backend_init()

        params = llama_cpp.llama_model_default_params()
        params.n_gpu_layers = job.n_gpu_layers
        if job.n_gpu_layers == 0:
            # An empty device list. Without it a GPU build still runs prefill's large matmuls
            # on the GPU, and the CPU control would be none.
            self._no_devices = (ctypes.c_void_p * 1)(None)
            params.devices = ctypes.addressof(self._no_devices)
        self.model = llama_cpp.llama_model_load_from_file(self.path.encode(), params)
        if not self.model:
            raise RuntimeError(self.refusal("could not load the model"))
        self._loaded = len(self.log)

    def fit(self, job: Job) -> bool:
        """Whether these are the weights of a job, loaded as it asks."""
        return (self.path, self.n_gpu_layers) == (job.model_path, job.n_gpu_layers)

    def listen_anew(self) -> None:
        """Forget what was said over earlier contexts."""
        del self.log[self._loaded :]

    def close(self) -> None:
        """Free the model; its contexts are freed before."""
        llama_cpp.llama_model_free(self.model)

    def _on_log(self, level: int, text: bytes, _user_data: object) -> None:
        line = text.decode(errors="replace").strip()
        self.log.append((level, line))
        if level == GGML_LOG_ERROR:
            print(line, file=sys.stderr, flush=True)  # outlives a crash

    def refusal(self, what: str) -> str:
        """What failed, with llama.cpp's reason: the first error is the cause, the ones after it only pass it on."""
        errors = (line for level, line in self.log if level == GGML_LOG_ERROR)
        return f"{what}: {self.path}: {next(errors, 'llama.cpp gave no reason')}"


class Llama:
    """A context over a model, and one token buffer; lives in the child only."""

    def __init__(self, job: Job, weights: Weights | None = None) -> None:
        self.job = job
        self.weights = weights or Weights(job)
        self.weights.listen_anew()
        self.model = self.weights.model
        context_params = llama_cpp.llama_context_default_params()
        context_params.n_ctx = job.n_prompt + job.n_gen + job.depth
        context_params.n_batch, context_params.n_ubatch = job.n_batch, job.n_ubatch
        context_params.n_threads = context_params.n_threads_batch = job.n_threads
        context_params.type_k = getattr(llama_cpp, f"GGML_TYPE_{job.type_k.upper()}")
        context_params.type_v = getattr(llama_cpp, f"GGML_TYPE_{job.type_v.upper()}")
        context_params.flash_attn_type = FLASH_ATTN[job.flash_attn]
        context_params.offload_kqv, context_params.swa_full = True, False
        self.context = llama_cpp.llama_init_from_model(self.model, context_params)
        if not self.context:
            raise RuntimeError(self.weights.refusal("could not create the context"))

        self.memory = llama_cpp.llama_get_memory(self.context)
        vocab = llama_cpp.llama_model_get_vocab(self.model)
        self.n_vocab = llama_cpp.llama_vocab_n_tokens(vocab)
        add_bos = llama_cpp.llama_vocab_get_add_bos(vocab)
        self.bos = llama_cpp.llama_vocab_bos(vocab) if add_bos else None
        self.rng = random.Random(job.seed)

    def close(self) -> None:
        """Free the context; the model stays."""
        llama_cpp.llama_free(self.context)

    def facts(self) -> dict[str, object]:
        """How the test truly runs, from llama.cpp's own calls and log lines."""
        log = "\n".join(line for _, line in self.weights.log)
        devices = re.findall(r"using device (\S+) \((.*?)\)", log)
        offloaded = re.search(r"offloaded (\d+)/(\d+) layers to GPU", log)
        # llama.cpp counts the output head as a layer.
        n_layers = llama_cpp.llama_model_n_layer(self.model) + 1
        # A GPU build without a GPU logs "offloaded" all the same: no device, no offload.
        n_offloaded = int(offloaded[1]) if offloaded and devices else 0
        kind = devices[0][0].rstrip("0123456789") if n_offloaded else "CPU"
        # Only "auto" is logged, where llama.cpp decides.
        auto = re.search(r"Flash Attention.*(enabled|disabled)", log)
        flash_used = auto[1] == "enabled" if auto else FLASH_ATTN[self.job.flash_attn] == 1
        return {
            "backend": BACKENDS.get(kind, kind),
            "devices": [f"{name} ({description})" for name, description in devices],
            "layers_offloaded": n_offloaded,
            "layers": n_layers,
            "flash_attn_used": flash_used,
            "n_ctx": llama_cpp.llama_n_ctx(self.context),
            "n_params": llama_cpp.llama_model_n_params(self.model),
            "model_bytes": llama_cpp.llama_model_size(self.model),
            "supports_gpu_offload": bool(llama_cpp.llama_supports_gpu_offload()),
            "system_info": llama_cpp.llama_print_system_info().decode().strip(),
            "llama_cpp": llama_cpp.llama_version().decode(),
            "llama_cpp_python": llama_cpp.__version__,
        }

    def tokens(self, n: int) -> ctypes.Array:
        """`n` token ids: BOS first if the vocabulary adds one, the rest random."""
        ids = self.rng.choices(range(self.n_vocab), k=n)
        if self.bos is not None and n:
            ids[0] = self.bos
        return (ctypes.c_int32 * n)(*ids)

    def chunks(self, ids: ctypes.Array) -> list:
        """Batches of at most n_batch over `ids`; without flags, only the last token has logits."""
        size = self.job.n_batch
        parts = (ids[i : i + size] for i in range(0, len(ids), size))
        batches = []
        for part in parts:
            array = (ctypes.c_int32 * len(part))(*part)
            batches.append(llama_cpp.llama_batch_get_one(array, len(part)))
            batches[-1].ids = array  # the struct holds a bare pointer: keep what it points to
        return batches

    def prefill(self, batches: list, on_batch: Callable[[int], None] | None = None) -> None:
        """Decode the batches, then wait once for the device."""
        for batch in batches:
            self.check(llama_cpp.llama_decode(self.context, batch))
            if on_batch is not None:
                on_batch(batch.n_tokens)
        llama_cpp.llama_synchronize(self.context)

    def decode(self, ids: ctypes.Array) -> None:
        """Decode one token at a time, waiting for the device after each."""
        llama_decode, synchronize = llama_cpp.llama_decode, llama_cpp.llama_synchronize
        context, current = self.context, (ctypes.c_int32 * 1)()
        batch = llama_cpp.llama_batch_get_one(current, 1)  # reused: no allocation in the loop
        for token in ids:
            current[0] = token
            status = llama_decode(context, batch)
            if status:
                self.check(status)
            synchronize(context)

    def check(self, status: int) -> None:
        """Raise on a llama_decode that failed."""
        if status:
            raise RuntimeError(self.weights.refusal(f"llama_decode returned {status}"))

    def clear(self) -> None:
        """Forget every token; the metadata only, as llama-bench does."""
        llama_cpp.llama_memory_clear(self.memory, False)

    def save(self) -> ctypes.Array | None:
        """The sequence's state, or None where memory is too short to keep it."""
        size = llama_cpp.llama_state_seq_get_size(self.context, 0)
        if size > psutil.virtual_memory().available * 0.9:
            return None
        state = (ctypes.c_uint8 * size)()
        written = llama_cpp.llama_state_seq_get_data(self.context, state, size, 0)
        return state if written == size else None

    def restore(self, state: ctypes.Array | None) -> bool:
        """Put a saved state back; False: it has to be computed anew."""
        if state is None:
            return False
        return llama_cpp.llama_state_seq_set_data(self.context, state, len(state), 0) == len(state)
