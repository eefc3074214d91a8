"""`python -m bench run|import|share|review|report|check|host|ink|withdraw|seal|day|post`: what prints and exits (`bench.measure` for a run)."""

from __future__ import annotations

import argparse
import os
import sys
from datetime import UTC, datetime

from macros import labdata
from macros.labdata import LabError


def main(argv: list[str] | None = None) -> int:
    """Run one command; every failure is one clear line a problem, and exit code 1."""
    from bench import options

    # In a log, what was said before an error comes before it; a terminal without ± or ● shows a ? there.
    sys.stdout.reconfigure(line_buffering=True, errors="replace")
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run_parser = commands.add_parser("run", help="measure this machine")
    options.add_to(run_parser)
    imported = commands.add_parser("import", help="take in a log of llama-bench, llama-server, Ollama or LM Studio")
    imported.add_argument("file", nargs="?", help="the log; - or nothing: standard input")
    imported.add_argument("--machine", help="the machine's name in labdata/machines; unnamed: the log's chip, where labdata/chips knows it")
    imported.add_argument("--chip", help="a chip's id in labdata/chips, where the log alone does not tell which it is")
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
            from bench import measure

            return measure.run(args)
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
    from bench.measure import weights_progress

    if command == "chat":
        commands.run_chat(print, lambda text: print(text, end="", flush=True), weights_progress)
    else:
        {"parity": commands.run_parity, "probe": commands.run_probe, "ttft": commands.run_ttft}[command](print, weights_progress)
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
    file, machine, model, chip = ((flags[n] or os.environ.get(n.upper(), "")).strip() or None for n in ("file", "machine", "model", "chip"))
    data = imports.read_bytes(file)
    if share.is_one(data):
        print("\n".join(share.take(data, file if file and file != "-" else "standard input", labdata.ROOT)))
        return 0
    lab = labdata.load()
    done = imports.prepare(data, file if file and file != "-" else "standard input", lab, machine, model, chip)
    paths = imports.write(done, lab, labdata.ROOT)
    print("\n".join(done.report))
    for path in paths:
        print(f"Recorded in labdata/{path.relative_to(labdata.ROOT).as_posix()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
