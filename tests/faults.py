"""`make faults`: commands of the lab broken off on purpose, at random moments, and what was lost by it.

    python -m tests.faults [share of the full count, 1 by default] [--record]

Each kind of fault works in a copy of the project of its own, two at once: no time is taken here. `--record` writes
labdata/trials/faults.yml, which the method page shows, after every trial: a record that was broken off says so, and the same
command goes on with it; a whole one is made anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from bench import weights
from macros import labdata, trials
from macros.labdata import Lab, LabError
from macros.work import Shape
from tests.conftest import ROOT, copy_project

SEED = 20261130
TINY = Shape("qwen3", 1, 256, 256, 256, 4, 2, 64, tied=True)
LOG = ROOT / "tests/data/logs/md_2025_vulkan_7900xtx_three_tables_noise.txt"  # three sittings: a machine, three models, three runs, the raw text
HANGS_S, AT_ONCE = 900, 2  # a guard, far above what a busy machine needs; kinds of fault side by side
RECORD = labdata.ROOT / "trials/faults.yml"
WRITING = threading.Lock()  # a copy of labdata/ is not taken while the record is written into it
RAN, TOLD = re.compile(r"^Recorded in ", re.M), re.compile(r"^\d+/\d+  ", re.M)  # what a bench says of its end, and of a finished test


@dataclass
class Count:
    """What came of one kind of fault."""

    what: str = ""
    keep: Callable[[Count], None] = lambda count: None
    times: int = 0
    hit: int = 0
    lost: int = 0
    half: int = 0
    went_on: int = 0
    said: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> int:
        return self.lost + self.half + self.times - self.went_on

    def note(self, words: str) -> None:
        self.said.append(words)
        print(f"    {self.what}: {words}", flush=True)

    def more(self, times: int) -> bool:
        """Between two trials: what is known so far is kept; whether more are to come."""
        self.keep(self)
        return self.times < times


class Bench:
    """A copy of the project with a small model, where commands are started and broken off."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder, self.chance = folder, chance
        self.model = folder / "tiny.gguf"
        weights.write(self.model, TINY, "Q4_K_M")
        with WRITING:
            self.home = copy_project(folder)
        self.env = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONDONTWRITEBYTECODE": "1", "INKLAB_PREVIEW": "1", "XDG_CACHE_HOME": str(folder / "cache"), "MODEL": "", "PROFILE": "quick", "MACHINE": "", "FILE": "", "CLOSE": ""}
        self.bench = {"MODEL": str(self.model), "REPS": "3", "DEPTHS": "64", "THREADS": "1"}
        self.took: dict[str, float] = {}

    @property
    def lab(self) -> Path:
        return self.home / "labdata"

    def start(self, args: list[str], env: dict[str, str], **more) -> subprocess.Popen:
        return subprocess.Popen([sys.executable, "-m", *args], cwd=self.home, env={**self.env, **env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                start_new_session=True, **more)  # fmt: skip

    def whole(self, args: list[str], env: dict[str, str], **more) -> tuple[int, str, str]:
        """A command to its end: exit code and what it said; its time is kept, for the random moments."""
        begun = time.monotonic()
        child = self.start(args, env, **more)
        out, err = child.communicate(timeout=HANGS_S)
        self.took[" ".join(args)] = time.monotonic() - begun
        return child.returncode, out, err

    def broken(self, args: list[str], env: dict[str, str], late: bool) -> tuple[bool, str]:
        """A command killed at a random moment of its usual time: whether it was still running, and what it had said.

        Args:
            late: in the second half, where short commands write
        """
        usual = self.took[" ".join(args)]
        child = self.start(args, env)
        try:
            child.wait(timeout=self.chance.uniform(usual / 2 if late else 0, usual))
        except subprocess.TimeoutExpired:
            pass
        hit = child.poll() is None
        # the whole group as a power cut would, or the command alone as an out-of-memory killer does
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if self.chance.random() < 0.5 else os.kill)(child.pid, signal.SIGKILL)
        out, _ = child.communicate(timeout=HANGS_S)
        return hit, out

    def load(self, count: Count) -> Lab | None:
        """The lab as it lies; a problem is counted."""
        try:
            return labdata.load(self.lab)
        except LabError as error:
            count.half += 1
            count.note(f"did not load: {error.problems[0]}")
            return None

    def files(self, *kinds: str) -> dict[str, str]:
        """Every file that counts, with its hash; the temporary ones of a killed write are no files of labdata."""
        paths = [p for kind in kinds or ("",) for p in sorted((self.lab / kind).rglob("*")) if p.is_file() and not p.name.startswith(".")]
        return {p.relative_to(self.lab).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in paths}


