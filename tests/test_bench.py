"""The bench from its command line, on a real engine and a tiny synthetic model."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
import pytest
from conftest import run_module

from bench import hub, instruments, options, plan, prepare, session, weights
from bench.engine import Engine
from bench.plan import PlanError
from macros import labdata, references
from macros.work import Shape

HANGS_S = 600  # a guard against a hang, far above what a busy machine needs
TINY = Shape("qwen3", 2, 256, 512, 1024, 4, 2, 64, tied=True)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of two small layers, 1 MB."""
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    weights.write(path, TINY, "Q4_K_M")
    return path


def settings(tmp_path: Path, **given: object) -> dict[str, str]:
    """A bench's environment: its own caches, no setting left over from the caller."""
    blank = {name.upper(): "" for name in options.HELP}
    return {**blank, "XDG_CACHE_HOME": str(tmp_path / "cache"), **{k: str(v) for k, v in given.items()}}


def new_runs(project: Path) -> list:
    """The runs a bench in this copy has added."""
    lab = labdata.load(project / "labdata")
    before = labdata.load().runs
    return [run for name, run in lab.runs.items() if name not in before]


def test_ink_is_written_first_and_the_run_names_it(project: Path, tiny: Path, tmp_path: Path):
    done = run_module(project, "bench", "run", env=settings(tmp_path, MODEL=tiny, REPS=3, DEPTHS=128))
    assert done.returncode == 0, done.stderr
    (run,) = new_runs(project)
    lab = labdata.load(project / "labdata")
    ink = lab.inks[run.ink.id]
    assert ink.written_at <= min(r.started_at for r in run.results)
    assert run.ink.sha256 == references.sha256(project / "labdata/ink" / f"{ink.id}.yml")
    assert [(r.experiment, r.test, r.depth, len(r.samples_ns)) for r in run.results] == [
        ("baseline", "pp512", 0, 3), ("baseline", "tg128", 0, 3), ("depth", "tg128", 128, 3)]  # fmt: skip
    assert {r.backend for r in run.results} == {"CPU"} or run.host.gpus
    assert lab.models["tiny"].weights == "synthetic"
    assert lab.models["tiny"].dims == TINY
    assert str(tiny.parent) not in (project / "labdata/runs" / run.machine / f"{run.id}.yml").read_text(encoding="utf-8")
    report = run_module(project, "bench", "report")
    assert report.returncode == 0, report.stderr
    assert run.id in report.stdout and "Synthetic weights" in report.stdout and "roof" in report.stdout
    assert run_module(project, "bench", "check").returncode == 0


def start(project: Path, env: dict[str, str]) -> subprocess.Popen:
    full = {**os.environ, **env}
    # A shell's background job ignores SIGINT, and so would every child of these tests run as one.
    heeds = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    return subprocess.Popen([sys.executable, "-m", "bench", "run"], cwd=project, env=full, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **heeds)


def engine_of(bench: subprocess.Popen, after_results: int, project: Path) -> psutil.Process:
    """The engine's child process, once so many tests are on disk and it is at work on the next."""
    spent: dict[int, float] = {}  # CPU time each had when they were; it is kept from test to test
    for _ in range(1200):
        runs = new_runs(project)
        if runs and len(runs[0].results) >= after_results:
            for child in psutil.Process(bench.pid).children(recursive=True):
                try:
                    if "bench.engine" in " ".join(child.cmdline()) and child.cpu_times().user > spent.setdefault(child.pid, child.cpu_times().user) + 0.1:
                        return child
                except psutil.Error:
                    continue
        assert bench.poll() is None, bench.communicate()
        time.sleep(0.05)
    raise AssertionError("no engine process appeared")


def test_an_engine_killed_mid_run_costs_its_test_only(project: Path, tiny: Path, tmp_path: Path):
    bench = start(project, settings(tmp_path, MODEL=tiny, REPS=60, DEPTHS=128))
    engine_of(bench, 1, project).send_signal(signal.SIGKILL)
    out, err = bench.communicate(timeout=HANGS_S)
    assert bench.returncode == 0, err
    (run,) = new_runs(project)
    failed = [r for r in run.results if r.failed]
    assert len(failed) == 1 and "SIGKILL" in failed[0].failed
    assert [len(r.samples_ns) for r in run.results if not r.failed] == [60, 60]
    assert "1 of 3 tests failed" in err and "failed: killed" in out
    assert "Traceback" not in err


def test_a_bench_killed_mid_run_continues_where_it_stopped(project: Path, tiny: Path, tmp_path: Path):
    env = settings(tmp_path, MODEL=tiny, REPS=60, DEPTHS=128)
    bench = start(project, env)
    engine = engine_of(bench, 1, project)
    bench.send_signal(signal.SIGKILL)
    bench.communicate(timeout=HANGS_S)
    psutil.wait_procs([engine], timeout=HANGS_S)
    assert not engine.is_running()
    (before,) = new_runs(project)
    again = run_module(project, "bench", "run", env=env)
    assert again.returncode == 0, again.stderr
    assert f"Continuing run {before.id}" in again.stdout
    (after,) = new_runs(project)
    assert len(after.results) == 3
    assert after.results[: len(before.results)] == before.results
    assert after.ink == before.ink


