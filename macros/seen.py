"""GGUF files others ran: dimensions, sizes and cache sizes as their logs printed them."""

from __future__ import annotations

from typing import Literal

from macros import work
from macros.cards import ShapeDoc
from macros.fields import Count, Document, Id, NotNegative, Positive, Quantity, Strict, key

GgmlType = Literal[tuple(work.BLOCKS)]


class CacheLog(Strict):
    """What llama.cpp's log says it set aside for context, and under which settings."""

    n_ctx: Count = key("Cells of one stream [tokens]", 32768)
    type_k: GgmlType = key("Type of the keys", "F16", default="F16")  # type: ignore[valid-type]
    type_v: GgmlType = key("Type of the values", "F16", default="F16")  # type: ignore[valid-type]
    latent: bool = key("One latent vector a token is cached (MLA), where `shape` has whole heads", True, default=False)
    swa_full: bool = key("Layers with a window have a cache of full size", True, default=False)
    n_ubatch: Count = key("Tokens a ubatch [tokens]", 512, default=512)
    sequences: Count = key("Sequences served at once", 4, default=1)
    unified: bool = key("They share one cache; false: a stream each", False, default=True)
    kept_states: NotNegative = key("Earlier recurrent states kept a sequence", 6, default=0)
    kv_mib: Positive | None = key("KV cache, where one figure is printed [MiB]", 1024, default=None)
    full_mib: Positive | None = key("KV cache of the layers that see everything [MiB]", 256, default=None)
    window_mib: Positive | None = key("KV cache of the layers with a window [MiB]", 18, default=None)
    state_mib: Positive | None = key("Recurrent state [MiB]", 149.62, default=None)


class SeenFile(Strict):
    """One file of a public log or result."""

    id: Id = key("Name within this file", "gpt-oss-20b-mxfp4")
    name: str = key("The model, and its mix of types in words", "gpt-oss 20B MXFP4")
    mix: str | None = key("Mix of types as llama.cpp's quantiser makes it; null: the file's own, or not said", "Q4_K_M")
    imatrix: bool = key("It was made with an importance matrix", True, default=False)
    shape: ShapeDoc = key("Dimensions", "{arch: gpt-oss, ...}")
    params: Quantity | None = key("Parameters as printed", "{value: 20.91, unit: billion, source: log}", default=None)
    size: Quantity | None = key("Size of all tensors as printed", "{value: 11.27, unit: GiB, source: log}", default=None)
    types: dict[str, Count] = key("How many tensors of each type, where the log says", {"F32": 289, "MXFP4": 72}, default_factory=dict)
    caches: list[CacheLog] = key("Cache sizes as logged", default_factory=list)
    note: str | None = key("What a reader should know", "Holds a draft layer", default=None)

    def table(self) -> list[work.Tensor]:
        """The tensor table by llama.cpp's recipe, alike ones counted; a file whose mix is its own has its parameters counted as F16.

        Raises:
            ValueError: no layout for the architecture, or no recipe for the mix.
        """
        return work.counted(self.shape.dims, self.mix or "F16", self.imatrix)


class GgufFiles(Document):
    """GGUF files of public logs, to check exact work against; dimensions a log does not print are its model's config.json's."""

    files: list[SeenFile] = key("One entry a file")
