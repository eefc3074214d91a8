"""`python -m macros.predict`: a machine and a model in, a rate with its interval and its basis out.

`--rows` does the same for a CSV file in the corpus's columns. Only this module prints and exits.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import re
import sys
from pathlib import Path

from macros import calibrated, calibration, corpus
from macros.corpus import CorpusError
from macros.corpus_models import KV_BYTES, NotPredictable

ADDED = ("pred_tok_s", "low80_tok_s", "high80_tok_s", "basis")


def main(arguments: list[str] | None = None) -> int:
    """Run the command; the exit code."""
    ask = _parser().parse_args(arguments)
    try:
        if ask.rows:
            return _rows(ask)
        if not (ask.machine and ask.model):
            raise NotPredictable("predict: MACHINE and MODEL needed, or --rows FILE --out FILE; see --help")
        found = one(ask)
        print(json.dumps(found, indent=1, ensure_ascii=False) if ask.json else as_table(found))
        return 0
    except (CorpusError, NotPredictable) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m macros.predict", description="Predict llama-bench rates, with 80 %% intervals.")
    parser.add_argument("machine", nargs="?", metavar="MACHINE", help="a name in labdata/machines, or a chip of labdata/chips (\"RTX 3090\")")
    parser.add_argument("model", nargs="?", metavar="MODEL", help="a name in labdata/models, or a GGUF file, here or behind a URL")
    counts = {"--depth": (0, "tokens already in the context"), "--prompt": (512, "prompt tokens of the prefill test"),
              "--gen": (128, "tokens generated in the decode test"), "--batch": (1, "sequences decoded together; derived, unscored")}  # fmt: skip
    for name, (default, words) in counts.items():
        parser.add_argument(name, type=int, default=default, metavar="N", help=f"{words} (default {default})")
    parser.add_argument("--kv", default="f16", choices=[k for k in KV_BYTES if k], help="type of the KV cache (default f16)")
    parser.add_argument("--backend", help="llama.cpp backend, where it is not the chip's usual one: CUDA, Metal, ROCm, Vulkan, CPU")
    parser.add_argument("--own", metavar="TEST=TOK_S", help="one rate you measured with this model on this machine, such as tg128=19.8")
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")
    parser.add_argument("--rows", metavar="FILE", type=Path, help="a CSV in the corpus's columns; tok_s is never read")
    parser.add_argument("--out", metavar="FILE", type=Path, help="where --rows writes; the same rows with " + ", ".join(ADDED))
    return parser


def one(ask: argparse.Namespace) -> dict:
    """The answer for a machine and a model.

    Raises:
        NotPredictable: a reason instead of a number.
    """
    from macros import subject_load

    limits = {"depth": (0, 10_000_000), "prompt": (1, 10_000_000), "gen": (1, 1_000_000), "batch": (1, 4096)}
    wrong = [f"--{name}: {low} to {high:,} needed; got {getattr(ask, name)}" for name, (low, high) in limits.items() if not low <= getattr(ask, name) <= high]
    if wrong:
        raise NotPredictable("\nerror: ".join(wrong))
    device, assumed, memory_bytes = _machine(ask.machine, ask.backend)
    subject = _model(ask.model)
    needed = subject_load.needed_bytes(subject, ask.batch * (ask.depth + max(ask.prompt, ask.gen)), ask.kv)
    if memory_bytes and needed > memory_bytes:
        raise NotPredictable(f"{subject.name}: does not fit: weights and KV cache take {needed / 1e9:.1f} GB; {ask.machine} has {memory_bytes / 1e9:.1f} GB")
    tests = []
    for phase, tokens in (("decode", ask.gen), ("prefill", ask.prompt)):
        if phase == "prefill" and device.flops_s is None:
            tests.append({"test": f"pp{tokens}", "why_not": f"no compute peak known for {ask.machine}"})
            continue
        of = subject_load.case(subject_load.load(subject, phase, tokens, ask.depth, ask.kv), device, assumed, ask.depth > 0)
        tests.append(_test(of, tokens, ask))
    doubts = _after_own(ask, subject, device, tests, memory_bytes)
    if ask.batch > 1:
        tests.append(_batched(subject, device, ask))
    return {"machine": ask.machine, "model": subject.name, "backend": device.backend, "assumed": list(assumed),
            "roofs": {"bandwidth_gb_s": device.bandwidth_bytes_s / 1e9, "peak_tflop_s": device.flops_s and device.flops_s / 1e12}, "tests": tests, "far_below": doubts}  # fmt: skip


def _machine(name: str, backend: str | None) -> tuple[calibrated.Device, tuple[str, ...], float | None]:
    from macros import labdata, subject_load
    from macros.cards import Machine

    path = labdata.ROOT / "machines" / f"{name}.yml"
    try:
        if path.parent == (labdata.ROOT / "machines") and path.is_file():
            machine = labdata.parse(Machine, path, f"machines/{name}.yml")
            return *subject_load.device(machine, backend), machine.specs.memory.si
    except labdata.LabError as error:
        raise NotPredictable(str(error)) from None
    return subject_load.chip_device(name, backend)


def _model(name: str):
    from macros import gguf_bytes, labdata, subject_load
    from macros.cards import Model

    path = labdata.ROOT / "models" / f"{name}.yml"
    try:
        if path.is_file() and path.parent == labdata.ROOT / "models":
            return subject_load.from_card(labdata.parse(Model, path, f"models/{name}.yml"))
        if gguf_bytes.is_url(name) or Path(name).is_file():
            return subject_load.from_file(name)
    except (ValueError, OSError, labdata.LabError) as error:
        raise NotPredictable(str(error)) from None
    known = ", ".join(sorted(p.stem for p in path.parent.glob("*.yml")))
    raise NotPredictable(f"model: neither in labdata/models nor a file or URL of a GGUF; got {name[:60]!r}; known: {known}")


def _test(of: corpus.Case, tokens: int, ask: argparse.Namespace) -> dict:
    """One test with its interval and everything it rests on."""
    from macros import subject_load

    load, fit, file = of.loads[0], calibration.fitted(), Path(ask.model.partition("?")[0]).name
    predicted = calibration.predict(of)
    parts = calibrated.terms(load, of.device, of.setup)
    took = {name: t.seconds(fit["coefficients"]) for name, t in parts.items()}
    letter, other = ("tg", "-p 0 -n") if load.phase == "decode" else ("pp", "-n 0 -p")
    return {
        "test": f"{letter}{tokens}" + (f" @ d{ask.depth}" if ask.depth else ""),
        **{key: _digits(getattr(predicted, key)) for key in ("tok_s", "low_tok_s", "high_tok_s")},
        "binds": max(took, key=took.get),  # type: ignore[arg-type]
        "bytes": {k: round(v) for k, v in load.bytes.items()},
        "flops": {k: round(v) for k, v in load.flops.items()},
        "parts": {
            name: {
                "seconds": _digits(took[name]),
                **({"efficiency": _digits(math.exp(t.exponent(fit["coefficients"])), 3)} if t.divide else {"microseconds_a_layer": _digits(math.exp(t.exponent(fit["coefficients"])), 3)}),
                "from": subject_load.contributions(t.features, fit["coefficients"]),
            }
            for name, t in parts.items()
        },
        "disprove": f"llama-bench -m {file}{'' if file.endswith('.gguf') else '.gguf'} {other} {tokens}" + (f" -d {ask.depth}" if ask.depth else "")
        + (f" -ctk {ask.kv} -ctv {ask.kv} -fa 1" if ask.kv != "f16" else ""),
    }  # fmt: skip


def _after_own(ask: argparse.Namespace, subject, device: calibrated.Device, tests: list[dict], memory_bytes: float | None) -> list[dict]:
    """Move the predictions by one measurement of the reader's own; the likely causes where it lies below its interval."""
    from macros import diagnose, subject_load

    if not ask.own:
        return []
    found = re.fullmatch(r"(tg|pp)(\d{1,6})(?:@d(\d{1,7}))?=(\d{1,9}(?:\.\d{1,9})?)", ask.own)
    if not found or not int(found[2]) or not float(found[4]):
        raise NotPredictable(f"--own: a test and its rate needed, such as tg128=19.8 or pp512@d4096=210; got {ask.own[:40]!r}")
    phase, depth, rate = "decode" if found[1] == "tg" else "prefill", int(found[3] or 0), float(found[4])
    if phase == "prefill" and device.flops_s is None:
        raise NotPredictable(f"--own: prefill is not predicted for {ask.machine}: no compute peak known; got {ask.own[:40]!r}")
    own = subject_load.case(subject_load.load(subject, phase, int(found[2]), depth, ask.kv), device, (), depth > 0)
    for test in tests:
        if "tok_s" in test:
            kind, tokens = ("decode", ask.gen) if test["test"].startswith("tg") else ("prefill", ask.prompt)
            of = subject_load.case(subject_load.load(subject, kind, tokens, ask.depth, ask.kv), device, (), ask.depth > 0)
            moved = calibration.after_own_row(of, own, rate)
            test |= {key: _digits(getattr(moved, key)) for key in ("tok_s", "low_tok_s", "high_tok_s")} | {"after": ask.own}
    expected = calibration.predict(own)
    if rate >= expected.low_tok_s:
        return []
    ratio = rate / expected.tok_s
    symptom = diagnose.Symptom(ratio if phase == "decode" else None, ratio if phase == "prefill" else None, ask.machine, device.backend,
                               file_bytes=sum(w.n_bytes for w in subject.structure.weights), memory_bytes=memory_bytes)  # fmt: skip
    return [{"cause": c.cause, "fit": c.fit, "check": c.check} for c in diagnose.causes(symptom)]


