"""`python -m bench run`: one machine, one plan, measured on its ink, with what the operator sees of it."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from macros import labdata
from macros.inks import Ink

if TYPE_CHECKING:
    from bench.options import Options
    from bench.plan import Test
    from macros.cards import Model
    from macros.records import Run


def run(flags: dict) -> int:
    """Measure this machine; 1 if every test failed.

    Raises:
        LabError, OptionError, PlanError, NoLlamaBench, ProbeFailed, DeskError, EngineFailed: one line each.
    """
    from bench import engine

    with engine.Engine() as own, contextlib.ExitStack() as held:
        own.start()  # it loads its library while this process loads its own, labdata/ and the host's facts

        from bench import host as hosts
        from bench import options as opts
        from bench import desk, instruments, plan, prepare, session
        from bench.schedule import Schedule

        from macros import compare

        held.enter_context(session.only_one(session.lock_folder()))
        watch = hosts.Watch()
        lab = labdata.load()
        options = opts.read(flags, shapes=prepare.shapes(lab))
        chosen = plan.read(options.profile)
        host, busy = hosts.collect(), watch.share()
        instrument = instruments.choose(options.instrument, prepare.cache_dir(), own)
        chosen, left_out = plan.for_host(chosen, hosts.core_counts(host))
        for line in left_out:
            print(line)
        threads = options.threads or hosts.default_threads(host)
        if threads > (host.logical_cores or threads):
            raise plan.PlanError(f"THREADS: more than this machine's {host.logical_cores} logical cores; got {threads}")
        if busy > compare.BUSY_LOAD:
            print(f"Busy machine: {busy:.0%} of the cores in use. The numbers below will say so; an idle machine measures better.")
        if options.model:
            weights = prepare.own_model(lab, options.model, chosen.experiments[0].quant if chosen.experiments else "Q4_K_M")
            cards = weights.cards
        else:
            quants = list(dict.fromkeys(e.quant for e in chosen.experiments))
            cards = prepare.synthetic(lab, options.shape or chosen.shape, quants)
        models = {**lab.models, **{c.id: c for c in cards.values()}}
        gpu = instrument.gpu and options.ngl != 0
        tests = plan.tests(chosen, cards, gpu, options.depths)
        if not tests:
            raise plan.PlanError(f"PROFILE: nothing of {options.profile} can be run here; {'; '.join(left_out) or 'its experiments need a GPU'}")
        plan.check_memory(host.available_bytes or float("inf"), tests, models)
        notes = list(left_out)
        try:
            machine = prepare.machine(lab, hosts.for_engine(host, instrument.system), options.machine, gpu, print, options.chip, options.quiet)
        except prepare.UnknownChip as error:
            if options.ngl != -1:
                raise  # the GPU was asked for
            notes = [f"CPU alone; {error}", *left_out]
            print(f"{error}. Until then the CPU alone is benched.")
            options, tests = replace(options, ngl=0), plan.tests(chosen, cards, False, options.depths)
            machine = prepare.machine(lab, host, options.machine, False, print, quiet=options.quiet)
        desk.refuse_open(lab, machine.id, options.profile)
        if not options.model:
            weights = prepare.write_weights(cards, weights_progress)
        schedule = Schedule(options.reps, chosen.rounds, options.auto_reps)
        first = session.job_of(tests[0], weights.by_model[tests[0].target.model], options, options.reps, threads)
        record = _begin_or_continue(options, machine, tests, instrument, schedule, cards, host, notes, first)
        record = _measure(record, tests, weights, options, threads, instrument, schedule, machine, models, watch)
    failed = [r for r in record.results if r.failed]
    print(f"Recorded in labdata/runs/{record.machine}/{record.id}.yml")
    if failed:
        print(f"error: {len(failed)} of {len(record.results)} tests failed; the record says why", file=sys.stderr)
    return 1 if len(failed) == len(record.results) else 0


def _command(options: Options) -> str:
    """The command that repeats a run."""
    from bench.options import Options

    parts = ["make bench", f"PROFILE={options.profile}"]
    for name in ("model", "shape", "reps", "threads", "ngl", "chip", "instrument"):
        value = getattr(options, name)
        if name == "model" and value and not value.startswith("hf:"):
            value = Path(value).name  # where a file lies is nobody's business
        if value != getattr(Options(), name):
            parts.append(f"{name.upper()}={value}")
    if options.auto_reps:
        parts.append("REPS=auto")
    if options.depths:
        parts.append(f"DEPTHS={','.join(map(str, options.depths))}")
    return " ".join(parts)


def _begin_or_continue(options, machine, tests, instrument, schedule, cards, host, notes, first) -> Run:
    from bench import desk, prepare, session

    lab = labdata.load()
    wanted = session.identity(options, machine, tests, instrument, _command(options))
    written = desk.for_run(lab, machine.id, options.profile, wanted["planned"])
    old = session.unfinished(lab, wanted, schedule)
    if old and (old.results or not written):
        print(f"Continuing run {old.id}: {sum(schedule.over(r) for r in old.results)} of {len(tests)} tests are done.")
        return old
    instrument.preload(first)  # while the ink is written
    stamp = f"{datetime.now(UTC):%Y-%m-%d-%H%M%S}-{options.profile}"
    ink = written or prepare.ink(lab, machine, f"{machine.id}-{stamp}", options.profile, tests, cards)
    print(f"Inked before measuring: labdata/ink/{ink.name}")
    for p in labdata.parse(Ink, ink, f"labdata/ink/{ink.name}").predictions:
        print(f"  {p.quantity}: {'≤ ' if p.kind == 'ceiling' else ''}{p.as_written}")
    try:
        return session.begin(stamp, wanted, host, ink, notes)
    except OSError:
        if not written:
            ink.unlink(missing_ok=True)  # no run was begun on it, so it would wait for ever
        raise


def weights_progress(card: Model):
    """A progress line for writing one synthetic file."""
    from bench.progress import Step

    step = Step(f"Writing {card.id} (random weights, true shapes)")

    def advance(done: int, total: int) -> None:
        step.count(done // 10**6, total // 10**6)
        step.draw()
        if done >= total:
            step.end()

    return advance


def _measure(run, tests: list[Test], weights, options, threads, instrument, schedule, machine, models, watch) -> Run:
    """Perform a run behind one progress bar, a line for every finished test."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from bench import session
    from bench.cost import work_s
    from macros.compare import conditions, rate
    from macros.values import Value

    console = Console(highlight=False)
    costs = [work_s(t, models[t.target.model], machine, options.reps) for t in tests]
    shares = [min(1.0, len(r.samples_ns or [0]) / options.reps) for r in run.results] + [0.0] * (len(tests) - len(run.results))
    columns = (TextColumn("{task.description}"), BarColumn(24), TimeRemainingColumn(compact=True), TextColumn("left"))

    def done(number: int, share: float) -> float:
        return sum(cost * (share if i == number else s) for i, (cost, s) in enumerate(zip(costs, shares, strict=True)))

    # Drawn once a second: the bar shares the cores with what it shows the progress of.
    with Progress(*columns, console=console, transient=True, refresh_per_second=1, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=sum(costs), completed=done(0, shares[0]))

        def on_event(number: int, event: dict) -> None:
            share = event["done_tokens"] / event["total_tokens"] if event["event"] == "progress" else 0
            bar.update(task, description=tests[number].target.label)
            if share:
                bar.update(task, completed=done(number, min(1.0, shares[number] + share / min(schedule.rounds, options.reps))))

        def on_result(number: int, result) -> None:
            shares[number] = 1.0 if schedule.over(result) else min(1.0, len(result.samples_ns or []) / options.reps)
            bar.update(task, completed=done(number, shares[number]))
            if not schedule.over(result):
                return
            measured = rate(result)
            words = Value(measured.mean, "tok/s", "measured", sigma=measured.sigma).text if measured else f"failed: {result.failed}"
            if schedule.auto and measured:
                words += f" over {measured.n}, {'known to 1 %' if result.stopped == 'interval' else 'still wider than 1 %'}"
            notes = "".join(f"  ({c})" for c in conditions(result))
            console.print(f"{number + 1}/{len(tests)}  {tests[number].target.label}: {words}{notes}", markup=False, soft_wrap=True)

        def say(words: str) -> None:
            console.print(words, markup=False, soft_wrap=True)

        return session.perform(run, tests, weights, options, threads, instrument, schedule, on_event, on_result, say, watch)
