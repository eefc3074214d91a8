"""How long a test will take, roughly: only to place the progress bar."""

from __future__ import annotations

from bench.plan import Test
from macros import predict
from macros.cards import Machine, Model

EFFICIENCY = 0.6  # of the roofs; the bar corrects itself as tests finish
FALLBACK_FLOPS_S = 100e9  # where no compute roof is known


def work_s(test: Test, model: Model, machine: Machine, reps: int) -> float:
    """Expected duration of a test with its warm-up and repetitions [s]."""
    peak = machine.specs.peak_compute
    flops_s = (peak.si if peak else FALLBACK_FLOPS_S) * EFFICIENCY
    bandwidth_bytes_s = machine.specs.memory_bandwidth.si * EFFICIENCY

    def prefill_s(n: int, depth: int) -> float:
        return predict.exact_prefill_flops_per_token(model, n, depth) * n / flops_s if n else 0.0

    depth = test.target.depth
    step_s = predict.exact_decode_bytes(model, depth, test.n_gen) / bandwidth_bytes_s
    warmup_s = prefill_s(test.n_prompt, 0) + (step_s if test.n_gen else 0)
    return prefill_s(depth, 0) + warmup_s + reps * (prefill_s(test.n_prompt, depth) + test.n_gen * step_s)