def _batched(subject, device: calibrated.Device, ask: argparse.Namespace) -> dict:
    """Decode rate of several sequences together, exact work over the roofs this machine is predicted to reach. Derived, unscored."""
    from macros import batching, subject_load, work

    learnt = calibration.fitted()["coefficients"]

    def reached(phase: str, tokens: int) -> dict[str, float]:
        parts = calibrated.terms(subject_load.load(subject, phase, tokens, ask.depth, ask.kv), device, calibrated.Setup())
        return {name: math.exp(t.exponent(learnt)) for name, t in parts.items()}

    share, model, cache = reached("decode", ask.gen), subject.structure, subject_load.cache(ask.kv)
    reads_bytes_s, cache_bytes_s = (device.bandwidth_bytes_s * share[part] for part in ("weights", "kv"))
    step = work.decode(model, ask.depth, ask.gen, ask.batch, cache)
    memory_s = step_s = batching.bytes_s(step, reads_bytes_s, cache_bytes_s)
    found, said = {}, ["derived, unscored"]
    if device.flops_s is None:
        said.append("compute not counted: no peak known")
    else:
        flops_s = device.flops_s * reached("prefill", ask.prompt)["matmul"]
        step_s = batching.roof_s(step, reads_bytes_s, flops_s, cache_bytes_s)
        try:
            found["compute_bound_from"] = batching.crossover_batch(model, reads_bytes_s, flops_s, ask.depth, cache, cache_bytes_s)
            said.append(f"compute binds from {found['compute_bound_from']} sequences")
        except ValueError:
            said.append("compute binds at no number of sequences")
    if model.n_expert:
        found["experts_a_layer"] = _digits(work.expected_experts(model.n_expert, model.n_expert_used, ask.batch))
        said.append(f"{found['experts_a_layer']:g} of {model.n_expert} experts a layer")
    rate = ask.batch / (step_s + model.n_layer * share["fixed"] * 1e-6)
    return {"test": f"tg{ask.gen} × {ask.batch}", "tok_s": _digits(rate), "binds": "compute" if step_s > memory_s else "memory", **found, "note": "; ".join(said)}


