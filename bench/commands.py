"""The commands beside `run`: the instrument against llama-bench, the probe against C, and a talk with the model."""

from __future__ import annotations

import os
import re
import statistics
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from bench import host as hosts
from bench import options as opts
from bench import build, chat, instruments, llama_bench, overhead, parity, prepare, probe, session
from bench.engine import Engine, Job
from bench.options import OptionError, Options
from macros import compare, labdata, rows
from macros.cards import Model
from macros.fields import Source
from macros.latency import Latency, Wait
from macros.records import Check, Pairs
from macros.values import Value

QUANT = "Q4_K_M"
SHAPE = "qwen3-0.6b"
PROMPT = "Why does a large language model answer its first word late and the rest quickly?"
LENGTHS = [16, 128, 512, 2048]


def count(env: Mapping[str, str], name: str, default: int, low: int, high: int) -> int:
    """A whole number from the environment.

    Raises:
        OptionError: it is none, or out of range.
    """
    text = env.get(name, "").strip()
    if not text:
        return default
    if not re.fullmatch(r"\d{1,9}", text) or not low <= int(text) <= high:
        raise OptionError(f"{name}: not a whole number from {low} to {high}; got {text!r}")
    return int(text)


def one_model(lab: labdata.Lab, options: Options, on_progress) -> tuple[Path, Model]:
    """MODEL=, else synthetic weights of SHAPE=: the file and its card."""
    if options.model:
        weights = prepare.own_model(lab, options.model, QUANT)
    else:
        weights = prepare.write_weights(prepare.synthetic(lab, options.shape or SHAPE, [QUANT]), on_progress)
    return weights.paths[QUANT], weights.cards[QUANT]


def run_parity(say: Callable[[str], None], on_progress, env: Mapping[str, str] = os.environ) -> None:
    """`make parity`: pairs, each kept on disk as it is done, and what they come to.

    Raises:
        OptionError, PlanError, LabError, SetupError, NoLlamaBench, EngineFailed: one line each.
    """
    lab = labdata.load()
    options = opts.read({}, env, shapes=prepare.shapes(lab))
    pairs, reps = count(env, "PAIRS", parity.PAIRS, 2, 1000), count(env, "REPS", parity.REPS, 1, 100)
    with session.only_one(session.lock_folder()):
        path, libraries = parity.binary(env, labdata.ROOT.parent)
        file, card = one_model(lab, options, on_progress)
        found = llama_bench.identify(path, prepare.cache_dir())
        host = hosts.collect()
        threads = options.threads or hosts.default_threads(host)
        busy = hosts.busy_share()
        chip = hosts.chip_key(host) if found.gpu and options.ngl else host.cpu
        where = f"{card.name}, {threads} threads of {chip or 'an unknown chip'}{', a virtual machine' if host.virtual else ''}"
        if busy > compare.BUSY_LOAD:
            where += f", a busy machine ({busy:.0%} of the cores in use before)"
            say(f"Busy machine: {busy:.0%} of the cores in use. The check will say so; an idle machine tells more.")
        ident = f"parity-{datetime.now(UTC):%Y-%m-%d-%H%M%S}"
        place = labdata.ROOT / "checks" / f"{ident}.yml"
        job = Job(model_path=str(file), n_prompt=0, n_gen=0, n_threads=threads, n_gpu_layers=options.ngl, reps=reps)
        loop_ns = overhead.loop_ns()
        say(f"The in-process loop itself takes {statistics.median(loop_ns) / 1e3:.1f} µs a token")
        say(f"llama-bench {found.build} and the in-process engine in turn, {pairs} pairs of each test")
        document = partial(parity.document, ident, where, found, libraries is not None, reps, loop_ns)

        def keep(done) -> None:
            labdata.write(place, document(done))

        def on_entry(test: str, pair: int, way: str, rate: float) -> None:
            say(f"{pair + 1}/{pairs}  {test}, {'llama-bench' if way == 'a' else 'in-process'}: {rate:.2f} tok/s")

        done = parity.compare(found, libraries, job, pairs, on_entry, keep)
    say(ratios(document(done)))
    say(f"Recorded in labdata/checks/{ident}.yml")


