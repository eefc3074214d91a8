"""What labdata/ may hold: one strict pydantic model per kind of file.

Unknown keys, NaN, wrong types and missing sources are refused here; references between
files are checked by `macros.labdata`. Descriptions and examples feed the editors' JSON
Schema and labdata/README.md, so they are written once.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

from macros import units, work

Id = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=80)]
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(gt=0)]
NotNegative = Annotated[int, Field(ge=0)]


def key(description: str, *examples: object, **kw: object):
    """A field with its meaning (unit included) and an example, for schema and README."""
    return Field(description=description, examples=list(examples), **kw)


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class Source(Strict):
    """Where a value comes from. One of url, raw or note says how to get there."""

    title: str = key("What the source is", "Apple: MacBook Pro (14-inch, M4) tech specs")
    kind: Literal["published", "measured", "derived", "assumed"] = key(
        "How the value came about", "published"
    )
    url: str | None = key("Its address", "https://support.apple.com/en-us/121552", default=None, pattern=r"^https?://\S+$")
    raw: str | None = key("A file in labdata/raw that holds it", "day-01.yml", default=None, pattern=r"^[A-Za-z0-9._-]+$")
    note: str | None = key("How it was measured, derived or why it is assumed", "10 cores x 128 FMA x 2 x 1.578 GHz", default=None)

    @model_validator(mode="after")
    def reachable(self) -> Source:
        if not (self.url or self.raw or self.note):
            raise ValueError("a source needs url, raw or note")
        return self


class Quantity(Strict):
    """A value with its unit and its source."""

    value: Positive = key("The number, in `unit`", 120)
    unit: Literal[tuple(units.UNITS)] = key("Its unit; GB is 1e9 B, GiB is 2^30 B", "GB/s")  # type: ignore[valid-type]
    source: str = key("A key of this file's `sources`", "apple")
    upper: Positive | None = key("Upper end, where only a range is known", 65, default=None)
    note: str | None = key("What a reader should know about it", "CPU and GPU share the bus", default=None)

    @property
    def si(self) -> float:
        """The value in its base unit (B, B/s, FLOP/s, ...)."""
        return units.to_si(self.value, self.unit)


class Compute(Quantity):
    """A peak compute rate and the precision it holds for."""

    precision: Literal["fp16", "fp32", "int8"] = key("Which peak this is", "fp16")


class Document(Strict):
    schema_version: Literal[1] = key("Version of this file's layout", 1, alias="schema")
    sources: dict[str, Source] = key("Every source named in this file", {"apple": "..."}, default_factory=dict)


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
    n_layer: Count = key("block_count", 36)
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


class Target(Strict):
    """What a prediction is about: one test of one experiment, or a file's size."""

    experiment: str = key("The experiment's name in the plan and in its runs", "depth")
    model: Id = key("A file in labdata/models", "qwen3-8b-q4_k_m")
    test: str = key("pp<N> (prefill), tg<N> (decode) or file_size", "tg128", pattern=r"^(pp[1-9]\d*|tg[1-9]\d*|file_size)$")
    depth: NotNegative = key("Tokens already in the context", 8192, default=0)


class Input(Strict):
    """A number that went into a prediction, copied with its source when the ink was written."""

    name: str = key("Symbol or name in the formula", "bandwidth")
    value: float = key("The number, in `unit`", 120)
    unit: str = key("Its unit", "GB/s")
    source: str = key("Where it came from", "Apple M4 tech specs")


DIRECTIONS: dict[str, tuple[float, float]] = {
    # word -> the range of measured / reference that bears it out
    "craters": (0.0, 0.5),
    "falls": (0.0, 1.0),
    "barely changes": (0.9, 1.1),
    "rises": (1.0, float("inf")),
}


class Prediction(Strict):
    """One prediction in ink."""

    id: Id = key("Name within this ink", "decode-ceiling")
    quantity: str = key("What is predicted, in words", "Decode rate, short context")
    kind: Literal["ceiling", "point", "interval", "ratio", "direction"] = key("How it is scored", "ceiling")
    as_written: str = key("The author's own words; scored through the fields below", "24 tok/s")
    value: Positive | None = key("ceiling, point, ratio: the number, in `unit`", 24, default=None)
    low: Positive | None = key("interval: lower end, in `unit`", 11.5, default=None)
    high: Positive | None = key("interval: upper end, in `unit`", 12.0, default=None)
    direction: Literal[tuple(DIRECTIONS)] | None = key("direction: the claim", "craters", default=None)  # type: ignore[valid-type]
    unit: Literal[tuple(units.UNITS)] = key("Unit; 1 for ratios and directions", "tok/s")  # type: ignore[valid-type]
    because: str = key("The reason given before measuring", "120 / 5")
    of: Target = key("What it is about", "{experiment: baseline, model: ..., test: tg128}")
    over: Target | None = key("ratio, direction: what it is relative to", default=None)
    formula: str | None = key("derived: the formula", "bandwidth / file bytes", default=None)
    inputs: list[Input] = key("derived: the numbers that went in", default_factory=list)

    @model_validator(mode="after")
    def complete(self) -> Prediction:
        needs = {"interval": ("low", "high"), "direction": ("direction", "over"), "ratio": ("value", "over")}
        needed = needs.get(self.kind, ("value",))
        given = {f for f in ("value", "low", "high", "direction", "over") if getattr(self, f) is not None}
        if given != set(needed):
            raise ValueError(f"kind {self.kind} takes exactly {', '.join(needed)}; got {', '.join(sorted(given)) or 'none'}")
        if self.kind == "interval" and self.low >= self.high:  # type: ignore[operator]
            raise ValueError(f"low must be under high; got {self.low} and {self.high}")
        return self