def _digits(x: float, n: int = 4) -> float:
    return float(f"{x:.{n}g}")


def _shown(x: float) -> str:
    return f"{x:,.0f}" if x >= 1000 else f"{x:.4g}"


def as_table(found: dict) -> str:
    """The answer for a terminal."""
    roofs = found["roofs"]
    peak = f"{roofs['peak_tflop_s']:.3g} TFLOP/s" if roofs["peak_tflop_s"] else "compute peak not known"
    lines = [f"{found['model']} on {found['machine']}, {found['backend']}: {roofs['bandwidth_gb_s']:.4g} GB/s, {peak}", ""]
    lines.append(f"{'Test':<18}{'Predicted':>11}{'80 % interval':>20}  {'Binds':<10}Basis")
    for t in found["tests"]:
        if "why_not" in t:
            lines.append(f"{t['test']:<18}{'—':>11}  {t['why_not']}")
            continue
        span = f"{_shown(t['low_tok_s'])} – {_shown(t['high_tok_s'])}" if "low_tok_s" in t else ""
        basis = "; ".join(_part(name, p) for name, p in t.get("parts", {}).items()) or t["note"]
        after = f" after {t['after']}" if "after" in t else ""
        lines.append(f"{t['test']:<18}{_shown(t['tok_s']):>11}{span:>20}  {t['binds']:<10}{basis}{after}")
    lines += ["", "tok/s; predicted. To prove it wrong:", *(f"  {t['disprove']}" for t in found["tests"] if "disprove" in t)]
    if found["far_below"]:
        lines += ["", "Your measurement lies below its interval. Likely causes, the best fitting first:",
                  *(f"  {c['cause']}. Check: {c['check']}" for c in found["far_below"])]  # fmt: skip
    return "\n".join(lines + [f"Assumed: {a}" for a in found["assumed"]])


