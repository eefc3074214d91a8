"""The page "Predict yours": machines and models to pick from, the worked example, and the script that answers for any other.

Numbers stand in slots: the build fills them for the worked example, the script for the reader's own machine.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from markupsafe import Markup

from macros import calibration, chart_cache, corpus_models, hardware, page_script, subject_load, tables, units, values, work, yours
from macros.calibrated import Device
from macros.corpus_models import NotPredictable
from macros.labdata import Lab, LabError
from macros.narrative import Book
from macros.shapes import Layer, Shape
from macros.structure import Weights
from macros.tables import Column
from macros.yours import Ask

# What people run, beside the mixes labdata has files of; each as llama.cpp's quantiser would write it,
# unless labdata has the file's own table.
FORMATS = ("BF16", "Q8_0", "Q6_K", "Q4_K_M", "IQ4_XS")
CACHE = Path(".cache/predict")
CODE = ("ggml_types", "shapes", "layouts", "recipes", "structure", "work", "cards", "seen", "yours_page")
UNKNOWN = "not known"
OWN = "own"  # a machine that is none of ours


@dataclass(frozen=True)
class Slot:
    """How a number of `yours.answer` is printed: unit, kind (as of Value), formula in words, digits past the point."""

    unit: str
    kind: str
    how: str
    decimals: int | None = None


SLOTS = {
    "bandwidth": Slot("GB/s", "spec", "memory bandwidth of the machine"),
    "compute": Slot("TFLOP/s", "spec", "compute roof of the machine"),
    "memory": Slot("GB", "spec", "memory of the machine"),
    "file_bytes": Slot("GB", "spec", "size of the weights"),
    "params": Slot("billion", "spec", "parameters"),
    "token_bytes": Slot("GB", "derived", "weights one token reads: all but the experts it is not routed to"),
    "token_params": Slot("billion", "derived", "parameters one token meets"),
    "kv_token": Slot("KiB", "derived", "keys and values of one token, all layers"),
    "kv_read": Slot("GB", "derived", "KV cache read at this depth"),
    "step_bytes": Slot("GB", "derived", "weights + KV cache at this depth"),
    "ceiling_empty": Slot("tok/s", "predicted", "bandwidth / bytes per token"),
    "ceiling": Slot("tok/s", "predicted", "bandwidth / (bytes per token + KV cache)"),
    "thumb_low": Slot("tok/s", "predicted", "Day 1's rule of thumb, its lower end"),
    "thumb_high": Slot("tok/s", "predicted", "Day 1's rule of thumb, its upper end"),
    "kept": Slot("%", "predicted", "weights / (weights + KV cache)"),
    "intensity": Slot("FLOP/B", "derived", "2 × parameters / bytes per token"),
    "ridge": Slot("FLOP/B", "derived", "compute / bandwidth"),
    "prefill_ceiling": Slot("tok/s", "predicted", "compute / (2 × parameters)"),
    "prefill_kept": Slot("%", "predicted", "2P / (2P + attention at this depth)"),
    "exact_weights": Slot("GB", "derived", "tensor table: every tensor a step reads"),
    "exact_kv": Slot("GB", "derived", "cells the cache reads, padded, mean over tg128"),
    "exact_state": Slot("GB", "derived", "recurrent states, read and written"),
    "exact_bytes": Slot("GB", "derived", "sum of the groups"),
    "exact_flops": Slot("GFLOP", "derived", "2 × parameters + attention, of one step"),
    "exact_decode": Slot("tok/s", "predicted", "sequences / the longer of bytes / bandwidth and FLOPs / compute"),
    "exact_prompt_flops": Slot("GFLOP", "derived", "mean FLOPs of a token of pp512"),
    "exact_prefill": Slot("tok/s", "predicted", "tokens / the longer of bytes / bandwidth and FLOPs / compute"),
    **{f"{phase}{end}": Slot("tok/s", "predicted", f"calibrated predictor{words}")
       for phase in ("decode", "prefill") for end, words in (("", ""), ("_low", ", lower end of its interval"), ("_high", ", upper end of its interval"))},
    **{f"{phase}_{part}_s": Slot("ms", "predicted", "calibrated predictor, time of this part") for phase, parts in
       (("decode", ("weights", "kv", "fixed")), ("prefill", ("matmul", "attention", "streaming", "fixed"))) for part in parts},
    "need_weights": Slot("GB", "derived", "every tensor of the file"),
    "need_kv": Slot("GB", "derived", "KV cache as llama.cpp allocates it"),
    "need_state": Slot("GB", "derived", "recurrent states"),
    "need": Slot("GB", "derived", "sum of the three"),
    "left": Slot("GB", "derived", "memory − what it needs"),
    "longest": Slot("tokens", "derived", "longest context of each sequence that fits", 0),
}  # fmt: skip
FACTORS = {"%": 0.01, "ms": 1e-3, "tokens": 1.0, "FLOP/B": 1.0}


def machines(lab: Lab) -> dict[str, list[Any]]:
    """Machines to pick by id: name, group, bandwidth [GB/s], compute roof [TFLOP/s], memory [GB], backend, vendor, generation,
    two dies, and the peak the predictor learnt on over that roof [1]; null where a figure is not known."""
    found = {}
    for machine in sorted(lab.machines.values(), key=lambda m: m.name):
        specs = machine.specs
        found[machine.id] = _row(machine.name, "Measured here", subject_load.device(machine)[0], specs.peak_compute and specs.peak_compute.si, specs.memory and specs.memory.si)
    for chip in sorted(lab.chips, key=lambda c: c.name):
        if chip.kind == "memory":
            continue
        try:
            device = subject_load.chip_device(chip.id)[0]
        except NotPredictable:
            continue
        _, peak, _ = hardware.roofs(chip, lab.chip_sources)
        roof = peak.si if peak else device.flops_s
        found[f"chip:{chip.id}"] = _row(chip.name, {"nvidia": "NVIDIA", "amd": "AMD"}.get(device.vendor, device.vendor.capitalize()), device, roof,
                                        chip.memory_gb[-1] * 1e9 if chip.memory_gb else None)
    return found


def _row(name: str, group: str, device: Device, roof_flops_s: float | None, memory_bytes: float | None) -> list[Any]:
    ratio = device.flops_s / roof_flops_s if device.flops_s and roof_flops_s else 1.0
    return [name, group, _short(device.bandwidth_bytes_s / 1e9), _short((roof_flops_s or device.flops_s or 0) / 1e12) or None,
            memory_bytes and _short(memory_bytes / 1e9), device.backend, device.vendor, device.generation, device.two_dies, ratio]  # fmt: skip


def _short(x: float) -> float:
    """A number as a person would type it."""
    return float(f"{x:.6g}")


def models(lab: Lab) -> dict[str, dict[str, Any]]:
    """Models to pick by id: name, architecture, counts, layers, and by format its size, parameters, weights by role and address.

    Those of labdata/models come first, then the shapes of labdata/gguf_files.yml. Kept by content: hundreds of tensor tables
    take a second, and change only with those files and the code that reads them.
    """
    said = [d.model_dump_json() for d in (*lab.models.values(), *([lab.gguf_files] if lab.gguf_files else []))]
    said += [Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8") for name in CODE]
    return json.loads(chart_cache.kept(said, ".json", lambda: json.dumps(_models(lab), ensure_ascii=False).encode(), CACHE))


def _models(lab: Lab) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    shapes: dict[str, Shape] = {}
    for card in sorted((m for m in lab.models.values() if m.shape), key=lambda m: (m.weights != "published", m.id)):
        id = _family(found, shapes, card.dims, card.name)
        if shapes[id] == card.dims and (card.quant not in found[id]["formats"] or card.hf):
            found[id]["formats"][card.quant] = [card.file_bytes(), card.param_count(), _weights(card.structure()), card.hf]
    mixes: dict[str, set[str]] = {}
    for file in lab.gguf_files.files if lab.gguf_files else []:
        id = _family(found, shapes, file.shape.dims, file.name)
        mixes.setdefault(id, set()).update([file.mix] if file.mix else [])
    for id, model in found.items():
        for quant in {*FORMATS, *mixes.get(id, ())} - set(model["formats"]):
            try:
                table = work.counted(shapes[id], quant)
                model["formats"][quant] = [work.total_bytes(table), work.total_params(table), _weights(work.structure(shapes[id], table)), None]
            except ValueError:
                continue  # no layout of this architecture, or no such mix of it
        model["formats"] = dict(sorted(model["formats"].items(), key=lambda f: (-f[1][0], f[0])))
    return {id: m for id, m in sorted(found.items(), key=lambda f: f[1]["name"].lower()) if m["formats"]}


FORMAT_WORD = re.compile(r"[ -](?:I?Q\d\w*|B?F16|MXFP4)$", re.I)


def family(name: str) -> str:
    """A model's name without its format, and without what a comma adds.

    >>> family("Qwen3-8B Q4_K_M, synthetic weights"), family("gpt-oss 20B MXFP4")
    ('Qwen3-8B', 'gpt-oss 20B')
    """
    return FORMAT_WORD.sub("", name.partition(",")[0])


def slug(name: str) -> str:
    """A name as an address has it.

    >>> slug("Qwen3.5 27B family")
    'qwen3.5-27b-family'
    """
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")


def _family(found: dict[str, dict[str, Any]], shapes: dict[str, Shape], shape: Shape, name: str) -> str:
    """The id of a model's entry, made where there is none."""
    id = slug(family(name))
    if id not in found:
        model = work.structure(shape, [])
        shapes[id] = shape
        found[id] = {"name": family(name), "arch": model.arch, "counts": [model.n_layer, model.n_expert, model.n_expert_used],
                     "layers": [_plain(x) for x in model.layers], "formats": {}}  # fmt: skip
    return id


