"""Cards: what a machine or a model is, each value with its source."""

from __future__ import annotations

from typing import Literal

from macros import work
from macros.fields import Compute, Count, Document, Id, Quantity, Strict, key


class Specs(Strict):
    memory_bandwidth: Quantity = key("Memory roof [GB/s]", "{value: 120, unit: GB/s, source: apple}")
    peak_compute: Compute | None = key("Compute roof [TFLOP/s]; null: not known", "{value: 4.4, unit: TFLOP/s, precision: fp16, source: lab}")
    memory: Quantity = key("Memory the weights must fit in [GB or GiB]", "{value: 24, unit: GB, source: apple}")
    cpu_bandwidth: Quantity | None = key("What the CPU cores alone can pull, where known [GB/s]", "{value: 60, upper: 65, unit: GB/s, source: lab}", default=None)


class OtherValue(Strict):
    """A second figure for a spec, cited but not used."""

    spec: Literal["memory_bandwidth", "peak_compute", "memory"] = key("Which spec", "peak_compute")
    quantity: Quantity = key("The other figure", "{value: 4.04, unit: TFLOP/s, source: clock}")


class Machine(Document):
    """A machine: what it is and what its spec sheet, or a probe, promises."""

    id: Id = key("File name without .yml", "apple-m4-24gb")
    name: str = key("Name on the page", "Apple M4 MacBook Pro, 24 GB")
    chip: str = key("The chip that computes", "Apple M4")
    os: str = key("Operating system; the version where known", "macOS")
    cores: Count | None = key("Physical CPU cores; null: not recorded", 10)
    specs: Specs = key("The roofs", "{memory_bandwidth: ...}")
    other_values: list[OtherValue] = key("Figures cited beside the used ones", default_factory=list)
    notes: list[str] = key("Facts worth a line on the machine's page", "Virtual machine", default_factory=list)


class ShapeDoc(Strict):
    """A dense decoder's dimensions, as a GGUF header names them."""

    source: str = key("A key of this file's `sources`", "config")
    arch: str = key("general.architecture", "qwen3")
    n_layer: Count = key("block_count", 36, le=10_000)
    n_embd: Count = key("embedding_length", 4096)
    n_ff: Count = key("feed_forward_length", 12288)
    n_vocab: Count = key("Rows of token_embd", 151936)
    n_head: Count = key("attention.head_count", 32)
    n_head_kv: Count = key("attention.head_count_kv", 8)
    head_dim: Count = key("attention.key_length (and value_length)", 128)
    tied: bool = key("No output.weight in the file: token_embd is the output head too", False)


class TensorDoc(Strict):
    """A group of tensors alike in all but the layer number."""

    name: str = key("Name, layer number as *", "blk.*.attn_q.weight")
    shape: list[Count] = key("Dimensions in ggml order (row length first)", [4096, 4096])
    type: Literal[tuple(work.BLOCKS)] = key("ggml type", "Q4_K")  # type: ignore[valid-type]
    count: Count = key("How many such tensors", 36)


class Model(Document):
    """A model: weights and quantisation. Its tensor table is `tensors`, or the recipe for `quant`."""

    id: Id = key("File name without .yml", "qwen3-8b-q4_k_m")
    name: str = key("Name on the page", "Qwen3-8B Q4_K_M")
    quant: str = key("Quantisation, llama.cpp's label", "Q4_K_M")
    weights: Literal["published", "synthetic"] = key("synthetic: random bits in the same shapes and types, written locally", "published")
    hf: str | None = key("Where to get it, owner/repo:QUANT; null: local or synthetic", "ggml-org/Qwen3-8B-GGUF:Q4_K_M")
    shape: ShapeDoc = key("Dimensions", "{arch: qwen3, ...}")
    params: Quantity | None = key("Published parameter count; absent: summed from the tensor table", "{value: 8.19e+9, unit: params, source: lab}", default=None)
    file_size: Quantity | None = key("Published file size [GB or GiB]; absent: summed from the tensor table", "{value: 5.03, unit: GB, source: lab}", default=None)
    tensors: list[TensorDoc] | None = key("Tensor table as read from a file's header, grouped; absent: llama.cpp's recipe", default=None)

    @property
    def dims(self) -> work.Shape:
        """The dimensions as `macros.work` takes them."""
        return work.Shape(**self.shape.model_dump(exclude={"source"}))

    def table(self) -> list[work.Tensor]:
        """The tensor table: from the header where one was read, else llama.cpp's recipe."""
        if self.tensors is None:
            return work.recipe(self.dims, self.quant)
        return [work.Tensor(t.name, tuple(t.shape), t.type, t.count) for t in self.tensors]

    def file_bytes(self) -> float:
        """Size of the weights [B]: as published, else the sum of the tensor table."""
        return self.file_size.si if self.file_size else float(work.total_bytes(self.table()))

    def param_count(self) -> float:
        """Parameters: as published, else the sum of the tensor table."""
        return self.params.si if self.params else float(work.total_params(self.table()))