def _part(name: str, part: dict) -> str:
    how = f"at {100 * part['efficiency']:.0f} %" if "efficiency" in part else f"{part['microseconds_a_layer']:g} µs a layer"
    return f"{name} {1e3 * part['seconds']:.3g} ms {how}"


def _rows(ask: argparse.Namespace) -> int:
    from macros import labdata

    if not ask.out:
        raise NotPredictable("--out: a file to write needed with --rows")
    rows = list(corpus.read(ask.rows))
    text = io.StringIO()
    columns = [c for c in rows[0] if c not in ADDED] if rows else list(corpus.INPUTS)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*columns, *ADDED])
    refused = 0
    for row in rows:
        answer = row_answer(row)
        refused += not answer[0]
        writer.writerow([*(row[c] for c in columns), *answer])
    try:
        labdata.write_text(ask.out, text.getvalue())
    except OSError as error:
        raise CorpusError([f"{ask.out}: file: cannot be written; {error.strerror}"]) from None
    print(f"{ask.out}: {len(rows) - refused} of {len(rows)} rows predicted, {refused} with a reason instead")
    return 0


def row_answer(row: dict[str, str]) -> tuple[str, str, str, str]:
    """Predicted rate, both ends and the basis of one row; empty numbers and the reason where there is none."""
    try:
        case = corpus.case(row)
        p = calibration.predict(case)
    except NotPredictable as why:
        return "", "", "", f"not predicted: {why}"
    except (ValueError, ArithmeticError) as why:
        return "", "", "", f"not predicted: out of range; {why}"
    took = calibration.seconds(case, calibration.fitted()["coefficients"])
    basis = "; ".join(f"{load.phase}: " + " + ".join(f"{n} {1e3 * s:.3g} ms" for n, s in parts.items()) for load, parts in zip(case.loads, took, strict=True))
    return f"{p.tok_s:.5g}", f"{p.low_tok_s:.5g}", f"{p.high_tok_s:.5g}", "; ".join([basis, *(f"assumed {a}" for a in case.assumed)])