def finished(lab: Lab) -> dict[tuple, tuple]:
    """Every finished repetition, by where it is."""
    return {(name, i): tuple(r.samples_ns or [r.failed]) for name, run in lab.runs.items() for i, r in enumerate(run.results)}


def kept(before: dict[tuple, tuple], after: dict[tuple, tuple]) -> int:
    """How many finished tests of before are gone or changed."""
    return sum(after.get(key, ())[: len(samples)] != samples for key, samples in before.items())


def kills_of_bench(b: Bench, times: int, count: Count) -> None:
    """Kill after kill on one run, then let it end; then the next run."""
    args, env = ["bench", "run"], b.bench
    while count.more(times):
        lab = labdata.load(b.lab)
        seen, inks, chain = finished(lab), b.files("ink"), 0
        for _ in range(min(b.chance.randint(1, 6), times - count.times)):
            hit, out = b.broken(args, env, late=False)
            count.times, count.hit, chain = count.times + 1, count.hit + hit, chain + 1
            lab = b.load(count)
            if lab is None:
                break
            now = finished(lab)
            told = len(TOLD.findall(out)) - len(now.keys() - seen.keys())  # finished, said so, and not on disk
            gone = kept(seen, now) + max(0, told) + sum(b.files("ink").get(name) != digest for name, digest in inks.items())
            if gone:
                count.lost += gone
                count.note(f"{gone} gone, {told} of them said to be finished")
            seen, inks = now, b.files("ink")
            if not hit:
                break
        runs = len(lab.runs) if lab else 0
        code, out, err = b.whole(args, env)
        lab = b.load(count)
        done = lab is not None and code == 0 and bool(RAN.search(out)) and len(lab.runs) - runs in (0, 1) and kept(seen, finished(lab)) == 0
        waits = [i for i in lab.inks.values() if i.author == "derived" and not any(r.ink and r.ink.id == i.id for r in lab.runs.values())] if lab else []
        count.lost += len(waits)  # ink nothing was ever measured on
        if not done or waits:
            count.note(f"did not go on: exit {code}; {len(waits)} inks wait; {(err or out).strip().splitlines()[-1:]}")
        count.went_on += chain if done else 0


def kills_of_import(b: Bench, times: int, count: Count) -> None:
    """Each kill is followed by the same import, which must come to what one import alone comes to."""
    args, env = ["bench", "import"], {"FILE": str(LOG), "MACHINE": "", "MODEL": ""}
    fresh = b.folder / "fresh"
    shutil.copytree(b.lab, fresh)
    code, _, err = b.whole(args, env)
    assert code == 0, err
    right = b.files()
    while count.more(times):
        shutil.rmtree(b.lab)
        shutil.copytree(fresh, b.lab)
        hit, _ = b.broken(args, env, late=True)
        count.times, count.hit = count.times + 1, count.hit + hit
        b.load(count)
        part = b.files()
        count.lost += sum(right.get(name) != digest for name, digest in part.items())
        code, _, err = b.whole(args, env)
        if code == 0 and b.files() == right:
            count.went_on += 1
        else:
            count.note(f"did not go on: exit {code}; {err.strip().splitlines()[-1:]}; {sorted(set(b.files().items()) ^ set(right.items()))[:2]}")


