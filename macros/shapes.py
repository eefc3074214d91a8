"""A model's dimensions, and what each architecture makes of them: layers, windows, states.

The architectures are llama.cpp's `general.architecture`; what is not in ARCHITECTURES is
refused by name, never guessed. Standard library only; numbers in, numbers out.
Source: llama.cpp, src/models/*.cpp (load_arch_hparams), src/llama-hparams.cpp and
src/llama-model.cpp (create_memory), as vendored by llama-cpp-python 0.3.36.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

PerLayer = int | tuple[int, ...]  # one number for every layer, or one a layer


@dataclass(frozen=True)
class Architecture:
    """What the name of an architecture settles, where the file does not say it [counts].

    Args:
        window: sliding window used where the file names none [tokens]; 0: the file decides
        period: one layer in so many sees everything, the others a window; 0: llama.cpp knows no
            windows here, even where the file names one (Phi-3, Mistral 0.1); 1: the file must
            say which layers
        full_first: the full layer is the first of each period, not the last
        chunked: a window is the position's own chunk of tokens, not the tokens before it
        recurrent: which layers keep a state: "all", "no_kv" (those without KV heads), "no_kv_no_ff",
            "interval" (all but one in so many), "beside" (every layer, beside its attention)
        delta: the state is a gated delta net's, which costs more than a Mamba's
        kv_layers: only so many layers, from the first, have a cache of their own; 0: all
    """

    window: int = 0
    period: int = 0
    full_first: bool = False
    chunked: bool = False
    recurrent: str = ""
    delta: bool = False
    kv_layers: int = 0


PLAIN = Architecture()
ARCHITECTURES: dict[str, Architecture] = {
    # Full attention in every layer: dense, or a mixture of experts where the file has them.
    **dict.fromkeys((
        "apertus", "arcee", "baichuan", "bailingmoe", "bailingmoe2", "bitnet", "chatglm", "command-r", "dbrx", "deci",
        "deepseek", "deepseek2", "dots1", "ernie4_5", "ernie4_5-moe", "exaone", "falcon", "gemma", "glm4", "glm4moe",
        "granite", "granitemoe", "grok", "hunyuan-dense", "hunyuan-moe", "internlm2", "llama", "minicpm", "minimax-m2",
        "mistral3", "nemotron", "olmo", "olmoe", "orion", "phi2", "phi3", "phimoe", "qwen", "qwen2", "qwen2moe",
        "qwen2vl", "qwen3", "qwen3moe", "qwen3vl", "qwen3vlmoe", "seed_oss", "smollm3", "stablelm", "starcoder2",
        "xverse"), PLAIN),
    # Sliding windows.
    "cohere2": Architecture(period=4),
    "exaone4": Architecture(window=4096, period=4),
    "gemma2": Architecture(window=4096, period=2),
    "gemma3": Architecture(period=6),
    "gemma3n": Architecture(period=5, kv_layers=20),
    "gemma4": Architecture(period=1),
    "gpt-oss": Architecture(period=2),
    "llama4": Architecture(window=8192, period=4, chunked=True),
    "mimo2": Architecture(period=1),
    "olmo2": Architecture(period=4),
    "smallthinker": Architecture(period=4, full_first=True),
    "step35": Architecture(period=1),
    # Recurrent, and hybrids of recurrent layers and attention.
    "falcon-h1": Architecture(recurrent="beside"),
    "granitehybrid": Architecture(recurrent="no_kv"),
    "jamba": Architecture(recurrent="no_kv"),
    "kimi-linear": Architecture(recurrent="no_kv", delta=True),
    "lfm2": Architecture(recurrent="no_kv"),
    "lfm2moe": Architecture(recurrent="no_kv"),
    "mamba": Architecture(recurrent="all"),
    "mamba2": Architecture(recurrent="all"),
    "nemotron_h": Architecture(recurrent="no_kv_no_ff"),
    "nemotron_h_moe": Architecture(recurrent="no_kv_no_ff"),
    "qwen35": Architecture(recurrent="interval", delta=True),
    "qwen35moe": Architecture(recurrent="interval", delta=True),
    "qwen3next": Architecture(recurrent="interval", delta=True),
}  # fmt: skip
FULL_ATTENTION_INTERVAL = 4  # Qwen3-Next and Qwen3.5, where the file does not say


@dataclass(frozen=True)
class Shape:
    """A decoder's dimensions, as a GGUF header names them [counts].

    The first nine describe a dense decoder; the rest is left at its default where a model has
    no such part. A per-layer value is one number, or one a layer.
    """

    arch: str
    n_layer: int
    n_embd: int
    n_ff: PerLayer
    n_vocab: int
    n_head: PerLayer
    n_head_kv: PerLayer
    head_dim: int
    tied: bool  # token_embd is also the output head; a property of the file, not of the model
    head_dim_v: int | None = None  # None: as head_dim
    head_dim_swa: int | None = None  # in layers with a window; None: as head_dim
    window: int | None = None  # [tokens]; 0: none, None: the architecture's own
    window_layers: int | tuple[bool, ...] | None = None  # period, or which layers; None: the architecture's own
    n_layer_shared_kv: int = 0  # last layers that read an earlier layer's cache
    n_expert: int = 0
    n_expert_used: int = 0
    n_ff_exp: int = 0
    n_ff_shared: int = 0  # all shared experts together
    n_layer_dense: int = 0  # leading layers without experts
    expert_step: int = 1  # every so many layers have experts
    q_lora_rank: int = 0
    kv_lora_rank: int = 0
    rope_dim: int = 0  # part of an MLA head that is rotated
    head_dim_mla: int = 0  # MLA stored split: the true head sizes, head_dim being rank + rope_dim
    head_dim_v_mla: int = 0
    ssm_conv: int = 0
    ssm_inner: int = 0
    ssm_state: int = 0
    ssm_groups: int = 0
    ssm_heads: int = 0
    recurrent_layers: int | tuple[bool, ...] | None = None  # interval of full attention, or which layers
    shortconv: int = 0  # length of a short convolution's cache (LFM2)
    kda_head_dim: int = 0  # Kimi's delta attention
    n_embd_per_layer: int = 0  # a second embedding, for each layer (Gemma 3n and 4)
    n_layer_nextn: int = 0  # last layers that only draft tokens: never run otherwise

    @property
    def mla(self) -> bool:
        """Whether one latent vector a token is cached, keys and values read from it."""
        return self.kv_lora_rank > 0 and self.head_dim_mla > 0


@dataclass(frozen=True)
class Layer:
    """`count` layers alike in what they keep and attend to [counts a layer].

    k_cell and v_cell are the elements a token leaves in the cache; an MLA layer has no v_cell,
    and a layer that reads another's cache has `own` False.
    """

    n_head: int = 0
    k_dim: int = 0
    v_dim: int = 0
    k_cell: int = 0
    v_cell: int = 0
    own: bool = True
    window: int = 0  # [tokens]; 0: everything before
    chunked: bool = False
    conv_state: int = 0  # f32 elements
    ssm_state: int = 0
    delta: bool = False
    count: int = 1


def at(value: PerLayer, layer: int) -> int:
    """A per-layer value in one layer."""
    return value[layer] if isinstance(value, tuple) else value


def known(arch: object) -> Architecture:
    """What an architecture's name settles.

    Raises:
        ValueError: not a name known here.
    """
    if not isinstance(arch, str) or arch not in ARCHITECTURES:
        raise ValueError(f"architecture not covered; got {arch!r}; known: {', '.join(sorted(ARCHITECTURES))}")
    return ARCHITECTURES[arch]


def window_flags(shape: Shape) -> tuple[int, tuple[bool, ...]]:
    """The sliding window [tokens] and which layers have it; window 0: none has.

    Raises:
        ValueError: the architecture's file must say which layers slide and does not.
    """
    rule = known(shape.arch)
    window = rule.window if shape.window is None else shape.window
    if rule.chunked and window:
        window = rule.window  # llama.cpp's own, whatever the file says
    if shape.arch == "exaone4" and shape.n_layer != 64:
        window = 0  # only the 32B slides
    if shape.arch == "lfm2" and window:
        return window, (True,) * shape.n_layer  # all of its attention layers; the others keep a state
    if not rule.period or not window:
        return 0, (False,) * shape.n_layer
    layers = shape.window_layers
    if isinstance(layers, tuple):
        return window, layers
    if layers is None and rule.period == 1:
        raise ValueError(f"{shape.arch}: which layers slide is not said (attention.sliding_window_pattern)")
    period = rule.period if layers is None else layers
    full = 0 if rule.full_first else period - 1
    return window, tuple(period == 0 or i % period != full for i in range(shape.n_layer))


def own_cache_layers(shape: Shape) -> int:
    """Layers, from the first, that have a cache of their own; later ones read an earlier one's."""
    if shape.n_layer_shared_kv:
        return shape.n_layer - shape.n_layer_shared_kv
    return known(shape.arch).kv_layers or shape.n_layer