def test_ctrl_c_says_how_to_go_on(project: Path, tiny: Path, tmp_path: Path):
    bench = start(project, settings(tmp_path, MODEL=tiny, REPS=1000, DEPTHS=128))
    engine_of(bench, 0, project)
    bench.send_signal(signal.SIGINT)
    _, err = bench.communicate(timeout=HANGS_S)
    assert bench.returncode == 130
    assert "run the same command again to continue" in err and "Traceback" not in err


UNKNOWN_GPU = """
import dataclasses, bench.host, bench.engine
from bench.__main__ import main
host, asked = bench.host.collect(), bench.engine.Engine.installed
bench.host.collect = lambda: dataclasses.replace(host, gpus=[bench.host.Gpu("NVIDIA Imaginary 1")])
bench.engine.Engine.installed = lambda self: {**asked(self), "gpu": True}
raise SystemExit(main(["run"]))
"""


@pytest.mark.parametrize("ngl", ["", "99"])
def test_beside_an_unknown_gpu_the_cpu_alone_is_benched_unless_the_gpu_was_asked_for(project: Path, tiny: Path, tmp_path: Path, ngl: str):
    env = {**os.environ, **settings(tmp_path, MODEL=tiny, REPS=1, DEPTHS=64, NGL=ngl)}
    done = subprocess.run([sys.executable, "-c", UNKNOWN_GPU], cwd=project, env=env, capture_output=True, text=True, timeout=HANGS_S)
    if ngl:
        assert done.returncode == 1
        assert done.stderr.startswith("error: machine: the roofs of NVIDIA Imaginary 1 are not known (not in labdata/chips);")
        assert not new_runs(project)
        return
    assert done.returncode == 0, done.stderr
    (run,) = new_runs(project)
    assert {r.n_gpu_layers for r in run.results} == {0} and "NGL=0" in run.command
    assert run.notes[0].startswith("CPU alone; machine: the roofs of NVIDIA Imaginary 1 are not known")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"PROFILE": "slow"}, ("PROFILE", "'slow'", "day1,", "quick")),
        ({"SHAPE": "llama-70b"}, ("SHAPE", "'llama-70b'", "qwen3-0.6b")),
        ({"REPS": "many"}, ("REPS", "'many'")),
        ({"THREADS": "0"}, ("THREADS", "'0'")),
        ({"THREADS": "4096", "MODEL": "mkdocs.yml"}, ("THREADS", "logical cores", "4096")),
        ({"DEPTHS": "0,-5"}, ("DEPTHS", "'0,-5'")),
        ({"MACHINE": "../x"}, ("MACHINE", "'../x'")),
        ({"MODEL": "gone.gguf"}, ("MODEL", "no such file", "'gone.gguf'")),
        ({"MODEL": "mkdocs.yml"}, ("MODEL: mkdocs.yml", "GGUF")),
        ({"MODEL": "cut.gguf"}, ("MODEL: cut.gguf", "cut short")),
        ({"MODEL": "hf:qwen3"}, ("MODEL", "'hf:qwen3'", "owner/repo:QUANT")),
        ({"CHIP": "apple-m4-10c"}, ("CHIP", "no GPU computes here", "'apple-m4-10c'")),
        ({"MACHINE": "apple-m4-24gb"}, ("MACHINE", "apple-m4-24gb.yml", "another chip")),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(project: Path, tiny: Path, tmp_path: Path, given: dict, expected: tuple[str, ...]):
    (project / "cut.gguf").write_bytes(tiny.read_bytes()[:2000])
    before = sorted(p for p in (project / "labdata").rglob("*"))
    env = settings(tmp_path, **{"MODEL": tiny, **given} if given.get("MACHINE") == "apple-m4-24gb" or "CHIP" in given else given)
    done = run_module(project, "bench", "run", env=env)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert all(words in line for words in expected), line
    added = set(project.joinpath("labdata").rglob("*")) - set(before)
    assert {p.name for p in added} <= {"tiny.yml"}


def test_all_wrong_options_come_at_once():
    with pytest.raises(options.OptionError) as caught:
        options.read({}, {"PROFILE": "x", "REPS": "y", "DEPTHS": "z"})
    assert [line.split(":")[0] for line in str(caught.value).splitlines()] == ["REPS", "DEPTHS", "PROFILE"]


