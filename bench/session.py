"""One sitting at the stopwatch: ink first, then every test, each on disk as soon as it is done."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import platform
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path

from bench import schedule, surroundings
from bench.engine import EngineFailed, Job
from bench.host import Host, Watch, busy_share
from bench.instruments import Instrument
from bench.options import Options
from bench.plan import PlanError, Test
from bench.prepare import Weights, cache_dir
from bench.schedule import Schedule
from macros import compare, labdata, references
from macros.cards import Machine
from macros.guard import visible
from macros.labdata import Lab
from macros.records import HostDoc, InkRef, Result, Run

QUIET_LOOK_S = 0.5  # who waits for calm wants it known to a few per cent; ticks are 10 ms


@contextlib.contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Hold the bench's lock: two benches at once would time each other.

    Raises:
        PlanError: another bench is running.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "bench.lock", "w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                raise
            raise PlanError("bench: another bench is running on this machine; wait for it to end") from None
        yield


def host_doc(host: Host) -> HostDoc:
    """The host's facts as a run keeps them."""
    os, kernel, arch, cpu, board = (text and visible(text) for text in (host.os, host.kernel, host.arch, host.cpu, host.board))
    return HostDoc(
        os=os, kernel=kernel, arch=arch, cpu=cpu, board=board, physical_cores=host.physical_cores,
        logical_cores=host.logical_cores, memory_bytes=host.memory_bytes, gpus=[visible(g.name) for g in host.gpus],
        power=host.power, virtual=host.virtual, load1_per_core=host.load1_per_core, python=platform.python_version(),
        packages={p: version(p) for p in ("gguf", "llama-cpp-python", "numpy")})  # fmt: skip


def identity(options: Options, machine: Machine, tests: list[Test], instrument: Instrument, command: str) -> dict:
    """What must agree for a run to be continued rather than begun anew."""
    return {
        "machine": machine.id,
        "profile": options.profile,
        "command": command,
        "planned": [t.target.label for t in tests],
        "instrument": instrument.record,
    }


def unfinished(lab: Lab, wanted: dict, plan: Schedule) -> Run | None:
    """The newest run of the same identity that still lacks repetitions; None: begin anew."""
    for run in reversed(lab.runs_of(wanted["machine"])):
        same = (run.profile, run.command, run.planned, run.instrument) == (
            wanted["profile"], wanted["command"], wanted["planned"], wanted["instrument"])  # fmt: skip
        if same and run.ink and plan.next(run.results, len(run.planned)):
            return run
    return None


def begin(ident: str, wanted: dict, host: Host, ink_path: Path, notes: list[str]) -> Run:
    """A new run, on disk before its first test, holding the hash of its ink."""
    run = Run(
        schema=1, id=ident, machine=wanted["machine"],
        ink=InkRef(id=ink_path.stem, sha256=references.sha256(ink_path)), profile=wanted["profile"],
        started_at=datetime.now(UTC).replace(microsecond=0), command=wanted["command"],
        instrument=wanted["instrument"], host=host_doc(host), planned=wanted["planned"], notes=notes, results=[])  # fmt: skip
    save(run)
    return run


def path_of(run: Run) -> Path:
    """Where a run lies."""
    return labdata.ROOT / "runs" / run.machine / f"{run.id}.yml"


def save(run: Run) -> None:
    """A run on disk, atomically."""
    labdata.write(path_of(run), run)


