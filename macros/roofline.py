"""First order: the napkin. Two spec-sheet numbers, one file size, one config.

Everything here is an upper bound or a ratio that ignores what `macros.work` counts exactly.
Standard library only; numbers in, numbers out.
"""

from __future__ import annotations


def decode_ceiling_tok_s(bandwidth_bytes_s: float, step_bytes: float) -> float:
    """Upper bound on the decode rate at batch 1 [tok/s].

    Args:
        bandwidth_bytes_s: spec-sheet memory bandwidth [B/s]
        step_bytes: bytes one decode step reads [B]

    Assumes: memory-bound, every byte read once.
    Ignores: a fixed cost per step (launches), which rules for small models on fast chips.
    Source: Pope et al. 2022, Efficiently Scaling Transformer Inference.

    >>> round(decode_ceiling_tok_s(120e9, 5.03e9), 2)   # Apple M4, Qwen3-8B Q4_K_M
    23.86
    """
    return bandwidth_bytes_s / step_bytes


def kv_bytes_per_token(
    n_layer: int, n_head_kv: int, head_dim: int, element_bytes: float = 2.0
) -> float:
    """KV cache one token of context adds, keys and values [B].

    Assumes: full attention in every layer (MHA or GQA), K and V heads of one size.
    Source: 2 (K and V) x layers x KV heads x head dim x bytes; f16 cache by default.

    >>> kv_bytes_per_token(36, 8, 128)                  # Qwen3-8B: 144 KiB, not 144 KB
    147456.0
    """
    return 2 * n_layer * n_head_kv * head_dim * element_bytes


def step_bytes(weight_bytes: float, depth_tokens: float, kv_token_bytes: float) -> float:
    """Bytes one decode step reads with `depth_tokens` in the context [B].

    >>> [round(step_bytes(5.03e9, d, 147456) / 1e9, 3) for d in (0, 2048, 4096, 8192)]
    [5.03, 5.332, 5.634, 6.238]
    """
    return weight_bytes + depth_tokens * kv_token_bytes


def depth_ratio(weight_bytes: float, depth_tokens: float, kv_token_bytes: float) -> float:
    """Decode rate at a depth over the rate at depth 0 (fraction).

    Assumes: the same bandwidth is reached at both depths.

    >>> round(depth_ratio(5.03e9, 8192, 147456), 4)     # Day 1, KB read as KiB
    0.8064
    >>> round(19.82 * depth_ratio(5.03e9, 8192, 147456), 2)
    15.98
    """
    return weight_bytes / step_bytes(weight_bytes, depth_tokens, kv_token_bytes)


def prefill_ceiling_tok_s(peak_flops_s: float, params: float) -> float:
    """Upper bound on the prefill rate [tok/s].

    Assumes: compute-bound, 2 FLOPs per parameter and token (one multiply, one add).
    Ignores: attention (2 % of 2P at 512 tokens for an 8B model, 30 % at 8192).
    Source: Kaplan et al. 2020, Scaling Laws for Neural Language Models, section 2.1.

    >>> round(prefill_ceiling_tok_s(4.4e12, 8.19e9), 1)
    268.6
    """
    return peak_flops_s / (2 * params)


def ridge_flops_per_byte(peak_flops_s: float, bandwidth_bytes_s: float) -> float:
    """Arithmetic intensity at which the two roofs meet [FLOP/B].

    Source: Williams, Waterman, Patterson 2009, Roofline.

    >>> round(ridge_flops_per_byte(4.4e12, 120e9), 1)
    36.7
    """
    return peak_flops_s / bandwidth_bytes_s


def decode_intensity_flops_per_byte(params: float, weight_bytes: float) -> float:
    """Arithmetic intensity of decode at batch 1, empty context [FLOP/B].

    >>> round(decode_intensity_flops_per_byte(8.19e9, 5.03e9), 2)
    3.26
    """
    return 2 * params / weight_bytes


def attention_flops_per_token(n_layer: int, n_head: int, head_dim: int, depth_tokens: float) -> float:
    """Attention FLOPs one token costs over `depth_tokens` of context [FLOP].

    Two matmuls (QK^T and AV), 2 FLOPs an element each.

    >>> attention_flops_per_token(36, 32, 128, 1)
    589824
    >>> round(attention_flops_per_token(36, 32, 128, 8192) / (2 * 8.19e9), 3)
    0.295
    """
    return 4 * n_layer * n_head * head_dim * depth_tokens


def attention_parity_depth_tokens(params: float, n_layer: int, n_head: int, head_dim: int) -> float:
    """Depth at which attention costs as many FLOPs as the weights do [tokens].

    >>> round(attention_parity_depth_tokens(8.19e9, 36, 32, 128))
    27771
    """
    return 2 * params / attention_flops_per_token(n_layer, n_head, head_dim, 1)


def effective_bits_per_weight(weight_bytes: float, params: float) -> float:
    """Bits a stored weight really takes, scales and mixed types included [bit].

    >>> round(effective_bits_per_weight(5.03e9, 8.19e9), 2)   # "4-bit" Q4_K_M
    4.91
    """
    return 8 * weight_bytes / params


def achieved_bandwidth_bytes_s(rate_tok_s: float, bytes_per_step: float) -> float:
    """Bandwidth a measured decode rate really pulled [B/s].

    >>> round(achieved_bandwidth_bytes_s(19.82, 5.03e9) / 1e9, 1)   # Metal, Day 1
    99.7
    """
    return rate_tok_s * bytes_per_step
