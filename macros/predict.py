"""Predictions from a spec sheet and a model's shapes, as ink. First order, Day 1's napkin.

The ink is what is scored; `macros.work` explains afterwards what the napkin left out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from macros import roofline, work
from macros.cards import Machine, Model
from macros.fields import Quantity
from macros.inks import Input, Prediction, Target

# Day 1's closing rule of thumb, so every later machine puts it to the test.
RULE_OF_THUMB = (0.70, 0.90)
RULE_SOURCE = "Day 1: expect 70-90 % of a roof"


F16 = ("f16", "f16")

# Hundreds of machines run the same tests of the same few models.
_idle_experts, _kv_read_bytes, _decode, _prefill = map(lru_cache(maxsize=1000), (work.idle_experts, work.kv_read_bytes, work.decode, work.prefill))


@lru_cache(maxsize=100)
def _cache(types: tuple[str, str]) -> work.Cache:
    return work.Cache(type_k=types[0].upper(), type_v=types[1].upper())


def kv_token_bytes(model: Model, types: tuple[str, str] = F16) -> float:
    """KV cache one token adds, keys and values of these types [B]; NaN where a fork's type is not known here."""
    if any(t.upper() not in work.BLOCKS for t in types):
        return math.nan
    return work.kv_token_bytes(model.structure(), _cache(types))


def token_bytes(model: Model) -> float:
    """First-order weight bytes a token reads: the file, without the experts it is not routed to [B]."""
    return model.file_bytes() - _idle_experts(model.structure())[0]


def token_params(model: Model) -> float:
    """First-order parameters a token meets: all, but the experts it is not routed to."""
    return model.param_count() - _idle_experts(model.structure())[1]


def step_bytes(model: Model, depth_tokens: float = 0, kv_types: tuple[str, str] = F16) -> float:
    """First-order bytes a decode step reads at a depth [B]; NaN where a fork's cache type is not known here."""
    if any(t.upper() not in work.BLOCKS for t in kv_types):
        return math.nan
    return token_bytes(model) + _kv_read_bytes(model.structure(), depth_tokens, _cache(kv_types))


def decode_ceiling_tok_s(machine: Machine, model: Model, depth_tokens: float = 0, kv_types: tuple[str, str] = F16) -> float:
    """First-order decode ceiling of a machine for a model at a depth [tok/s]."""
    return roofline.decode_ceiling_tok_s(machine.specs.memory_bandwidth.si, step_bytes(model, depth_tokens, kv_types))


def prefill_ceiling_tok_s(machine: Machine, model: Model) -> float | None:
    """First-order prefill ceiling [tok/s]; None where no compute roof is known."""
    peak = machine.specs.peak_compute
    return roofline.prefill_ceiling_tok_s(peak.si, token_params(model)) if peak else None


def prefill_depth_ratio(model: Model, depth_tokens: float) -> float:
    """First-order prefill rate at a depth over the rate at depth 0 (fraction).

    Ignores: attention within the prompt itself, in both.
    """
    weights = 2 * token_params(model)
    attention = work.attention_flops_per_token(model.structure(), depth_tokens)
    return weights / (weights + attention)


def decode_depth_ratio(model: Model, depth_tokens: float, kv_types: tuple[str, str] = F16) -> float:
    """First-order decode rate at a depth over the rate at depth 0 (fraction)."""
    return token_bytes(model) / step_bytes(model, depth_tokens, kv_types)


def _digits(value: float, n: int = 4) -> float:
    """A number with n significant digits: what is inked is what a reader can retype."""
    return float(f"{value:.{n}g}")


def _spec(name: str, quantity: Quantity, machine: Machine) -> Input:
    source = machine.sources[quantity.source]
    return Input(name=name, value=quantity.value, unit=quantity.unit, source=f"{source.title} ({source.kind})")


def _size(model: Model) -> Input:
    how = "published" if model.file_size else "sum of the tensor table"
    size = token_bytes(model)
    name = f"bytes of {model.id}" + (", experts of one token" if size < model.file_bytes() else "")
    return Input(name=name, value=_digits(size / 1e9, 6), unit="GB", source=how)


def derive(
    machine: Machine, models: dict[str, Model], targets: list[Target], cpu_control: set[str],
    kv_types: Mapping[str, tuple[str, str]] = MappingProxyType({}),
) -> list[Prediction]:  # fmt: skip
    """The predictions the specs make about a plan's tests, in the plan's order.

    Args:
        targets: the tests about to be run
        cpu_control: names of experiments that switch the GPU off
        kv_types: experiments' types of the key and value cache, where not f16

    Ratios are over the first test of the same kind at depth 0 (the experiment's own, else the
    first one of the plan). A test no rule speaks about gets no prediction.
    """
    found: list[Prediction] = []
    for target in targets:
        found += _about(machine, models[target.model], target, _reference(targets, target), models, cpu_control, kv_types.get(target.experiment, F16))
    words = Counter(p.quantity for p in found)  # settings compared at the same depth are told apart by their experiment
    return [p if words[p.quantity] == 1 else p.model_copy(update={"quantity": f"{p.quantity}, {p.of.experiment}"}) for p in found]