def perform(
    run: Run, tests: list[Test], weights: Weights, options: Options, threads: int, instrument: Instrument, plan: Schedule,
    on_event: Callable[[int, dict], None], on_result: Callable[[int, Result], None], say: Callable[[str], None],
    watch: Watch | None = None,
) -> Run:  # fmt: skip
    """Run what a run lacks, in the schedule's order; each sitting is saved before the next begins.

    Args:
        instrument: what measures
        on_event: called with (number of the test, event) as it reports
        on_result: called with (number of the test, its result so far) after each sitting
        say: for a line about waiting
        watch: has counted who uses the cores since before the first test; None: from now on
    """
    by_id = weights.by_model
    patience = surroundings.Patience(surroundings.PATIENCE_S if options.quiet else 0)
    # Who waits for calm needs to know how it is now; else the time between two looks tells, and the first test need not wait.
    look = partial(surroundings.look, partial(busy_share, QUIET_LOOK_S) if options.quiet else (watch or Watch()).share)
    before, last = look(), None
    while step := plan.next(run.results, len(tests)):
        number, reps = step
        turn = schedule.turn(run.results, number)
        if last not in (None, turn):
            instrument.renew()  # where its memory lies makes a process faster or slower: each round draws anew
        last = turn
        test = tests[number]
        before, waited_s = patience.wait(before, say, look)
        began, set_back = hour(run)
        if set_back:
            run = run.model_copy(update={"notes": [*run.notes, f"{set_back} before {test.target.label}, which has the last hour known before it."]})
        fresh = one(test, by_id[test.target.model], options, reps, threads, instrument, before.load, lambda e, n=number: on_event(n, e), began)
        after = look()  # also the next one's before
        waited = {"waited_s": waited_s} if options.quiet else {}
        fresh = schedule.sitting(fresh, **surroundings.around(before, after), **waited)
        result = schedule.merged(run.results[number] if number < len(run.results) else None, fresh, plan)
        results = [*run.results[:number], result, *run.results[number + 1 :]]
        run = run.model_copy(update={"results": results})
        if not plan.next(results, len(tests)):
            said = [f"{t.target.label}: {words}" for t, r in zip(tests, results, strict=True) for words in compare.conditions(r)]
            run = run.model_copy(update={"notes": [*run.notes, *said]})
        save(run)
        on_result(number, result)
        before = after
    return run


def hour(run: Run) -> tuple[datetime, str | None]:
    """When a test begins, and what happened to the clock: one that was set back does not make a record that contradicts itself."""
    now = datetime.now(UTC).replace(microsecond=0)
    sittings = [s.started_at for r in run.results for s in r.sittings]
    last = max((t for t in (run.started_at, *(r.started_at for r in run.results), *sittings) if t), default=now)
    return (now, None) if now >= last else (last, f"The clock was set back by {(last - now).total_seconds():.0f} s")


def job_of(test: Test, path: Path, options: Options, reps: int, threads: int) -> Job:
    """What an instrument is asked for one sitting of a test."""
    s = test.setting
    return Job(model_path=str(path), n_prompt=test.n_prompt, n_gen=test.n_gen, depth=test.target.depth, reps=reps,
               n_threads=s.threads or threads, n_gpu_layers=0 if test.cpu_control else options.ngl, n_batch=s.n_batch,
               n_ubatch=s.ubatch, type_k=s.type_k, type_v=s.type_v, flash_attn=s.flash_attn)  # fmt: skip


def one(
    test: Test, path: Path, options: Options, reps: int, threads: int, instrument: Instrument, load: float | None,
    on_event: Callable[[dict], None], began: datetime | None = None,
) -> Result:  # fmt: skip
    """One sitting of a test; a crash becomes a result that says so."""
    job = job_of(test, path, options, reps, threads)
    common = {
        "experiment": test.target.experiment, "model": test.target.model, "n_prompt": test.n_prompt,
        "n_gen": test.n_gen, "depth": test.target.depth, "n_gpu_layers": job.n_gpu_layers, "n_threads": job.n_threads,
        "n_batch": job.n_batch, "n_ubatch": job.n_ubatch, "type_k": job.type_k, "type_v": job.type_v,
        "flash_attn": job.flash_attn, "started_at": began or datetime.now(UTC).replace(microsecond=0), "load_before": load,
    }  # fmt: skip
    try:
        outcome = instrument.run(job, on_event)
    except EngineFailed as error:
        # Where the file lies is nobody's business.
        why = " ".join(str(error).replace(str(path.resolve()), path.name).replace(str(path), path.name).split())
        return Result(**common, backend="unknown", failed=visible(why)[:500])
    told = {k: outcome.facts[k] for k in (*common, "backend", "layers_offloaded") if k in outcome.facts}
    return Result(**{**common, **told}, samples_ns=outcome.samples_ns)


def lock_folder() -> Path:
    """Where the bench's lock lies: one a user, whatever the checkout."""
    return cache_dir().parent
