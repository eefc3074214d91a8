"""Plans of the bench (bench/plans/<profile>.yml): which tests, with which settings, in which order."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from macros.fields import Count, Id, NotNegative, Strict, key

# What llama-bench takes as -ctk and -ctv (ggml_type_from_name in its source).
CacheType = Literal["f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"]
FLOATS = ("f32", "f16", "bf16")
# YAML 1.1 reads a bare `on` as true.
Switch = Annotated[Literal["auto", "on", "off"], BeforeValidator(lambda v: {True: "on", False: "off"}.get(v, v) if isinstance(v, bool) else v)]


class Setting(Strict):
    """What a test changes against llama-bench's defaults; a key left out keeps the default."""

    threads: Count | Literal["performance", "physical", "logical"] | None = key(
        "CPU threads: a number, or a kind of core to count on the machine (left out where it has fewer)", "performance", default=None)
    n_batch: Count = key("Logical batch [tokens]", 2048, default=2048)
    n_ubatch: Count | None = key("Physical batch [tokens]; absent: 512, or n_batch where that is less", 512, default=None)
    type_k: CacheType = key("Key cache type", "q8_0", default="f16")
    type_v: CacheType = key("Value cache type; a quantised one needs flash attention", "q8_0", default="f16")
    flash_attn: Switch = key("Flash attention", "on", default="auto")

    @model_validator(mode="after")
    def possible(self) -> Setting:
        if (self.n_ubatch or 0) > self.n_batch:
            raise ValueError(f"n_ubatch is above n_batch; got {self.n_ubatch} and {self.n_batch}")
        if self.type_v not in FLOATS and self.flash_attn == "off":
            raise ValueError(f"a quantised value cache needs flash attention; got type_v {self.type_v} with flash_attn off")
        return self

    @property
    def ubatch(self) -> int:
        """Physical batch [tokens]."""
        return self.n_ubatch or min(512, self.n_batch)


class Experiment(Strict):
    """Tests that change one thing against the baseline."""

    name: Id = key("Name in ink and runs; with several settings their values are added (threads-4)", "depth")
    quant: str = key("Quantisation", "Q4_K_M")
    tests: list[Annotated[str, Field(pattern=r"^(pp|tg)[1-9]\d*$")]] = key("pp<N> and tg<N>", ["pp512", "tg128"], min_length=1)
    depths: list[NotNegative] = key("Tokens already in the context", [0, 2048], default=[0], min_length=1)
    settings: list[Setting] = key("Settings to compare; the first is what the others stand against", {"flash_attn": "on"}, default=[Setting()], min_length=1)
    cpu_control: bool = key("Run with the GPU switched off; left out where there is none", default=False)

    @model_validator(mode="after")
    def once_each(self) -> Experiment:
        for what, items in (("tests", self.tests), ("depths", self.depths), ("settings", [tuple(s) for s in self.settings])):
            twice = next((item for item, n in Counter(items).items() if n > 1), None)
            if twice is not None:
                shown = f"; got {twice!r}" if what != "settings" else ""
                raise ValueError(f"{what}: given twice{shown}")
        return self


class Plan(Strict):
    """A profile of the bench."""

    about: str = key("One line", "Day 1's plan")
    shape: str = key("Shapes of the synthetic weights, unless MODEL or SHAPE say otherwise", "qwen3-0.6b")
    rounds: Count = key("Rounds the repetitions are spread over: each runs every test, forwards and backwards in turn", 5, default=1)
    experiments: list[Experiment] = key("In the order they run", min_length=1)

    @model_validator(mode="after")
    def names_differ(self) -> Plan:
        twice = next((name for name, n in Counter(e.name for e in self.experiments).items() if n > 1), None)
        if twice is not None:
            raise ValueError(f"experiments: two of one name; got {twice!r}")
        return self