def _reference(targets: list[Target], target: Target) -> Target | None:
    """The test a ratio is over: same kind, depth 0, own experiment before the plan's first."""
    alike = [t for t in targets if t.test == target.test and t.depth == 0 and t != target]
    own = [t for t in alike if t.experiment == target.experiment]
    earlier = [t for t in alike if targets.index(t) < targets.index(target)]
    return (own + earlier + [None])[0] if target.depth else (earlier + [None])[0]


def _about(
    machine: Machine, model: Model, of: Target, over: Target | None, models: dict[str, Model], cpu_control: set[str],
    kv_types: tuple[str, str],
) -> list[Prediction]:  # fmt: skip
    decode = of.test.startswith("tg")
    name = f"{of.experiment}-{of.test}" + (f"-d{of.depth}" if of.depth else "")
    what = "Decode rate" if decode else "Prefill rate"
    if of.experiment in cpu_control:
        if over is None:
            return []
        word, why = ("falls", "Day 1: CPU cores alone could not pull the whole bus") if decode else (
            "craters", "most of the compute is switched off")
        return [Prediction(id=name, quantity=f"{what}, CPU only", kind="direction", as_written=word, direction=word,
                           unit="1", because=why, of=of, over=over)]
    if over is None:
        return _roof(machine, model, of, decode, name, what)
    if of.depth:
        words, value, formula, why, inputs = _depth(model, of, decode, what, kv_types)
    elif of.model != over.model:
        words, value, formula, why, inputs = _format(model, models[over.model], decode, what)
    else:
        return []
    return [
        Prediction(id=name, quantity=words, kind="ratio", as_written=f"{_digits(value, 3):g}", value=_digits(value),
                   unit="1", because=why, of=of, over=over, formula=formula, inputs=inputs)
    ]


def _depth(model: Model, of: Target, decode: bool, what: str, kv_types: tuple[str, str]) -> tuple[str, float, str, str, list[Input]]:
    words = f"{what} at depth {of.depth} over depth 0"
    if decode:
        element = "2 B" if kv_types == F16 else f"the mean of {' and '.join(kv_types)}"
        kv = Input(name="KV per token", value=kv_token_bytes(model, kv_types), unit="B", source=f"2 x L x Hkv x D x {element}")
        why = "the KV cache is read beside the weights"
        return words, decode_depth_ratio(model, of.depth, kv_types), "W / (W + d x KV)", why, [_size(model), kv]
    why = "attention is computed beside the weights"
    inputs = [Input(name="parameters", value=token_params(model), unit="params", source="tensor table")]
    return words, prefill_depth_ratio(model, of.depth), "2P / (2P + 4 x L x H x D x d)", why, inputs


def _format(model: Model, reference: Model, decode: bool, what: str) -> tuple[str, float, str, str, list[Input]]:
    words = f"{what}, {model.quant} over {reference.quant}"
    if decode:
        why = "decode reads the file, so rates go as file sizes"
        value = token_bytes(reference) / token_bytes(model)
        return words, value, "W(reference) / W", why, [_size(reference), _size(model)]
    return words, 1.0, "1", "FLOPs do not care how weights are stored", []


def _roof(machine: Machine, model: Model, of: Target, decode: bool, name: str, what: str) -> list[Prediction]:
    """A ceiling, and Day 1's rule of thumb beneath it."""
    if decode:
        roof = decode_ceiling_tok_s(machine, model, of.depth)
        formula, inputs = "BW / W", [_spec("bandwidth", machine.specs.memory_bandwidth, machine), _size(model)]
        why = "every weight is read once per token"
    else:
        known = prefill_ceiling_tok_s(machine, model)
        peak = machine.specs.peak_compute
        if known is None or peak is None:
            return []
        roof, formula = known, "F / 2P"
        inputs = [_spec(f"peak {peak.precision}", peak, machine),
                  Input(name="parameters", value=token_params(model), unit="params", source="tensor table")]
        why = "2 FLOPs per parameter and token"
    low, high = (_digits(roof * share) for share in RULE_OF_THUMB)
    return [
        Prediction(id=f"{name}-ceiling", quantity=f"{what}, ceiling", kind="ceiling", as_written=f"{_digits(roof):g} tok/s",
                   value=_digits(roof), unit="tok/s", because=why, of=of, formula=formula, inputs=inputs),
        Prediction(id=f"{name}-range", quantity=what, kind="interval", as_written=f"{low:g} to {high:g} tok/s", low=low, high=high,
                   unit="tok/s", because=RULE_SOURCE, of=of, formula=f"0.7 to 0.9 x {formula}", inputs=inputs),
    ]


def exact_decode_bytes(model: Model, depth_tokens: int = 0, n_gen: int = 0) -> float:
    """Bytes one decode step really streams [B]; with n_gen, the padded KV cells of a tgN test included."""
    step = _decode(model.structure(), depth_tokens, n_gen or 1)
    if n_gen:
        return step.n_bytes
    return step.n_bytes - step.bytes_by_group["kv"] + _kv_read_bytes(model.structure(), depth_tokens)


def exact_prefill_flops_per_token(model: Model, n_prompt: int, depth_tokens: int = 0) -> float:
    """FLOPs a prompt token really costs, attention and head included [FLOP]."""
    return _prefill(model.structure(), n_prompt, depth_tokens).flops / n_prompt


if __name__ == "__main__":
    import sys

    from macros import predict_cli

    sys.exit(predict_cli.main())