class Ink(Document):
    """Predictions written before anything ran. Never edited: every run holds this file's SHA-256."""

    id: Id = key("File name without .yml", "day-01")
    title: str = key("What was predicted", "Day 1: a laptop's token rate from its spec sheet")
    machine: Id = key("A file in labdata/machines", "apple-m4-24gb")
    author: Literal["lab", "derived"] = key("derived: computed from the specs by the bench", "lab")
    written_at: AwareDatetime | None = key("When; null: not recorded", "2026-11-30T04:00:00Z")
    written_note: str = key("How it is known that this came first", "Written before anything ran; the hour was not recorded")
    predictions: list[Prediction] = key("The predictions", min_length=1)


class Correction(Strict):
    """A slip in the ink, and what it should have been. The ink stays and is scored as written."""

    prediction: Id = key("Its id in the ink", "depth-ratio")
    slip: str = key("What went wrong", "144 KB was taken as 144,000 B")
    name: str = key("The input concerned", "KV cache per token")
    as_used: Positive = key("The number the ink used, in `unit`", 144000)
    unit: Literal[tuple(units.UNITS)] = key("Unit", "B")  # type: ignore[valid-type]
    because: str = key("Why the right value is right", "2 x 36 x 8 x 128 x 2 B = 147,456 B")


class Afterthought(Strict):
    """A number derived after the measurement: shown, never scored."""

    id: Id = key("Name within this file", "prefill-ceiling")
    quantity: str = key("What it is", "Prefill ceiling")
    value: Positive = key("The number as the lab wrote it, in `unit`", 270)
    unit: Literal[tuple(units.UNITS)] = key("Unit", "tok/s")  # type: ignore[valid-type]
    because: str = key("Its derivation", "4.4e12 / (2 x 8.19e9)")


class Errata(Document):
    """What was found after the ink was dry; stands beside it as <ink>.errata.yml."""

    ink: Id = key("The ink this is about", "day-01")
    corrections: list[Correction] = key("Slips", default_factory=list)
    afterthoughts: list[Afterthought] = key("Numbers derived after the miss", default_factory=list)


class InkRef(Strict):
    id: Id = key("A file in labdata/ink", "day-01")
    sha256: str = key("SHA-256 of that file when the run began", "9f86d0...", pattern=r"^[0-9a-f]{64}$")


class Instrument(Strict):
    name: str = key("What measured", "inklab, in-process")
    version: str | None = key("Its version; null: not recorded", "0.1.0")
    engine: str = key("Inference engine", "llama.cpp")
    engine_version: str | None = key("Its build or package version; null: not recorded", "llama-cpp-python 0.3.36")


class HostDoc(Strict):
    """What the machine said of itself when the run began; null: not readable or not recorded."""

    os: str | None = key("System and version", "Debian GNU/Linux 12")
    kernel: str | None = key("Kernel release", "6.1.0", default=None)
    arch: str | None = key("Machine architecture", "x86_64", default=None)
    cpu: str | None = key("CPU model name", "AMD EPYC", default=None)
    physical_cores: Count | None = key("Physical cores", 2, default=None)
    logical_cores: Count | None = key("Logical cores", 2, default=None)
    memory_bytes: Count | None = key("Memory [B]", 25769803776, default=None)
    gpus: list[str] = key("GPUs by name", "NVIDIA GeForce RTX 4090", default_factory=list)
    power: str | None = key("Power source", "ac", default=None)
    virtual: bool | None = key("Whether it is a virtual machine", True, default=None)
    python: str | None = key("Python version", "3.11.7", default=None)
    packages: dict[str, str] = key("Versions of the packages that matter", {"numpy": "2.4.6"}, default_factory=dict)


class Published(Strict):
    """What was published where raw samples are not to be had."""

    mean_tok_s: Positive = key("Mean rate [tok/s]", 20.8)
    sigma_tok_s: Annotated[float, Field(ge=0)] = key("Sample standard deviation [tok/s]", 0.05)
    n: Count = key("Repetitions", 5)


