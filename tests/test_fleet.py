"""A fleet over SSH on loopback: each machine's run arrives sealed, and one machine's failure is its own."""

from __future__ import annotations

import getpass
import json
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench import fleet, weights
from bench.options import OptionError
from macros import labdata
from macros.work import Shape
from tests.conftest import ROOT, copy_project

TINY = Shape("qwen3", 1, 256, 256, 256, 4, 2, 64, tied=True)
# what a shell, or a template, would do something about
NASTY = "tiny $(touch hacked) {{ 7 * 7 }}; touch 'hacked' \"q\".gguf"


@dataclass(frozen=True)
class Server:
    """An SSH server on this machine, for this user alone, with host key, cache and folder of its own."""

    folder: Path
    port: int
    line: str  # of known_hosts


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def key(path: Path) -> str:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)], check=True)
    return path.with_suffix(".pub").read_text().strip()


@pytest.fixture(scope="module")
def ground() -> Iterator[Path]:
    """A folder with a short path, as sockets need, and the user's key."""
    with tempfile.TemporaryDirectory(prefix="fleet-") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def servers(ground: Path) -> Iterator[dict[str, Server]]:
    sshd = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
    if sshd is None or shutil.which("ssh-keygen") is None:
        words = "the fleet's tests need an SSH server; Debian and Ubuntu: apt install openssh-server openssh-client"
        pytest.fail(words, pytrace=False) if os.environ.get("CI") else pytest.skip(words)
    if os.geteuid() == 0:  # what the package's own service makes before it starts
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    (ground / "authorized").write_text(key(ground / "user") + "\n")
    started, found = [], {}
    try:
        for name in ("alpha", "gamma"):
            folder = ground / name
            folder.mkdir()
            public, port = key(folder / "host"), free_port()
            config = folder / "sshd_config"
            config.write_text("\n".join([
                f"Port {port}", "ListenAddress 127.0.0.1", f"HostKey {folder}/host", f"AuthorizedKeysFile {ground}/authorized", f"PidFile {folder}/pid",
                "UsePAM no", "StrictModes no", "PasswordAuthentication no", "PermitRootLogin prohibit-password", f"SetEnv XDG_CACHE_HOME={folder}/cache", ""]))  # fmt: skip
            started.append(subprocess.Popen([sshd, "-D", "-e", "-f", str(config)], stderr=(folder / "log").open("w")))
            found[name] = Server(folder, port, f"[127.0.0.1]:{port} {public}")
        yield found
    finally:
        for process in started:
            process.terminate()
            process.wait(10)


@pytest.fixture(scope="module")
def lab(ground: Path) -> Path:
    """The lab that sends: a project of its own, with all that is sent."""
    home = copy_project(ground)
    for part in set(fleet.PARTS) - {p.name for p in home.iterdir()}:
        (shutil.copytree if (ROOT / part).is_dir() else shutil.copy)(ROOT / part, home / part)
    weights.write(ground / NASTY, TINY, "Q4_K_M")
    return home


def bench(home: Path, ground: Path, hosts: Path, **more: str) -> subprocess.CompletedProcess:
    env = {**os.environ, "HOSTS": str(hosts), "MODEL": str(ground / NASTY), "REPS": "2", "DEPTHS": "64", "THREADS": "1", "ANSIBLE_HOME": str(ground / "a"), **more}
    return subprocess.run([sys.executable, "-m", "bench.fleet"], cwd=home, env=env, capture_output=True, text=True, timeout=240)


