"""A model's dimensions from its GGUF keys.

Standard library only. Source: llama.cpp src/llama-model.cpp (load_hparams), src/models/*.cpp.
"""

from __future__ import annotations

from macros.ggml_types import Tensor
from macros.shapes import PerLayer, Shape

MAX_LAYERS, MAX_COUNT = 4096, 2**31  # more than any model has; bounds the work for a damaged file


class _Keys:
    """The keys of one architecture; every wrong value is named with its key."""

    def __init__(self, metadata: dict[str, object]) -> None:
        self.metadata, self.arch = metadata, str(metadata["general.architecture"])

    def get(self, key: str) -> object:
        return self.metadata.get(f"{self.arch}.{key}")

    def whole(self, key: str, value: object, least: int) -> int:
        """A whole number, also where it is stored as a float."""
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value < MAX_COUNT:
            what = "positive whole number" if least else "whole number from 0"
            raise ValueError(f"{self.arch}.{key}: not a {what}; got {value!r}")
        return value

    def count(self, key: str, default: int | None = None, least: int = 1) -> int:
        value = self.get(key)
        if value is None and default is not None:
            return default
        return self.whole(key, value, least)

    def per_layer(self, key: str, n_layer: int, default: PerLayer | None = None, least: int = 1) -> PerLayer:
        """One number for all layers, or one a layer; alike ones become one."""
        value = self.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, tuple):
            return self.whole(key, value, least)
        if len(value) != n_layer:
            raise ValueError(f"{self.arch}.{key}: {len(value)} entries for {n_layer} layers")
        found = tuple(self.whole(key, v, 0) for v in value)
        return found[0] if len(set(found)) == 1 else found

    def flags(self, key: str, n_layer: int) -> int | tuple[bool, ...] | None:
        """A period, or which layers; None: not said."""
        value = self.get(key)
        if isinstance(value, tuple):
            if len(value) != n_layer:
                raise ValueError(f"{self.arch}.{key}: {len(value)} entries for {n_layer} layers")
            return tuple(bool(v) for v in value)
        return None if value is None else self.whole(key, value, 1)


def shape_of(metadata: dict[str, object], tensors: list[Tensor]) -> Shape:
    """The dimensions a header states.

    Raises:
        ValueError: a key that is missing, negative or of the wrong kind; not a language model.
    """
    keys = _Keys(metadata)
    by_name = {tensor.name: tensor for tensor in tensors}
    if "token_embd.weight" not in by_name:
        raise ValueError("no tensor token_embd.weight: not a whole language model")
    n_layer, n_embd = keys.count("block_count"), keys.count("embedding_length")
    if n_layer > MAX_LAYERS:
        raise ValueError(f"{keys.arch}.block_count: more layers than any model has; got {n_layer}")
    recurrent_only = keys.arch in ("mamba", "mamba2")
    n_head = keys.per_layer("attention.head_count", n_layer, 0 if recurrent_only else None, least=0 if recurrent_only else 1)
    most_heads = max(n_head) if isinstance(n_head, tuple) else n_head
    head_dim = keys.count("attention.key_length", n_embd // most_heads if most_heads else 0)
    head_dim_v = keys.count("attention.value_length", n_embd // most_heads if most_heads else 0)
    head_dim_swa = keys.count("attention.key_length_swa", head_dim, least=0)
    rank = keys.count("attention.kv_lora_rank", 0, least=0)
    n_expert = keys.count("expert_count", 0, least=0)
    n_ff_exp = keys.per_layer("expert_feed_forward_length", n_layer, 0, least=0)
    n_used = keys.per_layer("expert_used_count", n_layer, 0, least=0)
    n_ff_exp, n_used = (max(v) if isinstance(v, tuple) else v for v in (n_ff_exp, n_used))
    if n_expert and not 0 < n_used <= n_expert:
        raise ValueError(f"{keys.arch}.expert_used_count: must lie in 1 to {n_expert} (expert_count); got {n_used}")
    shared = keys.count("expert_shared_feed_forward_length", n_ff_exp * keys.count("expert_shared_count", 0, least=0), least=0)
    n_nextn = keys.count("nextn_predict_layers", 0, least=0)
    n_shared_kv = keys.count("attention.shared_kv_layers", 0, least=0)
    for key, part in (("nextn_predict_layers", n_nextn), ("attention.shared_kv_layers", n_shared_kv)):
        if part >= n_layer:
            raise ValueError(f"{keys.arch}.{key}: as many as there are layers; got {part} of {n_layer}")
    recurrent = keys.flags("attention.recurrent_layers", n_layer)
    return Shape(
        arch=keys.arch,
        n_layer=n_layer,
        n_embd=n_embd,
        n_ff=keys.per_layer("feed_forward_length", n_layer, 0, least=0),
        n_vocab=by_name["token_embd.weight"].shape[-1],
        n_head=n_head,
        n_head_kv=keys.per_layer("attention.head_count_kv", n_layer, n_head, least=0),
        head_dim=head_dim,
        tied="output.weight" not in by_name,
        head_dim_v=None if head_dim_v == head_dim else head_dim_v,
        head_dim_swa=None if head_dim_swa == head_dim else head_dim_swa,
        window=None if keys.get("attention.sliding_window") is None else keys.count("attention.sliding_window", least=0),
        window_layers=keys.flags("attention.sliding_window_pattern", n_layer),
        n_layer_shared_kv=n_shared_kv,
        n_expert=n_expert,
        n_expert_used=n_used,
        n_ff_exp=n_ff_exp,
        n_ff_shared=shared if n_expert else 0,
        n_layer_dense=keys.count("leading_dense_block_count", 0, least=0),
        expert_step=keys.count("interleave_moe_layer_step", 1, least=1),
        q_lora_rank=keys.count("attention.q_lora_rank", 0, least=0),
        kv_lora_rank=rank,
        rope_dim=keys.count("rope.dimension_count", 0, least=0) if rank else 0,
        head_dim_mla=keys.count("attention.key_length_mla", 0, least=0),
        head_dim_v_mla=keys.count("attention.value_length_mla", 0, least=0),
        ssm_conv=keys.count("ssm.conv_kernel", 0, least=0),
        ssm_inner=keys.count("ssm.inner_size", 0, least=0),
        ssm_state=keys.count("ssm.state_size", 0, least=0),
        ssm_groups=keys.count("ssm.group_count", 0, least=0),
        ssm_heads=keys.count("ssm.time_step_rank", 0, least=0),
        recurrent_layers=keys.flags("full_attention_interval", n_layer) if recurrent is None else recurrent,
        shortconv=keys.count("shortconv.l_cache", 0, least=0),
        kda_head_dim=keys.count("kda.head_dim", 0, least=0),
        n_embd_per_layer=keys.count("embedding_length_per_layer_input", 0, least=0),
        n_layer_nextn=n_nextn,
    )
