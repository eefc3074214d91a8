"""Layouts, caches, states and cells read, against llama.cpp itself.

Each small model is written as its layout says, with weights of zero, and loaded by the engine:
it refuses a tensor too many, too few or of another shape, logs what it sets aside, and shows in
its graph how many cells attention reads at a depth. Run in a child, so that a crash is one test's.
"""

from __future__ import annotations

import ctypes
import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from test_gguf_sources import gguf_bytes  # noqa: E402

from macros import memory, work  # noqa: E402
from macros.gguf_header import read_header  # noqa: E402
from macros.layouts import LAYOUTS  # noqa: E402
from macros.recipes import recipe  # noqa: E402
from macros.shapes import Shape  # noqa: E402

N_CTX, N_CTX_WIDE, DEPTH, MIB = 1280, 10240, 1100, 2**20
BASE = {"n_layer": 8, "n_embd": 256, "n_ff": 512, "n_vocab": 512, "n_head": 8, "n_head_kv": 2, "head_dim": 64, "tied": False}
MOE = {"n_expert": 8, "n_expert_used": 2, "n_ff_exp": 128}
SHARED = {**MOE, "n_ff_shared": 128}
MAMBA2 = {"ssm_conv": 4, "ssm_inner": 512, "ssm_state": 64, "ssm_groups": 2, "ssm_heads": 8}
DELTA = {**MAMBA2, "ssm_groups": 4}
NO_HEADS = {"n_head": 0, "n_head_kv": 0, "head_dim": 0, "n_ff": 0}
LATENT = {"n_head": 4, "q_lora_rank": 64, "kv_lora_rank": 64, "rope_dim": 32, "n_layer_dense": 1, **SHARED}


@dataclass(frozen=True)
class Case:
    shape: Shape
    extra: dict = field(default_factory=dict)  # keys the engine wants and the work does not need


def case(arch: str, extra: dict | None = None, **dims: object) -> Case:
    return Case(Shape(arch=arch, **{**BASE, **dims}), extra or {})  # type: ignore[arg-type]


