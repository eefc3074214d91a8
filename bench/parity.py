"""Does the in-process engine keep the same time as llama-bench? Interleaved pairs on one file, as a check of labdata.

Each entry of a pair is a fresh process, each pair's order the reverse of the one before (a b b a), so that
a machine which drifts favours neither. A llama-bench built here and the engine share the same libraries.
"""

from __future__ import annotations

import shlex
import shutil
import statistics
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from bench import build, engine, llama_bench, progress
from bench.engine import Job
from bench.llama_bench import LlamaBench, NoLlamaBench
from macros.fields import Source
from macros.records import Check, Pairs

TESTS = {"pp512": (512, 0, 0), "tg128": (0, 128, 0), "tg128 @ d2048": (0, 128, 2048)}  # n_prompt, n_gen, depth
PAIRS, REPS = 8, 3
# Only llama-bench: no web server, no downloads over TLS.
OPTIONS = ("-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=ON", "-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_EXAMPLES=OFF",
           "-DLLAMA_BUILD_SERVER=OFF", "-DLLAMA_BUILD_UI=OFF", "-DLLAMA_CURL=OFF", "-DLLAMA_OPENSSL=OFF",
           "-DCMAKE_BUILD_RPATH_USE_ORIGIN=ON")  # fmt: skip


def binary(env: Mapping[str, str], root: Path) -> tuple[Path, Path | None]:
    """The llama-bench to check against, and the folder of libraries it was built with (None: another's build).

    Raises:
        NoLlamaBench: LLAMA_BENCH= names none.
        SetupError: it could not be built.
    """
    try:
        return llama_bench.find(env), None
    except NoLlamaBench:
        if env.get("LLAMA_BENCH", "").strip():
            raise
    folder = built(env, root)
    return folder / "llama-bench", folder


def built(env: Mapping[str, str], root: Path) -> Path:
    """The folder of a llama-bench built from the engine's own source with the engine's flags, built now or before.

    Raises:
        SetupError: no network, no compiler, or the build failed.
    """
    lock = (root / "lock" / "bench.txt").read_text(encoding="utf-8")
    key, backend, args, pinned = build.plan(env, lock)
    kept = build.cache_dir(env).parent / "llama-bench" / key
    if (kept / "llama-bench").exists():
        return kept
    kept.parent.mkdir(parents=True, exist_ok=True)
    here = Path(sys.executable).parent  # pip, cmake and ninja are the environment's own
    with tempfile.TemporaryDirectory(prefix="build-", dir=kept.parent) as name:
        scratch = Path(name)
        (scratch / "engine.txt").write_text(pinned, encoding="utf-8")
        build_env = {**env, "PATH": f"{here}:{env.get('PATH', '')}", "TMPDIR": name}
        log = root / ".cache" / "parity.log"
        log.parent.mkdir(exist_ok=True)
        progress.run("Fetching llama.cpp's source", [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes",
                     "--no-build-isolation", "--no-binary=llama-cpp-python", "--progress-bar=off", "-d", name,
                     "-r", str(scratch / "engine.txt")], env=build_env, log=log)  # fmt: skip
        with tarfile.open(next(scratch.glob("llama_cpp_python-*.tar.gz"))) as archive:
            archive.extractall(scratch, filter="data")
        source = next(scratch.glob("llama_cpp_python-*/vendor/llama.cpp"))
        metal = [] if backend.name == "metal" else ["-DGGML_METAL=OFF"]
        ours = [*(a for a in args if not a.startswith("-DLLAVA")), *metal, *OPTIONS]
        progress.run("Configuring llama-bench", ["cmake", "-G", "Ninja", "-S", str(source), "-B", str(scratch / "b"), *ours], env=build_env, log=log)
        jobs = shlex.split(env.get("CMAKE_BUILD_PARALLEL_LEVEL", "")) and ["-j", env["CMAKE_BUILD_PARALLEL_LEVEL"]]
        progress.run(f"Compiling llama-bench ({backend.name})", ["cmake", "--build", str(scratch / "b"), "--target", "llama-bench", *(jobs or [])],
                     on_line=build.ninja_progress, env=build_env, log=log)  # fmt: skip
        shutil.rmtree(kept, ignore_errors=True)
        (scratch / "b" / "bin").rename(kept)
    return kept


def order(pairs: int) -> Iterator[tuple[int, str]]:
    """(pair, "a" or "b") in the order to run.

    >>> "".join(way for _, way in order(4))
    'abbaabba'
    """
    for pair in range(pairs):
        yield from ((pair, way) for way in ("ab" if pair % 2 == 0 else "ba"))


def compare(
    found: LlamaBench, libraries: Path | None, job: Job, pairs: int, on_entry: Callable[[str, int, str, float], None],
    keep: Callable[[list[Pairs]], None],
) -> list[Pairs]:  # fmt: skip
    """Time all tests in pairs; each entry is the mean rate of its repetitions [tok/s].

    Args:
        libraries: folder of libraries for the engine to load instead of its own
        job: the model and the settings; each test sets the tokens
        on_entry: called with (test, pair, way, rate)
        keep: called with what there is after every pair of all tests

    Raises:
        EngineFailed: one of them failed; what was kept stays.
    """
    ways = {"a": found.run, "b": lambda j: engine.run(j, env={"LLAMA_CPP_LIB_PATH": str(libraries)} if libraries else {})}
    rates: dict[tuple[str, str], list[float]] = {(test, way): [] for test in TESTS for way in ways}
    done: list[Pairs] = []
    for pair in range(pairs):
        for test, (n_prompt, n_gen, depth) in TESTS.items():
            for way in (way for p, way in order(pairs) if p == pair):
                outcome = ways[way](replace(job, n_prompt=n_prompt, n_gen=n_gen, depth=depth))
                rate = statistics.fmean((n_prompt + n_gen) / (ns / 1e9) for ns in outcome.samples_ns)
                rates[test, way].append(round(rate, 3))
                on_entry(test, pair, way, rate)
        done = [Pairs(test=test, a=rates[test, "a"], b=rates[test, "b"], unit="tok/s") for test in TESTS]
        keep(done)
    return done


def document(ident: str, where: str, found: LlamaBench, shared: bool, reps: int, loop_ns: list[float], pairs: list[Pairs]) -> Check:
    """The pairs as a check.

    Args:
        where: the model and the machine, in words
        shared: whether both used the same libraries
        loop_ns: what the in-process loop itself takes for a token, see `bench.overhead` [ns]
    """
    linked = "both over the same libraries" if shared else "each over its own libraries"
    each = "one repetition" if reps == 1 else f"the mean rate of {reps} repetitions"
    note = f"make parity; each entry is {each} in a fresh process; order a b b a"
    return Check(schema=1, id=ident, title="Does the in-process engine keep the same time as llama-bench?",
                 setting=f"{where}; llama-bench {found.build}, {linked}", date=datetime.now(UTC).date(),
                 a="llama-bench", b="in-process", pairs=pairs, loop_ns=loop_ns, source="pairs",
                 sources={"pairs": Source(title="Pairs run in turn", kind="measured", note=note)})  # fmt: skip
