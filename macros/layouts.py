"""Which tensors a model of given dimensions has: the table without its types, for model cards.

A file's own header is better wherever there is one. Names and dimensions as llama.cpp loads them.
Standard library only. Source: llama.cpp, src/models/*.cpp (load_arch_tensors).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from macros.shapes import Shape, at, own_cache_layers, recurrent_flags, window_flags

Dims = tuple[int, ...]
Named = Iterator[tuple[str, Dims]]  # name without "blk.N.", dimensions in ggml order


@dataclass(frozen=True)
class Layout:
    """How one architecture's layers are cut into tensors."""

    attn_norm: bool = True
    ffn_norm: str = "ffn_norm.weight"  # what stands before the feed-forward part; "": nothing
    post_norms: int = 0
    qk_norm: str = ""  # "head": of one head's size, "all": of all heads together
    qkv_bias: bool = False
    output_bias: bool = False
    fused_qkv: bool = False
    fused_up: bool = False  # gate and up in one
    gated_q: bool = False  # queries come with a gate as wide as themselves
    sinks: bool = False
    expert_bias: bool = False
    router_bias: bool = False
    shared_gate: bool = False
    gate: bool = True  # False: up and down only


POST = "post_attention_norm.weight"
LAYOUTS: dict[str, Layout] = {
    **dict.fromkeys(("deci", "ernie4_5", "gemma", "granite", "granitehybrid", "granitemoe", "jamba", "llama", "llama4",
                     "mistral3", "smallthinker", "smollm3"), Layout()),
    "cohere2": Layout(ffn_norm=""),
    "deepseek2": Layout(router_bias=True),
    "dots1": Layout(qk_norm="head", router_bias=True),
    "exaone4": Layout(attn_norm=False, ffn_norm="", post_norms=2, qk_norm="head"),
    "falcon-h1": Layout(ffn_norm="ffn_norm"),  # without ".weight" in llama.cpp
    "gemma2": Layout(post_norms=2),
    "gemma3": Layout(qk_norm="head", post_norms=2),
    "gemma3n": Layout(qk_norm="head", post_norms=2),
    "gemma4": Layout(qk_norm="head", post_norms=2),
    "glm4": Layout(fused_up=True, post_norms=2),
    "glm4moe": Layout(qkv_bias=True, router_bias=True, ffn_norm=POST),
    "gpt-oss": Layout(qkv_bias=True, output_bias=True, sinks=True, expert_bias=True, ffn_norm=POST),
    "hunyuan-moe": Layout(qk_norm="head"),
    "lfm2": Layout(qk_norm="head"),
    "lfm2moe": Layout(qk_norm="head", router_bias=True),
    "mamba": Layout(ffn_norm=""),
    "mamba2": Layout(ffn_norm=""),
    "minimax-m2": Layout(qk_norm="all", router_bias=True),
    "nemotron_h": Layout(gate=False, ffn_norm=""),
    "olmo2": Layout(attn_norm=False, ffn_norm="", post_norms=2, qk_norm="all"),
    "phi3": Layout(fused_qkv=True, fused_up=True),
    "qwen2": Layout(qkv_bias=True),
    "qwen3": Layout(qk_norm="head"),
    "qwen3moe": Layout(qk_norm="head"),
    "qwen35": Layout(qk_norm="head", gated_q=True, ffn_norm=POST),
    "qwen35moe": Layout(qk_norm="head", gated_q=True, shared_gate=True, ffn_norm=POST),
    "qwen3next": Layout(qk_norm="head", gated_q=True, shared_gate=True, ffn_norm=POST),
    "seed_oss": Layout(qkv_bias=True, ffn_norm=POST),
}  # fmt: skip
DELTA_NET = ("qwen35", "qwen35moe", "qwen3next")
ALTUP, LAUREL = 4, 64  # Gemma 3n's parallel streams and low-rank residual, fixed in llama.cpp


Parts = tuple[list[tuple[str, Dims]], list[tuple[list[int], list[tuple[str, Dims]]]], list[tuple[str, Dims]]]


def layout(shape: Shape) -> list[tuple[str, Dims]]:
    """Every tensor of a model, in file order: name and dimensions.

    Draft layers and vectors of rotation factors are left out (under 1 % of a model's bytes
    where there are any; a file's header has them).

    Raises:
        ValueError: no layout for this architecture.
    """
    before, kinds, after = parts(shape)
    layers = dict(sorted((i, tensors) for alike, tensors in kinds for i in alike))
    return [*before, *((f"blk.{i}.{name}", dims) for i, tensors in layers.items() for name, dims in tensors), *after]