SECTIONS = {"rope.dimension_sections": [11, 11, 10, 0]}
CASES = {
    "gqa": case("llama"),
    "mha": case("llama", n_head_kv=8),
    "mqa, tied": case("llama", n_head_kv=1, tied=True),
    "a window llama.cpp ignores": case("llama", window=512),
    "mixtral": case("llama", n_expert=8, n_expert_used=2),
    "heads a layer": case("deci", n_head=(8, 8, 0, 8, 8, 0, 8, 8), n_head_kv=(2, 2, 0, 0, 2, 0, 2, 2), n_ff=(512, 0, 512, 512, 512, 512, 0, 512)),
    "qwen2": case("qwen2", head_dim=32),
    "qwen3": case("qwen3"),
    "qwen3moe": case("qwen3moe", **MOE),
    "mistral3": case("mistral3"),
    "gemma": case("gemma", tied=True),
    "gemma2": case("gemma2", tied=True, window=512),
    "gemma3": case("gemma3", n_layer=12, tied=True, window=512),
    "phi3": case("phi3", n_head=4, n_head_kv=4, window=512),
    "gpt-oss": case("gpt-oss", window=128, **MOE),
    "glm4": case("glm4"),
    "glm4moe": case("glm4moe", n_layer_dense=1, **SHARED),
    "glm4moe without its draft layer": case("glm4moe", n_layer=9, n_layer_nextn=1, n_layer_dense=1, **SHARED),
    "granite": case("granite", {"logit_scale": 1.0}),
    "granitemoe": case("granitemoe", {"logit_scale": 1.0}, n_ff=128, n_ff_shared=64, n_expert=8, n_expert_used=2),
    "mla, split": case("deepseek2", n_head_kv=1, head_dim=96, head_dim_v=64, head_dim_mla=64, head_dim_v_mla=32, **LATENT),
    "mla, whole": case("deepseek2", n_head_kv=4, head_dim=64, head_dim_v=32, **LATENT),
    "llama4": case("llama4", **SHARED),
    "llama4, every other layer": case("llama4", expert_step=2, **SHARED),
    "mamba": case("mamba", ssm_conv=4, ssm_inner=512, ssm_state=16, ssm_heads=16, **NO_HEADS),
    "mamba2": case("mamba2", **MAMBA2, **NO_HEADS),
    "qwen3next": case("qwen3next", **SHARED, **DELTA),
    "qwen35": case("qwen35", SECTIONS, **DELTA),
    "qwen35moe": case("qwen35moe", SECTIONS, n_ff=0, **SHARED, **DELTA),
    "granitehybrid": case("granitehybrid", n_head_kv=(0, 0, 2, 0, 0, 0, 2, 0), **MAMBA2),
    "granitehybrid, experts": case("granitehybrid", n_head_kv=(0, 0, 2, 0, 0, 0, 2, 0), n_ff=128, n_ff_shared=64, n_expert=8, n_expert_used=2, **MAMBA2),
    "nemotron_h": case("nemotron_h", n_head_kv=(0, 0, 2, 0, 0, 0, 2, 0), n_ff=(0, 512, 0, 0, 512, 0, 0, 512), **MAMBA2),
    "falcon-h1": case("falcon-h1", **MAMBA2),
    "lfm2": case("lfm2", n_head=4, n_head_kv=(0, 0, 2, 0, 0, 2, 0, 0), shortconv=3),
    "lfm2moe": case("lfm2moe", {"expert_gating_func": 2}, n_head=4, n_head_kv=(0, 0, 2, 0, 0, 2, 0, 0), shortconv=3, n_layer_dense=1, **MOE),
    "cohere2": case("cohere2", {"logit_scale": 1.0}, tied=True, n_head=4, window=512),
    "olmo2": case("olmo2", n_head=4),
    "olmo2, windows": case("olmo2", n_head=4, window=512),
    "exaone4": case("exaone4", n_head=4),
    "exaone4, 64 layers": case("exaone4", n_head=4, n_layer=64, n_ff=64, window=512),
    "smallthinker": case("smallthinker", {"expert_gating_func": 2}, window=4096, **MOE),
    "jamba": case("jamba", n_head=4, n_head_kv=(0, 0, 0, 2, 0, 0, 0, 2), ssm_conv=4, ssm_inner=512, ssm_state=16, ssm_heads=16),
    "gemma3n": case("gemma3n", n_layer=30, tied=True, n_ff=64, window=512, n_embd_per_layer=256, n_layer_shared_kv=10),
    "gemma4": case("gemma4", {"rope.dimension_count_swa": 64}, tied=True, n_layer=8, window=512, head_dim=128, head_dim_swa=64, n_embd_per_layer=64, n_layer_shared_kv=3,
                   window_layers=(True, True, False, True, False, True, True, False)),
    "dots1": case("dots1", {"expert_gating_func": 2}, n_head_kv=8, n_layer_dense=1, **SHARED),
    "hunyuan-moe": case("hunyuan-moe", n_ff=128, **SHARED),
    "minimax-m2": case("minimax-m2", {"expert_gating_func": 2}, n_ff=128, **MOE),
    "seed_oss": case("seed_oss"),
    "smollm3": case("smollm3"),
    "ernie4_5": case("ernie4_5"),
}  # fmt: skip
KEYS = {
    "block_count": "n_layer", "embedding_length": "n_embd", "feed_forward_length": "n_ff", "vocab_size": "n_vocab",
    "attention.head_count": "n_head", "attention.head_count_kv": "n_head_kv", "attention.key_length": "head_dim",
    "attention.sliding_window": "window", "expert_count": "n_expert", "expert_used_count": "n_expert_used",
    "expert_feed_forward_length": "n_ff_exp", "expert_shared_feed_forward_length": "n_ff_shared",
    "leading_dense_block_count": "n_layer_dense", "interleave_moe_layer_step": "expert_step",
    "attention.q_lora_rank": "q_lora_rank", "attention.kv_lora_rank": "kv_lora_rank",
    "attention.key_length_mla": "head_dim_mla", "attention.value_length_mla": "head_dim_v_mla",
    "ssm.conv_kernel": "ssm_conv", "ssm.inner_size": "ssm_inner", "ssm.state_size": "ssm_state",
    "ssm.group_count": "ssm_groups", "ssm.time_step_rank": "ssm_heads", "shortconv.l_cache": "shortconv",
    "nextn_predict_layers": "n_layer_nextn", "embedding_length_per_layer_input": "n_embd_per_layer",
    "attention.shared_kv_layers": "n_layer_shared_kv", "attention.sliding_window_pattern": "window_layers",
    "attention.key_length_swa": "head_dim_swa", "attention.value_length_swa": "head_dim_swa",
}  # fmt: skip