class Result(Strict):
    """One test: what was run, and its raw samples (or why there are none)."""

    experiment: str = key("Name in the plan", "depth")
    model: Id = key("A file in labdata/models", "qwen3-8b-q4_k_m")
    n_prompt: NotNegative = key("Prompt tokens timed (prefill test), else 0", 512)
    n_gen: NotNegative = key("Tokens generated and timed (decode test), else 0", 0)
    depth: NotNegative = key("Tokens already in the context", 8192)
    backend: str = key("Backend truly used", "Metal")
    n_gpu_layers: int | None = key("Layers asked onto the GPU; null: llama.cpp's default", 99, default=None)
    layers_offloaded: NotNegative | None = key("Layers that really went there", 37, default=None)
    n_threads: Count | None = key("CPU threads; null: llama-bench's default", 4, default=None)
    n_batch: Count = key("Logical batch [tokens]", 2048, default=2048)
    n_ubatch: Count = key("Physical batch [tokens]", 512, default=512)
    type_k: str = key("Key cache type", "f16", default="f16")
    type_v: str = key("Value cache type", "f16", default="f16")
    flash_attn: Literal["auto", "on", "off"] = key("Flash attention", "auto", default="auto")
    started_at: AwareDatetime | None = key("When the test began", "2026-11-30T04:10:00Z", default=None)
    load_before: Annotated[float, Field(ge=0)] | None = key("Load average over one minute per core, before the test [1]", 0.1, default=None)
    samples_ns: list[Count] | None = key("Wall time of each repetition [ns]", [6190000000], default=None, min_length=1)
    published: Published | None = key("Mean and sigma, where only they were published", default=None)
    failed: str | None = key("Why there is no result", "engine killed by SIGSEGV", default=None)

    @model_validator(mode="after")
    def one_outcome(self) -> Result:
        if sum(x is not None for x in (self.samples_ns, self.published, self.failed)) != 1:
            raise ValueError("exactly one of samples_ns, published, failed")
        if (self.n_prompt > 0) == (self.n_gen > 0):
            raise ValueError("exactly one of n_prompt and n_gen is above 0")
        return self

    @property
    def test(self) -> str:
        """llama-bench's name of the test, depth left out ("pp512", "tg128")."""
        return f"pp{self.n_prompt}" if self.n_prompt else f"tg{self.n_gen}"

    @property
    def n_tokens(self) -> int:
        """Tokens processed inside the clock."""
        return self.n_prompt or self.n_gen


class Run(Document):
    """One sitting at the stopwatch: identity and raw samples, never a derived number."""

    id: Id = key("File name without .yml", "2026-11-30-0410-quick")
    machine: Id = key("The folder it lies in", "apple-m4-24gb")
    ink: InkRef | None = key("The ink written before it; null: none was")
    profile: str = key("Plan that was run", "quick")
    started_at: AwareDatetime | None = key("When the run began; null: not recorded", "2026-11-30T04:10:00Z")
    command: str = key("How to repeat it", "make bench PROFILE=quick")
    instrument: Instrument = key("What measured")
    host: HostDoc = key("The machine at that moment")
    planned: list[str] = key("Tests the plan asked for, so that a gap shows", "baseline pp512", default_factory=list)
    notes: list[str] = key("What the operator knew", "Quiet machine", default_factory=list)
    results: list[Result] = key("One entry a test, in the order they ran")


class Chip(Strict):
    """A chip's published roofs, looked up by the bench; never guessed."""

    id: Id = key("Name", "apple-m4-10c")
    name: str = key("Name in words", "Apple M4 (10-core GPU)")
    match: dict[str, str | int] = key("What the host must say", {"apple": "Apple M4", "gpu_cores": 10})
    memory_bandwidth: Quantity = key("Memory roof [GB/s]")
    peak_fp16: Quantity | None = key("Dense fp16 peak [TFLOP/s]; null: not published")


class Chips(Document):
    """The table of chips."""

    chips: list[Chip] = key("One entry a chip variant")


class Experiment(Strict):
    """Tests that change one thing against the baseline."""

    name: Id = key("Name in ink and runs", "depth")
    quant: str = key("Quantisation", "Q4_K_M")
    tests: list[Annotated[str, Field(pattern=r"^(pp|tg)[1-9]\d*$")]] = key("pp<N> and tg<N>", ["pp512", "tg128"], min_length=1)
    depths: list[NotNegative] = key("Tokens already in the context", [0, 2048], default=[0], min_length=1)
    cpu_control: bool = key("Run with the GPU switched off; left out where there is none", default=False)


class Plan(Strict):
    """A profile of the bench (bench/plans/<profile>.yml): which tests, in which order."""

    about: str = key("One line", "Day 1's plan")
    shape: str = key("Shapes of the synthetic weights, unless MODEL or SHAPE say otherwise", "qwen3-0.6b")
    experiments: list[Experiment] = key("In the order they run", min_length=1)
