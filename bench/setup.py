"""Set-up: `python3 bench/setup.py site`, or another of JOBS, makes .venv ready for that job.

Standard library only, and it starts on any Python 3, to be able to say that 3.11 is needed.
Done again with nothing changed it does nothing, in a fraction of a second.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NEEDED = (3, 11)

if sys.version_info < NEEDED:
    newer = [name for name in ("python3.11", "python3.12", "python3.13", "python3.14") if shutil.which(name)]
    hint = ("make PYTHON=" + newer[-1]) if newer else "install one and name it with make PYTHON=…"
    sys.exit("error: Python {}.{} or newer needed; this is {}.{}; {}".format(*NEEDED, *sys.version_info[:2], hint))

if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # run as a file: import siblings as bench.…, as everyone else does

from bench import build, progress  # noqa: E402
from bench.progress import SetupError  # noqa: E402

VENV = ROOT / ".venv"
LOG = "setup.log"
# What each job needs, in order. "engine" is llama-cpp-python, built here; the rest are lock files.
JOBS = {
    "venv": (),
    "site": ("site",),
    "bench": ("bench", "engine"),
    "fit": ("site", "fit"),
    "successor": ("site", "successor"),
    "supply": ("site", "bench", "fit", "dev", "successor", "fuzz", "fleet", "supply", "lock", "engine"),
    "fleet": ("site", "fleet"),
    "lock": ("lock",),
    "test": ("site", "bench", "fit", "dev", "fleet", "engine"),
    "fuzz": ("site", "bench", "fit", "dev", "engine", "fuzz"),
}
# Disk that a part takes while it is made [B], measured on Linux x86-64 and rounded up.
DISK_BYTES = {"venv": 30e6, "site": 550e6, "bench": 500e6, "engine": 800e6, "fit": 300e6, "dev": 190e6, "successor": 130e6, "fuzz": 100e6, "supply": 60e6, "fleet": 80e6, "lock": 80e6}

OWN = ("bench", "macros")
# What is not whole goes: on a full disk Python before 3.12.8 leaves half a file, and every later start would fail on it.
WHOLE = """
import marshal, pathlib, sys
for part in sys.argv[1:]:
    for path in pathlib.Path(part).rglob("__pycache__/*.pyc"):
        try:
            marshal.loads(path.read_bytes()[16:])
        except (EOFError, ValueError, TypeError):
            path.unlink()
"""
COMPILE = "import compileall, sys\nfor part in sys.argv[1:]: compileall.compile_dir(part, quiet=2)\n" + WHOLE
# Of the packages, what a build loads, a tenth of what is installed: modules and templates; then Explore's script and the letters' widths, which only they decide.
LOAD = """
import contextlib, importlib, os, pathlib, sys
os.chdir(sys.argv.pop(1))
with contextlib.suppress(Exception):
    from mkdocs.config import load_config
    from macros import hooks
    config = load_config("mkdocs.yml")
    hooks.on_config(config)
    theme = config.theme.get_env()
    for name in theme.list_templates(extensions=["html"]):
        with contextlib.suppress(Exception):
            theme.get_template(name)
for part in ("macros", "bench"):
    for path in sorted(pathlib.Path(part).glob("[!_]*.py")):
        with contextlib.suppress(Exception):
            importlib.import_module(f"{part}.{path.stem}")
with contextlib.suppress(Exception):
    importlib.import_module("macros.chart_cache").vega()
    importlib.import_module("macros.chart_words").width("", 1)
""" + WHOLE


def python(venv):
    """The environment's interpreter."""
    return venv / "bin" / "python"


def inputs(part, root, env):
    """All that decides what `part` installs; unchanged inputs mean nothing to do."""
    facts = {"part": part, "root": str(root)}
    if part == "engine":
        pinned = build.requirement((root / "lock" / "bench.txt").read_text(encoding="utf-8"), "llama-cpp-python")
        return {**facts, "pinned": pinned, **build.fingerprint(env)}
    lock = (root / "lock" / f"{part}.txt").read_bytes()
    return {**facts, "lock": hashlib.sha256(lock).hexdigest()}


