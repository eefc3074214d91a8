"""`make perf`: what the lab's own commands take, each in a process of its own. Not a test: a busy machine would fail it.

SIZES=20,200,1000 are the machines of the generated labs (ten runs each). RECORD=1 keeps the figures in labdata/costs/,
each as it comes. Cold is a build with an empty .cache: no snapshot of labdata/, no picture, table, template or download from
before; what the set-up leaves in .venv once (byte code, Explore's script, the letters' widths) is there. What takes a quarter of an hour is stopped, and said to be; the next is measured all the same.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from bench import host
from macros import labdata
from macros.costs import Cost, Costs
from tests import biglab
from tests.conftest import ROOT, copy_project

RUNS = 10  # of each generated machine
ROWS = 10_000
LAB_BYTES = 10**9
STOP_S = 900.0
# What may be taken at a number of machines [s]; sizes in between have no limit of their own.
COLD_S = {20: 4.0, 200: 10.0, 1000: 60.0}
WARM_S, LOAD_S, CHECK_S = 2.0, 5.0, 10.0
IMPORT_S, IMPORT_BYTES = 10.0, 500 * 10**6
PREDICT_S, ROWS_S, HEADER_S, FIT_S = 0.05, 5.0, 1.0, 10.0

LOAD = "from macros import labdata; labdata.load()"
BUILD = "import sys; from mkdocs.__main__ import cli; sys.exit(cli(['build', '-q']))"
# The rebuild that `mkdocs serve` makes in its own process after an edit, timed inside it; its processes' CPU counts.
REBUILD = """
import os, pathlib, time
from mkdocs.commands.build import build
from mkdocs.config import load_config
def once():
    config = load_config("mkdocs.yml")
    config.plugins.on_startup(command="serve", dirty=False)
    build(config)
once()
edited = pathlib.Path("labdata/machines/apple-m4-24gb.yml")
edited.write_text(edited.read_text(encoding="utf-8").replace("Apple M4 MacBook Pro", "Apple M4 MacBook"), encoding="utf-8")
wall, before = time.perf_counter(), os.times()
once()
print("took", time.perf_counter() - wall, sum(os.times()[:4]) - sum(before[:4]))
"""
PREDICT = """
import sys, time
from macros import subject_load, labdata
lab = labdata.load()
wall, cpu = time.perf_counter(), time.process_time()
subject_load.predict(lab.machines["apple-m4-24gb"], lab.models["qwen3-8b-q4_k_m"], "tg128")
print("took", time.perf_counter() - wall, time.process_time() - cpu)
heavy = {"altair", "pandas"} & set(sys.modules)
sys.exit(f"loaded for a prediction: {heavy}" if heavy else 0)
"""
FIT = """
import time
from macros import calibration, corpus, fit
known = fit.known_rows([r for r in corpus.measurements() if r["id"] in calibration.fitted()["held_out"]])
wall, cpu = time.perf_counter(), time.process_time()
fit.both_phases(known)
print("took", time.perf_counter() - wall, time.process_time() - cpu)
"""
HEADER = """
import sys, time
from pathlib import Path
from macros import gguf_header
wall, cpu = time.perf_counter(), time.process_time()
gguf_header.read_header(Path(sys.argv[1]))
print("took", time.perf_counter() - wall, time.process_time() - cpu)
"""


def took(what: str, home: Path, code: list[str], limit_s: float | None, limit_bytes: int | None = None, machines: int = 0, runs: int = 0) -> Cost:
    """Run Python in a folder and say what it cost; its own figures where it prints "took <wall> <cpu>".

    Raises:
        SystemExit: it failed.
    """
    begun = time.perf_counter()
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    child = subprocess.Popen([sys.executable, *code], cwd=home, env=env, stdout=subprocess.PIPE, text=True, start_new_session=True)
    guard = threading.Timer(STOP_S, os.killpg, (child.pid, signal.SIGKILL))  # with the processes it started
    guard.start()
    said = child.stdout.read() if child.stdout else ""
    _, status, used = os.wait4(child.pid, 0)
    stopped = not guard.is_alive()
    guard.cancel()
    child.returncode = os.waitstatus_to_exitcode(status)
    wall_s, cpu_s = time.perf_counter() - begun, used.ru_utime + used.ru_stime
    if stopped:
        what = f"{what}, stopped"
    elif child.returncode:
        sys.exit(f"{what}: failed with exit code {child.returncode}\n{said}")
    if own := [line.split()[1:] for line in said.splitlines() if line.startswith("took ")]:
        wall_s, cpu_s = map(float, own[-1])
    peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    cost = Cost(what=what, machines=machines, runs=runs, wall_s=float(f"{wall_s:.3g}"), cpu_s=float(f"{max(cpu_s, 1e-4):.3g}"), peak_bytes=peak,
                limit_s=limit_s, limit_bytes=limit_bytes)  # fmt: skip
    print(f"{what:<22}{machines or '':>6}  {cost.wall_s:>8.3g} s {cost.cpu_s:>8.3g} s CPU {peak / 1e6:>7.0f} MB{_verdict(cost)}", flush=True)
    return cost


def over(cost: Cost) -> bool:
    """Whether a cost passes a limit: its time counts where the CPU was busy for as long, for waiting is the machine's."""
    return min(cost.wall_s, cost.cpu_s) > (cost.limit_s or float("inf")) or cost.peak_bytes > (cost.limit_bytes or float("inf"))


