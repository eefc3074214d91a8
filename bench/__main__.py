"""`python -m bench run|import|report|check|host|ink|withdraw|seal|day|post`: the only place that prints and exits."""

from __future__ import annotations

import argparse
import os
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
    imported = commands.add_parser("import", help="take in a log of llama-bench, llama-server, Ollama or LM Studio")
    imported.add_argument("file", nargs="?", help="the log; - or nothing: standard input")
    imported.add_argument("--machine", help="the machine's name in labdata/machines; unnamed: the log's chip, where labdata/chips knows it")
    imported.add_argument("--model", help="the model's name in labdata/models, or its name where the log gives none")
    report = commands.add_parser("report", help="predicted against measured, newest run")
    report.add_argument("--machine")
    commands.add_parser("check", help="check all of labdata/, its seals and their history, and the narrative")
    told = commands.add_parser("host", help="what this machine says of itself, and which chip of labdata/chips that is")
    told.add_argument("file", nargs="?", help="instead: the output of lscpu, nvidia-smi, system_profiler, ... from elsewhere; - is stdin")
    options.add_to(commands.add_parser("ink", help="open a plan's ink; CLOSE=1 seals it"))
    for name, words in (("withdraw", "take a run or an ink back, with BECAUSE="), ("seal", "seal a file from before the seals, with BECAUSE=")):
        commands.add_parser(name, help=words).add_argument("file", nargs="?", default=os.environ.get("FILE", ""))
    options.add_to(commands.add_parser("day", help="page, post, plan and open ink of a day: N= TITLE= QUESTION="))
    commands.add_parser("review", help="what a change brings, for who decides about it: BASE=origin/main").add_argument("base", nargs="?", default="")
    commands.add_parser("share", help="a run, its ink and machine as one file to send: RUN=").add_argument("run", nargs="?", default=os.environ.get("RUN", ""))
    commands.add_parser("parity", help="the in-process engine against a real llama-bench, in interleaved pairs")
    commands.add_parser("probe", help="read bandwidth at every number of threads, against a C loop, and a matrix product")
    commands.add_parser("chat", help="talk to the model once: time to first token and stream rate, live")
    commands.add_parser("ttft", help="time to first token for a set of prompt lengths, recorded")
    commands.add_parser("post", help="drafts of a day's or a machine's post, for each place: DAY= or RUN=")
    commands.add_parser("check-post", help="hold a draft edited by hand against the summary: FILE=")
    args = vars(parser.parse_args(argv))
    command = args.pop("command")
    try:
        if command == "run":
            return _run(args)
        if command in ("parity", "probe", "chat", "ttft"):
            return _beside(command)
        if command in ("post", "check-post"):
            from bench import post

            (post.make if command == "post" else post.check)(os.environ, print)
            return 0
        if command == "review":
            return _review(args["base"])
        if command == "share":
            from bench import share

            print(share.write(labdata.ROOT, args["run"]))
            return 0
        if command == "host":
            return _host(args["file"])
        if command == "import":
            return _import(args)
        if command == "report":
            return _report(args["machine"])
        return _check() if command == "check" else _desk(command, args)
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
_EXPECTED = {"DeskError", "EngineFailed", "ImportRefused", "NoLlamaBench", "OptionError", "PlanError", "PluginError", "PostError", "ProbeFailed", "SetupError", "ShareRefused"}


def _desk(command: str, args: dict) -> int:
    """What the author does before and after a run."""
    from bench import desk

    if command in ("ink", "day"):
        from bench import day, ink, options, prepare

        env = dict(os.environ)
        if command == "day":
            options.read({**args, "profile": "quick"}, shapes=prepare.shapes(labdata.load()))  # what is wrong is said before anything is written
            for path in day.scaffold(env):
                print(f"Written: {path.relative_to(labdata.ROOT.parent)}")
            args |= {"profile": f"day{int(env['N'])}"}
            env |= {"INK": "", "TITLE": f"Day {int(env['N'])}: {env['TITLE']}"}
            print(f"To write the ink anew, or for another machine: make ink PROFILE={args['profile']} MACHINE=…")
        for name in desk.finish_closing():
            print(f"Sealed before, and cut off then: labdata/ink/{name}.yml; its open file is gone now.")
            if env.get("CLOSE", "") not in ("", "0"):
                return 0
        ink.run(options.read(args, shapes=prepare.shapes(labdata.load())), env, print)
        return 0
    act = desk.withdraw if command == "withdraw" else desk.seal_later
    print(f"Written: {act(args['file'], os.environ).relative_to(labdata.ROOT.parent)}")
    return 0


def _check() -> int:
    from bench import check

    print(check.everything())
    return 0


def _review(base: str) -> int:
    from bench import review

    found = review.of(labdata.ROOT, base.removeprefix("BASE=") or os.environ.get("BASE", "") or "origin/main", datetime.now(UTC))
    print(review.told(found, os.environ))
    for problem in found.problems:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if found.problems else 0