def kills_of_ink(b: Bench, times: int, count: Count) -> None:
    """Opening and sealing in turn, killed; then the same again, until the ink is sealed once and whole."""
    env = {"MACHINE": "apple-m4-24gb", "MODEL": str(b.model), "INK": "faults"}
    fresh = b.folder / "before-ink"
    shutil.copytree(b.lab, fresh)
    for close in ("", "1"):
        b.whole(["bench", "ink"], {**env, "CLOSE": close})
    while count.more(times):
        shutil.rmtree(b.lab)
        shutil.copytree(fresh, b.lab)
        for close in ("", "1"):
            hit, _ = b.broken(["bench", "ink"], {**env, "CLOSE": close}, late=True)
            count.times, count.hit = count.times + 1, count.hit + hit
            sealed = (b.lab / "ink/faults.yml").exists()
            try:
                labdata.load(b.lab)
            except LabError as error:  # the sealed ink stands, its open file not yet gone: said, and mended by the next
                if not (sealed and len(error.problems) == 1 and "sealed already" in error.problems[0]):
                    count.half += 1
                    count.note(f"did not load: {error.problems[0]}")
            whole = b.files("ink").get("ink/faults.yml")
            if close and not sealed or not close:
                b.whole(["bench", "ink"], {**env, "CLOSE": close})
            elif (b.lab / "ink/faults.open.yml").exists():
                b.whole(["bench", "ink"], {**env, "CLOSE": "1"})
            if whole and b.files("ink").get("ink/faults.yml") != whole:
                count.lost += 1
                count.note("a sealed ink was changed")
            lab = b.load(count)
            count.went_on += bool(lab and ("faults" in lab.inks if close else "faults" in lab.open_inks))


def kills_of_site(b: Bench, times: int, count: Count) -> None:
    """Each kill is followed by the same build, which must come to the same site, byte for byte."""
    args = ["mkdocs", "build", "-q"]

    def site() -> dict[str, str]:
        # but for the hour of the build, which MkDocs writes into these
        return {p.relative_to(b.home).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted((b.home / "site").rglob("*"))
                if p.is_file() and not p.name.startswith("sitemap")}  # fmt: skip

    code, _, err = b.whole(args, {})
    assert code == 0, err
    right, facts = site(), b.files()
    while count.more(times):
        if b.chance.random() < 0.5:
            shutil.rmtree(b.home / "site")
        if b.chance.random() < 0.1:  # from nothing: every chart is drawn anew, which takes a minute
            shutil.rmtree(b.home / ".cache", ignore_errors=True)
        hit, _ = b.broken(args, {}, late=False)
        count.times, count.hit = count.times + 1, count.hit + hit
        count.lost += facts != b.files()
        b.load(count)
        code, _, err = b.whole(args, {})
        if code == 0 and site() == right:
            count.went_on += 1
        else:
            count.note(f"did not go on: exit {code}; {err.strip().splitlines()[-1:]}; {sorted(set(site().items()) ^ set(right.items()))[:2]}")


def refused(b: Bench, count: Count, before: dict[str, str], code: int, err: str, words: str) -> None:
    """A command the disk refused: one line, nothing lost, nothing half."""
    count.times += 1
    count.hit += code != 0
    after = b.files()
    count.lost += sum(after.get(name) != digest for name, digest in before.items())
    b.load(count)
    if code != 0 and ("Traceback" in err or not re.search(words, err.strip().splitlines()[-1] if err.strip() else "")):
        count.half += 1
        count.note(f"not one clear line: {err.strip().splitlines()[-3:]}")