def _plain(thing: Weights | Layer) -> list[Any]:
    return [getattr(thing, f.name) for f in fields(thing)]


def _weights(model: work.Structure) -> list[list[Any]]:
    return [_plain(w) for w in model.weights if w.role != "unused"]


def ask(machine: list[Any], model: dict[str, Any], quant: str, depth: int = 0, batch: int = 1, kv_type: str = "f16") -> Ask:
    """A question from rows of `machines` and `models`."""
    _, _, bandwidth, compute, memory, backend, vendor, generation, two_dies, ratio = machine
    file_bytes, params, weights, _ = model["formats"][quant]
    peak = compute and compute * 1e12
    device = Device(backend, vendor, generation, bandwidth * 1e9, peak and peak * ratio, two_dies)
    subject = yours.subject(model["name"], quant, model["arch"], model["counts"], weights, model["layers"])
    return Ask(device, peak, memory and memory * 1e9, subject, file_bytes, params, depth, batch, kv_type)


def shown(name: str, x: float | None, bare: bool = False) -> str:
    """A number as its slot prints it; bare: without its unit."""
    if x is None:
        return UNKNOWN
    slot = SLOTS[name]
    n = x / _factor(slot.unit)
    return values.number(n, values.decimals_for(n) if slot.decimals is None else slot.decimals) + ("" if bare else values.THIN + slot.unit)


