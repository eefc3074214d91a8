"""The commands beside `run`: the instrument against llama-bench, and a talk with the model."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from bench import host as hosts
from bench import options as opts
from bench import llama_bench, parity, prepare, session
from bench.engine import Job
from bench.options import OptionError, Options
from macros import compare, labdata, rows
from macros.cards import Model

QUANT = "Q4_K_M"
SHAPE = "qwen3-0.6b"


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
        say(f"llama-bench {found.build} and the in-process engine in turn, {pairs} pairs of each test")

        def keep(done) -> None:
            labdata.write(place, parity.document(ident, where, found, libraries is not None, reps, done))

        def on_entry(test: str, pair: int, way: str, rate: float) -> None:
            say(f"{pair + 1}/{pairs}  {test}, {'llama-bench' if way == 'a' else 'in-process'}: {rate:.2f} tok/s")

        done = parity.compare(found, libraries, job, pairs, on_entry, keep)
    say(ratios(parity.document(ident, where, found, libraries is not None, reps, done)))
    say(f"Recorded in labdata/checks/{ident}.yml")


def ratios(check) -> str:
    """A check's medians and their ratio, as aligned plain text."""
    body = [("Test", f"{check.a} [tok/s]", f"{check.b} [tok/s]", "Ratio", "95 % interval", "Pairs")]
    body += [(r.test, f"{r.median_a:.2f}", f"{r.median_b:.2f}", f"{r.ratio:.3f}", f"{r.ratio_low:.3f} to {r.ratio_high:.3f}", str(r.pairs))
             for r in rows.check(check).itertuples()]  # fmt: skip
    widths = [max(len(row[i]) for row in body) for i in range(len(body[0]))]
    return "\n".join("  ".join(c.rjust(w) if i else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))) for row in body)