def small_files(b: Bench, times: int, count: Count) -> None:
    """No file may grow past a random size: what a full disk does, at every byte of every file."""
    b.whole(["bench", "run"], b.bench)
    while count.more(times):
        limit = b.chance.randint(0, 9000)
        name, args, env = b.chance.choice([("import", ["bench", "import"], {"FILE": str(LOG)}), ("bench", ["bench", "run"], {**b.bench, "REPS": str(b.chance.randint(2, 9))})])
        before = b.files()
        code, _, err = b.whole(args, env, preexec_fn=lambda limit=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        refused(b, count, before, code, err, r"^error: .*(File too large|No space left)")
        code, _, err = b.whole(args, env)
        count.went_on += code == 0
        if code:
            count.note(f"{name} did not go on: {err.strip().splitlines()[-1:]}")


@contextlib.contextmanager
def small_disk(b: Bench, megabytes: int) -> Iterator[None]:
    """labdata/ on a disk of its own that is all but full; needs the right to mount."""
    outside = b.folder / "outside"
    shutil.move(b.lab, outside)
    b.lab.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(b.lab)], check=True, capture_output=True)
    try:
        shutil.copytree(outside, b.lab, dirs_exist_ok=True)
        yield
    finally:
        subprocess.run(["umount", str(b.lab)], check=True, capture_output=True)
        b.lab.rmdir()
        shutil.move(outside, b.lab)


def full_disk(b: Bench, times: int, count: Count) -> None:
    """labdata/ on a tmpfs with a few pages left."""
    b.whole(["bench", "run"], b.bench)
    with small_disk(b, 8):
        while count.more(times):
            args, env = b.chance.choice([(["bench", "import"], {"FILE": str(LOG)}), (["bench", "run"], {**b.bench, "REPS": str(b.chance.randint(2, 9))})])
            filler = b.lab / "schema/.filler"
            free = shutil.disk_usage(b.lab).free
            filler.write_bytes(bytes(max(0, free - 4096 * b.chance.randint(0, 4))))
            before = b.files()
            code, _, err = b.whole(args, env)
            refused(b, count, before, code, err, r"^error: .*No space left")
            filler.unlink()
            code, _, err = b.whole(args, env)
            count.went_on += code == 0


def read_only(b: Bench, times: int, count: Count) -> None:
    """labdata/ on a disk that takes no writing."""
    b.whole(["bench", "run"], b.bench)
    with small_disk(b, 16):
        while count.more(times):
            args, env = (["bench", "import"], {"FILE": str(LOG)}) if count.times % 2 else (["bench", "run"], {**b.bench, "REPS": str(2 + count.times)})
            subprocess.run(["mount", "-o", "remount,ro", str(b.lab)], check=True, capture_output=True)
            before = b.files()
            code, _, err = b.whole(args, env)
            refused(b, count, before, code, err, r"^error: .*Read-only file system")
            subprocess.run(["mount", "-o", "remount,rw", str(b.lab)], check=True, capture_output=True)
            code, _, err = b.whole(args, env)
            count.went_on += code == 0


def clock_jumps(b: Bench, times: int, count: Count) -> None:
    """The wall clock set back or forward in the middle of a run, by up to a day."""
    library, told = b.folder / "clock.so", b.folder / "clock"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(ROOT / "tests/clock.c"), "-ldl"], check=True)
    told.write_text("0")
    env = {**b.bench, "LD_PRELOAD": str(library), "CLOCK_SHIFT": str(told)}
    b.whole(["bench", "run"], env)
    while count.more(times):
        before = b.load(count)
        if before is None:
            return
        told.write_text("0")
        child = b.start(["bench", "run"], {**env, "REPS": "6"})
        time.sleep(b.chance.uniform(0, b.took["bench run"]))
        count.hit += child.poll() is None
        jump = b.chance.choice([-86400, -3600, -90, 3600])
        told.write_text(str(jump))
        out, err = child.communicate(timeout=HANGS_S)
        count.times += 1
        told.write_text("0")
        lab = b.load(count)
        if lab is None:
            return
        count.lost += kept(finished(before), finished(lab))
        count.went_on += child.returncode == 0
        if child.returncode:
            count.note(f"exit {child.returncode} after {jump:+d} s: {err.strip().splitlines()[-1:]}")


