"""Exact work by architecture, against hand calculations from published dimensions and llama.cpp's source."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from macros import memory, work
from macros.ggml_types import Tensor
from macros.recipes import recipe
from macros.shapes import ARCHITECTURES, Shape, layers
from macros.structure import structure

MIB = 2**20
GPT_OSS = Shape("gpt-oss", 24, 2880, 2880, 201088, 64, 8, 64, tied=False, window=128, n_expert=32, n_expert_used=4, n_ff_exp=2880)
QWEN_MOE = Shape("qwen3moe", 48, 2048, 6144, 151936, 32, 4, 128, tied=False, n_expert=128, n_expert_used=8, n_ff_exp=768)
R1 = Shape("deepseek2", 61, 7168, 18432, 129280, 128, 1, 576, tied=False, head_dim_v=512, n_expert=256, n_expert_used=8, n_ff_exp=2048,
           n_ff_shared=2048, n_layer_dense=3, q_lora_rank=1536, kv_lora_rank=512, rope_dim=64, head_dim_mla=192, head_dim_v_mla=128)  # fmt: skip
CODESTRAL_MAMBA = Shape("mamba2", 64, 4096, 0, 32768, 0, 0, 0, tied=False, ssm_conv=4, ssm_inner=8192, ssm_state=128, ssm_groups=8, ssm_heads=128)
QWEN35 = Shape("qwen35", 64, 5120, 17408, 248320, 24, 4, 256, tied=False, ssm_conv=4, ssm_inner=6144, ssm_state=128, ssm_groups=16, ssm_heads=48)
LLAMA4 = Shape("llama4", 48, 5120, 16384, 202048, 40, 8, 128, tied=False, n_expert=16, n_expert_used=1, n_ff_exp=8192, n_ff_shared=8192)
GEMMA3 = Shape("gemma3", 62, 5376, 21504, 262208, 32, 16, 128, tied=True, window=1024)
LLAMA = Shape("llama", 32, 4096, 11008, 32000, 32, 32, 128, tied=False)


def made(shape: Shape, quant: str = "F16") -> work.Structure:
    return structure(shape, recipe(shape, quant))


def bare(shape: Shape) -> work.Structure:
    """Layers without weights, for architectures no card's layout is known of."""
    return work.Structure(shape.arch, shape.n_layer, 0, 0, (), layers(shape))


def test_windows_read_their_cache_and_see_their_window():
    # gpt-oss 20B: 12 layers see everything, 12 see 128 tokens; 2 x 8 x 64 x 2 B a cell and layer.
    # Depth 32768 is cell 32769, padded to 33024; a window's cache is 128 + 512, padded to 768.
    step = work.decode(made(GPT_OSS), 32768)
    assert step.bytes_by_group["kv"] == 12 * 2048 * (33024 + 768)
    # 2 x 64 heads x (64 + 64) FLOPs a pair
    assert step.flops_by_group["attention"] == 12 * 2 * 64 * 128 * (32769 + 128)
    full = work.decode(made(GPT_OSS), 32768, cache=work.Cache(swa_full=True))
    assert full.bytes_by_group["kv"] == 24 * 2048 * 33024


def test_a_short_context_fits_every_window():
    assert work.decode(made(GPT_OSS), 0).bytes_by_group["kv"] == 24 * 2048 * 256


def test_experts_are_read_by_the_share_that_is_used():
    # 48 layers x 128 experts x 3 matrices of 2048 x 768, 2 B each; 8 of 128 are read
    experts = 48 * 128 * 3 * 2048 * 768
    one = work.decode(made(QWEN_MOE))
    assert one.bytes_by_group["experts"] == experts * 2 / 16
    assert one.flops_by_group["experts"] == 2 * experts / 16
    # four tokens: 128 x (1 - (15/16)^4) = 29.1 distinct experts, but FLOPs of 4 x 8
    four = work.decode(made(QWEN_MOE), batch=4)
    assert four.bytes_by_group["experts"] == pytest.approx(experts * 2 * (1 - (15 / 16) ** 4))
    assert four.flops_by_group["experts"] == 4 * one.flops_by_group["experts"]
    # a ubatch of 512 touches all but 1 in 10^14
    assert work.verify(made(QWEN_MOE), 0, 512).bytes_by_group["experts"] == pytest.approx(experts * 2)