def run_probe(say: Callable[[str], None], _on_progress=None, env: Mapping[str, str] = os.environ) -> None:
    """`make probe`: the read probe against a C loop at every number of threads, as a check; and the matmul rate.

    Raises:
        OptionError, PlanError, LabError, ProbeFailed, SetupError: one line each.
    """
    pairs = count(env, "PAIRS", 4, 2, 1000)
    compiler, _ = build.compilers(env)
    with session.only_one(session.lock_folder()), tempfile.TemporaryDirectory() as folder:
        reader = probe.compiled_reader(compiler, Path(folder))
        host, busy = hosts.collect(), hosts.busy_share()
        cores = hosts.default_threads(host)
        done = {n: ([], []) for n in probe.sweep(cores, min(host.logical_cores or cores, host.usable_cpus or cores))}
        for pair, way in parity.order(pairs):
            for n, (a, b) in done.items():
                rate = probe.c_read_bandwidth(reader, n) if way == "a" else probe.read_bandwidth(n).value
                (a if way == "a" else b).append(round(rate / 1e9, 3))
                say(f"{pair + 1}/{pairs}  {n} thread{'s' if n > 1 else ''}, {'C loop' if way == 'a' else 'probe'}: {rate / 1e9:.2f} GB/s")
        matmul = probe.matmul_flops(cores)
    say(f"Matrix product, fp32, {cores} threads: {matmul.value / 1e9:.1f} GFLOP/s (best of {len(matmul.samples)} rounds)")
    crowd = f", a busy machine ({busy:.0%} of the cores in use before)" if busy > compare.BUSY_LOAD else ""
    ident = f"probe-{datetime.now(UTC):%Y-%m-%d-%H%M%S}"
    document = Check(
        schema=1, id=ident, title="Does the read probe pull what a C loop pulls?", date=datetime.now(UTC).date(), a="C loop", b="probe",
        setting=f"{host.cpu or 'an unknown chip'}{', a virtual machine' if host.virtual else ''}{crowd}; numpy {matmul.numpy}",
        pairs=[Pairs(test=f"read, {n} thread{'s' if n > 1 else ''}", a=a, b=b, unit="GB/s") for n, (a, b) in done.items()], source="pairs",
        sources={"pairs": Source(title="Pairs run in turn", kind="measured",
                                 note="make probe; each entry is the best of six rounds in a fresh process; order a b b a")})  # fmt: skip
    labdata.write(labdata.ROOT / "checks" / f"{ident}.yml", document)
    say(ratios(document))
    say(f"Recorded in labdata/checks/{ident}.yml")


def run_chat(say: Callable[[str], None], write: Callable[[str], None], on_progress, env: Mapping[str, str] = os.environ) -> None:
    """`make chat`: say PROMPT= to the model once; the wait and the stream, live.

    Args:
        write: for words as they come, without a line's end

    Raises:
        OptionError, PlanError, LabError, EngineFailed: one line each.
    """
    lab = labdata.load()
    options = opts.read({}, env, shapes=prepare.shapes(lab))
    n_gen = count(env, "TOKENS", 128, 1, 100_000)
    prompt = env.get("PROMPT", "").strip() or PROMPT
    with session.only_one(session.lock_folder()):
        file, card = one_model(lab, options, on_progress)
        threads = options.threads or hosts.default_threads(hosts.collect())
        job = chat.ChatJob(model_path=str(file), n_prompt=len(prompt.encode()) + 512, n_gen=n_gen, n_threads=threads,
                           n_gpu_layers=options.ngl, prompt=prompt)  # fmt: skip
        say(f"{card.name}\n\n> {prompt}\n")
        ttft_s = 0.0

        def on_event(event: dict) -> None:
            nonlocal ttft_s
            if event["event"] == "loaded" and not event["words"]:
                say("This file has no vocabulary, as synthetic weights have none: random ids in, and a dot for each token out.")
            elif event["event"] == "first":
                ttft_s = event["ns"] / 1e9
                say(f"[time to first token: {ttft_s:.2f} s for {event['n_prompt']} prompt tokens]")
            if event["event"] in ("first", "token"):
                write(event["text"])
            elif event["event"] == "stream":
                rate = f"{event['n_tokens'] / (event['ns'] / 1e9):.1f} tok/s over {event['n_tokens']} tokens" if event["n_tokens"] else "one token only"
                say(f"\n\nTime to first token {ttft_s:.2f} s, then {rate}.")

        chat.run(job, on_event)


