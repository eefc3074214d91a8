"""Records of measuring: runs with their raw samples, checks of the instrument."""

from __future__ import annotations

import datetime
from functools import cached_property
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field, model_validator

from macros import units
from macros.fields import LARGEST, Count, Document, Id, NotBelow0, NotNegative, Positive, Strict, key
from macros.inks import label

Share = Annotated[float, Field(ge=0, le=1)]


IMPORTED = "imported"  # profile and experiment of what a log brought in


class InkRef(Strict):
    id: Id = key("A file in labdata/ink", "day-01")
    sha256: str = key("SHA-256 of that file when the run began", "9f86d0...", pattern=r"^[0-9a-f]{64}$")


class Instrument(Strict):
    name: str = key("What measured", "inklab, in-process")
    version: str | None = key("Its version; null: not recorded", "0.1.0")
    engine: str = key("Inference engine", "llama.cpp")
    engine_version: str | None = key("Its build or package version; null: not recorded", "llama-cpp-python 0.3.36")
    protocol: str = key("llama-bench's, or another clock's way in words", "llama-bench", default="llama-bench")


class HostDoc(Strict):
    """What the machine said of itself when the run began; null: not readable or not recorded."""

    os: str | None = key("System and version", "Debian GNU/Linux 12")
    kernel: str | None = key("Kernel release", "6.1.0", default=None)
    arch: str | None = key("Machine architecture", "x86_64", default=None)
    cpu: str | None = key("CPU model name", "AMD EPYC", default=None)
    board: str | None = key("Board, where the machine is a single-board computer", "Raspberry Pi 5 Model B Rev 1.0", default=None)
    physical_cores: Count | None = key("Physical cores", 2, default=None)
    logical_cores: Count | None = key("Logical cores", 2, default=None)
    memory_bytes: Count | None = key("Memory [B]", 25769803776, default=None)
    gpus: list[str] = key("GPUs by name", "NVIDIA GeForce RTX 4090", default_factory=list)
    power: str | None = key("Power source", "ac", default=None)
    virtual: bool | None = key("Whether it is a virtual machine", True, default=None)
    load1_per_core: NotBelow0 | None = key("Load average over one minute per logical core, before the run [1]", 0.1, default=None)
    python: str | None = key("Python version", "3.11.7", default=None)
    packages: dict[str, str] = key("Versions of the packages that matter", {"numpy": "2.4.6"}, default_factory=dict)


class Published(Strict):
    """What was published where raw samples are not to be had."""

    mean_tok_s: Positive = key("Mean rate [tok/s]", 20.8)
    sigma_tok_s: NotBelow0 | None = key("Sample standard deviation [tok/s]; null: not told", 0.05)
    n: Count | None = key("Repetitions; null: not told", 5)


class Sitting(Strict):
    """Repetitions of a test in one go: how many of its samples came from them, and the machine before and after; null: not told."""

    n: NotNegative = key("Its share of `samples_ns`, in their order; 0: it failed", 1)
    started_at: AwareDatetime = key("When it began", "2026-11-30T04:10:00Z")
    load: list[Share | None] = key("Share of all cores that others than the bench used, over the time before (the bench's own start, or the test before) and over the test itself; in older records and with QUIET, over a wait before and after [1]", [0.1, 0.0], min_length=2, max_length=2)
    cpu_mhz: list[Positive | None] = key("Clock of the CPU's cores before and after, mean [MHz]", [3200, 2900], default_factory=lambda: [None, None], min_length=2, max_length=2)
    celsius: list[Annotated[float, Field(ge=-273.15, le=10_000)] | None] = key("Hottest sensor before and after [°C]", [45, 88], default_factory=lambda: [None, None], min_length=2, max_length=2)
    speed_limit: list[Share | None] = key("Share of its full speed that macOS allows the CPU before and after [1]", [1, 0.8], default_factory=lambda: [None, None], min_length=2, max_length=2)
    throttled: NotNegative | None = key("Thermal throttle events meanwhile, summed over the CPUs", 0, default=None)
    steal: Share | None = key("Share of all cores that a virtual machine's host gave to others meanwhile [1]", 0.02, default=None)
    waited_s: NotNegative | None = key("Time waited for an idle machine before it [s]", 12, default=None)
    failed: str | None = key("Why it gave no samples", "engine killed by SIGSEGV", default=None)