def test_active_parameters_of_published_mixtures():
    # "A3B": 3.3 B active, embedding and head among them; gpt-oss 20B: 3.6 B with the head; Mixtral 12.9 B
    def active(shape: Shape) -> float:
        model = made(shape)
        return model.body_params + sum(w.params for w in model.weights if w.role == "head")

    mixtral = Shape("llama", 32, 4096, 14336, 32000, 32, 8, 128, tied=False, n_expert=8, n_expert_used=2)
    assert active(QWEN_MOE) + 151936 * 2048 == pytest.approx(3.35e9, rel=0.01)
    assert active(GPT_OSS) == pytest.approx(3.6e9, rel=0.01)
    assert active(mixtral) == pytest.approx(12.9e9, rel=0.02)
    assert active(R1) == pytest.approx(37e9, rel=0.02)
    assert active(LLAMA4) == pytest.approx(17e9, rel=0.06)


def test_latent_attention_caches_one_vector():
    model = made(R1)
    step = work.decode(model, 8191)
    assert step.bytes_by_group["kv"] == 61 * 8192 * (512 + 64) * 2
    assert step.flops_by_group["attention"] == 61 * 8192 * 2 * 128 * (576 + 512)
    # absorbed: q_nope x W_k (128 x 512) and the values' W_v (512 x 128) for each of 128 heads
    split = sum(t.params for t in recipe(R1, "F16") if "attn_k_b" in t.name or "attn_v_b" in t.name)
    assert split == 61 * 128 * 512 * (128 + 128)


def test_recurrent_state_is_the_same_at_every_depth():
    model = made(CODESTRAL_MAMBA)
    # 64 layers x (128 x 8192 + 3 x (8192 + 2 x 8 x 128)) f32, read and written
    state = 64 * (128 * 8192 + 3 * 10240) * 4
    for depth in (0, 100_000):
        assert work.decode(model, depth).bytes_by_group["state"] == 2 * state
        assert work.decode(model, depth).bytes_by_group["kv"] == 0
    assert work.decode(model, batch=3).bytes_by_group["state"] == 6 * state
    assert memory.allocation(model, 4096).state == 263.5 * MIB


def test_hybrids_keep_a_cache_in_some_layers_only():
    model = made(QWEN35)
    assert work.kv_token_bytes(model) == 16 * 2 * 4 * 256 * 2
    assert memory.allocation(model, 24576).kv == 1536 * MIB
    assert memory.allocation(model, 24576).state == (144 + 5.625) * MIB
    falcon = replace(QWEN35, arch="falcon-h1")
    assert sum(x.count for x in layers(falcon) if x.k_cell and x.ssm_state) == 64


def test_shared_layers_add_reads_not_memory():
    # Gemma 3n E4B: 35 layers, one in five sees everything; the last 15 read what the first 20 keep
    shape = Shape("gemma3n", 35, 2048, 16384, 262400, 8, 2, 256, tied=True, window=512)
    model = bare(shape)
    assert memory.allocation(model, 32768).kv_full == 4 * 32768 * 2 * 2 * 256 * 2
    assert work.decode(model, 32767).bytes_by_group["kv"] == 2 * 2 * 256 * 2 * (7 * 32768 + 28 * 1024)


def test_chunks_start_anew():
    # Llama 4: a token at position p sees p mod 8192 + 1 tokens in three of four layers
    step = work.decode(made(LLAMA4), 8192)
    assert step.flops_by_group["attention"] == 2 * 40 * 256 * (12 * 8193 + 36 * 1)
    assert work.attended(0, 16384, 8192, chunked=True) == 2 * 8192 * 8193 // 2