def recurrent_flags(shape: Shape) -> tuple[bool, ...]:
    """Which layers keep a recurrent state."""
    rule, n = known(shape.arch).recurrent, shape.n_layer
    if isinstance(shape.recurrent_layers, tuple):
        return shape.recurrent_layers
    if rule == "no_kv":
        return tuple(at(shape.n_head_kv, i) == 0 for i in range(n))
    if rule == "no_kv_no_ff":
        return tuple(at(shape.n_head_kv, i) == 0 and at(shape.n_ff, i) == 0 for i in range(n))
    if rule == "interval":
        interval = shape.recurrent_layers or FULL_ATTENTION_INTERVAL
        return tuple((i + 1) % interval != 0 for i in range(n))
    return (rule in ("all", "beside"),) * n


@lru_cache(maxsize=64)  # the formats of one model ask in turn
def layers(shape: Shape) -> tuple[Layer, ...]:
    """A model's layers, those alike counted together.

    Draft layers (NextN, MTP) are left out: nothing runs them without speculative decoding.

    Raises:
        ValueError: the architecture is not known, or its dimensions contradict each other.

    >>> layers(Shape("qwen3", 36, 4096, 12288, 151936, 32, 8, 128, tied=False))
    (Layer(n_head=32, k_dim=128, v_dim=128, k_cell=1024, v_cell=1024, own=True, window=0, chunked=False, conv_state=0, ssm_state=0, delta=False, count=36),)
    """
    rule = known(shape.arch)
    window, slides = window_flags(shape)
    recurrent = recurrent_flags(shape)
    n_own = own_cache_layers(shape)
    for name, value in (("per-layer values", (shape.n_ff, shape.n_head, shape.n_head_kv)), ("window_layers", (slides,)),
                        ("recurrent_layers", (recurrent,))):  # fmt: skip
        for item in value:
            if isinstance(item, tuple) and len(item) != shape.n_layer:
                raise ValueError(f"{name}: {len(item)} entries for {shape.n_layer} layers")
    conv, ssm = _state(shape)
    if any(recurrent) and conv <= 0:
        raise ValueError(f"{shape.arch}: recurrent layers without a state (ssm.conv_kernel, ssm.inner_size, shortconv.l_cache)")
    found: Counter[tuple[int, ...]] = Counter()  # a layer's fields but its count
    for i in range(shape.n_layer - shape.n_layer_nextn):
        n_head, n_kv = at(shape.n_head, i), at(shape.n_head_kv, i)
        k = shape.head_dim_swa if slides[i] and shape.head_dim_swa else shape.head_dim
        v = k if shape.head_dim_v is None or (slides[i] and shape.head_dim_swa) else shape.head_dim_v
        attends = n_kv > 0 and (not recurrent[i] or rule.recurrent == "beside")
        state = (conv, ssm, rule.delta) if recurrent[i] else (0, 0, False)
        cache = (n_head, k, v, n_kv * k, 0 if shape.mla else n_kv * v, i < n_own, window if slides[i] else 0, rule.chunked and slides[i])
        found[(*(cache if attends else (0, 0, 0, 0, 0, True, 0, False)), *state)] += 1
    return tuple(Layer(*fields, count) for fields, count in found.items())


def _state(shape: Shape) -> tuple[int, int]:
    """Elements of a recurrent layer's convolution and of its state, for one sequence."""
    if shape.shortconv:
        return shape.n_embd * (shape.shortconv - 1), 0
    if shape.kda_head_dim:
        n_head = max(shape.n_head) if isinstance(shape.n_head, Sequence) else shape.n_head
        return 3 * (shape.ssm_conv - 1) * n_head * shape.kda_head_dim, shape.kda_head_dim**2 * n_head
    conv = max(0, shape.ssm_conv - 1) * (shape.ssm_inner + 2 * shape.ssm_groups * shape.ssm_state)
    return conv, shape.ssm_state * shape.ssm_inner
