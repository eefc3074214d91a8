"""A machine and a model as a page names them: specs, sizes and dimensions as Values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from markupsafe import Markup, escape

from macros import predict, roofline
from macros.cards import Machine, Model
from macros.fields import Quantity
from macros.values import Value, as_typed, inert


class Linker(Protocol):
    """Whatever can link from the page being rendered."""

    def link(self, target: str) -> str: ...


@dataclass(frozen=True)
class MachineView:
    """A machine's specs as Values of kind spec."""

    book: Linker
    doc: Machine

    @property
    def name(self) -> Markup:
        return inert(self.doc.name)

    @property
    def chip(self) -> Markup:
        return inert(self.doc.chip)

    @property
    def page(self) -> str:
        return self.book.link(f"machines/{self.doc.id}/")

    def _spec(self, q: Quantity, name: str) -> Value:
        source = self.doc.sources[q.source]
        title = f'<a href="{escape(source.url)}">{escape(source.title)}</a>' if source.url else escape(source.title)
        facts = (("Source", Markup(f"{title}, {source.kind}")), ("Note", "; ".join(filter(None, (q.note, source.note)))),
                 ("Machine", self.doc.name), ("File", f"labdata/machines/{self.doc.id}.yml"))  # fmt: skip
        return Value(q.value, q.unit, "spec", decimals=as_typed(q.value), name=name, facts=facts, href=f"{self.page}#specs")

    @property
    def bandwidth(self) -> Value:
        return self._spec(self.doc.specs.memory_bandwidth, "memory bandwidth")

    @property
    def compute(self) -> Value:
        if self.doc.specs.peak_compute is None:
            raise ValueError(f"labdata/machines/{self.doc.id}.yml: specs.peak_compute: not known")
        return self._spec(self.doc.specs.peak_compute, f"peak compute, {self.doc.specs.peak_compute.precision}")

    @property
    def compute_other(self) -> Value:
        others = [o.quantity for o in self.doc.other_values if o.spec == "peak_compute"]
        if not others:
            raise ValueError(f"labdata/machines/{self.doc.id}.yml: other_values: no second peak_compute")
        return self._spec(others[0], "peak compute, another figure")

    @property
    def memory(self) -> Value:
        if self.doc.specs.memory is None:
            raise ValueError(f"labdata/machines/{self.doc.id}.yml: specs.memory: not known")
        return self._spec(self.doc.specs.memory, "memory")

    @property
    def cpu_bandwidth(self) -> Value:
        if self.doc.specs.cpu_bandwidth is None:
            raise ValueError(f"labdata/machines/{self.doc.id}.yml: specs.cpu_bandwidth: not known")
        return self._spec(self.doc.specs.cpu_bandwidth, "bandwidth of the CPU cores alone")

    @property
    def cpu_bandwidth_upper(self) -> Value:
        q = self.doc.specs.cpu_bandwidth
        if q is None or q.upper is None:
            raise ValueError(f"labdata/machines/{self.doc.id}.yml: specs.cpu_bandwidth.upper: not known")
        return self._spec(q.model_copy(update={"value": q.upper}), "bandwidth of the CPU cores alone, upper end")


@dataclass(frozen=True)
class ModelView:
    """A model's sizes and dimensions as Values."""

    book: Linker
    doc: Model

    @property
    def name(self) -> Markup:
        return inert(self.doc.name)

    def _of(self, name: str, n: float, unit: str, how: str, decimals: int | None = None, kind: str = "spec") -> Value:
        facts = (("Model", self.doc.name), ("File", f"labdata/models/{self.doc.id}.yml"))
        return Value(n, unit, kind, decimals=decimals, how=how, name=name, facts=facts, href=self.book.link(f"machines/#model-{self.doc.id}"))

    def _how(self, what: str) -> str:
        return f"{what} as {'a log reported it' if self.doc.shape is None else 'published'}"

    @property
    def file(self) -> Value:
        how = self._how("file size") if self.doc.file_size else "sum of the tensor table"
        return self._of("file size", self.doc.file_bytes() / 1e9, "GB", how, 2)

    @property
    def params(self) -> Value:
        how = self._how("parameters") if self.doc.params else "sum of the tensor table"
        return self._of("parameters", self.doc.param_count() / 1e9, "billion", how, 2)

    @cached_property
    def layers(self) -> Value:
        return self._of("layers", self.doc.shape.n_layer, "", "config.json", 0)

    @cached_property
    def heads(self) -> Value:
        return self._of("query heads", self.doc.shape.n_head, "", "config.json", 0)

    @cached_property
    def kv_heads(self) -> Value:
        return self._of("KV heads", self.doc.shape.n_head_kv, "", "config.json", 0)

    @cached_property
    def head_dim(self) -> Value:
        return self._of("head dimension", self.doc.shape.head_dim, "", "config.json", 0)

    @property
    def kv_token(self) -> Value:
        how = "2 × layers × KV heads × head dim × 2 B"
        return self._of("KV cache per token", predict.kv_token_bytes(self.doc), "B", how, 0, "derived")

    @property
    def bits(self) -> Value:
        bits = roofline.effective_bits_per_weight(self.doc.file_bytes(), self.doc.param_count())
        return self._of("stored bits a weight", bits, "bits", "8 × file bytes / parameters", 2, "derived")

    @property
    def body_params(self) -> Value:
        how = "every matrix but embedding and output head"
        return self._of("parameters of the body", self.doc.structure().body_params / 1e9, "billion", how, 2, "derived")

    def exact_step_bytes(self, depth: int = 0, n_gen: int = 0) -> Value:
        """Bytes one decode step streams by the tensor table [GB]."""
        how = "tensor table: every tensor once, the input embedding left out, plus the KV cells read"
        return self._of("bytes a step streams", predict.exact_decode_bytes(self.doc, depth, n_gen) / 1e9, "GB", how, 2, "derived")

    def exact_prefill_flops(self, n_prompt: int, depth: int = 0) -> Value:
        """FLOPs a prompt token costs by the tensor table [GFLOP]."""
        how = "2 × body parameters + attention + output head once a batch"
        return self._of("FLOPs a prompt token costs", predict.exact_prefill_flops_per_token(self.doc, n_prompt, depth) / 1e9, "GFLOP", how, 2, "derived")