@pytest.mark.parametrize("arch", ["llama", "phi3"])
def test_windows_llama_cpp_ignores_are_ignored(arch: str):
    with_window, without = (bare(replace(LLAMA, arch=arch, window=w)) for w in (4096, None))
    assert work.decode(with_window, 30_000) == work.decode(without, 30_000)


def test_prefill_of_a_window_by_the_definition():
    # Gemma 3 27B: 10 layers see everything, 52 see 1024; counted pair by pair
    model, n, depth = made(GEMMA3, "Q4_K_M"), 700, 600
    pairs = sum(10 * (depth + j) + 52 * min(depth + j, 1024) for j in range(1, n + 1))
    assert work.prefill(model, n, depth).flops_by_group["attention"] == pairs * 2 * 32 * 256


def test_prefill_reads_weights_once_a_ubatch_and_the_head_once_a_batch():
    model = made(LLAMA, "Q8_0")
    body = sum(w.n_bytes for w in model.weights if w.role == "body")
    head = sum(w.n_bytes for w in model.weights if w.role == "head")
    assert work.prefill(model, 2048).bytes_by_group["weights"] == 4 * body + head
    assert work.prefill(model, 4096).bytes_by_group["weights"] == 8 * body + 2 * head
    assert work.prefill(model, 1).bytes_by_group == work.decode(model).bytes_by_group


def test_quantised_caches_by_their_blocks():
    model = bare(LLAMA)
    f16 = memory.allocation(model, 4096).kv
    assert f16 == 2048 * MIB  # llama.cpp: "KV self size = 2048.00 MiB"
    assert memory.allocation(model, 4096, work.Cache("Q8_0", "Q8_0")).kv == f16 * 34 / 64
    assert memory.allocation(model, 4096, work.Cache("Q4_0", "F16")).kv == f16 / 2 * (1 + 18 / 64)
    with pytest.raises(ValueError, match="KV cache: unknown ggml type; got 'q8'; known: F32"):
        work.decode(model, cache=work.Cache("q8"))


def test_tied_embeddings_are_read_and_separate_ones_looked_up():
    tied, apart = replace(LLAMA, tied=True), LLAMA
    read = [work.decode(made(s, "F16")).bytes_by_group["weights"] for s in (tied, apart)]
    assert read[0] == read[1]
    assert work.total_bytes(recipe(apart, "F16")) - work.total_bytes(recipe(tied, "F16")) == 2 * 32000 * 4096


def test_what_no_step_reads():
    extra = [Tensor("blk.32.nextn.eh_proj.weight", (8192, 4096), "F16"), Tensor("v.blk.0.attn_q.weight", (1152, 1152), "F16"),
             Tensor("per_layer_token_embd.weight", (8960, 32000), "F16")]  # fmt: skip
    table = recipe(LLAMA, "F16")
    with_draft = structure(replace(LLAMA, n_layer=33, n_layer_nextn=1), table + extra)
    assert work.decode(with_draft) == work.decode(structure(LLAMA, table))


def test_kv_heads_decide_not_the_heads():
    # MHA, GQA, MQA: 32, 8 and 1 KV heads
    sizes = [work.kv_token_bytes(bare(replace(LLAMA, n_head_kv=n))) for n in (32, 8, 1)]
    assert sizes == [2 * 32 * n * 128 * 2 for n in (32, 8, 1)]