class Result(Strict):
    """One test: what was run, and its raw samples (or why there are none)."""

    experiment: str = key("Name in the plan", "depth")
    model: Id = key("A file in labdata/models", "qwen3-8b-q4_k_m")
    n_prompt: NotNegative = key("Prompt tokens timed, else 0", 512)
    n_gen: NotNegative = key("Tokens generated and timed, else 0", 0)
    depth: NotNegative = key("Tokens already in the context", 8192)
    backend: str = key("Backend truly used", "Metal")
    n_gpu_layers: Annotated[int, Field(ge=-LARGEST, le=LARGEST)] | None = key("Layers asked onto the GPU; null: llama.cpp's default", 99, default=None)
    layers_offloaded: NotNegative | None = key("Layers that really went there", 37, default=None)
    n_devices: Count = key("GPUs or hosts that shared the work, where the log tells", 2, default=1)
    n_threads: Count | None = key("CPU threads; null: llama-bench's default", 4, default=None)
    n_batch: Count | None = key("Logical batch [tokens]; null: not told", 2048, default=2048)
    n_ubatch: Count | None = key("Physical batch [tokens]; null: not told", 512, default=512)
    type_k: str | None = key("Key cache type; null: not told", "f16", default="f16")
    type_v: str | None = key("Value cache type; null: not told", "f16", default="f16")
    flash_attn: Literal["auto", "on", "off"] | None = key("Flash attention; null: not told", "auto", default="auto")
    settings: dict[str, str] = key("Other settings, by the instrument's own names", {"use_mmap": "0"}, default_factory=dict)
    started_at: AwareDatetime | None = key("When the test began", "2026-11-30T04:10:00Z", default=None)
    load_before: NotBelow0 | None = key("Share of all cores that others than the bench used over the time before the test (the bench's own start, or the test before); in older records and with QUIET, over a wait just before it [1]", 0.1, default=None)
    samples_ns: list[Count] | None = key("Wall time of each repetition [ns]", [6190000000], default=None, min_length=1)
    sittings: list[Sitting] = key("Repetitions done in one go, and the machine around them", default_factory=list)
    stopped: Literal["repetitions", "interval", "cap"] | None = key("Why there were no more repetitions: as many as asked; the 95 % interval of the mean is narrow enough; the cap", "interval", default=None)
    published: Published | None = key("Mean and sigma, where only they were published", default=None)
    failed: str | None = key("Why there is no result", "engine killed by SIGSEGV", default=None)

    @model_validator(mode="after")
    def one_outcome(self) -> Result:
        if [self.samples_ns, self.published, self.failed].count(None) != 2:
            raise ValueError("exactly one of samples_ns, published, failed")
        if not self.n_prompt and not self.n_gen:
            raise ValueError("one of n_prompt and n_gen is above 0 (both: llama-bench's pg test)")
        if self.sittings and sum([s.n for s in self.sittings]) != len(self.samples_ns or []):
            raise ValueError("sittings: their n do not add up to the number of samples_ns")
        return self

    @cached_property
    def test(self) -> str:
        """llama-bench's name of the test, depth left out ("pp512", "tg128", "pp512+tg128")."""
        decode = f"tg{self.n_gen}" if self.n_gen else ""
        return f"pp{self.n_prompt}{'+' if decode else ''}{decode}" if self.n_prompt else decode

    @property
    def mixed(self) -> bool:
        """Prefill and decode under one clock: a rate that is neither."""
        return self.n_prompt > 0 and self.n_gen > 0

    @property
    def kv_types(self) -> tuple[str, str]:
        """Types of the key and the value cache; llama.cpp's default where they were not told."""
        return self.type_k or "f16", self.type_v or "f16"

    @property
    def label(self) -> str:
        """Its name in a run's `planned`."""
        return label(self.experiment, self.test, self.depth, self.model)

    @property
    def n_tokens(self) -> int:
        """Tokens processed inside the clock."""
        return self.n_prompt + self.n_gen


class Run(Document):
    """One sitting at the stopwatch: identity and raw samples, never a derived number."""

    id: Id = key("File name without .yml", "2026-11-30-0410-quick")
    machine: Id = key("The folder it lies in", "apple-m4-24gb")
    ink: InkRef | None = key("The ink written before it; null: none was")
    profile: str = key(f"Plan that was run; {IMPORTED}: none of ours, somebody's log", "quick")
    started_at: AwareDatetime | None = key("When the run began; null: not recorded", "2026-11-30T04:10:00Z")
    command: str = key("How to repeat it", "make bench PROFILE=quick")
    instrument: Instrument = key("What measured")
    host: HostDoc = key("The machine at that moment")
    planned: list[str] = key("Tests the plan asked for, so that a gap shows", "baseline pp512", default_factory=list)
    notes: list[str] = key("What the operator knew", "Quiet machine", default_factory=list)
    results: list[Result] = key("One entry a test, in the order they ran")


class Pairs(Strict):
    """One quantity measured by two ways in turn: a, b, a, b, ..."""

    test: str = key("What was timed", "tg128")
    a: list[Positive] = key("The first way, in the order run, in `unit`", [41.3, 43.3, 43.7], min_length=1)
    b: list[Positive] = key("The second way", [42.5, 42.6, 44.2], min_length=1)
    unit: Literal[tuple(units.UNITS)] = key("Unit", "tok/s")  # type: ignore[valid-type]


class Check(Document):
    """A check of the instrument itself: two ways of measuring the same thing, in interleaved pairs."""

    id: Id = key("File name without .yml", "synthetic-weights")
    title: str = key("What was asked", "Do random bits run as fast as real weights?")
    setting: str = key("Where and with what", "2 cores of a Xeon virtual machine, llama-cpp-python 0.3.36")
    date: datetime.date | None = key("When; null: not recorded", "2026-11-30")
    a: str = key("The first way", "as published")
    b: str = key("The second way", "randomised")
    pairs: list[Pairs] = key("One entry a test", min_length=1)
    loop_ns: list[Annotated[float, Field(gt=0)]] | None = key(
        "What the in-process loop itself takes for a token, its library calls replaced by empty ones; one entry a round [ns]", [900.0], default=None, min_length=1)  # fmt: skip
    source: str = key("A key of this file's `sources`", "lab")

    @model_validator(mode="after")
    def paired(self) -> Check:
        for p in self.pairs:
            if len(p.a) != len(p.b):
                raise ValueError(f"{p.test}: as many of a as of b; got {len(p.a)} and {len(p.b)}")
        return self
