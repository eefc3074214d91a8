"""`make perf`: what must stay quick, timed once. Not a test: a busy machine would fail it."""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from pathlib import Path

from tests.conftest import ROOT, copy_project, run_module

ROWS, LIMIT_S, LIMIT_MB = 10_000, 10.0, 500.0


def rows() -> str:
    """As many distinct tests as asked for, in the fields of 2026's llama-bench."""
    record = json.loads((ROOT / "tests/data/logs/jsonl_2026_rocm_strixhalo_depth_curve.jsonl").read_text(encoding="utf-8").splitlines()[0])
    lines = []
    for n in range(ROWS):
        samples = [ns + n for ns in record["samples_ns"]]
        rates = [128 / (ns / 1e9) for ns in samples]
        lines.append(json.dumps({**record, "gpu_info": "NVIDIA GeForce RTX 4090", "cpu_info": "", "n_depth": n, "samples_ns": samples,
                                 "samples_ts": rates, "avg_ts": sum(rates) / len(rates)}))  # fmt: skip
    return "\n".join(lines) + "\n"


def main() -> int:
    """Import in a copy of the project; 1 if it takes too long or too much."""
    with tempfile.TemporaryDirectory() as folder:
        home = copy_project(Path(folder))
        log = home / "rows.jsonl"
        log.write_text(rows(), encoding="utf-8")
        begun = time.perf_counter()
        done = run_module(home, "bench", "import", str(log))
        took = time.perf_counter() - begun
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s, peak = used.ru_utime + used.ru_stime, used.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
    print(done.stdout or done.stderr)
    # One thread: on an idle machine the clock shows what the CPU was used for, and only that is the code's.
    print(f"{ROWS:,} rows imported in {took:.1f} s, {cpu_s:.1f} s of them on a CPU (limit {LIMIT_S:.0f}); {peak:.0f} MB at most (limit {LIMIT_MB:.0f})")
    return done.returncode or int(cpu_s > LIMIT_S or peak > LIMIT_MB)


if __name__ == "__main__":
    sys.exit(main())