@pytest.mark.parametrize("shape", [GPT_OSS, QWEN_MOE, R1, QWEN35, LLAMA4, GEMMA3, LLAMA], ids=lambda s: s.arch)
def test_laws(shape: Shape):
    """Deeper, longer and larger batches never cost less; nothing reads more weights than there are."""
    model = made(shape)
    deep = [work.decode(model, d) for d in (0, 1, 500, 9000, 131072)]
    assert all(a.n_bytes <= b.n_bytes and a.flops <= b.flops or shape is LLAMA4 for a, b in zip(deep, deep[1:]))
    grown = [work.decode(model, 1000, batch=b) for b in (1, 2, 7, 64)]
    assert all(a.n_bytes < b.n_bytes and a.flops < b.flops for a, b in zip(grown, grown[1:]))
    assert all(a.n_bytes / x > b.n_bytes / y for a, b, x, y in zip(grown, grown[1:], (1, 2, 7), (2, 7, 64)))
    stored = sum(w.n_bytes for w in model.weights)
    assert grown[-1].bytes_by_group["weights"] + grown[-1].bytes_by_group["experts"] <= stored
    assert sum(grown[0].weight_bytes_by_type.values()) == pytest.approx(grown[0].bytes_by_group["weights"] + grown[0].bytes_by_group["experts"])
    # FLOPs do not care how a prompt is cut
    cut = [work.prefill(model, 1500, 300, cache=work.Cache(n_ubatch=u)).flops for u in (128, 512, 1500)]
    assert cut[0] == pytest.approx(cut[1]) == pytest.approx(cut[2])


def test_a_mean_step_is_the_mean_of_its_steps():
    model = made(GPT_OSS)
    mean = work.decode(model, 250, n_gen=20)
    steps = [work.decode(model, 250 + i) for i in range(20)]
    assert mean.n_bytes == pytest.approx(sum(s.n_bytes for s in steps) / 20)
    assert mean.flops == pytest.approx(sum(s.flops for s in steps) / 20)


@pytest.mark.parametrize(
    ("shape", "line"),
    [
        (replace(LLAMA, arch="bert"), "architecture not covered; got 'bert'; known: .*gemma3"),
        (replace(LLAMA, n_head_kv=(8, 8)), "2 entries for 32 layers"),
        (replace(LLAMA, arch="gemma4", window=512), "which layers slide is not said"),
        (replace(LLAMA, arch="mamba"), "recurrent layers without a state"),
    ],
)
def test_shapes_that_cannot_be(shape: Shape, line: str):
    with pytest.raises(ValueError, match=line):
        layers(shape)


@pytest.mark.parametrize("counts", [{"depth_tokens": -1}, {"n_gen": 0}, {"batch": 0}])
def test_absurd_counts_are_named(counts: dict):
    with pytest.raises(ValueError, match=f"{next(iter(counts))}: must be at least"):
        work.decode(bare(LLAMA), **counts)


def test_a_model_that_does_not_fit_is_a_reason():
    needed = memory.allocation(made(R1, "Q4_K_M"), 32768)
    with pytest.raises(ValueError, match=r"does not fit in memory: needs 406\.\d+ GB \(weights 404\.\d+, KV cache 2\.30\); got 24\.00 GB"):
        memory.check_fit(needed, 24e9)
    memory.check_fit(needed, 512e9)


def test_every_family_of_the_issue_is_known():
    assert {"llama", "gemma2", "gemma3", "gpt-oss", "phi3", "qwen3moe", "deepseek2", "glm4moe", "llama4", "mamba", "qwen3next",
            "granitehybrid", "nemotron_h", "falcon-h1", "gemma3n"} <= set(ARCHITECTURES)  # fmt: skip


def test_a_prediction_is_quick_and_light():
    """No pandas, altair, numpy or pydantic; a decode and a prefill step of a 671 B model in under 50 ms of CPU time."""
    code = f"""
import sys, time
from macros import memory, work
from macros.shapes import Shape
shape = {R1!r}
model = work.structure(shape, work.recipe(shape, "Q4_K_M"))
start = time.process_time()
work.decode(model, 4096, 128); work.prefill(model, 512); memory.allocation(model, 8192)
print(time.process_time() - start < 0.05, sorted({{"pandas", "altair", "numpy", "pydantic", "gguf"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent.parent, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True []"