def stamp_path(venv, part):
    """Where a part's stamp lies."""
    return venv / f"inklab-{part}.json"


def read_stamp(venv, part):
    """A part's stamp, or {} if it was never finished."""
    try:
        return json.loads(stamp_path(venv, part).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def write_stamp(venv, part, facts, **extra):
    """Say that a part is whole; written last, and at once or not at all."""
    temporary = stamp_path(venv, part).with_suffix(".tmp")
    temporary.write_text(json.dumps({"inputs": facts, **extra}, indent=1), encoding="utf-8")
    os.replace(temporary, stamp_path(venv, part))


def busy(venv):
    """The mark of an unfinished installation."""
    return venv / "inklab-busy"


def venv_facts(root):
    """What .venv was made from; a moved checkout or another Python makes it anew."""
    return {"part": "venv", "root": str(root)}


def venv_whole(venv, root, env):
    """Is .venv finished, in its place, and of the Python that was asked for?"""
    stamp = read_stamp(venv, "venv")
    if not python(venv).exists() or stamp.get("inputs") != venv_facts(root):
        return False
    # Only a PYTHON= that somebody typed replaces a working .venv; another `python3` on the PATH
    # of another terminal does not.
    return not env.get("PYTHON") or stamp.get("python") == list(sys.version_info[:2])


def make_venv(venv, root):
    """Create .venv from nothing; what an interrupted set-up left goes first."""
    if importlib.util.find_spec("venv") is None or importlib.util.find_spec("ensurepip") is None:
        name = "python{}.{}-venv".format(*sys.version_info[:2])
        raise SetupError(f"this Python cannot make virtual environments; Debian and Ubuntu: apt install {name}")
    shutil.rmtree(venv, ignore_errors=True)
    progress.run("Creating .venv", [sys.executable, "-m", "venv", str(venv)])
    write_stamp(venv, "venv", venv_facts(root), python=list(sys.version_info[:2]))


def locked_packages(lock_text):
    """A lock file as {name==version: its lines}."""
    blocks = re.findall(r"^([\w.-]+==[^\s;\\]+)(.*(?:\n[ \t]+.*)*)", lock_text, re.M)
    return {pin: pin + rest + "\n" for pin, rest in blocks}


def install_lock(venv, root, part, env):
    """Install one lock file: hashes checked, nothing beyond it, nothing built from source."""
    packages = locked_packages((root / "lock" / f"{part}.txt").read_text(encoding="utf-8"))
    wanted = {pin: text for pin, text in packages.items() if not pin.startswith("llama-cpp-python==")}
    chosen = venv / f"{part}.txt"
    chosen.write_text("".join(wanted.values()), encoding="utf-8")
    site_packages = next(venv.glob("lib/python3*/site-packages"))
    before = len(list(site_packages.glob("*.dist-info")))
    seen = {"collected": 0, "total": len(wanted)}

    def on_line(step, line):
        # pip names each package once when it fetches it; unpacking is then counted on disk
        seen["total"] -= line.startswith("Ignoring ")
        seen["collected"] += line.startswith(("Collecting ", "Requirement already satisfied"))
        step.count(seen["collected"], 2 * seen["total"])

    def poll(step):
        unpacked = len(list(site_packages.glob("*.dist-info"))) - before
        step.count(seen["collected"] + unpacked, 2 * seen["total"])

    pip_install(venv, f"Installing {part} packages",
                ["--require-hashes", "--only-binary=:all:", "--no-compile", "--retries=2", "-r", str(chosen)],
                env, on_line, poll)


def pip_install(venv, what, arguments, env, on_line=lambda step, line: None, poll=None):
    """pip install into .venv; whoever is stopped half-way leaves a mark, and .venv is made anew."""
    unpacking = []

    def watch(step, line):
        unpacking.extend([line] if line.startswith("Installing collected") else [])
        on_line(step, line)

    busy(venv).touch()
    try:
        progress.run(what, [str(python(venv)), "-m", "pip", "install", "--no-deps", "--progress-bar=off",
                            "--disable-pip-version-check", *arguments], watch, env, venv / LOG, poll)
    except SetupError:
        if not unpacking:  # failed while downloading: what was whole before still is
            busy(venv).unlink()
        raise
    busy(venv).unlink()


def install_engine(venv, root, env):
    """Build the engine, or take the wheel already built for exactly this, and install it."""
    lock_text = (root / "lock" / "bench.txt").read_text(encoding="utf-8")
    path, key, backend = build.wheel(env, str(python(venv)), lock_text, venv / LOG)
    pip_install(venv, f"Installing the engine ({backend.name})", ["--no-index", "--force-reinstall", str(path)], env)
    return {"key": key, "backend": backend.name}


def check_disk(root, parts):
    """Raises SetupError if the disk cannot hold what is missing: said before it starts."""
    needed, free = sum(DISK_BYTES[part] for part in parts), shutil.disk_usage(root).free
    if free < needed:
        raise SetupError(f"disk: set-up needs about {needed / 1e9:.1f} GB; {free / 1e9:.1f} GB are free in {root}")


def set_up(job, env, root=ROOT, venv=VENV):
    """Make .venv ready for a job.

    Raises:
        SetupError: with the reason in one line. A later call starts over where this one failed.
    """
    if job not in JOBS:
        raise SetupError(f"job: unknown; got {job!r}; known: {', '.join(JOBS)}")
    if not missing_parts(job, env, root, venv):
        return
    with one_at_a_time(root):
        missing = missing_parts(job, env, root, venv)  # another set-up may just have done it
        check_disk(root, missing)
        if "engine" in missing:
            build.detect_backend(env, shutil.which, build.system_name())  # fail now, not after downloads
            build.compilers(env)
        for part in missing:
            facts = {}
            if part == "venv":
                make_venv(venv, root)
                continue
            stamp_path(venv, part).unlink(missing_ok=True)
            if part == "engine":
                facts = install_engine(venv, root, env)
            else:
                install_lock(venv, root, part, env)
            write_stamp(venv, part, inputs(part, root, env), **facts)


def keep_bytecode(venv, root):
    """Byte code of the project's own modules and of the packages a build loads, whenever some changed; the programs write none."""
    done = venv / "bytecode"
    since = done.stat().st_mtime if done.exists() else 0
    if any(path.stat().st_mtime > since for part in OWN for path in (root / part).glob("*.py")):
        progress.run("Compiling the project's own modules", [str(python(venv)), "-c", COMPILE, *(str(root / part) for part in OWN)])
    if any(path.stat().st_mtime > since for path in venv.glob("inklab-*.json")):
        writing = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
        progress.run("Compiling what a build loads", [str(python(venv)), "-c", LOAD, str(root), str(venv)], env=writing)
    done.touch()


def missing_parts(job, env, root, venv):
    """What is not as this job needs it, in order; a .venv that is not whole makes it everything."""
    if busy(venv).exists() or not venv_whole(venv, root, env):
        return ["venv", *JOBS[job]]
    return [part for part in JOBS[job] if read_stamp(venv, part).get("inputs") != inputs(part, root, env)]


@contextlib.contextmanager
def one_at_a_time(root):
    """Hold the checkout's set-up lock; the kernel frees it however the holder ends."""
    import fcntl  # not on Windows, which is refused before this

    (root / ".cache").mkdir(exist_ok=True)
    with open(root / ".cache" / "setup.lock", "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            print("Waiting for another set-up in this folder", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main(argv):
    """Run one job; prints one line and returns 1 on failure."""
    try:
        if os.name != "posix":
            raise SetupError("Linux and macOS only; on Windows use WSL")
        set_up(argv[0] if len(argv) == 1 else " ".join(argv), dict(os.environ))
        keep_bytecode(VENV, ROOT)
    except SetupError as error:
        for line in error.tail[-12:]:
            print("    " + line, file=sys.stderr)
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nerror: set-up interrupted; run it again to finish", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