def _factor(unit: str) -> float:
    return FACTORS.get(unit) or units.to_si(1.0, unit)


class Example:
    """The worked example as a page names it: its numbers by name, equations, form and tables."""

    def __init__(self, book: Book, machine: str, model: str, depth: int) -> None:
        self.book, self.machines, self.models = book, machines(book.lab), models(book.lab)
        card = book.lab.get("models", model)
        if machine not in self.machines:
            raise LabError([f"labdata/machines: unknown name; got {machine!r}; known: {', '.join(sorted(book.lab.machines))}"])
        model = slug(family(card.name))
        self.start = {"machine": machine, "model": model, "format": card.quant, "depth": depth, "batch": 1, "kv": "f16"}
        fit = calibration.fitted()
        self.asked = ask(self.machines[machine], self.models[model], card.quant, depth)
        self.found = yours.answer(self.asked, fit["coefficients"], fit["intervals"])
        file = self.models[model]["formats"][card.quant]
        self.texts = {
            **yours.words(self.asked, self.found), **yours.commands(self.asked, yours_file(model, card.quant), file[3]),
            "machine": self.machines[machine][0], "model": self.models[model]["name"], "format": card.quant, "depth": values.number(depth, 0),
        }  # fmt: skip

    def __getitem__(self, name: str) -> Markup:
        """A number or a word in its slot, for prose and tables."""
        if name in self.texts:
            words = values.inert(self.texts[name])  # in the attribute too: Markdown looks there
            return Markup('<data value="{}" data-text="{}">{}</data>').format(words, name, words)
        return self._slot(name)

    def _slot(self, name: str, bare: bool = False) -> Markup:
        slot, x = SLOTS[name], self.found.get(name)
        return Markup('<data class="v {}" data-slot="{}"{} value="{}" title="{}">{}</data>').format(
            slot.kind, name, Markup(" data-bare") if bare else "", "" if x is None else repr(x), slot.how, shown(name, x, bare))

    def math(self, name: str) -> Markup:
        """A number in its slot, for an equation."""
        return Markup('<mtext class="{}" data-slot="{}">{}</mtext>').format(SLOTS[name].kind, name, shown(name, self.found.get(name)))

    def code(self, name: str) -> Markup:
        """A command in its slot."""
        return Markup('<pre><code data-text="{}">{}</code></pre>').format(name, self.texts[name])

    def sentence(self) -> str:
        """What the form's status says of the example."""
        t = {name: values.inert(self.texts[name]) for name in ("machine", "model", "format", "depth", "fit")}
        return sentence(t["machine"], t["model"], t["format"], t["depth"], shown("decode", self.found.get("decode")), shown("ceiling", self.found["ceiling"]), t["fit"])

    def table(self, head: str, columns: list[str], cells: list[list[str]]) -> str:
        """A table of slots: each row its words, then one slot a column ("" for none, "a–b" for a span)."""
        def cell(names: str) -> Markup:
            low, _, high = names.rpartition("–")
            return Markup("{}–{}").format(self._slot(low, True), self._slot(high)) if low else self._slot(names) if names else Markup("")

        shown_ = [{"head": row[0], **{str(i): cell(names) for i, names in enumerate(row[1:])}} for row in cells]
        return tables.html_table([Column("head", head), *(Column(str(i), c, "right") for i, c in enumerate(columns))], shown_)

    def formats(self) -> str:
        """Every format of the model in this setting, and the empty row the script fills for another's."""
        m, family = self.machines[self.start["machine"]], self.models[self.start["model"]]
        columns = [Column("format", "Format"), *(Column(name, words, "right") for name, words in FORMAT_COLUMNS.items())]
        body = []
        for quant in family["formats"]:
            asked = ask(m, family, quant, self.start["depth"])
            found = {**yours.first_order(asked), **yours.fits(asked)}
            body.append({"format": Markup('<span data-f="format">{}</span>').format(quant), **{n: _cell(n, found[n]) for n in FORMAT_COLUMNS}})
        spare = tables.html_table(columns, [{"format": Markup('<span data-f="format"></span>'), **{n: _cell(n, None) for n in FORMAT_COLUMNS}}])
        row = spare[spare.index("<tbody>") + len("<tbody>") : spare.index("</tbody>")]
        return f'<div id="yours-formats">{tables.html_table(columns, body)}<template>{row}</template></div>'

    def form(self) -> Markup:
        """The form, in the example's setting; the script fills in what there is to pick from."""
        s, m = self.start, self.machines[self.start["machine"]]
        parts = [
            _select("machine", "Machine", s["machine"], m[0], "wide"),
            _number("bandwidth", "Bandwidth [GB/s]", m[2]),
            _number("compute", "Peak compute [TFLOP/s]", "" if m[3] is None else m[3]),
            _number("memory", "Memory [GB]", "" if m[4] is None else m[4]),
            _select("backend", "Backend", m[5], m[5]),
            _select("model", "Model", s["model"], self.models[s["model"]]["name"], "wide"),
            _select("format", "Format", s["format"], s["format"]),
            _number("depth", "Depth [tokens]", s["depth"]),
            _number("batch", "Sequences together", s["batch"]),
            _select("kv", "KV cache", s["kv"], s["kv"]),
        ]
        return Markup('<form id="yours" class="fields" aria-label="Your machine, model and setting">{}</form>').format(Markup("").join(parts))

    def script(self) -> Markup:
        """The script, registered to be written; its name is its content's."""
        return page_script.element(self.book, "predict", script(self.machines, self.models, self.start))