def write(path: Path, case: Case) -> None:
    s = case.shape
    keys = {key: getattr(s, name) for key, name in KEYS.items() if getattr(s, name) or name.startswith("n_head")}
    keys |= {"context_length": 65536, "attention.layer_norm_rms_epsilon": 1e-6, "attention.layer_norm_epsilon": 1e-6}
    if s.head_dim:
        keys["attention.value_length"] = s.head_dim if s.head_dim_v is None else s.head_dim_v
        keys["rope.dimension_count"] = s.rope_dim or s.head_dim
    if s.n_ff_shared and s.n_ff_exp:
        keys["expert_shared_count"] = s.n_ff_shared // s.n_ff_exp
    plain = {f"{s.arch}.{k}": list(v) if isinstance(v, tuple) else v for k, v in (keys | case.extra).items()}
    head, size = gguf_bytes({"general.architecture": s.arch, "tokenizer.ggml.model": "no_vocab", **plain}, recipe(s, "F16"))
    with path.open("wb") as file:
        file.write(head)
        file.truncate(len(head) + size)


def test_every_layout_has_a_case():
    assert set(LAYOUTS) == {one.shape.arch for one in CASES.values()}


class GgmlTensor(ctypes.Structure):
    """ggml.h: struct ggml_tensor."""


GgmlTensor._fields_ = [
    ("type", ctypes.c_int), ("buffer", ctypes.c_void_p), ("ne", ctypes.c_int64 * 4), ("nb", ctypes.c_size_t * 4),
    ("op", ctypes.c_int), ("op_params", ctypes.c_int32 * 16), ("flags", ctypes.c_int32),
    ("src", ctypes.POINTER(GgmlTensor) * 10), ("view_src", ctypes.c_void_p), ("view_offs", ctypes.c_size_t),
    ("data", ctypes.c_void_p), ("name", ctypes.c_char * 64), ("extra", ctypes.c_void_p), ("padding", ctypes.c_char * 8),
]  # fmt: skip