def _verdict(cost: Cost) -> str:
    limits = [f"{cost.limit_s:g} s" if cost.limit_s else "", f"{cost.limit_bytes / 1e6:.0f} MB" if cost.limit_bytes else ""]
    allowed = ", ".join(filter(None, limits))
    return f"  limit {allowed}{': TOO MUCH' if over(cost) else ''}" if allowed else ""


def sized(folder: Path, machines: int) -> Iterator[Cost]:
    """Load, check, cold build and warm rebuild of a lab of some size."""
    home = copy_project(folder)
    shutil.rmtree(home / ".cache", ignore_errors=True)
    biglab.write(home / "labdata", machines, RUNS)
    git = ["git", "-c", "user.name=perf", "-c", "user.email=perf@localhost"]
    for step in (["init", "-q"], ["add", "labdata", "docs", "mkdocs.yml"], ["commit", "-q", "-m", "A generated lab"]):
        subprocess.run([*git, *step], cwd=home, check=True)
    size = {"machines": machines, "runs": machines * RUNS}
    full = machines * RUNS >= ROWS
    yield took("cold build", home, ["-c", BUILD], COLD_S.get(machines), LAB_BYTES, **size)
    yield took("build, nothing changed", home, ["-c", BUILD], None, **size)
    yield took("warm rebuild", home, ["-c", REBUILD], WARM_S if machines <= 20 else None, **size)
    yield took("load", home, ["-c", LOAD], LOAD_S if full else None, **size)
    yield took("check", home, ["-m", "bench", "check"], CHECK_S if full else None, **size)


def log_rows() -> str:
    """As many distinct tests as asked for, in the fields of 2026's llama-bench."""
    record = json.loads((ROOT / "tests/data/logs/jsonl_2026_rocm_strixhalo_depth_curve.jsonl").read_text(encoding="utf-8").splitlines()[0])
    lines = []
    for n in range(ROWS):
        samples = [ns + n for ns in record["samples_ns"]]
        rates = [128 / (ns / 1e9) for ns in samples]
        lines.append(json.dumps({**record, "gpu_info": "NVIDIA GeForce RTX 4090", "cpu_info": "", "n_depth": n, "samples_ns": samples,
                                 "samples_ts": rates, "avg_ts": sum(rates) / len(rates)}))  # fmt: skip
    return "\n".join(lines) + "\n"


def csv_rows() -> str:
    """The corpus over and over, every row at a depth of its own."""
    import csv
    import io

    with (ROOT / "labdata/corpus/measurements.csv").open(encoding="utf-8", newline="") as file:
        known = list(csv.DictReader(file))
    out = io.StringIO()
    writer = csv.DictWriter(out, list(known[0]), lineterminator="\n")
    writer.writeheader()
    for n in range(ROWS):
        row = known[n % len(known)]
        writer.writerow({**row, "id": f"row-{n}", "depth": str(n)} if "depth" in row else {**row, "id": f"row-{n}"})
    return out.getvalue()


def large_file(folder: Path) -> Path:
    """A GGUF file of 400 GB that takes a few MB of disk: a real header, the weights a hole."""
    from bench import weights
    from macros.labdata import load

    card = load().models["qwen3-0.6b-q4_k_m-synthetic"]
    small = weights.ensure(folder, "header", card.dims, card.quant, lambda *_: None)
    with small.open("r+b") as file:
        assert struct.unpack("<4s", file.read(4))[0] == b"GGUF"
        file.truncate(400 * 10**9)
    return small


def measured() -> Iterator[Cost]:
    """Every cost, smallest lab first.

    The labs are deleted together: for half a minute ext4 passes over each deleted file's place anew when a file is created,
    which then takes up to a millisecond instead of a fortieth. The next lab would pay for the last one's end.
    """
    with tempfile.TemporaryDirectory() as labs:
        for machines in (int(n) for n in os.environ.get("SIZES", "20,200,1000").split(",") if n):
            yield from sized(Path(labs, str(machines)), machines)
    with tempfile.TemporaryDirectory() as folder:
        home = copy_project(Path(folder))
        (home / "rows.jsonl").write_text(log_rows(), encoding="utf-8")
        (home / "rows.csv").write_text(csv_rows(), encoding="utf-8")
        yield took("one prediction", home, ["-c", PREDICT], PREDICT_S)
        yield took(f"{ROWS:,} predictions", home, ["-m", "macros.predict", "--rows", "rows.csv", "--out", "out.csv"], ROWS_S)
        yield took("one fit of the corpus", home, ["-c", FIT], FIT_S)
        yield took("header of 400 GB", home, ["-c", HEADER, str(large_file(Path(folder)))], HEADER_S)
        yield took(f"import of {ROWS:,} rows", home, ["-m", "bench", "import", "rows.jsonl"], IMPORT_S, IMPORT_BYTES)


def main() -> int:
    """Everything, smallest first; 1 if something takes too long or too much."""
    began, load_before = datetime.now(UTC).replace(microsecond=0), host.busy_share()
    path = labdata.ROOT / "costs" / f"{began:%Y-%m-%d-%H%M%S}.yml"
    cores = os.cpu_count() or 1
    setting = f"{cores} core{'s' if cores > 1 else ''}, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
    costs: list[Cost] = []
    for cost in measured():
        costs.append(cost)
        if os.environ.get("RECORD"):
            labdata.write(path, Costs(schema=1, id=path.stem, started_at=began, load_before=load_before, command="make perf RECORD=1", costs=costs, setting=setting))
    if os.environ.get("RECORD"):
        print(f"Recorded in {path.relative_to(ROOT)}")
    return int(any(map(over, costs)) or any(cost.what.endswith(", stopped") for cost in costs))


if __name__ == "__main__":
    sys.exit(main())