def parts(shape: Shape) -> Parts:
    """The tensors before the layers, those of each kind of layer with the layers that are of it, and those after. Raises what `layout` does."""
    if shape.arch not in LAYOUTS:
        raise ValueError(f"no tensor layout for this architecture, read a file's header; got {shape.arch!r}; known: {', '.join(sorted(LAYOUTS))}")
    how, recurrent, slides, n_own = LAYOUTS[shape.arch], recurrent_flags(shape), window_flags(shape)[1], own_cache_layers(shape)
    kinds: dict[tuple[object, ...], list[int]] = {}
    for i in range(shape.n_layer - shape.n_layer_nextn):
        experts = shape.n_expert > 0 and i >= shape.n_layer_dense and (i + 1) % shape.expert_step == 0
        kind = at(shape.n_ff, i), at(shape.n_head, i), at(shape.n_head_kv, i), recurrent[i], slides[i], i < n_own, experts
        kinds.setdefault(kind, []).append(i)
    after = "token_embd_norm.weight" if shape.arch in ("lfm2", "lfm2moe") else "output_norm.weight", (shape.n_embd,)
    return (list(_before(shape)), [(layers, list(_layer(shape, how, *kind))) for kind, layers in kinds.items()],
            [after] if shape.tied else [after, ("output.weight", (shape.n_embd, shape.n_vocab))])  # fmt: skip


