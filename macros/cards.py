"""Cards: what a machine or a model is, each value with its source."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Annotated, Literal

from pydantic import Field, model_validator

from macros import work
from macros.fields import Compute, Count, Document, Id, Name, NotNegative, Quantity, Strict, key

PerLayer = NotNegative | list[NotNegative]


class Specs(Strict):
    memory_bandwidth: Quantity = key("Memory roof [GB/s]", "{value: 120, unit: GB/s, source: apple}")
    peak_compute: Compute | None = key("Compute roof [TFLOP/s]; null: not known", "{value: 4.4, unit: TFLOP/s, precision: fp16, source: lab}")
    memory: Quantity | None = key("Memory the weights must fit in [GB or GiB]; null: not known", "{value: 24, unit: GB, source: apple}")
    cpu_bandwidth: Quantity | None = key("What the CPU cores alone can pull, where known [GB/s]", "{value: 60, upper: 65, unit: GB/s, source: lab}", default=None)


class OtherValue(Strict):
    """A second figure for a spec, cited but not used."""

    spec: Literal["memory_bandwidth", "peak_compute", "memory"] = key("Which spec", "peak_compute")
    quantity: Quantity = key("The other figure", "{value: 4.04, unit: TFLOP/s, source: clock}")


class Machine(Document):
    """A machine: what it is and what its spec sheet, or a probe, promises."""

    id: Id = key("File name without .yml", "apple-m4-24gb")
    name: Name = key("Name on the page", "Apple M4 MacBook Pro, 24 GB")
    chip: Name = key("The chip that computes", "Apple M4")
    os: str = key("Operating system; the version where known", "macOS")
    cores: Count | None = key("Physical CPU cores; null: not recorded", 10)
    specs: Specs = key("The roofs", "{memory_bandwidth: ...}")
    other_values: list[OtherValue] = key("Figures cited beside the used ones", default_factory=list)
    notes: list[str] = key("Facts worth a line on the machine's page", "Virtual machine", default_factory=list)


class ShapeDoc(Strict):
    """A decoder's dimensions, as a GGUF header names them; what a model has no part of is left out."""

    source: str = key("A key of this file's `sources`", "config")
    arch: str = key("general.architecture", "qwen3")
    n_layer: Annotated[int, Field(gt=0, le=10_000)] = key("block_count", 36)
    n_embd: Count = key("embedding_length", 4096)
    n_ff: PerLayer = key("feed_forward_length, one for all layers or one a layer", 12288)
    n_vocab: Count = key("Rows of token_embd", 151936)
    n_head: PerLayer = key("attention.head_count", 32)
    n_head_kv: PerLayer = key("attention.head_count_kv", 8, [0, 0, 8])
    head_dim: NotNegative = key("attention.key_length (and value_length)", 128)
    tied: bool = key("No output.weight in the file: token_embd is the output head too", False)
    head_dim_v: NotNegative | None = key("attention.value_length, where it differs", 512, default=None)
    head_dim_swa: Count | None = key("attention.key_length_swa, where it differs", 256, default=None)
    window: NotNegative | None = key("attention.sliding_window [tokens]", 1024, default=None)
    window_layers: Count | list[bool] | None = key("attention.sliding_window_pattern: period, or which layers slide", 6, default=None)
    n_layer_shared_kv: NotNegative = key("attention.shared_kv_layers", 18, default=0)
    n_expert: NotNegative = key("expert_count", 128, default=0)
    n_expert_used: NotNegative = key("expert_used_count", 8, default=0)
    n_ff_exp: NotNegative = key("expert_feed_forward_length", 768, default=0)
    n_ff_shared: NotNegative = key("Width of all shared experts together", 2048, default=0)
    n_layer_dense: NotNegative = key("leading_dense_block_count", 3, default=0)
    expert_step: Count = key("interleave_moe_layer_step", 2, default=1)
    q_lora_rank: NotNegative = key("attention.q_lora_rank", 1536, default=0)
    kv_lora_rank: NotNegative = key("attention.kv_lora_rank", 512, default=0)
    rope_dim: NotNegative = key("rope.dimension_count, of MLA heads", 64, default=0)
    head_dim_mla: NotNegative = key("attention.key_length_mla", 192, default=0)
    head_dim_v_mla: NotNegative = key("attention.value_length_mla", 128, default=0)
    ssm_conv: NotNegative = key("ssm.conv_kernel", 4, default=0)
    ssm_inner: NotNegative = key("ssm.inner_size", 4096, default=0)
    ssm_state: NotNegative = key("ssm.state_size", 128, default=0)
    ssm_groups: NotNegative = key("ssm.group_count", 16, default=0)
    ssm_heads: NotNegative = key("ssm.time_step_rank", 32, default=0)
    recurrent_layers: Count | list[bool] | None = key("full_attention_interval, or which layers are recurrent", 4, default=None)
    shortconv: NotNegative = key("shortconv.l_cache", 3, default=0)
    kda_head_dim: NotNegative = key("kda.head_dim", 128, default=0)
    n_embd_per_layer: NotNegative = key("embedding_length_per_layer_input", 256, default=0)
    n_layer_nextn: NotNegative = key("nextn_predict_layers: last layers that only draft", 1, default=0)

    @cached_property
    def dims(self) -> work.Shape:
        """The dimensions as `macros.work` takes them."""
        found = self.model_dump(exclude={"source"})
        return work.Shape(**{k: tuple(v) if isinstance(v, list) else v for k, v in found.items()})

    @classmethod
    def of(cls, shape: work.Shape, source: str) -> ShapeDoc:
        """The document of some dimensions."""
        plain = {k: list(v) if isinstance(v, tuple) else v for k, v in vars(shape).items()}
        return cls(source=source, **plain)


