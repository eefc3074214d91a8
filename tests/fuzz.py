"""`make fuzz`: every door for SECONDS each, guided by coverage where atheris is installed; else by Hypothesis alone.

    python -m tests.fuzz [seconds a door] [door ...] [--record]

What breaks a door is kept as crash-<hash> in .cache/fuzz; once mended it belongs into tests/data/fuzz. `--record` writes
labdata/trials/fuzz.yml, what was tried at each door and for how long.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SEED = 20261130
CACHE = ROOT / ".cache" / "fuzz"
DOORS = ("log", "imported", "header", "document", "yaml", "pasted", "shared")


def guided(name: str) -> None:
    """One door under atheris, in this process, until its own time is up; libFuzzer's arguments are in sys.argv."""
    import atheris

    sys.path.insert(0, str(ROOT / "tests"))
    with atheris.instrument_imports(include=["bench", "macros"]):
        import fuzz_targets
    door = fuzz_targets.TARGETS[name]
    corpus = CACHE / name
    corpus.mkdir(parents=True, exist_ok=True)
    for i, data in enumerate(fuzz_targets.seeds(name)):
        (corpus / f"seed-{i:03}").write_bytes(data)
    words = CACHE / f"{name}.dict"
    words.write_text("".join('"{}"\n'.format("".join(f"\\x{b:02x}" for b in w)) for w in fuzz_targets.JUNK), encoding="ascii")
    seconds = sys.argv[3]
    atheris.Setup([sys.argv[0], str(corpus), f"-max_total_time={seconds}", f"-max_len={fuzz_targets.MOST}", f"-dict={words}", "-timeout=20", "-rss_limit_mb=2048",
                   f"-artifact_prefix={CACHE}/crash-{name}-", f"-seed={SEED}", "-print_final_stats=1", "-verbosity=0"], lambda data: door(data))  # fmt: skip
    atheris.Fuzz()


def main(argv: list[str]) -> int:
    """Every door in turn; 1 if any was broken."""
    from macros import labdata, trials  # not above: what is imported before atheris looks is not guided by its coverage

    record, argv = "--record" in argv, [a for a in argv if a != "--record"]
    seconds = argv[0] if argv else "600"
    names = argv[1:] or list(DOORS)
    wrong = [n for n in names if n not in DOORS] + ([] if seconds.isdigit() and int(seconds) else [seconds])
    if wrong:
        print(f"error: fuzz: seconds, then names of doors; got {' '.join(wrong)}; known: {', '.join(DOORS)}", file=sys.stderr)
        return 1
    CACHE.mkdir(parents=True, exist_ok=True)
    broken, rows, begun = [], [], datetime.now(UTC).replace(microsecond=0)
    try:
        import atheris  # noqa: F401
    except ImportError:
        print("atheris is not installed here (no wheel for this Python or system): Hypothesis alone, without coverage.")
        env = {**os.environ, "FUZZ_EXAMPLES": str(int(seconds) * 20)}
        return subprocess.run([sys.executable, "-m", "pytest", "-q", "tests/test_fuzz.py"], cwd=ROOT, env=env).returncode
    for name in names:
        print(f"{name}: {seconds} s", flush=True)
        done = subprocess.run([sys.executable, "-m", "tests.fuzz", "--guided", name, seconds], cwd=ROOT, capture_output=True, text=True, errors="replace")
        said = (done.stdout + done.stderr).splitlines()
        print("\n".join(f"  {line}" for line in said if line.startswith("stat::number_of_executed_units") or "Done " in line))
        units = next((int(line.split()[-1]) for line in said if line.startswith("stat::number_of_executed_units")), 0)
        if units:
            rows.append(trials.Trial(fault=f"mutants of real files for {seconds} s, guided by coverage", command=name, times=units, hit=0, lost=0, half=int(bool(done.returncode)),
                                     went_on=units - bool(done.returncode), outcome="broken" if done.returncode else "refused in clear lines, or read and written back the same"))  # fmt: skip
        if done.returncode:
            broken.append(name)
            print("\n".join(f"  {line}" for line in said[-40:]))
    if record and rows:
        old = labdata.load().trials.get("fuzz")  # doors that were not tried again keep what is known of them
        rows = [*(t for t in (old.trials if old else []) if t.command not in names), *rows]
        where = f"{len(rows)} doors, {seconds} s each, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}, atheris {version('atheris')}"
        labdata.write(labdata.ROOT / "trials/fuzz.yml", trials.Trials(
            schema=1, id="fuzz", title="Does a mutant of a real file break a door that strangers' bytes come in by?", setting=where, started_at=begun, seed=SEED,
            command=f"make fuzz SECONDS_EACH={seconds} RECORD=1", trials=rows))  # fmt: skip
    print(f"Broken: {', '.join(broken)}; what did it is in {CACHE.relative_to(ROOT)}" if broken else "No door was broken.")
    return int(bool(broken))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--guided"]:
        guided(sys.argv[2])
    else:
        sys.exit(main(sys.argv[1:]))