def test_too_little_memory_is_said_with_what_would_fit():
    lab = labdata.load()
    cards = prepare.synthetic(lab, "qwen3-8b", ["Q4_K_M", "Q8_0"])
    tests = plan.tests(plan.read("day1"), cards, gpu=False)
    plan.check_memory(64e9, tests, lab.models)
    with pytest.raises(PlanError, match=r"needs \d+\.\d GB, 8\.0 GB available; SHAPE=qwen3-0.6b or SHAPE=qwen3-1.7b would fit"):
        plan.check_memory(8e9, tests, lab.models)


def test_a_full_disk_is_said_before_anything_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("bench.weights.shutil.disk_usage", lambda _: os.terminal_size((0, 0)) and type("D", (), {"free": 10**6})())
    cards = prepare.synthetic(labdata.load(), "qwen3-0.6b", ["Q8_0"])
    with pytest.raises(PlanError, match=r"weights: .*too little disk space; needs 0\.63 GB"):
        prepare.write_weights(cards, lambda card: lambda done, total: None)


def test_two_benches_at_once_are_refused(tmp_path: Path):
    with session.only_one(tmp_path), pytest.raises(PlanError, match="another bench is running"), session.only_one(tmp_path):
        pass


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["m-Q8_0.gguf", "m-Q4_K_M.gguf"], "m-Q4_K_M.gguf"),
        (["m.Q4_K_M.gguf", "m.Q4_K_S.gguf"], "m.Q4_K_M.gguf"),
        (["m-Q8_0.gguf"], "no file of Q4_K_M in o/r; there: m-Q8_0.gguf"),
        (["m-Q4_K_M-00001-of-00002.gguf", "m-Q4_K_M-00002-of-00002.gguf"], "several files of Q4_K_M"),
        ([], "no GGUF file"),
    ],
)
def test_the_hubs_file_is_picked_or_named(files: list[str], expected: str):
    if expected in files:
        assert hub.pick(files, "Q4_K_M", "o/r") == expected
    else:
        with pytest.raises(PlanError, match=expected):
            hub.pick(files, "Q4_K_M", "o/r")


class Hub(BaseHTTPRequestHandler):
    """As much of the hub's interface as a download needs."""

    content = b""

    def answer(self, body: bool) -> None:
        if "/tree/" in self.path:
            data, kind = b'[{"type": "file", "path": "tiny-Q4_K_M.gguf", "size": %d, "oid": "e1"}]' % len(self.content), "application/json"
        elif self.path.startswith("/api/models/"):
            data, kind = b'{"id": "o/r", "sha": "%s", "siblings": [{"rfilename": "tiny-Q4_K_M.gguf"}]}' % (b"a" * 40), "application/json"
        else:
            data, kind = self.content, "application/octet-stream"
        self.send_response(200)
        for name, value in (("Content-Type", kind), ("Content-Length", str(len(data))), ("ETag", '"e1"'), ("X-Repo-Commit", "a" * 40)):
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(data)

    def do_GET(self) -> None:
        self.answer(body=True)

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def log_message(self, *_: object) -> None:
        pass


def fetch(spec: str, endpoint: str, cache: Path) -> subprocess.CompletedProcess:
    code = f"from bench import hub\ntry: print(hub.fetch({spec!r}))\nexcept hub.PlanError as e: print('error:', e)"
    env = {**os.environ, "HF_ENDPOINT": endpoint, "HF_HOME": str(cache), "HF_HUB_DISABLE_XET": "1"}
    root = Path(__file__).resolve().parent.parent
    return subprocess.run([sys.executable, "-c", code], cwd=root, env=env, capture_output=True, text=True, timeout=HANGS_S)


def test_a_hub_model_is_fetched(tiny: Path, tmp_path: Path):
    handler = type("Served", (Hub,), {"content": tiny.read_bytes()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        done = fetch("hf:o/r:Q4_K_M", f"http://127.0.0.1:{server.server_port}", tmp_path)
    finally:
        server.shutdown()
    path = Path(done.stdout.strip().splitlines()[-1])
    assert path.is_file(), done.stdout + done.stderr
    assert path.read_bytes() == tiny.read_bytes()


def test_no_network_is_one_line(tmp_path: Path):
    done = fetch("hf:o/r:Q4_K_M", "http://127.0.0.1:9", tmp_path)
    assert done.stdout.startswith("error: MODEL: hf:o/r:Q4_K_M: cannot be fetched;")
    assert len(done.stdout.strip().splitlines()) == 1


def test_a_failed_test_does_not_tell_where_the_file_lies(tmp_path: Path):
    path = tmp_path / "secret-folder" / "broken.gguf"
    path.parent.mkdir()
    path.write_bytes(b"GGUF")
    card = prepare.synthetic(labdata.load(), "qwen3-0.6b", ["Q8_0"])
    test = plan.tests(plan.read("quick"), card, gpu=False)[0]
    with Engine() as own:
        result = session.one(test, path, options.Options(), 1, 1, instruments.in_process(own), None, lambda _: None)
    assert "broken.gguf" in result.failed and "secret-folder" not in result.failed