class TensorDoc(Strict):
    """A group of tensors alike in all but the layer number."""

    name: str = key("Name, layer number as *", "blk.*.attn_q.weight")
    shape: list[Count] = key("Dimensions in ggml order (row length first)", [4096, 4096], min_length=1, max_length=4)
    type: Literal[tuple(work.BLOCKS)] = key("ggml type", "Q4_K")  # type: ignore[valid-type]
    count: Count = key("How many such tensors", 36)


class Model(Document):
    """A model: weights and quantisation. Its tensor table is `tensors`, or the recipe for `quant`."""

    id: Id = key("File name without .yml", "qwen3-8b-q4_k_m")
    name: Name = key("Name on the page", "Qwen3-8B Q4_K_M")
    quant: Name = key("Quantisation, llama.cpp's label", "Q4_K_M")
    weights: Literal["published", "synthetic", "reported"] = key("synthetic: random bits in the same shapes and types, written locally; reported: known from a log alone", "published")
    hf: str | None = key("Where to get it, owner/repo:QUANT; null: local or synthetic", "ggml-org/Qwen3-8B-GGUF:Q4_K_M")
    shape: ShapeDoc | None = key("Dimensions; null where weights are reported", "{arch: qwen3, ...}")
    params: Quantity | None = key("Published parameter count; absent: summed from the tensor table", "{value: 8.19e+9, unit: params, source: lab}", default=None)
    file_size: Quantity | None = key("Published file size [GB or GiB]; absent: summed from the tensor table", "{value: 5.03, unit: GB, source: lab}", default=None)
    tensors: list[TensorDoc] | None = key("Tensor table as read from a file's header, grouped; absent: llama.cpp's recipe", default=None)

    @model_validator(mode="after")
    def shaped(self) -> Model:
        if (self.shape is None) != (self.weights == "reported"):
            raise ValueError("shape: null if, and only if, weights is reported")
        if self.shape is None and self.tensors:
            raise ValueError("tensors: a model known from a log alone has no tensor table")
        return self

    @property
    def dims(self) -> work.Shape:
        """The dimensions as `macros.work` takes them.

        Raises:
            ValueError: known from a log alone.
        """
        if self.shape is None:
            raise ValueError(f"labdata/models/{self.id}.yml: shape: not known, the model was only reported by a log")
        return self.shape.dims

    def table(self) -> list[work.Tensor]:
        """The tensor table: from the header where one was read, else llama.cpp's recipe."""
        if self.tensors is None:
            return list(_recipe(self.dims, self.quant)[0])
        return [work.Tensor(t.name, tuple(t.shape), t.type, t.count) for t in self.tensors]

    def structure(self) -> work.Structure:
        """What a step touches; approximate where the table is llama.cpp's recipe, not a header's."""
        return self._touched

    @cached_property
    def _touched(self) -> work.Structure:
        if self.tensors is None:
            return _recipe_structure(self.dims, self.quant)
        return _structure(self.dims, tuple(self.table()))

    @property
    def approximate(self) -> bool:
        """Whether the tensor table is a recipe's, not read from a file."""
        return self.tensors is None

    def file_bytes(self) -> float:
        """Size of the weights [B]: as published, else the sum of the tensor table."""
        return self.file_size.si if self.file_size else self._sums[0]

    def param_count(self) -> float:
        """Parameters: as published, else the sum of the tensor table."""
        return self.params.si if self.params else self._sums[1]

    @cached_property
    def _sums(self) -> tuple[float, float]:
        """Bytes and parameters of the tensor table."""
        return _sums(tuple(self.table())) if self.tensors else _recipe(self.dims, self.quant)[1]


def _sums(table: tuple[work.Tensor, ...]) -> tuple[float, float]:
    return float(work.total_bytes(table)), float(work.total_params(table))


# A page asks a model for its table some hundred times, and hundreds of machines run the same few models.
@lru_cache(maxsize=256)
def _recipe(dims: work.Shape, quant: str) -> tuple[tuple[work.Tensor, ...], tuple[float, float]]:
    table = tuple(work.counted(dims, quant))
    return table, _sums(table)


@lru_cache(maxsize=256)
def _recipe_structure(dims: work.Shape, quant: str) -> work.Structure:
    return work.structure(dims, _recipe(dims, quant)[0])


@lru_cache(maxsize=256)
def _structure(dims: work.Shape, table: tuple[work.Tensor, ...]) -> work.Structure:
    return work.structure(dims, table)
