"""`python -m bench run|report|check`: the only place that prints and exits."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from macros import labdata
from macros.labdata import LabError

if TYPE_CHECKING:
    from bench.options import Options
    from bench.plan import Test
    from macros.cards import Model
    from macros.records import Run


def main(argv: list[str] | None = None) -> int:
    """Run one command; every failure is one clear line a problem, and exit code 1."""
    from bench import options

    sys.stdout.reconfigure(line_buffering=True)  # in a log, what was said before an error comes before it
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run_parser = commands.add_parser("run", help="measure this machine")
    options.add_to(run_parser)
    report = commands.add_parser("report", help="predicted against measured, newest run")
    report.add_argument("--machine")
    commands.add_parser("check", help="check all of labdata/")
    args = vars(parser.parse_args(argv))
    command = args.pop("command")
    try:
        if command == "run":
            return _run(args)
        return _report(args["machine"]) if command == "report" else _check()
    except KeyboardInterrupt:
        print("\nInterrupted. Finished tests are on disk; run the same command again to continue.", file=sys.stderr)
        return 130
    except Exception as error:
        if not isinstance(error, (LabError, OSError)) and not {c.__name__ for c in type(error).__mro__} & _EXPECTED:
            raise
        words = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)
        for line in words.splitlines():
            print(f"error: {line}", file=sys.stderr)
        return 1


# By name, so that `check` and `report` load without the bench's own packages.
_EXPECTED = {"OptionError", "PlanError", "ProbeFailed"}


def _check() -> int:
    from macros import calibration, corpus

    lab = labdata.load()
    try:
        rows = corpus.measurements()
        if calibration.fitted()["inputs"] != calibration.inputs_sha256():
            raise corpus.CorpusError(["labdata/corpus/fit.json: inputs: measurements or code have changed since the fit; bring it up to date with `make fit`"])
    except corpus.CorpusError as error:
        raise LabError(error.problems) from None
    print(f"labdata: {len(lab.machines)} machines, {len(lab.models)} models, {len(lab.inks)} inks, {len(lab.runs)} runs, {len(rows)} rows of others; nothing wrong.")
    return 0


def _report(machine: str | None) -> int:
    from bench import report

    lab = labdata.load()
    run = report.newest(lab, machine)
    if run is None:
        raise LabError([f"labdata/runs: no run with ink{f' of {machine}' if machine else ''} yet; make bench makes one"])
    print(f"{lab.machines[run.machine].name}, run {run.id}\n")
    print(report.table(lab, run))
    print(f"\nIts page: site/machines/{run.machine}/index.html")
    return 0


def _run(flags: dict) -> int:
    from bench import host as hosts
    from bench import options as opts
    from bench import plan, prepare, session

    from macros import compare

    lab = labdata.load()
    options = opts.read(flags, shapes=prepare.shapes(lab))
    chosen = plan.read(options.profile)
    with session.only_one(session.lock_folder()):
        facts = session.engine_facts()
        host = hosts.collect()
        threads = options.threads or hosts.default_threads(host)
        if threads > (host.logical_cores or threads):
            raise plan.PlanError(f"THREADS: more than this machine's {host.logical_cores} logical cores; got {threads}")
        busy = hosts.busy_share()
        if busy > compare.BUSY_LOAD:
            print(f"Busy machine: {busy:.0%} of the cores in use. The numbers below will say so; an idle machine measures better.")
        if options.model:
            weights = prepare.own_model(lab, options.model, chosen.experiments[0].quant)
            cards = weights.cards
        else:
            quants = list(dict.fromkeys(e.quant for e in chosen.experiments))
            cards = prepare.synthetic(lab, options.shape or chosen.shape, quants)
        models = {**lab.models, **{c.id: c for c in cards.values()}}
        gpu = facts["gpu"] and options.ngl != 0
        tests = plan.tests(chosen, cards, gpu, options.depths)
        plan.check_memory(host.available_bytes or float("inf"), tests, models)
        notes = []
        try:
            machine = prepare.machine(lab, host, options.machine, gpu, print)
        except prepare.UnknownChip as error:
            if options.ngl != -1:
                raise  # the GPU was asked for
            notes = [f"CPU alone; {error}"]
            print(f"{error}. Until then the CPU alone is benched.")
            options, tests = replace(options, ngl=0), plan.tests(chosen, cards, False, options.depths)
            machine = prepare.machine(lab, host, options.machine, False, print)
        if not options.model:
            weights = prepare.write_weights(cards, _weights_progress)
        run = _begin_or_continue(options, machine, tests, facts, cards, host, notes)
        run = _measure(run, tests, weights, options, threads, machine, models)
    failed = [r for r in run.results if r.failed]
    print(f"Recorded in labdata/runs/{run.machine}/{run.id}.yml")
    if failed:
        print(f"error: {len(failed)} of {len(run.results)} tests failed; the record says why", file=sys.stderr)
    return 1 if len(failed) == len(run.results) else 0


def _command(options: Options) -> str:
    """The command that repeats a run."""
    from bench.options import Options

    parts = ["make bench", f"PROFILE={options.profile}"]
    for name in ("model", "shape", "reps", "threads", "ngl"):
        value = getattr(options, name)
        if name == "model" and value and not value.startswith("hf:"):
            value = Path(value).name  # where a file lies is nobody's business
        if value != getattr(Options(), name):
            parts.append(f"{name.upper()}={value}")
    if options.depths:
        parts.append(f"DEPTHS={','.join(map(str, options.depths))}")
    return " ".join(parts)


def _begin_or_continue(options, machine, tests, facts, cards, host, notes) -> Run:
    from bench import prepare, session

    lab = labdata.load()
    wanted = session.identity(options, machine, tests, facts, _command(options))
    old = session.unfinished(lab, wanted)
    if old:
        print(f"Continuing run {old.id}: {len(old.results)} of {len(tests)} tests are done.")
        return old
    stamp = f"{datetime.now(UTC):%Y-%m-%d-%H%M%S}-{options.profile}"
    ink = prepare.ink(lab, machine, f"{machine.id}-{stamp}", options.profile, tests, cards)
    print(f"Inked before measuring: labdata/ink/{ink.name}")
    for p in labdata.load().inks[ink.stem].predictions:
        print(f"  {p.quantity}: {'≤ ' if p.kind == 'ceiling' else ''}{p.as_written}")
    return session.begin(stamp, wanted, host, ink, notes)


def _weights_progress(card: Model):
    """A progress line for writing one synthetic file."""
    from bench.progress import Step

    step = Step(f"Writing {card.id} (random weights, true shapes)")

    def advance(done: int, total: int) -> None:
        step.count(done // 10**6, total // 10**6)
        step.draw()
        if done >= total:
            step.end()

    return advance


def _measure(run, tests: list[Test], weights, options, threads, machine, models) -> Run:
    """Perform a run behind one progress bar, a line for every finished test."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from bench import session
    from bench.cost import work_s
    from macros.compare import conditions, rate
    from macros.values import Value

    console = Console(highlight=False)
    costs = [work_s(t, models[t.target.model], machine, options.reps) for t in tests]
    columns = (TextColumn("{task.description}"), BarColumn(24), TimeRemainingColumn(compact=True), TextColumn("left"))
    # Drawn once a second: the bar shares the cores with what it shows the progress of.
    with Progress(*columns, console=console, transient=True, refresh_per_second=1, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=sum(costs), completed=sum(costs[: len(run.results)]))

        def on_event(number: int, event: dict) -> None:
            share = event["done_tokens"] / event["total_tokens"] if event["event"] == "progress" else 0
            bar.update(task, description=tests[number].target.label)
            if share:
                bar.update(task, completed=sum(costs[:number]) + share * costs[number])

        def on_result(number: int, result) -> None:
            measured = rate(result)
            words = Value(measured.mean, "tok/s", "measured", sigma=measured.sigma).text if measured else f"failed: {result.failed}"
            notes = "".join(f"  ({c})" for c in conditions(result))
            console.print(f"{number + 1}/{len(tests)}  {tests[number].target.label}: {words}{notes}", markup=False)
            bar.update(task, completed=sum(costs[: number + 1]))

        return session.perform(run, tests, weights, options, threads, on_event, on_result)


if __name__ == "__main__":
    sys.exit(main())
