"""Batches and speculation, by hand."""

from __future__ import annotations

import pytest

from macros import batching, work
from macros.shapes import Layer
from macros.structure import Structure, Weights

BANDWIDTH, PEAK = 100e9, 10e12  # ridge at 100 FLOP/B


def model(n_bytes: int, params: int, cell: int = 0, experts: tuple[int, int] = (0, 0)) -> Structure:
    """One group of weights, one layer; round numbers to calculate with."""
    role = "experts" if experts[0] else "body"
    layer = Layer(n_head=1, k_dim=cell, v_dim=0, k_cell=cell) if cell else Layer()
    return Structure("llama", 1, *experts, (Weights(role, "Q8_0", params, n_bytes),), (layer,))


def test_decode_rises_with_the_batch_until_compute_binds():
    dense = model(10**9, 10**9)  # 10 ms to read, 0.2 ms a token to compute
    rates = [batching.decode_rate_tok_s(dense, b, BANDWIDTH, PEAK) for b in (1, 10, 50, 51, 200)]
    assert rates == pytest.approx([100, 1000, 5000, 5000, 5000])
    assert batching.crossover_batch(dense, BANDWIDTH, PEAK) == 50


def test_the_crossover_moves_out_with_a_cache_and_then_never_comes():
    # 2 B a cell and element, 256 cells: 512 B of cache for each of `cell` elements and sequence.
    # 1000 elements: 512,000 B take 5.12 us a sequence; FLOPs 200 us + 0.05: 10 ms / (200.05 - 5.12) = 51.3
    assert batching.crossover_batch(model(10**9, 10**9, 1000), BANDWIDTH, PEAK) == 52
    with pytest.raises(ValueError, match="no batch is compute-bound at depth 100000"):
        batching.crossover_batch(model(10**9, 10**9, 1000), BANDWIDTH, PEAK, depth_tokens=100_000)


def test_experts_put_the_crossover_off():
    # 8 of 64 experts: FLOPs of 1/8 of the parameters, so 25 us a token; all experts are soon read
    sparse = model(10**9, 10**9, experts=(64, 8))
    assert batching.crossover_batch(sparse, BANDWIDTH, PEAK) == 400
    one, two = (batching.decode_rate_tok_s(sparse, b, BANDWIDTH, PEAK) for b in (1, 2))
    assert one == pytest.approx(800)
    assert two == pytest.approx(2 * 100 / (1 - (7 / 8) ** 2))  # 23.4 % of the experts, not 25 %


def test_expected_tokens_of_the_paper():
    # Leviathan et al. 2023, equation 1: (1 - a^(n+1)) / (1 - a)
    assert batching.expected_tokens(0.75, 3) == pytest.approx((1 - 0.75**4) / 0.25)
    assert batching.expected_tokens(0.5, 1) == 1.5
    for bad in ((1.1, 2), (-0.1, 2), (0.5, -1)):
        with pytest.raises(ValueError, match="acceptance must lie in 0 to 1"):
            batching.expected_tokens(*bad)


def test_speculation_by_hand():
    target, draft = model(10**10, 10**10), model(10**9, 10**9)  # 100 ms and 10 ms a token
    # 4 drafts at 80 %: 3.3616 tokens in 4 x 10 + 100 ms, against 100 ms a token
    assert batching.speculative_gain(target, draft, 0.8, 4, BANDWIDTH, PEAK) == pytest.approx(3.3616 * 100 / 140)
    assert batching.speculative_gain(target, None, 0.8, 4, BANDWIDTH, PEAK) == pytest.approx(3.3616)
    assert batching.speculative_gain(target, draft, 0.0, 4, BANDWIDTH, PEAK) == pytest.approx(100 / 140)
    assert batching.speculative_gain(target, draft, 0.5, 0, BANDWIDTH, PEAK) == 1


def test_checking_drafts_is_not_free_for_experts():
    sparse = model(10**10, 10**10, experts=(128, 8))
    # five tokens read 1 - (15/16)^5 = 27.6 % of the experts, one reads 6.25 %
    expected = 3.3616 * 0.0625 / (1 - (15 / 16) ** 5)
    assert batching.speculative_gain(sparse, None, 0.8, 4, BANDWIDTH, PEAK) == pytest.approx(expected)
    assert expected < 1  # 80 % accepted, and still slower


def test_drafts_share_their_sequences_cache():
    deep = model(0, 0, 1000)
    assert work.verify(deep, 1000, 5).n_bytes == work.decode(deep, 1000).n_bytes
    assert work.decode(deep, 1000, batch=5).n_bytes == 5 * work.decode(deep, 1000).n_bytes
