"""Which tensors a model of given dimensions has: the table without its types, for model cards.

A file's own header is better wherever there is one. Names and dimensions as llama.cpp loads them.
Standard library only. Source: llama.cpp, src/models/*.cpp (load_arch_tensors).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from macros.shapes import Shape, at, recurrent_flags

Dims = tuple[int, ...]
Named = Iterator[tuple[str, Dims]]  # name without "blk.N.", dimensions in ggml order


@dataclass(frozen=True)
class Layout:
    """How one architecture's layers are cut into tensors."""

    qk_norm: bool = False
    qkv_bias: bool = False
    output_bias: bool = False
    fused_qkv: bool = False
    fused_up: bool = False  # gate and up in one
    gated_q: bool = False  # queries come with a gate as wide as themselves
    post_norms: int = 0
    sinks: bool = False
    expert_bias: bool = False
    router_bias: bool = False
    shared_gate: bool = False
    gate: bool = True  # False: up and down only


LAYOUTS: dict[str, Layout] = {
    **dict.fromkeys(("deci", "llama", "llama4", "mistral3", "granite", "granitemoe", "gemma", "granitehybrid", "falcon-h1"), Layout()),
    "deepseek2": Layout(router_bias=True),
    "gemma2": Layout(post_norms=2),
    "gemma3": Layout(qk_norm=True, post_norms=2),
    "glm4": Layout(fused_up=True, post_norms=2),
    "glm4moe": Layout(qkv_bias=True, router_bias=True),
    "gpt-oss": Layout(qkv_bias=True, output_bias=True, sinks=True, expert_bias=True),
    "lfm2": Layout(qk_norm=True),
    "mamba": Layout(),
    "mamba2": Layout(),
    "nemotron_h": Layout(gate=False),
    "phi3": Layout(fused_qkv=True, fused_up=True),
    "qwen2": Layout(qkv_bias=True),
    "qwen3": Layout(qk_norm=True),
    "qwen3moe": Layout(qk_norm=True),
    "qwen35": Layout(qk_norm=True, gated_q=True),
    "qwen35moe": Layout(qk_norm=True, gated_q=True, shared_gate=True),
    "qwen3next": Layout(qk_norm=True, gated_q=True, shared_gate=True),
}
DELTA_NET = ("qwen35", "qwen35moe", "qwen3next")


def layout(shape: Shape) -> Named:
    """Every tensor of a model, in file order: name and dimensions.

    Draft layers and vectors of rotation factors are left out (under 1 % of a model's bytes
    where there are any; a file's header has them).

    Raises:
        ValueError: no layout for this architecture.
    """
    if shape.arch not in LAYOUTS:
        raise ValueError(f"no tensor layout for this architecture, read a file's header; got {shape.arch!r}; known: {', '.join(sorted(LAYOUTS))}")
    how, recurrent, embd = LAYOUTS[shape.arch], recurrent_flags(shape), shape.n_embd
    yield "token_embd.weight", (embd, shape.n_vocab)
    for i in range(shape.n_layer - shape.n_layer_nextn):
        for name, dims in _layer(shape, how, i, recurrent[i]):
            yield f"blk.{i}.{name}", dims
    yield "token_embd_norm.weight" if shape.arch == "lfm2" else "output_norm.weight", (embd,)
    if not shape.tied:
        yield "output.weight", (embd, shape.n_vocab)


def _layer(shape: Shape, how: Layout, i: int, recurrent: bool) -> Named:
    embd, has_ff = shape.n_embd, at(shape.n_ff, i) > 0 or shape.n_expert > 0
    attends = at(shape.n_head_kv, i) > 0 and (not recurrent or shape.arch == "falcon-h1")
    if recurrent or attends or at(shape.n_head, i) > 0 or shape.arch == "nemotron_h":
        yield "attn_norm.weight", (embd,)
    if recurrent:
        yield from _recurrent(shape)
    if shape.kv_lora_rank:
        yield from _latent_attention(shape, i)
    elif attends:
        yield from _attention(shape, how, i)
    elif not recurrent and at(shape.n_head, i) > 0 and shape.arch == "deci":
        yield "attn_output.weight", (embd, embd)  # attention replaced by one matrix
    if not has_ff or shape.arch in ("mamba", "mamba2"):
        return
    if shape.arch in (*DELTA_NET, "gpt-oss", "glm4moe"):
        yield "post_attention_norm.weight", (embd,)  # takes the place of ffn_norm
    elif shape.arch != "nemotron_h":
        yield "ffn_norm" if shape.arch == "falcon-h1" else "ffn_norm.weight", (embd,)
    for n in range(how.post_norms):
        yield ("post_attention_norm.weight", "post_ffw_norm.weight")[n], (embd,)
    experts = shape.n_expert and i >= shape.n_layer_dense and (i + 1) % shape.expert_step == 0
    yield from _experts(shape, how) if experts else _feed_forward(shape, how, at(shape.n_ff, i), "")


def _attention(shape: Shape, how: Layout, i: int) -> Named:
    embd, head = shape.n_embd, shape.head_dim
    q, kv = at(shape.n_head, i) * head, at(shape.n_head_kv, i) * head
    if how.fused_qkv:
        yield "attn_qkv.weight", (embd, q + 2 * kv)
    else:
        for name, n_out in (("attn_q", q * (1 + how.gated_q)), ("attn_k", kv), ("attn_v", kv)):
            yield f"{name}.weight", (embd, n_out)
            if how.qkv_bias:
                yield f"{name}.bias", (n_out,)
    if how.qk_norm:
        yield "attn_q_norm.weight", (head,)
        yield "attn_k_norm.weight", (head,)
    yield "attn_output.weight", (q, embd)
    if how.output_bias:
        yield "attn_output.bias", (embd,)
    if how.sinks:
        yield "attn_sinks.weight", (at(shape.n_head, i),)


def _latent_attention(shape: Shape, i: int) -> Named:
    """DeepSeek's MLA, with its decompression stored whole (attn_kv_b) or split (attn_k_b, attn_v_b)."""
    embd, n_head, rank = shape.n_embd, at(shape.n_head, i), shape.kv_lora_rank
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