def observe(path: Path, windows: bool) -> dict:
    """What the engine does with a file: its refusal, or sizes [MiB] and elements of cache read at DEPTH."""
    import llama_cpp

    log: list[str] = []
    read: dict[str, int] = {}

    def on_log(_level: int, line: bytes, _data: object) -> None:
        log.append(line.decode(errors="replace"))

    def on_node(node: int, ask: bool, _data: object) -> bool:
        tensor = ctypes.cast(node, ctypes.POINTER(GgmlTensor)).contents
        name = tensor.name.decode()
        if ask and re.fullmatch(r"kqv?-\d+", name):
            ne = tensor.src[0].contents.ne
            read[name] = ne[0] * ne[1] * ne[2]
        return not ask

    log_callback = llama_cpp.llama_log_callback(on_log)
    eval_callback = llama_cpp.ggml_backend_sched_eval_callback(on_node)
    llama_cpp.llama_log_set(log_callback, None)
    settings = llama_cpp.llama_model_default_params()
    settings.n_gpu_layers = 0
    model = llama_cpp.llama_model_load_from_file(str(path).encode(), settings)
    if not model:
        return {"refused": next((line for line in log if "error loading model" in line), "".join(log)[-300:])}

    def context(n_ctx: int, **how: object) -> tuple[object, dict]:
        params = llama_cpp.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch, params.swa_full, params.flash_attn_type = n_ctx, 2048, 512, False, 0
        params.cb_eval, params.n_threads, params.n_threads_batch = eval_callback, 1, 1
        for name, value in how.items():
            setattr(params, name, value)
        log.clear()
        made = llama_cpp.llama_init_from_model(model, params)
        text = "".join(log)
        return made, {
            "kv": [float(x) for x in re.findall(r"llama_kv_cache: size = +([\d.]+) MiB", text)],
            "state": [float(x) for x in re.findall(r"llama_memory_recurrent: size = +([\d.]+) MiB", text)],
        }

    found = {}
    for name, how in (("wide", {}), ("full-size windows", {"swa_full": True}), ("q8_0", {"type_k": 8, "type_v": 8}),
                      ("3 sequences", {"n_seq_max": 3, "kv_unified": True})):  # fmt: skip
        if name == "full-size windows" and not windows:
            continue
        made, found[name] = context(N_CTX_WIDE, flash_attn_type=1, **how)
        if made:
            llama_cpp.llama_free(made)
    made, found["no flash attention"] = context(N_CTX)  # its graph shows the matrices read
    done = 0
    while done <= DEPTH:  # the token at DEPTH alone, so that its step is a decode step
        n = min(512, DEPTH - done) or 1
        tokens = (ctypes.c_int32 * n)(*[1] * n)
        read.clear()
        if llama_cpp.llama_decode(made, llama_cpp.llama_batch_get_one(tokens, n)):
            return {"refused": "".join(log)[-300:]}
        done += n
    return {**found, "read": dict(read)}


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    """Every case, in a child; one that crashes is followed by another for the cases left."""
    pytest.importorskip("llama_cpp")
    folder = tmp_path_factory.mktemp("models")
    for i, one in enumerate(CASES.values()):
        write(folder / f"{i}.gguf", one)
    found: list[dict] = []
    while len(found) < len(CASES):
        done = subprocess.run([sys.executable, __file__, str(folder), str(len(found))], capture_output=True, text=True, timeout=600, check=False)
        found += [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if len(found) < len(CASES):
            found.append({"refused": f"the engine crashed: {done.stderr[:300]}"})
    return dict(zip(CASES, found, strict=True))


@pytest.fixture(params=CASES)
def pair(request: pytest.FixtureRequest, observed: dict[str, dict], tmp_path: Path) -> tuple[Case, dict, work.Structure]:
    found = observed[request.param]
    assert "refused" not in found, found["refused"]
    one = CASES[request.param]
    path = tmp_path / "m.gguf"
    write(path, one)
    return one, found, read_header(path).structure


SETTINGS = {
    "wide": (work.Cache(), 1), "full-size windows": (work.Cache(swa_full=True), 1),
    "q8_0": (work.Cache("Q8_0", "Q8_0"), 1), "3 sequences": (work.Cache(), 3), "no flash attention": (work.Cache(flash_attn=False), 1),
}  # fmt: skip


def test_what_is_set_aside_is_what_the_engine_logs(pair: tuple[Case, dict, work.Structure]):
    one, found, model = pair
    for name, (cache, sequences) in SETTINGS.items():
        if name not in found or (name == "q8_0" and not found[name]["kv"] and not found[name]["state"]):
            continue  # no windows, or a cache the engine cannot quantise
        ours = memory.allocation(model, N_CTX_WIDE if cache.flash_attn else N_CTX, cache, sequences)
        logged = [round(x / MIB, 2) for x in (ours.kv_full, ours.kv_window) if x]
        assert found[name]["kv"] == pytest.approx(logged, abs=0.011), name
        assert sum(found[name]["state"]) == pytest.approx(ours.state / MIB, abs=0.006), name


def test_what_is_read_at_a_depth_is_what_the_engine_reads(pair: tuple[Case, dict, work.Structure]):
    one, found, model = pair
    elements = sum(n for name, n in found["read"].items() if not (one.shape.mla and name.startswith("kqv")))
    assert work.decode(model, DEPTH).bytes_by_group["kv"] == 2 * elements  # f16; an MLA layer's values are part of its keys


if __name__ == "__main__":
    for number, one in list(enumerate(CASES.values()))[int(sys.argv[2]) :]:
        slides = one.shape.window is not None or one.shape.arch == "llama4"
        print(json.dumps(observe(Path(sys.argv[1]) / f"{number}.gguf", slides)), flush=True)