def _before(shape: Shape) -> Named:
    embd = shape.n_embd
    yield "token_embd.weight", (embd, shape.n_vocab)
    if shape.n_embd_per_layer:
        n_trunk = shape.n_layer - shape.n_layer_nextn
        yield "per_layer_token_embd.weight", (shape.n_embd_per_layer * n_trunk, shape.n_vocab)
        yield "per_layer_model_proj.weight", (embd, shape.n_embd_per_layer * n_trunk)
        yield "per_layer_proj_norm.weight", (shape.n_embd_per_layer,)
    if shape.arch == "gemma4":
        yield "rope_freqs.weight", (shape.head_dim // 2,)
    if shape.arch == "gemma3n":
        yield "altup_proj.weight", (embd, embd, ALTUP - 1)
        yield "altup_unembd_proj.weight", (embd, embd, ALTUP - 1)


def _layer(shape: Shape, how: Layout, n_ff: int, n_head: int, n_head_kv: int, recurrent: bool, slides: bool, own: bool, experts: bool) -> Named:
    embd, has_ff = shape.n_embd, n_ff > 0 or shape.n_expert > 0
    attends = n_head_kv > 0 and (not recurrent or shape.arch == "falcon-h1")
    replaced = shape.arch == "deci" and not attends and n_head > 0
    if how.attn_norm and (attends or replaced or shape.arch != "deci"):
        yield "attn_norm.weight", (embd,)
    if recurrent:
        yield from _recurrent(shape)
    if replaced:
        yield "attn_output.weight", (embd, embd)  # attention replaced by one matrix
    elif attends:
        yield from _latent_attention(shape, n_head) if shape.kv_lora_rank else _attention(shape, how, n_head, n_head_kv, slides, own)
    if has_ff:
        if how.ffn_norm:
            yield how.ffn_norm, (embd,)
        for n in range(how.post_norms):
            yield (POST, "post_ffw_norm.weight")[n], (embd,)
        yield from _experts(shape, how) if experts else _feed_forward(shape, how, n_ff, "")
    if shape.n_embd_per_layer:
        yield "inp_gate.weight", (embd, shape.n_embd_per_layer)
        yield "proj.weight", (shape.n_embd_per_layer, embd)
        yield "post_norm.weight", (embd,)
    if shape.arch == "gemma3n":
        yield from (("altup_correct_coef.weight", (ALTUP, ALTUP)), ("altup_correct_scale.weight", (embd,)))
        yield from (("altup_predict_coef.weight", (ALTUP, ALTUP * ALTUP)), ("altup_router.weight", (embd, ALTUP)), ("altup_router_norm.weight", (embd,)))
        yield from (("laurel_l.weight", (embd, LAUREL)), ("laurel_r.weight", (LAUREL, embd)), ("laurel_post_norm.weight", (embd,)))


def _attention(shape: Shape, how: Layout, n_head: int, n_head_kv: int, slides: bool, own: bool) -> Named:
    embd, head = shape.n_embd, shape.head_dim_swa if slides and shape.head_dim_swa else shape.head_dim
    q, kv = n_head * head, n_head_kv * head
    own = own or shape.arch != "gemma4"  # Gemma 3n's files have unused ones too
    if how.fused_qkv:
        yield "attn_qkv.weight", (embd, q + 2 * kv)
    else:
        for name, n_out in (("attn_q", q * (1 + how.gated_q)), *((("attn_k", kv), ("attn_v", kv)) if own else ())):
            yield f"{name}.weight", (embd, n_out)
            if how.qkv_bias:
                yield f"{name}.bias", (n_out,)
    if how.qk_norm:
        yield "attn_q_norm.weight", (head if how.qk_norm == "head" else q,)
        if own:
            yield "attn_k_norm.weight", (head if how.qk_norm == "head" else kv,)
    yield "attn_output.weight", (q, embd)
    if how.output_bias:
        yield "attn_output.bias", (embd,)
    if how.sinks:
        yield "attn_sinks.weight", (n_head,)


def _latent_attention(shape: Shape, n_head: int) -> Named:
    """DeepSeek's MLA, with its decompression stored whole (attn_kv_b) or split (attn_k_b, attn_v_b)."""
    embd, rank = shape.n_embd, shape.kv_lora_rank
    k_dim = shape.head_dim_mla or shape.head_dim
    v_dim = shape.head_dim_v_mla or shape.head_dim_v or shape.head_dim
    if shape.q_lora_rank:
        yield "attn_q_a.weight", (embd, shape.q_lora_rank)
        yield "attn_q_a_norm.weight", (shape.q_lora_rank,)
    yield ("attn_q_b.weight", (shape.q_lora_rank, n_head * k_dim)) if shape.q_lora_rank else ("attn_q.weight", (embd, n_head * k_dim))
    yield "attn_kv_a_mqa.weight", (embd, rank + shape.rope_dim)
    yield "attn_kv_a_norm.weight", (rank,)
    if shape.mla:
        yield "attn_k_b.weight", (k_dim - shape.rope_dim, rank, n_head)
        yield "attn_v_b.weight", (rank, v_dim, n_head)
    else:
        yield "attn_kv_b.weight", (rank, n_head * (k_dim - shape.rope_dim + v_dim))
    yield "attn_output.weight", (n_head * v_dim, embd)


def _recurrent(shape: Shape) -> Named:
    embd, inner, state, groups, heads = shape.n_embd, shape.ssm_inner, shape.ssm_state, shape.ssm_groups, shape.ssm_heads
    if shape.shortconv:
        yield "shortconv.conv.weight", (shape.shortconv, embd)
        yield "shortconv.in_proj.weight", (embd, 3 * embd)
        yield "shortconv.out_proj.weight", (embd, embd)
        return
    conv = inner + 2 * groups * state
    if shape.arch in DELTA_NET:
        yield "attn_qkv.weight", (embd, conv)
        yield "attn_gate.weight", (embd, inner)
        if shape.arch == "qwen3next":
            yield "ssm_ba.weight", (embd, 2 * heads)
        else:
            yield "ssm_beta.weight", (embd, heads)
            yield "ssm_alpha.weight", (embd, heads)
        yield from (("ssm_conv1d.weight", (shape.ssm_conv, conv)), ("ssm_dt.bias", (heads,)), ("ssm_a", (heads,)), ("ssm_norm.weight", (state,)))
    elif shape.arch in ("mamba", "jamba"):
        yield "ssm_in.weight", (embd, 2 * inner)
        yield from (("ssm_conv1d.weight", (shape.ssm_conv, inner)), ("ssm_conv1d.bias", (inner,)))
        yield from (("ssm_x.weight", (inner, heads + 2 * state)), ("ssm_dt.weight", (heads, inner)), ("ssm_dt.bias", (inner,)))
        if shape.arch == "jamba":
            yield from (("ssm_dt_norm.weight", (heads,)), ("ssm_b_norm.weight", (state,)), ("ssm_c_norm.weight", (state,)))
        yield from (("ssm_a", (state, inner)), ("ssm_d", (inner,)))
    else:  # Mamba-2
        yield "ssm_in.weight", (embd, inner + conv + heads)
        yield from (("ssm_conv1d.weight", (shape.ssm_conv, conv)), ("ssm_conv1d.bias", (conv,)), ("ssm_dt.bias", (heads,)))
        yield from (("ssm_a", (1, heads)), ("ssm_d", (1, heads)), ("ssm_norm.weight", (inner // groups, groups)))
    yield "ssm_out.weight", (inner, embd)


def _feed_forward(shape: Shape, how: Layout, n_ff: int, suffix: str) -> Named:
    if how.gate and not how.fused_up:
        yield f"ffn_gate{suffix}.weight", (shape.n_embd, n_ff)
    yield f"ffn_up{suffix}.weight", (shape.n_embd, n_ff * (1 + how.fused_up))
    yield f"ffn_down{suffix}.weight", (n_ff, shape.n_embd)


def _experts(shape: Shape, how: Layout) -> Named:
    embd, n, n_ff = shape.n_embd, shape.n_expert, shape.n_ff_exp or at(shape.n_ff, 0)
    yield "ffn_gate_inp.weight", (embd, n)
    if how.expert_bias:
        yield "ffn_gate_inp.bias", (n,)
    if how.router_bias and not (shape.arch == "deepseek2" and not shape.q_lora_rank):  # the Lite models have none
        yield "exp_probs_b.bias", (n,)
    for name, row, column in (("gate", embd, n_ff), ("up", embd, n_ff), ("down", n_ff, embd)):
        yield f"ffn_{name}_exps.weight", (row, column, n)
        if how.expert_bias:
            yield f"ffn_{name}_exps.bias", (column, n)
    if shape.n_ff_shared:
        if how.shared_gate:
            yield "ffn_gate_inp_shexp.weight", (embd,)
        yield from _feed_forward(shape, how, shape.n_ff_shared, "_shexp")
