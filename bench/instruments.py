"""What measures: the engine in a process of our own, or an installed llama-bench. Same jobs, same outcomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench import llama_bench
from bench.engine import Engine, EngineFailed, Job, Outcome
from bench.plan import PlanError
from macros import records
from macros.seals import VERSION


@dataclass(frozen=True)
class Instrument:
    """An instrument, as a run's record names it."""

    record: records.Instrument
    gpu: bool  # whether it sees one
    run: Callable[[Job, Callable[[dict], None]], Outcome]
    system: str = ""  # what it says of its backends; empty: nothing
    renew: Callable[[], None] = lambda: None  # end what it keeps from one test to the next
    preload: Callable[[Job], None] = lambda _: None  # begin to load a job's model, where one is kept


def choose(name: str, cache: Path, own: Engine) -> Instrument:
    """The instrument of this name.

    Args:
        cache: folder for a very small model to ask llama-bench with
        own: what measures in-process

    Raises:
        PlanError: it is not there, or does not run.
    """
    if name != "llama-bench":
        return in_process(own)
    own.close()
    return installed_llama_bench(cache)


def in_process(own: Engine) -> Instrument:
    """The engine over llama-cpp-python."""
    try:
        facts = own.installed()
    except EngineFailed as error:
        raise PlanError(f"engine: llama-cpp-python does not load ({error}); python3 bench/setup.py bench installs it") from None
    version = f"llama-cpp-python {facts['python']}, llama.cpp {facts['build']}"
    record = records.Instrument(name="inklab, in-process", version=VERSION, engine="llama.cpp", engine_version=version)
    return Instrument(record, facts["gpu"], own.run, facts["system"], own.close, own.preload)


def installed_llama_bench(cache: Path) -> Instrument:
    """The llama-bench of LLAMA_BENCH= or PATH."""
    try:
        found = llama_bench.identify(llama_bench.find(), cache)
    except llama_bench.NoLlamaBench as error:
        raise PlanError(str(error)) from None
    record = records.Instrument(name="llama-bench", version=found.build, engine="llama.cpp", engine_version=f"llama.cpp {found.build}")
    return Instrument(record, bool(found.gpu), found.run)
