"""Short probes of a machine whose chip has no spec sheet: read bandwidth and fp32 matmul rate.

They measure; whoever predicts from them says so. Each runs in a child process
(`python -m bench.probe read_bandwidth 2` prints JSON), so that its memory and its BLAS
threads are gone before anything is benched.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

READ_C = Path(__file__).with_name("read.c")
ROUND_S, ROUNDS = 0.2, 6
PASSES = 2  # a thread reads its slice this often before it waits for the others
L3_MULTIPLE = 8  # what stays of the array in cache is then at most an eighth
MIN_ARRAY_BYTES = 512 * 10**6  # for caches that are not described (macOS: up to 96 MB)
MATMUL_N = 2048
# Each BLAS reads its own variable, and only at start.
THREAD_VARIABLES = (
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "OMP_NUM_THREADS",
)


class ProbeFailed(Exception):
    """The probe's process gave no result; the message is one line."""


@dataclass(frozen=True)
class ProbeResult:
    """A probe's best round, with every round and how it was measured."""

    value: float
    unit: str
    samples: list[float]
    n_threads: int
    method: str
    numpy: str
    blas: str


def read_bandwidth(n_threads: int) -> ProbeResult:
    """Rate at which `n_threads` threads read memory, best of some rounds [B/s]."""
    return _in_child("read_bandwidth", n_threads)


def sweep(cores: int, logical: int) -> list[int]:
    """Numbers of threads to try: doubling up to the cores, then every logical core.

    >>> sweep(6, 12), sweep(2, 2)
    ([1, 2, 4, 6, 12], [1, 2])
    """
    doubling = [2**i for i in range(cores.bit_length()) if 2**i < cores]
    return sorted({*doubling, cores, max(cores, logical)})


def matmul_flops(n_threads: int) -> ProbeResult:
    """Rate of an fp32 matrix product on `n_threads` BLAS threads, best of some rounds [FLOP/s]."""
    return _in_child("matmul_flops", n_threads)


def compiled_reader(compiler: str, folder: Path) -> Path:
    """The C reader beside this file, compiled for this very CPU.

    Raises:
        ProbeFailed: it does not compile.
    """
    out = folder / "read"
    for flags in (["-O3", "-march=native"], ["-O3", "-mcpu=native"], ["-O3"]):  # clang on Arm takes the second
        done = subprocess.run([*shlex.split(compiler), *flags, str(READ_C), "-o", str(out), "-lpthread"], capture_output=True, text=True)
        if done.returncode == 0:
            return out
    raise ProbeFailed(f"probe: {READ_C.name} does not compile; last words: {(done.stderr.strip().splitlines() or ['none'])[-1]}")


def c_read_bandwidth(reader: Path, n_threads: int) -> float:
    """Rate at which the C reader's threads read memory, best of some rounds [B/s].

    Raises:
        ProbeFailed: it gave no rates.
    """
    done = subprocess.run([str(reader), str(n_threads), str(_array_bytes()), str(ROUNDS)], capture_output=True, text=True)
    if done.returncode or not done.stdout.split():
        raise ProbeFailed(f"probe: the C reader ended with exit code {done.returncode}; {done.stderr.strip() or 'it said nothing'}")
    return max(map(float, done.stdout.split()))


def _array_bytes() -> int:
    """Memory to read, too much for any cache [B]."""
    return max(MIN_ARRAY_BYTES, L3_MULTIPLE * _l3_bytes())


def _in_child(name: str, n_threads: int) -> ProbeResult:
    child = subprocess.run(
        [sys.executable, "-m", "bench.probe", name, str(n_threads)],
        cwd=Path(__file__).resolve().parents[1],
        env=os.environ | dict.fromkeys(THREAD_VARIABLES, str(n_threads)),
        capture_output=True,
        text=True,
    )
    if child.returncode:
        last = (child.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise ProbeFailed(f"probe {name}: ended with exit code {child.returncode}; last words: {last}")
    return ProbeResult(**json.loads(child.stdout))


def _read_bandwidth(n_threads: int) -> ProbeResult:
    from concurrent.futures import ThreadPoolExecutor

    import numpy as np

    array_bytes = _array_bytes()
    slice_bytes = array_bytes // n_threads

    with ThreadPoolExecutor(n_threads) as pool:
        # Each thread writes its own slice first, so that it lies in the memory next to it.
        slices = list(pool.map(lambda _: np.ones(slice_bytes, np.int8), range(n_threads)))

        def read_all() -> float:
            # The cheapest reduction a byte: within some % of a C loop over vector loads, where
            # sums and dot products were up to a third below it. It lets go of Python's lock.
            list(pool.map(lambda x: [x.max() for _ in range(PASSES)], slices))
            return float(slice_bytes * n_threads * PASSES)

        samples = _rounds(read_all)
    method = f"numpy max of int8, one slice a thread, {array_bytes / 1e6:.0f} MB in all"
    return _result(samples, "B/s", n_threads, method)


def _matmul_flops(n_threads: int) -> ProbeResult:
    import numpy as np

    rng = np.random.default_rng(0)
    a, b = (rng.random((MATMUL_N, MATMUL_N), np.float32) for _ in range(2))
    out = np.empty_like(a)

    def multiply() -> float:
        np.matmul(a, b, out=out)
        return 2.0 * MATMUL_N**3

    method = f"numpy matmul, fp32, {MATMUL_N} x {MATMUL_N}"
    return _result(_rounds(multiply), "FLOP/s", n_threads, method)


def _rounds(work: Callable[[], float]) -> list[float]:
    """Amount of work a second, once a round; a slow machine gets fewer rounds, at least one."""
    work()  # warm-up
    samples = []
    end_s = time.perf_counter() + ROUNDS * ROUND_S
    while not samples or time.perf_counter() < end_s:
        start_s, amount = time.perf_counter(), 0.0
        while (elapsed_s := time.perf_counter() - start_s) < ROUND_S:
            amount += work()
        samples.append(amount / elapsed_s)
    return samples


def _l3_bytes() -> int:
    """All last-level caches together [B]; 0 where Linux does not say (macOS, some VMs)."""
    caches = {}
    for index in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cache/index3"):
        try:
            size = (index / "size").read_text().strip()
            caches[(index / "shared_cpu_list").read_text()] = int(size.removesuffix("K")) * 1024
        except (OSError, ValueError):
            continue
    return sum(caches.values())


def _result(samples: list[float], unit: str, n_threads: int, method: str) -> ProbeResult:
    import numpy as np

    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return ProbeResult(
        value=max(samples),
        unit=unit,
        samples=samples,
        n_threads=n_threads,
        method=f"{method}, best of {len(samples)} rounds of {ROUND_S} s",
        numpy=np.__version__,
        blas=f"{blas['name']} {blas['version']}",
    )


if __name__ == "__main__":
    probes = {"read_bandwidth": _read_bandwidth, "matmul_flops": _matmul_flops}
    print(json.dumps(asdict(probes[sys.argv[1]](int(sys.argv[2])))))
