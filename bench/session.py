"""One sitting at the stopwatch: ink first, then every test, each on disk as soon as it is done."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from bench import engine
from bench import host as hosts
from bench.engine import EngineFailed, Job
from bench.host import Host
from bench.options import Options
from bench.plan import PlanError, Test
from bench.prepare import Weights, cache_dir
from macros import compare, labdata, references
from macros.cards import Machine
from macros.labdata import Lab
from macros.records import HostDoc, InkRef, Instrument, Result, Run
from macros.seals import VERSION


def engine_facts() -> dict:
    """What the installed engine is and whether it sees a GPU, asked in a child process.

    Raises:
        PlanError: the engine is not installed or does not load.
    """
    code = ("import json, llama_cpp as l; l.llama_backend_init(); print(json.dumps({'python': l.__version__, "
            "'build': l.llama_version().decode(), 'system': l.llama_print_system_info().decode(), 'gpu': bool(l.llama_supports_gpu_offload())}))")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise PlanError(f"engine: llama-cpp-python does not load ({last}); python3 bench/setup.py bench installs it")
    return json.loads(done.stdout.splitlines()[-1])


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
    return HostDoc(
        os=host.os, kernel=host.kernel, arch=host.arch, cpu=host.cpu, board=host.board, physical_cores=host.physical_cores,
        logical_cores=host.logical_cores, memory_bytes=host.memory_bytes, gpus=[g.name for g in host.gpus],
        power=host.power, virtual=host.virtual, load1_per_core=host.load1_per_core, python=platform.python_version(),
        packages={p: version(p) for p in ("gguf", "llama-cpp-python", "numpy")})  # fmt: skip


def identity(options: Options, machine: Machine, tests: list[Test], facts: dict, command: str) -> dict:
    """What must agree for a run to be continued rather than begun anew."""
    return {
        "machine": machine.id,
        "profile": options.profile,
        "command": command,
        "planned": [t.target.label for t in tests],
        "engine_version": f"llama-cpp-python {facts['python']}, llama.cpp {facts['build']}",
    }


def unfinished(lab: Lab, wanted: dict) -> Run | None:
    """The newest run of the same identity that still lacks tests; None: begin anew."""
    for run in reversed(lab.runs_of(wanted["machine"])):
        same = (run.profile, run.command, run.planned, run.instrument.engine_version) == (
            wanted["profile"], wanted["command"], wanted["planned"], wanted["engine_version"])  # fmt: skip
        if same and run.ink and len(run.results) < len(run.planned):
            return run
    return None


def begin(ident: str, wanted: dict, host: Host, ink_path: Path, notes: list[str]) -> Run:
    """A new run, on disk before its first test, holding the hash of its ink."""
    run = Run(
        schema=1, id=ident, machine=wanted["machine"],
        ink=InkRef(id=ink_path.stem, sha256=references.sha256(ink_path)), profile=wanted["profile"],
        started_at=datetime.now(UTC).replace(microsecond=0), command=wanted["command"],
        instrument=Instrument(name="inklab, in-process", version=VERSION, engine="llama.cpp", engine_version=wanted["engine_version"]),
        host=host_doc(host), planned=wanted["planned"], notes=notes, results=[])  # fmt: skip
    save(run)
    return run


def path_of(run: Run) -> Path:
    """Where a run lies."""
    return labdata.ROOT / "runs" / run.machine / f"{run.id}.yml"


def save(run: Run) -> None:
    """A run on disk, atomically."""
    labdata.write(path_of(run), run)


def perform(
    run: Run, tests: list[Test], weights: Weights, options: Options, threads: int,
    on_event: Callable[[int, dict], None], on_result: Callable[[int, Result], None],
) -> Run:  # fmt: skip
    """Run the tests a run lacks, in the plan's order; each result is saved before the next begins.

    Args:
        on_event: called with (number of the test, event) as the engine reports
        on_result: called with (number of the test, its result)
    """
    by_id = {card.id: weights.paths[quant] for quant, card in weights.cards.items()}
    for number in range(len(run.results), len(tests)):
        test = tests[number]
        result = one(test, by_id[test.target.model], options, threads, lambda e: on_event(number, e))
        said = [f"{test.target.label}: {words}" for words in compare.conditions(result)]
        run = run.model_copy(update={"results": [*run.results, result], "notes": [*run.notes, *said]})
        save(run)
        on_result(number, result)
    return run


def one(test: Test, path: Path, options: Options, threads: int, on_event: Callable[[dict], None]) -> Result:
    """One test in its child process; a crash becomes a result that says so."""
    ngl = 0 if test.cpu_control else options.ngl
    job = Job(model_path=str(path), n_prompt=test.n_prompt, n_gen=test.n_gen, depth=test.target.depth,
              reps=options.reps, n_threads=threads, n_gpu_layers=ngl)  # fmt: skip
    common = {
        "experiment": test.target.experiment, "model": test.target.model, "n_prompt": test.n_prompt,
        "n_gen": test.n_gen, "depth": test.target.depth, "n_gpu_layers": ngl, "n_threads": threads,
        "n_batch": job.n_batch, "n_ubatch": job.n_ubatch, "type_k": job.type_k, "type_v": job.type_v,
        "flash_attn": job.flash_attn, "started_at": datetime.now(UTC).replace(microsecond=0),
        "load_before": hosts.busy_share(),
    }  # fmt: skip
    try:
        outcome = engine.run(job, on_event)
    except EngineFailed as error:
        # Where the file lies is nobody's business.
        why = " ".join(str(error).replace(str(path.resolve()), path.name).replace(str(path), path.name).split())
        return Result(**common, backend="unknown", failed=why[:500])
    facts = outcome.facts
    return Result(**common, backend=facts["backend"], layers_offloaded=facts["layers_offloaded"], samples_ns=outcome.samples_ns)


def lock_folder() -> Path:
    """Where the bench's lock lies: one a user, whatever the checkout."""
    return cache_dir().parent