def run_ttft(say: Callable[[str], None], on_progress, env: Mapping[str, str] = os.environ) -> None:
    """`make ttft`: time to first token for LENGTHS= of prompts, recorded in labdata/latency.

    Raises:
        OptionError, PlanError, LabError, ProbeFailed, EngineFailed: one line each.
    """
    lab = labdata.load()
    options = opts.read({}, env, shapes=prepare.shapes(lab))
    lengths = whole_numbers(env, "LENGTHS", LENGTHS, 1, 1_000_000)
    with session.only_one(session.lock_folder()):
        host = hosts.collect()
        with Engine() as own:  # asked only: the prompts are timed in another child
            instrument = instruments.in_process(own)
        file, card = one_model(lab, options, on_progress)
        machine = prepare.machine(lab, hosts.for_engine(host, instrument.system), options.machine, instrument.gpu and options.ngl != 0, say, options.chip, options.quiet)
        threads = options.threads or hosts.default_threads(host)
        load = hosts.busy_share()
        started = datetime.now(UTC).replace(microsecond=0)
        job = chat.ChatJob(model_path=str(file), n_prompt=max(lengths) + 64, n_gen=1, n_threads=threads, n_gpu_layers=options.ngl,
                           reps=options.reps, lengths=tuple(lengths))  # fmt: skip
        times: dict[int, list[int]] = {}

        def on_event(event: dict) -> None:
            if event["event"] == "first":
                times.setdefault(event["n_prompt"], []).append(event["ns"])

        say(f"{card.name}: prompts of {', '.join(map(str, lengths))} tokens, {options.reps} times each")
        facts = chat.run(job, on_event)
        ident = f"{machine.id}-{started:%Y-%m-%d-%H%M%S}"[-80:].lstrip(".-_")
        record = instrument.record.model_copy(update={"name": "inklab, time to first token"})
        document = Latency(
            schema=1, id=ident, machine=machine.id, model=card.id, started_at=started, command=_ttft_command(options, lengths),
            instrument=record, host=session.host_doc(host), backend=facts["backend"], n_threads=threads, load_before=load, words=facts["words"],
            waits=[Wait(n_prompt=n, samples_ns=ns) for n, ns in sorted(times.items())])  # fmt: skip
        labdata.write(labdata.ROOT / "latency" / f"{ident}.yml", document)
    for row in rows.waits(document):
        say(f"{row['n_prompt']} tokens: {Value(row['mean_s'], 's', 'measured', sigma=row['sigma_s']).text}, {row['rate_tok_s']:.0f} tok/s of prompt")
    say(f"Recorded in labdata/latency/{ident}.yml")


def _ttft_command(options: Options, lengths: list[int]) -> str:
    parts = ["make ttft", f"LENGTHS={','.join(map(str, lengths))}", f"REPS={options.reps}"]
    if options.model:
        parts.append(f"MODEL={options.model if options.model.startswith('hf:') else Path(options.model).name}")
    parts += [f"{n.upper()}={v}" for n, v in (("shape", options.shape), ("threads", options.threads)) if v]
    return " ".join(parts + ([f"NGL={options.ngl}"] if options.ngl != -1 else []))


def whole_numbers(env: Mapping[str, str], name: str, default: list[int], low: int, high: int) -> list[int]:
    """Whole numbers, separated by commas, from the environment; each once, in order.

    Raises:
        OptionError: one of them is none, or out of range.
    """
    text = env.get(name, "").replace(" ", "")
    if not text:
        return default
    parts = text.split(",")
    if not all(re.fullmatch(r"\d{1,9}", p) and low <= int(p) <= high for p in parts):
        raise OptionError(f"{name}: not whole numbers from {low} to {high}, separated by commas; got {env[name]!r}")
    return sorted({int(p) for p in parts})


def ratios(check) -> str:
    """A check's medians and their ratio, as aligned plain text."""
    body = [("Test", f"{check.a} [{check.pairs[0].unit}]", f"{check.b} [{check.pairs[0].unit}]", "Ratio", "95 % interval", "Pairs")]
    body += [(r["test"], f"{r['median_a']:.2f}", f"{r['median_b']:.2f}", f"{r['ratio']:.3f}", f"{r['ratio_low']:.3f} to {r['ratio_high']:.3f}", str(r["pairs"]))
             for r in rows.check(check)]  # fmt: skip
    widths = [max(len(row[i]) for row in body) for i in range(len(body[0]))]
    return "\n".join("  ".join(c.rjust(w) if i else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))) for row in body)