def test_one_machine_fails_and_the_others_are_gathered(lab: Path, ground: Path, servers: dict[str, Server]):
    alpha, gamma = servers["alpha"], servers["gamma"]
    known = ground / "known_hosts"
    known.write_text(f"{alpha.line}\n")  # gamma's key is not known yet
    hosts = ground / "hosts.yml"
    ssh = f"-F none -o UserKnownHostsFile={known} -o GlobalKnownHostsFile=/dev/null -o IdentitiesOnly=yes"
    machines = {
        "alpha": {"ansible_port": alpha.port, "inklab_folder": str(alpha.folder / "lab")},
        "unplugged": {"ansible_port": free_port()},
        "gamma": {"ansible_port": gamma.port, "inklab_folder": str(gamma.folder / "lab")},
        "no-engine": {"ansible_port": alpha.port, "inklab_folder": str(alpha.folder / "other"), "inklab_python": "/nowhere/python"},
    }
    hosts.write_text(json.dumps({"all": {"hosts": machines, "vars": {  # JSON is YAML
        "ansible_host": "127.0.0.1", "ansible_user": getpass.getuser(), "ansible_ssh_private_key_file": str(ground / "user"), "ansible_ssh_common_args": ssh,
        "ansible_remote_tmp": str(ground / "tmp"), "ansible_python_interpreter": sys.executable, "inklab_python": sys.executable}}}))  # fmt: skip
    before = labdata.load(lab / "labdata")

    done = bench(lab, ground, hosts)
    assert done.returncode == 1, done.stdout + done.stderr
    said = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)  # the last of each machine
    assert set(machines) <= set(said), done.stdout + done.stderr
    assert said["alpha"].startswith("ok: run ") and "decode" in said["alpha"] and "tok/s" in said["alpha"], done.stdout
    assert said["unplugged"].startswith("failed: reach it: unreachable: ") and "Connection refused" in said["unplugged"]
    assert said["gamma"].startswith("failed: reach it: unreachable: ") and "Host key verification failed" in said["gamma"]
    assert said["no-engine"].startswith("failed: bench: ") and "/nowhere/python" in said["no-engine"]
    assert "Traceback" not in done.stdout + done.stderr
    first = labdata.load(lab / "labdata")  # seals, references and the order of ink and run
    (name,) = set(first.runs) - set(before.runs)
    run = first.runs[name]
    assert said["alpha"].startswith(f"ok: run {name}, ")
    assert run.ink and first.inks[run.ink.id].machine == run.machine and first.inks[run.ink.id].planned == run.planned
    assert {r.n_threads for r in run.results} == {1} and all(len(r.samples_ns) == 2 for r in run.results)
    assert not list(ground.rglob("hacked"))
    sent = (alpha.folder / f"lab/labdata/runs/{name}.yml").read_bytes()
    assert sent == (lab / f"labdata/runs/{name}.yml").read_bytes()
    new = [lab / f"labdata/runs/{name}.yml", lab / f"labdata/ink/{run.ink.id}.yml", lab / f"labdata/machines/{run.machine}.yml"]
    assert not [w for path in new for w in (*machines, str(ground), socket.gethostname()) if w in path.read_text()]

    known.write_text(f"{alpha.line}\n{gamma.line}\n")  # the maintainer has looked at it
    again = bench(lab, ground, hosts)
    assert again.returncode == 1, again.stdout + again.stderr
    assert "alpha: done before" in again.stdout and "alpha: bench" not in again.stdout
    assert "gamma: ok: run " in again.stdout and f"alpha: {said['alpha']}" in again.stdout
    last = labdata.load(lab / "labdata")
    (second,) = set(last.runs) - set(first.runs)
    assert last.runs[second].planned == run.planned
    assert [p.quantity for p in last.inks[last.runs[second].ink.id].predictions] == [p.quantity for p in first.inks[run.ink.id].predictions]


def test_what_is_sent_is_what_a_bench_needs(lab: Path, tmp_path: Path):
    (lab / "labdata/.half-written").touch()
    fleet.pack(lab, tmp_path / "p.tar.gz")
    with tarfile.open(tmp_path / "p.tar.gz") as archive:
        names = archive.getnames()
        assert {m.uname for m in archive.getmembers()} == {""}
    assert {"bench/setup.py", "macros/labdata.py", "lock/bench.txt", "labdata/chips"} <= set(names)
    assert not [n for n in names if "__pycache__" in n or "/." in n or n.startswith(("site", "docs", "tests"))]


@pytest.mark.parametrize(
    ("text", "env", "message"),
    [
        (None, {}, r"^HOSTS: no such file; got 'hosts.yml'"),
        ("all: [", {}, r"hosts.yml: hosts: no machine is named"),
        ("all: {hosts: {}}", {}, r"hosts.yml: hosts: no machine is named"),
        ("all: {hosts: {a: }}", {"MACHINE": "mine"}, r"^MACHINE: says something of one machine; got 'mine'; in a fleet it is inklab_machine"),
        ("all: {hosts: {a: }}", {"REPS": "0", "PROFILE": "x"}, r"(?s)REPS: .*PROFILE: unknown profile"),
    ],
)
def test_what_cannot_begin_bothers_no_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, env: dict[str, str], message: str):
    monkeypatch.chdir(tmp_path)
    if text is not None:
        Path("hosts.yml").write_text(text)
    with pytest.raises((fleet.FleetRefused, OptionError), match=message):
        fleet.run({"HOSTS": "hosts.yml", **env}, print)


def sent_by(path: Path, **files: str) -> Path:
    path.write_bytes(b'{"inklab_share": 1, "files": ' + json.dumps(files).encode() + b"}")
    return path


def test_what_a_machine_sends_is_read_as_a_strangers(project: Path, tmp_path: Path):
    root = project / "labdata"
    before = sorted(root.rglob("*"))
    told = {"event": "runner_on_ok", "event_data": {"host": "alpha", "task": "fetch"}}
    for body, words in (({"chips/apple.yml": "x"}, "not a place"), ({"machines/apple-m4-24gb.yml": "x"}, "inklab_machine"), ({"runs/a/b.yml": "schema: 1"}, "runs/a/b.yml"), ({"machines/../../x.yml": "x"}, "not a place")):
        one = fleet.Fleet(["alpha"], tmp_path, root, print)
        sent_by(tmp_path / "8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8.json", **body)
        one.on_event(told)
        assert words in one.failed["alpha"] and one.failed["alpha"].startswith("failed: import: ")
    assert sorted(root.rglob("*")) == before
