"""`python -m bench.fleet`: bench the machines of HOSTS=, a plain Ansible inventory, over SSH, and take their runs into labdata/.

Every machine gets this project and works through the same plan, with the ink its own specs give, written there before it measures
(bench/fleet.yml). What it sends back is a shared file, read as a stranger's. A machine that fails costs no other one anything.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import ansible_runner

from bench import imports, options, prepare, share
from bench.import_cards import ImportRefused
from bench.share import ShareRefused
from macros import labdata
from macros.compare import rate
from macros.guard import visible
from macros.labdata import LabError
from macros.records import Run
from macros.values import Value

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("bench", "macros", "labdata", "lock", "Makefile", "pyproject.toml")  # what a bench needs; no site, no environment, no history
PROGRAMS = Path(sys.executable).parent  # Ansible's, of this environment
STATE = ROOT / ".cache/fleet.json"
LOG = ROOT / ".cache/fleet.log"
OWN = {"MACHINE": "inklab_machine", "CHIP": "inklab_chip"}  # what says something of one machine stands in the inventory
SETTINGS = ("PROFILE", "SHAPE", "MODEL", "DEPTHS", "REPS", "THREADS", "NGL", "INSTRUMENT", "LLAMA_BENCH", "QUIET", "BACKEND")
# A question on the terminal would wait for ever: what a key does not open fails, and an unknown host is refused.
ANSIBLE = {"ANSIBLE_HOST_KEY_CHECKING": "true", "ANSIBLE_PIPELINING": "true", "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "true", "ANSIBLE_NOCOLOR": "true",
           "ANSIBLE_SSH_ARGS": "-C -o ControlMaster=auto -o ControlPersist=60s -o BatchMode=yes -o ConnectTimeout=15 -o ServerAliveInterval=30"}  # fmt: skip


class FleetRefused(Exception):
    """Why no machine was benched, one line a problem."""


def hosts(file: str, env: Mapping[str, str]) -> list[str]:
    """The machines an inventory names, settings checked before any is bothered.

    Raises:
        FleetRefused: no inventory, nobody in it, or a setting that is one machine's.
        OptionError: settings no bench would take.
    """
    wrong = [f"{name}: says something of one machine; got {env[name]!r}; in a fleet it is {var} in HOSTS" for name, var in OWN.items() if env.get(name, "").strip()]
    if not file.strip() or not Path(file).is_file():
        wrong.append(f"HOSTS: no such file; got {file!r}; an Ansible inventory (README.md shows one)")
    if wrong:
        raise FleetRefused("\n".join(wrong))
    options.read({}, env, shapes=prepare.shapes(labdata.load()))
    with tempfile.TemporaryDirectory() as folder:
        answer, said, code = ansible_runner.run_command(
            str(PROGRAMS / "ansible-inventory"), ["--list", "-i", str(Path(file).resolve())], runner_mode="subprocess", private_data_dir=folder, quiet=True, envvars=ANSIBLE)  # fmt: skip
    groups = json.loads(answer).values() if code == 0 else []
    names = sorted({h for group in groups for h in group.get("hosts", [])})
    if not names:
        raise FleetRefused(f"{file}: hosts: no machine is named in it; got {last(said) or 'none'}; an Ansible inventory (README.md shows one)")
    return names


def pack(root: Path, target: Path) -> None:
    """The project as one archive: what a bench needs, as it lies here, committed or not."""

    def wanted(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        parts = Path(entry.name).parts
        if any(p.startswith(".") or p == "__pycache__" for p in parts) or not (entry.isfile() or entry.isdir()):
            return None
        entry.uid, entry.gid, entry.uname, entry.gname = 0, 0, "", ""  # who made it here is nobody's business there
        return entry

    with tarfile.open(target, "w:gz", compresslevel=6) as archive:
        for part in PARTS:
            archive.add(root / part, part, filter=wanted)


def last(text: str) -> str:
    """The last words of a tool, in one line: all its errors, else its last line."""
    lines = [" ".join(visible(line).split()) for line in text.splitlines() if line.strip()]
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return "; ".join(errors or lines[-1:])[:400]


def why(result: Mapping[str, Any]) -> str:
    """Why a step failed, from what Ansible says of it."""
    if words := str(result.get("stderr", "")).strip():
        return last(words)
    words = re.sub(r"^(Task failed: )?(Failed to connect to the host via ssh: )?", "", str(result.get("msg", "")).strip())
    return f"{last(words) or 'it gave no reason'}{f' ({command})' if (command := result.get('cmd')) else ''}"


def headline(run: Run) -> str:
    """A run in one line: decode at no depth, else the first test that came to something.

    Raises:
        ShareRefused: every test of it failed.
    """
    measured = [r for r in run.results if not r.failed]
    if not measured:
        raise ShareRefused(f"{len(run.results)} of {len(run.results)} tests failed, and the record says why; the first: {run.results[0].failed}")
    best = min(measured, key=lambda r: (r.n_gen == 0, r.depth))
    found = rate(best)
    failed = len(run.results) - len(measured)
    words = Value(found.mean, "tok/s", "measured", sigma=found.sigma).text
    return f"{'decode' if best.n_gen else 'prefill'} {words}" + (f", {failed} of {len(run.results)} tests failed" if failed else "")


def take_in(path: Path, root: Path) -> str:
    """Take what a machine sent into labdata/, as a stranger's file; its run in one line.

    Raises:
        ShareRefused, LabError, ImportRefused, OSError: it was not taken in, or nothing was measured.
    """
    data = imports.read_bytes(str(path))
    if not share.is_one(data):
        raise ShareRefused(f"no shared file; got {data[:20]!r}")
    share.take(data, "its file", root)
    places = [p for p in json.loads(data)["files"] if p.startswith("runs/") and p.count(".") == 1]
    name = places[0].removeprefix("runs/").removesuffix(".yml")
    return f"run {name}, {headline(labdata.load(root).runs[name])}"


class Fleet:
    """One journey to all machines: what came of each."""

    def __init__(self, names: list[str], gathered: Path, root: Path, say: Callable[[str], None]) -> None:
        self.names, self.gathered, self.root, self.say = names, gathered, root, say
        self.ok: dict[str, str] = {}
        self.failed: dict[str, str] = {}

    def on_event(self, event: dict) -> bool:
        """What Ansible reports while it works; a file that came is taken in at once."""
        told = event.get("event_data", {})
        host, task, kind = told.get("host"), told.get("task", ""), event.get("event", "")
        if kind == "runner_on_start":
            self.say(f"{host}: {task}")
        elif kind in ("runner_on_failed", "runner_on_unreachable"):
            self.failed[host] = f"failed: {task}: {'unreachable: ' if kind.endswith('unreachable') else ''}{why(told.get('res', {}))}"
        elif kind == "runner_on_ok" and task == "fetch":
            path = self.gathered / f"{hashlib.sha256(host.encode()).hexdigest()}.json"
            try:
                self.ok[host] = f"ok: {take_in(path, self.root)}"
            except (ShareRefused, ImportRefused, LabError, OSError) as error:
                same = "; another machine of that hardware? Name it with inklab_machine in HOSTS" if "files.machines/" in str(error) else ""
                self.failed[host] = f"failed: import: {'; '.join(str(error).splitlines())[:400]}{same}"
        return True

    def lines(self, otherwise: str) -> Iterator[str]:
        """One line a machine.

        Args:
            otherwise: what is known where a machine was not heard of
        """
        for name in self.names:
            yield f"{name}: {self.ok.get(name) or self.failed.get(name) or f'failed: {otherwise}'}"


def run(env: Mapping[str, str], say: Callable[[str], None], root: Path = ROOT) -> int:
    """Bench every machine of HOSTS; 1 if any failed. Given again after that, it goes on with those that failed.

    Raises:
        FleetRefused, OptionError, LabError, OSError: before any machine was touched.
    """
    file = env.get("HOSTS", "")
    names = hosts(file, env)
    asked = hashlib.sha256(json.dumps([Path(file).read_text(encoding="utf-8"), [env.get(s, "") for s in SETTINGS]]).encode()).hexdigest()
    before = done_before(asked)
    todo = [n for n in names if n not in before]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        pack(root, folder / "project.tar.gz")
        (folder / "runner").mkdir()
        fleet = Fleet(names, folder / "gathered", root / "labdata", say)
        fleet.ok |= before
        for name in before:
            say(f"{name}: done before")
        told = {**ANSIBLE, "PATH": f"{PROGRAMS}{os.pathsep}{env.get('PATH', os.defpath)}", "FLEET_PROJECT": str(folder / "project.tar.gz"), "FLEET_GATHERED": str(fleet.gathered)}
        done = ansible_runner.run(
            private_data_dir=str(folder / "runner"), playbook=str(ROOT / "bench/fleet.yml"), inventory=str(Path(file).resolve()), limit=",".join(todo) if before else None,
            envvars=told, forks=len(todo), quiet=True, event_handler=fleet.on_event)  # fmt: skip
        log = done.stdout.read()
    labdata.write_text(LOG, log)
    say("")
    for line in fleet.lines(f"{done.status}: {last(log)}"):
        say(line)
    lacking = [n for n in names if n not in fleet.ok]
    if lacking:
        labdata.write_text(STATE, json.dumps({"asked": asked, "done": fleet.ok}))
        say(f"{len(lacking)} of {len(names)} machines failed; the same command goes on with them. What Ansible said: {LOG.relative_to(ROOT)}")
    else:
        STATE.unlink(missing_ok=True)
    return int(bool(lacking))


def done_before(asked: str) -> dict[str, str]:
    """The machines the same command was done with before it had to be given again."""
    try:
        held = json.loads(STATE.read_text(encoding="utf-8"))
        return dict(held["done"]) if held["asked"] == asked else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def main() -> int:
    """Bench the fleet; one line a problem, and 1, where it cannot begin or a machine failed."""
    sys.stdout.reconfigure(line_buffering=True)
    try:
        return run(os.environ, print)
    except (FleetRefused, options.OptionError, LabError) as error:
        words = str(error)
    except OSError as error:
        words = f"{error.filename}: {error.strerror}"
    for line in words.splitlines():
        print(f"error: {line}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
