"""`make fuzz`: every door for SECONDS each, guided by coverage where atheris is installed; else by Hypothesis alone.

    python -m tests.fuzz [seconds a door] [door ...]

What breaks a door is kept as crash-<hash> in .cache/fuzz; once mended it belongs into tests/data/fuzz.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "fuzz"
DOORS = ("log", "imported", "header", "document", "yaml", "pasted")


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
                   f"-artifact_prefix={CACHE}/crash-{name}-", "-print_final_stats=1", "-verbosity=0"], lambda data: door(data))  # fmt: skip
    atheris.Fuzz()


def main(argv: list[str]) -> int:
    """Every door in turn; 1 if any was broken."""
    seconds = argv[0] if argv else "600"
    names = argv[1:] or list(DOORS)
    wrong = [n for n in names if n not in DOORS] + ([] if seconds.isdigit() and int(seconds) else [seconds])
    if wrong:
        print(f"error: fuzz: seconds, then names of doors; got {' '.join(wrong)}; known: {', '.join(DOORS)}", file=sys.stderr)
        return 1
    CACHE.mkdir(parents=True, exist_ok=True)
    broken = []
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
        if done.returncode:
            broken.append(name)
            print("\n".join(f"  {line}" for line in said[-40:]))
    print(f"Broken: {', '.join(broken)}; what did it is in {CACHE.relative_to(ROOT)}" if broken else "No door was broken.")
    return int(bool(broken))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--guided"]:
        guided(sys.argv[2])
    else:
        sys.exit(main(sys.argv[1:]))
