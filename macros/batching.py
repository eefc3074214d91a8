"""Batches and speculation from the same physics: derived, not scored.

Rates here are bounds by the roofs given; with what a machine reaches of them (`predict_cli`) they are
estimates. Standard library only.
"""

from __future__ import annotations

from macros.work import Cache, Structure, Work, decode, verify

MAX_BATCH = 2**20


def bytes_s(work: Work, bandwidth_bytes_s: float, cache_bytes_s: float | None = None) -> float:
    """Time to move some work's bytes [s].

    Args:
        cache_bytes_s: rate at which caches and states are read [B/s]; None: as weights are

    >>> bytes_s(Work({"weights": 5e9, "kv": 1e9}), 100e9, 50e9)
    0.07
    """
    kept = work.bytes_by_group.get("kv", 0.0) + work.bytes_by_group.get("state", 0.0)
    return (work.n_bytes - kept) / bandwidth_bytes_s + kept / (cache_bytes_s or bandwidth_bytes_s)


def roof_s(work: Work, bandwidth_bytes_s: float, peak_flops_s: float, cache_bytes_s: float | None = None) -> float:
    """Least time for some work: its bytes or its FLOPs, whichever binds [s].

    >>> roof_s(Work({"weights": 5e9}, {"body": 1e9}), 100e9, 1e12)
    0.05
    """
    return max(bytes_s(work, bandwidth_bytes_s, cache_bytes_s), work.flops / peak_flops_s)


def decode_rate_tok_s(
    model: Structure, batch: int, bandwidth_bytes_s: float, peak_flops_s: float, depth_tokens: int = 0, cache: Cache = Cache()
) -> float:
    """Upper bound on the decode rate of all sequences of a batch together [tok/s].

    Assumes: every sequence at the same depth; experts routed evenly (work.expected_experts).
    Ignores: fixed costs a step.
    """
    return batch / roof_s(decode(model, depth_tokens, batch=batch, cache=cache), bandwidth_bytes_s, peak_flops_s)


def crossover_batch(
    model: Structure, bandwidth_bytes_s: float, peak_flops_s: float, depth_tokens: int = 0, cache: Cache = Cache(),
    cache_bytes_s: float | None = None,
) -> int:  # fmt: skip
    """Smallest batch whose decode step is bound by compute, no longer by memory [sequences].

    Bytes a sequence fall with the batch and FLOPs a sequence do not, so there is one crossover
    or none.

    Raises:
        ValueError: no batch gets there: each sequence's own KV cache or state takes longer to
            read than its FLOPs to do.
    """

    def compute_bound(batch: int) -> bool:
        work = decode(model, depth_tokens, batch=batch, cache=cache)
        return work.flops / peak_flops_s >= bytes_s(work, bandwidth_bytes_s, cache_bytes_s)

    high = 1
    while not compute_bound(high):
        if high >= MAX_BATCH:
            raise ValueError(f"no batch is compute-bound at depth {depth_tokens}: a sequence's own cache takes longer to read than its FLOPs to do")
        high *= 2
    low = high // 2  # not compute-bound, or 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if compute_bound(middle) else (middle, high)
    return high


def expected_tokens(acceptance: float, drafted: int) -> float:
    """Tokens a verified step yields on average, the model's own one included [tokens].

    Assumes: each drafted token is accepted with the same chance, independently.
    Source: Leviathan, Kalman, Matias 2023, Fast Inference from Transformers via Speculative
    Decoding, equation 1.

    Raises:
        ValueError: acceptance outside 0 to 1, or a negative count.

    >>> expected_tokens(0.8, 4)
    3.3616
    >>> expected_tokens(1.0, 4), expected_tokens(0.0, 4)
    (5.0, 1.0)
    """
    if not 0 <= acceptance <= 1 or drafted < 0:
        raise ValueError(f"acceptance must lie in 0 to 1 and drafted be at least 0; got {acceptance} and {drafted}")
    return round(float(sum(acceptance**i for i in range(drafted + 1))), 12)


def speculative_gain(
    target: Structure, draft: Structure | None, acceptance: float, drafted: int, bandwidth_bytes_s: float, peak_flops_s: float,
    depth_tokens: int = 0, cache: Cache = Cache(),
) -> float:  # fmt: skip
    """Decode rate with speculative decoding over the rate without (fraction).

    A step drafts `drafted` tokens one by one; then the target checks them and its own next token
    in one pass: weights and cache are read once, but a mixture of experts reads more of them.
    Without a draft model the drafts are free, as when they are looked up in the prompt.

    Assumes: roofline times for both models; drafting and checking do not overlap.
    """
    def plain_s(model: Structure) -> float:
        return roof_s(decode(model, depth_tokens, cache=cache), bandwidth_bytes_s, peak_flops_s)

    check_s = roof_s(verify(target, depth_tokens, drafted + 1, cache), bandwidth_bytes_s, peak_flops_s)
    step_s = (drafted * plain_s(draft) if draft else 0) + check_s
    return expected_tokens(acceptance, drafted) * plain_s(target) / step_s
