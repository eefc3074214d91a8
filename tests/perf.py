"""`make perf`: what must stay quick, timed once. Not a test: a busy machine would fail it."""

from __future__ import annotations

import json
import resource
import subprocess
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


PREDICT = """
import csv, io, sys, tempfile, time
from pathlib import Path
from macros import calibration, corpus, fit, predict_cli
rows = [r for r in corpus.measurements() if r["id"] in calibration.fitted()["held_out"]]
calibration.predict(corpus.case(rows[0]))  # reads the fit and the hardware table, once
def took(what):
    start = time.process_time(); what(); return time.process_time() - start
one = max(took(lambda row=row: calibration.predict(corpus.case(row))) for row in rows)
with tempfile.TemporaryDirectory() as folder:
    many, out = Path(folder) / "many.csv", Path(folder) / "out.csv"
    with many.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0])); writer.writeheader()
        writer.writerows(rows[i % len(rows)] | {"depth": str(i % 5000)} for i in range(10_000))
    all_of_them = took(lambda: predict_cli.main(["--rows", str(many), "--out", str(out)]))
known = fit.known_rows(rows)
once = took(lambda: fit.both_phases(known))
for what, cpu_s, limit_s in (("the slowest prediction of the corpus", one, 0.05), ("10,000 rows predicted", all_of_them, 5.0), (f"one fit of {len(known)} rows", once, 10.0)):
    print(f"{what}: {cpu_s:.3f} s on a CPU (limit {limit_s:g})")
    if cpu_s > limit_s:
        sys.exit(1)
"""


def main() -> int:
    """Import in a copy of the project, then predict and fit; 1 if anything takes too long or too much."""
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
    predictor = subprocess.run([sys.executable, "-c", PREDICT], cwd=ROOT, check=False)
    return done.returncode or predictor.returncode or int(cpu_s > LIMIT_S or peak > LIMIT_MB)


if __name__ == "__main__":
    sys.exit(main())