# What the table of a model's formats shows of each, of `yours.answer`.
FORMAT_COLUMNS = {"file_bytes": "Weights", "need": "With the cache", "left": "Left over", "ceiling": "Ceiling, decode"}


def _cell(name: str, x: float | None) -> Markup:
    return Markup('<span class="{}" data-f="{}">{}</span>').format(SLOTS[name].kind, name, shown(name, x))


def sentence(machine: str, model: str, quant: str, depth: str, decode: str, ceiling: str, fit: str) -> str:
    """A setting and its answer in words, numbers as printed."""
    return f"{machine}, {model} {quant} at depth {depth}: {decode} predicted, {ceiling} at most. {fit}"


def yours_file(model: str, quant: str) -> str:
    """What a model's file may be called."""
    return f"{model}-{quant}.gguf"


def script(machines: dict[str, list[Any]], models: dict[str, dict[str, Any]], start: dict[str, Any]) -> str:
    """The page's script: the project's own functions in JavaScript, what there is to pick from, and the form."""
    fit = calibration.fitted()
    backends = sorted({name.partition(":")[2] for name in fit["coefficients"] if name.startswith("w.backend:")})
    data = {
        "machines": machines, "models": models, "start": start, "own": OWN, "unknown": UNKNOWN, "backends": backends,
        "kv": [k for k in corpus_models.KV_BYTES if k and k.upper() in work.BLOCKS],
        "slots": {name: [s.unit, _factor(s.unit), s.decimals] for name, s in SLOTS.items()},
        "coefficients": fit["coefficients"], "intervals": fit["intervals"],
    }  # fmt: skip
    return page_script.script((yours.answer, yours.subject, yours.words, yours.commands, yours_file, sentence, Ask, Device), data, ("print", "predict"))


def _field(name: str, label: str, control: Markup, css: str = "") -> Markup:
    return Markup('<p class="field{}"><label for="y-{}">{}</label>{}<span class="problem" id="y-{}-problem" hidden></span></p>').format(
        f" {css}" if css else "", name, label, control, name)


def _select(name: str, label: str, value: str, words: str, css: str = "") -> Markup:
    control = Markup('<select id="y-{}" name="{}"><option value="{}" selected>{}</option></select>').format(name, name, value, words)
    return _field(name, label, control, css)


def _number(name: str, label: str, value: object) -> Markup:
    shown_ = f"{value:g}" if isinstance(value, float) else str(value)
    control = Markup('<input id="y-{}" name="{}" type="text" inputmode="decimal" autocomplete="off" value="{}" aria-describedby="y-{}-problem">').format(name, name, shown_, name)
    return _field(name, label, control)