def two_at_once(b: Bench, times: int, count: Count) -> None:
    """A second bench beside a first: refused in one line, and the first is none the worse."""
    b.whole(["bench", "run"], b.bench)
    lock = b.folder / "cache/inklab/bench.lock"
    while count.more(times):
        before = len(labdata.load(b.lab).runs)
        first = b.start(["bench", "run"], {**b.bench, "REPS": "40"})
        while len(labdata.load(b.lab).runs) == before and first.poll() is None:
            time.sleep(0.1)
        code, _, err = b.whole(["bench", "run"], b.bench)
        count.times += 1
        count.hit += lock.exists() and code == 1 and "another bench is running" in err
        first.communicate(timeout=HANGS_S)
        lab = b.load(count)
        count.went_on += bool(lab) and first.returncode == 0 and len(lab.runs) == before + 1


def asleep(b: Bench, times: int, count: Count) -> None:
    """Bench and engine stopped for two seconds, as a machine that sleeps, then let go on."""
    b.whole(["bench", "run"], b.bench)
    while count.more(times):
        before = b.load(count)
        child = b.start(["bench", "run"], {**b.bench, "REPS": "7"})
        time.sleep(b.chance.uniform(0, b.took["bench run"]))
        count.hit += child.poll() is None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGSTOP)
            time.sleep(2)
            os.killpg(child.pid, signal.SIGCONT)
        child.communicate(timeout=HANGS_S)
        lab = b.load(count)
        count.times += 1
        if lab and before:
            count.lost += kept(finished(before), finished(lab))
            count.went_on += child.returncode == 0


@dataclass(frozen=True)
class Fault:
    """One row of the record."""

    fault: str
    command: str
    act: Callable[[Bench, int, Count], None]
    times: int
    well: str  # what it came to where nothing was lost
    needs: str = ""  # "the right to mount" or "a C compiler"


FAULTS = [  # the longest first, which leaves the shorter ones to fill the gaps
    Fault("kill -9 at a random moment", "make site", kills_of_site, 22, "the next build came to the same site, byte for byte"),
    Fault("kill -9 at a random moment", "make bench", kills_of_bench, 40, "the next bench went on with the same run and ink"),
    Fault("kill -9 at a random moment", "make import", kills_of_import, 70, "the next import came to the same files, byte for byte"),
    Fault("kill -9 at a random moment", "make ink", kills_of_ink, 70, "the same command again opened or sealed the ink"),
    Fault("no file may pass a random size, 0 to 9,000 bytes", "make bench, make import", small_files, 20, "one line, and once there is room the same command ends well"),
    Fault("a full disk under labdata/", "make bench, make import", full_disk, 12, "one line, and once there is room the same command ends well", "the right to mount"),
    Fault("a read-only disk under labdata/", "make bench, make import", read_only, 6, "one line, and once it can be written the same command ends well", "the right to mount"),
    Fault("the clock set back by up to a day, or forward by an hour, meanwhile", "make bench", clock_jumps, 8, "the run ended, and a note says that the clock was set back", "a C compiler"),
    Fault("a second bench beside the first", "make bench", two_at_once, 5, "the second was refused in one line, the first ended well"),
    Fault("stopped for two seconds, then let go on", "make bench", asleep, 6, "the run ended; a repetition that slept is named as an outlier"),
]


def there(needs: str) -> bool:
    """Whether this machine can do a fault."""
    if needs == "a C compiler":
        return sys.platform == "linux" and shutil.which("cc") is not None
    if needs == "the right to mount":
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True)
            if done.returncode == 0:
                subprocess.run(["umount", folder], check=True)
            return done.returncode == 0
    return True


