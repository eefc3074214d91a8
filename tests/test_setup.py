"""Set-up: what it builds for, what it may reuse, and that nothing half-done is trusted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from bench import build, progress, setup
from bench.progress import SetupError

ROOT = Path(__file__).resolve().parent.parent
LINUX, MAC = "Linux-x86_64", "Darwin-arm64"


def on_path(*names):
    return lambda tool: f"/usr/bin/{tool}" if tool in names else None


def says(**answers):
    return lambda argv: answers.get(argv[0].replace("-", "_"), "")


@pytest.mark.parametrize(
    ("tools", "answers", "system", "expected"),
    [
        ((), {}, LINUX, "cpu"),
        ((), {}, MAC, "metal"),
        ((), {}, "Darwin-x86_64", "cpu"),
        (("nvcc",), {}, LINUX, "cpu"),  # a toolchain without a device
        (("nvcc", "nvidia-smi"), {"nvidia_smi": "GPU 0: NVIDIA L4 (UUID: x)\n"}, LINUX, "cuda"),
        (("nvcc", "nvidia-smi"), {"nvidia_smi": "NVIDIA-SMI has failed because\n"}, LINUX, "cpu"),
        (("nvidia-smi",), {"nvidia_smi": "GPU 0: NVIDIA L4\n"}, LINUX, "cpu"),  # a device without a toolchain
        (("hipcc", "rocminfo"), {"rocminfo": "  Name:                    gfx1100\n"}, LINUX, "rocm"),
        (("hipcc", "rocminfo"), {"rocminfo": ""}, LINUX, "cpu"),
        (("glslc", "vulkaninfo"), {"vulkaninfo": "deviceType = PHYSICAL_DEVICE_TYPE_DISCRETE_GPU\n"}, LINUX, "vulkan"),
        (("glslc", "vulkaninfo"), {"vulkaninfo": "deviceType = PHYSICAL_DEVICE_TYPE_CPU\n"}, LINUX, "cpu"),
    ],
)
def test_backend_needs_toolchain_and_device(tools, answers, system, expected):
    found = build.detect_backend({}, on_path(*tools), system, says(**answers))
    assert found.name == expected
    assert found.cmake_args == build.BACKENDS[expected]


def test_backend_by_hand():
    assert build.detect_backend({"BACKEND": "CUDA"}, on_path("nvcc"), LINUX).name == "cuda"
    assert build.detect_backend({"BACKEND": "cpu"}, on_path("nvcc"), MAC).name == "cpu"
    for asked, complaint in {"tpu": "known: cpu, metal", "cuda": "needs nvcc", "metal": "for macOS"}.items():
        with pytest.raises(SetupError, match=complaint):
            build.detect_backend({"BACKEND": asked}, on_path(), LINUX)


def test_amx_stays_out_where_the_compiler_knows_it():
    known = lambda argv: '# 0 "/dev/null"'  # noqa: E731
    assert build.amx_off("cc", LINUX, known) == ("-mno-amx-tile", "-mno-amx-int8")
    assert build.amx_off("cc", LINUX, lambda argv: "") == ()
    assert build.amx_off("cc", "Linux-aarch64", known) == ()


def test_metal_can_be_switched_off():
    assert "GGML_METAL OFF" in build.overrides(build.Backend("cpu", ()))
    assert "GGML_METAL ON" in build.overrides(build.Backend("metal", ()))


LOCK = "llama-cpp-python==0.3.36 \\\n    --hash=sha256:aa\nnumpy==2.4.6 ; python_full_version < '3.12' \\\n    --hash=sha256:bb\n"


@pytest.fixture
def fake_compiler(monkeypatch):
    monkeypatch.setattr(build, "compilers", lambda env: ("cc", "c++"))
    monkeypatch.setattr(build, "output", lambda argv: f"{argv[0]} 12.2")
    monkeypatch.setattr(build.shutil, "which", on_path("nvcc"))
    monkeypatch.setattr(build, "system_name", lambda: LINUX)


def test_key_changes_with_everything_the_build_depends_on(fake_compiler, monkeypatch):
    keys = [build.plan(env, LOCK)[0] for env in (
        {}, {"BACKEND": "cuda"}, {"CMAKE_ARGS": "-DGGML_LTO=ON"})]
    keys.append(build.plan({}, LOCK.replace("aa", "cc"))[0])
    monkeypatch.setattr(build, "output", lambda argv: f"{argv[0]} 13.1")
    keys.append(build.plan({}, LOCK)[0])
    monkeypatch.setattr(build, "cpu_identity", lambda: "another CPU")
    keys.append(build.plan({}, LOCK)[0])
    assert len(set(keys)) == len(keys)
    assert build.plan({}, LOCK)[0] == keys[-1]


def test_a_wheel_is_reused_for_its_backend_only(fake_compiler, monkeypatch, tmp_path):
    built = []

    def pip_wheel(what, argv, **options):
        out = Path(argv[argv.index("-w") + 1])
        out.mkdir()
        (out / "llama_cpp_python-0.3.36-py3-none-linux_x86_64.whl").write_text(what)
        built.append(what)
        assert "--require-hashes" in argv and "--no-cache-dir" in argv
        assert "-mno-amx-tile" in options["env"]["CMAKE_ARGS"]

    monkeypatch.setattr(progress, "run", pip_wheel)
    env = {"XDG_CACHE_HOME": str(tmp_path)}
    for extra in ({}, {}, {"BACKEND": "cuda"}, {"BACKEND": "cuda"}, {}):
        path, _, backend = build.wheel({**env, **extra}, "python", LOCK, None)
        assert backend.name in path.read_text()
    assert len(built) == 2


def test_a_failed_build_leaves_nothing(fake_compiler, monkeypatch, tmp_path):
    def fail(what, argv, **options):
        Path(argv[argv.index("-w") + 1]).mkdir()
        raise SetupError("compiling failed")

    monkeypatch.setattr(progress, "run", fail)
    with pytest.raises(SetupError):
        build.wheel({"XDG_CACHE_HOME": str(tmp_path)}, "python", LOCK, None)
    assert list((tmp_path / "inklab" / "wheels").iterdir()) == []


@pytest.fixture
def checkout(monkeypatch, tmp_path):
    """A checkout whose installs are noted, not done."""
    (tmp_path / "lock").mkdir()
    for part in ("site", "bench", "fit", "dev", "fleet"):
        (tmp_path / "lock" / f"{part}.txt").write_text(LOCK)
    venv, done = tmp_path / ".venv", []

    def make_venv(venv, root):
        done.append("venv")
        setup.shutil.rmtree(venv, ignore_errors=True)
        (venv / "bin").mkdir(parents=True)
        setup.python(venv).touch()
        setup.write_stamp(venv, "venv", setup.venv_facts(root), python=list(sys.version_info[:2]))

    monkeypatch.setattr(setup, "make_venv", make_venv)
    monkeypatch.setattr(setup, "install_lock", lambda venv, root, part, env: done.append(part))
    monkeypatch.setattr(setup, "install_engine", lambda venv, root, env: done.append("engine") or {})
    monkeypatch.setattr(build, "compilers", lambda env: ("cc", "c++"))

    def set_up(job, **env):
        done.clear()
        setup.set_up(job, env, tmp_path, venv)
        return list(done)

    set_up.root, set_up.venv = tmp_path, venv
    return set_up


def test_a_second_call_does_nothing_and_quickly(checkout):
    assert checkout("test") == ["venv", "site", "bench", "fit", "dev", "fleet", "engine"]
    start = time.monotonic()
    assert checkout("test") == checkout("site") == checkout("bench") == []
    assert time.monotonic() - start < 0.6  # three calls of at most 0.2 s


def test_the_site_needs_no_engine(checkout):
    assert checkout("site") == ["venv", "site"]


def test_a_changed_lock_is_installed_again(checkout):
    checkout("test")
    (checkout.root / "lock" / "site.txt").write_text(LOCK + "# newer\n")
    assert checkout("test") == ["site"]


def test_a_changed_backend_changes_the_engine_only(checkout):
    checkout("bench")
    assert checkout("bench", BACKEND="cpu") == ["engine"]
    assert checkout("bench", BACKEND="cpu") == []


def stop_with(error, *lines):
    def run(what, argv, on_line, *rest):
        for line in lines:
            on_line(progress.Step(what), line)
        raise error

    return run


@pytest.mark.parametrize(
    ("run", "again"),
    [
        (stop_with(KeyboardInterrupt()), ["venv", "site"]),
        (stop_with(SetupError("disk"), "Installing collected packages: a"), ["venv", "site"]),
        (stop_with(SetupError("no network"), "Collecting a"), ["site"]),  # nothing was touched yet
    ],
)
def test_an_unfinished_install_is_never_trusted(checkout, monkeypatch, run, again):
    checkout("venv")
    with monkeypatch.context() as patch:
        patch.setattr(setup, "install_lock", lambda venv, root, part, env: setup.pip_install(venv, part, [], env))
        patch.setattr(progress, "run", run)
        with pytest.raises((KeyboardInterrupt, SetupError)):
            checkout("site")
    assert checkout("site") == again
    assert checkout("site") == []


def test_another_python_replaces_the_environment_only_when_named(checkout):
    checkout("site")
    stamp = setup.stamp_path(checkout.venv, "venv")
    stamp.write_text(re.sub(r'"python": \[[^]]*\]', '"python": [3, 99]', stamp.read_text()))
    assert checkout("site") == []
    assert checkout("site", PYTHON="python3.11") == ["venv", "site"]


def test_a_small_disk_is_said_before_it_starts(checkout, monkeypatch):
    monkeypatch.setattr(setup.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 1e8})())
    with pytest.raises(SetupError, match="needs about 0.6 GB; 0.1 GB are free"):
        checkout("site")


def test_no_compiler_is_said_before_anything_is_downloaded(monkeypatch):
    with pytest.raises(SetupError, match="apt install g"):
        build.compilers({}, on_path())
    monkeypatch.setattr(build, "output", lambda argv: "")  # macOS's stand-in c++
    with pytest.raises(SetupError, match="xcode-select --install"):
        build.compilers({}, on_path("cc", "c++"))


def test_debian_without_venv(monkeypatch, tmp_path):
    monkeypatch.setattr(setup.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SetupError, match=r"apt install python3\.\d+-venv"):
        setup.make_venv(tmp_path / ".venv", tmp_path)


def test_an_old_python_is_told_what_to_do():
    code = "import sys; sys.version_info = (3, 9, 0); import runpy; runpy.run_path('bench/setup.py', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert re.fullmatch(r"error: Python 3\.11 or newer needed; this is 3\.9; .*PYTHON=.*\n", done.stderr)


@pytest.mark.parametrize(
    ("line", "meaning"),
    [
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "disk is full"),
        ("NewConnectionError('Failed to establish a new connection')\nERROR: No matching distribution found for x", "network"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.", "not installed"),
        ("c++: fatal error: Killed signal terminated program cc1plus", "out of memory"),
        ("CMake Error at CMakeLists.txt:1", "CMake Error at CMakeLists.txt:1"),
    ],
)
def test_reasons_in_one_line(line, meaning):
    text, known = progress.reason(line.splitlines())
    assert meaning in text and "\n" not in text
    assert known == ("CMake" not in line)  # else the tool's own last lines are shown too


def test_a_failing_command_brings_its_last_lines(tmp_path):
    log = tmp_path / "log"
    with pytest.raises(SetupError, match="Trying: error: no such thing") as caught:
        progress.run("Trying", [sys.executable, "-c", "print('one'); exit('error: no such thing')"], log=log)
    assert "one" in caught.value.tail
    assert "one\n" in log.read_text()


def pins(name):
    return setup.locked_packages((ROOT / "lock" / f"{name}.txt").read_text())


def test_locks_are_hashed_agree_and_name_no_index():
    seen = {}
    for name in ("site", "bench", "fit", "dev", "fleet"):
        text = (ROOT / "lock" / f"{name}.txt").read_text()
        assert not re.search(r"https?://|--index|--find-links|file:", text)
        for pin, block in pins(name).items():
            assert "--hash=sha256:" in block
            key = (pin.split("==")[0], block.partition(" ; ")[2].partition(" \\")[0])
            assert seen.setdefault(key, pin) == pin


def test_locks_hold_what_pyproject_asks_for():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for name, wanted in extras.items():
        locked = {pin.split("==")[0] for pin in pins(name)}
        assert {re.split(r"[<>=;]", one)[0] for one in wanted} <= locked
    assert "llama-cpp-python" not in {pin.split("==")[0] for pin in pins("site")}


def test_a_lock_file_is_read_whole():
    assert list(setup.locked_packages(LOCK)) == ["llama-cpp-python==0.3.36", "numpy==2.4.6"]
    assert "".join(setup.locked_packages(LOCK).values()) == LOCK
    assert build.requirement(LOCK, "llama-cpp-python") == LOCK[: LOCK.index("numpy")]


def test_byte_code_that_is_not_whole_goes_and_what_changed_is_compiled(tmp_path):
    for part in setup.OWN:
        (tmp_path / part).mkdir()
        (tmp_path / part / "a.py").write_text("A = 1\n")
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    setup.python(tmp_path / "venv").symlink_to(sys.executable)
    setup.keep_bytecode(tmp_path / "venv", tmp_path)
    (kept,) = (tmp_path / "macros" / "__pycache__").glob("a.*.pyc")
    whole = kept.read_bytes()
    kept.write_bytes(whole[:20])  # as a full disk leaves it
    setup.keep_bytecode(tmp_path / "venv", tmp_path)
    assert kept.read_bytes() == whole[:20], "nothing changed, nothing is looked at"
    later = (tmp_path / "venv" / "bytecode").stat().st_mtime + 5
    os.utime(tmp_path / "bench" / "a.py", (later, later))
    setup.keep_bytecode(tmp_path / "venv", tmp_path)
    assert not kept.exists() or kept.read_bytes() == whole


def test_what_a_build_loads_is_compiled_once_after_an_installation(tmp_path):
    for part in setup.OWN:
        (tmp_path / part).mkdir()
    (tmp_path / "macros" / "a.py").write_text("import inklab_package\n")
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "inklab_package.py").write_text("A = 1\n")
    setup.python(venv).write_text(f'#!/bin/sh\nPYTHONPATH="{venv}" exec "{sys.executable}" "$@"\n')
    setup.python(venv).chmod(0o755)
    setup.keep_bytecode(venv, tmp_path)
    assert not list(venv.rglob("*.pyc")), "nothing was installed"
    setup.write_stamp(venv, "site", {})
    later = (venv / "bytecode").stat().st_mtime + 5
    os.utime(setup.stamp_path(venv, "site"), (later, later))
    setup.keep_bytecode(venv, tmp_path)
    assert [path.name.split(".")[0] for path in venv.rglob("*.pyc")] == ["inklab_package"]