def _host(file: str | None) -> int:
    from bench import transcript

    print(transcript.report(labdata.load(), file))
    return 0


def _beside(command: str) -> int:
    from bench import commands

    if command == "chat":
        commands.run_chat(print, lambda text: print(text, end="", flush=True), _weights_progress)
    else:
        {"parity": commands.run_parity, "probe": commands.run_probe, "ttft": commands.run_ttft}[command](print, _weights_progress)
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


def _import(flags: dict) -> int:
    import gc

    from bench import imports, share

    gc.disable()  # every record of a log is kept to the end: looking for garbage among them takes a third of the time
    file, machine, model = ((flags[n] or os.environ.get(n.upper(), "")).strip() or None for n in ("file", "machine", "model"))
    data = imports.read_bytes(file)
    if share.is_one(data):
        print("\n".join(share.take(data, file if file and file != "-" else "standard input", labdata.ROOT)))
        return 0
    lab = labdata.load()
    done = imports.prepare(data, file if file and file != "-" else "standard input", lab, machine, model)
    paths = imports.write(done, lab, labdata.ROOT)
    print("\n".join(done.report))
    for path in paths:
        print(f"Recorded in labdata/{path.relative_to(labdata.ROOT).as_posix()}")
    return 0


def _run(flags: dict) -> int:
    from bench import host as hosts
    from bench import options as opts
    from bench import desk, instruments, plan, prepare, session
    from bench.schedule import Schedule

    from macros import compare

    lab = labdata.load()
    options = opts.read(flags, shapes=prepare.shapes(lab))
    chosen = plan.read(options.profile)
    with session.only_one(session.lock_folder()):
        instrument = instruments.choose(options.instrument, prepare.cache_dir())
        host = hosts.collect()
        chosen, left_out = plan.for_host(chosen, hosts.core_counts(host))
        for line in left_out:
            print(line)
        threads = options.threads or hosts.default_threads(host)
        if threads > (host.logical_cores or threads):
            raise plan.PlanError(f"THREADS: more than this machine's {host.logical_cores} logical cores; got {threads}")
        busy = hosts.busy_share()
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
            machine = prepare.machine(lab, hosts.for_engine(host, instrument.system), options.machine, gpu, print, options.chip)
        except prepare.UnknownChip as error:
            if options.ngl != -1:
                raise  # the GPU was asked for
            notes = [f"CPU alone; {error}", *left_out]
            print(f"{error}. Until then the CPU alone is benched.")
            options, tests = replace(options, ngl=0), plan.tests(chosen, cards, False, options.depths)
            machine = prepare.machine(lab, host, options.machine, False, print)
        desk.refuse_open(lab, machine.id, options.profile)
        if not options.model:
            weights = prepare.write_weights(cards, _weights_progress)
        schedule = Schedule(options.reps, chosen.rounds, options.auto_reps)
        run = _begin_or_continue(options, machine, tests, instrument, schedule, cards, host, notes)
        run = _measure(run, tests, weights, options, threads, instrument, schedule, machine, models)
    failed = [r for r in run.results if r.failed]
    print(f"Recorded in labdata/runs/{run.machine}/{run.id}.yml")
    if failed:
        print(f"error: {len(failed)} of {len(run.results)} tests failed; the record says why", file=sys.stderr)
    return 1 if len(failed) == len(run.results) else 0


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


def _begin_or_continue(options, machine, tests, instrument, schedule, cards, host, notes) -> Run:
    from bench import desk, prepare, session

    lab = labdata.load()
    wanted = session.identity(options, machine, tests, instrument, _command(options))
    written = desk.for_run(lab, machine.id, options.profile, wanted["planned"])
    old = session.unfinished(lab, wanted, schedule)
    if old and (old.results or not written):
        print(f"Continuing run {old.id}: {sum(schedule.over(r) for r in old.results)} of {len(tests)} tests are done.")
        return old
    stamp = f"{datetime.now(UTC):%Y-%m-%d-%H%M%S}-{options.profile}"
    ink = written or prepare.ink(lab, machine, f"{machine.id}-{stamp}", options.profile, tests, cards)
    print(f"Inked before measuring: labdata/ink/{ink.name}")
    for p in labdata.load().inks[ink.stem].predictions:
        print(f"  {p.quantity}: {'≤ ' if p.kind == 'ceiling' else ''}{p.as_written}")
    try:
        return session.begin(stamp, wanted, host, ink, notes)
    except OSError:
        if not written:
            ink.unlink(missing_ok=True)  # no run was begun on it, so it would wait for ever
        raise


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


def _measure(run, tests: list[Test], weights, options, threads, instrument, schedule, machine, models) -> Run:
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

        return session.perform(run, tests, weights, options, threads, instrument, schedule, on_event, on_result, say)


if __name__ == "__main__":
    sys.exit(main())