def run(fault: Fault, times: int, count: Count, seed: int = SEED) -> None:
    """One kind of fault in a copy of the project of its own, from where an earlier command was broken off."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            b = Bench(Path(folder), random.Random(f"{seed} {fault.command} {fault.fault} {count.times}"))
            if fault.act in (kills_of_bench,):
                b.whole(["bench", "run"], b.bench)  # the machine's card, and how long a run takes
            fault.act(b, times, count)
    except Exception as error:  # the other kinds go on
        count.note(f"broke off: {type(error).__name__}: {error}")
    count.keep(count)
    print(f"    {count.what}: done", flush=True)


class Record:
    """labdata/trials/faults.yml as it grows, or as an earlier command left it."""

    def __init__(self, path: Path, share: float) -> None:
        self.path = path
        possible = [f for f in FAULTS if there(f.needs)]
        self.left_out = [f"{f.fault}: not tried, needs {f.needs}" for f in FAULTS if f not in possible]
        self.planned = {f: max(1, round(f.times * share)) for f in possible}
        self.begun = datetime.now(UTC).replace(microsecond=0)
        self.counts = {f: Count(f"{f.command}, {f.fault}") for f in possible}
        self.rows: dict[Fault, trials.Trial] = {}
        self.go_on()

    def go_on(self) -> None:
        """Take over what a record that was broken off has; a whole one is made anew."""
        old = labdata.load(self.path.parent.parent).trials.get("faults") if self.path.exists() else None
        if old is None or old.seed != SEED or all(t.times >= (t.planned or 0) for t in old.trials) and len(old.trials) >= len(self.counts):
            return
        self.begun = old.started_at
        for fault, count in self.counts.items():
            for t in old.trials:
                if (t.fault, t.command) == (fault.fault, fault.command):
                    self.rows[fault] = t
                    count.times, count.hit, count.lost, count.half, count.went_on = t.times, t.hit, t.lost, t.half, t.went_on
                    count.said = [] if t.outcome == fault.well else [t.outcome]
        print(f"Going on with a record of {sum(c.times for c in self.counts.values())} faults", flush=True)

    def row(self, fault: Fault, c: Count) -> trials.Trial:
        outcome = fault.well if not c.wrong else "; ".join(dict.fromkeys(c.said))[:400] or "it did not always go on"
        planned = self.planned[fault]
        return trials.Trial(fault=fault.fault, command=fault.command, times=c.times, planned=planned if c.times < planned else None, hit=c.hit,
                            lost=c.lost, half=c.half, went_on=c.went_on, outcome=outcome)  # fmt: skip

    def keep(self, fault: Fault, count: Count) -> None:
        """Write what is known after a trial."""
        if not count.times:
            return
        with WRITING:
            self.rows[fault] = self.row(fault, count)
            where = f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}" + "".join(f"; {words}" for words in self.left_out)
            labdata.write(self.path, trials.Trials(
                schema=1, id="faults", title="Is anything lost when a command dies, or the disk or the clock fails it?", setting=where, started_at=self.begun, seed=SEED,
                command="make faults", trials=[self.rows[f] for f in self.counts if f in self.rows]))  # fmt: skip


def main(argv: list[str]) -> int:
    """All faults; 1 if anything was lost, half-written or did not go on."""
    share = float(next((a for a in argv if not a.startswith("-")), "1"))
    with contextlib.ExitStack() as stack:
        path = RECORD if "--record" in argv else Path(stack.enter_context(tempfile.TemporaryDirectory())) / "trials/faults.yml"
        record = Record(path, share)
        print("\n".join(record.left_out), end="\n" * bool(record.left_out), flush=True)
        pool = stack.enter_context(ThreadPoolExecutor(AT_ONCE))
        for fault, count in record.counts.items():
            count.keep = partial(record.keep, fault)
            pool.submit(run, fault, record.planned[fault], count)
    for fault, c in record.counts.items():
        print(f"{fault.command}: {fault.fault}: {c.times} of {record.planned[fault]}, {c.hit} in time; lost {c.lost}, half {c.half}, went on {c.went_on}", flush=True)
    if "--record" in argv:
        print(f"Recorded in {path.relative_to(ROOT)}")
    return int(any(c.wrong or c.times < record.planned[f] for f, c in record.counts.items()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
