"""The engine's build: which backend, which flags, and a wheel that no other set-up can reuse.

Standard library only: set-up uses it before anything is installed.
"""

from __future__ import annotations

import collections
import hashlib
import json
import os
import pathlib
import platform
import re
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
import time

from bench import progress
from bench.progress import SetupError

Backend = collections.namedtuple("Backend", "name cmake_args")

BACKENDS = {
    "cpu": (),
    "metal": (),  # llama-cpp-python turns it on by itself; see overrides()
    "cuda": ("-DGGML_CUDA=ON",),
    "rocm": ("-DGGML_HIP=ON",),
    "vulkan": ("-DGGML_VULKAN=ON",),
}
# What each needs on PATH to be built (any one of them).
TOOLCHAINS = {"cuda": ("nvcc",), "rocm": ("hipcc", "hipconfig"), "vulkan": ("glslc",)}
# How each proves that a device is there: a toolchain alone builds what then runs nowhere.
# (llvmpipe is a Vulkan device of type CPU, so the type counts, not the presence.)
DEVICES = {
    "cuda": (("nvidia-smi", "-L"), r"GPU \d"),
    "rocm": (("rocminfo",), r"\bgfx\d"),
    "vulkan": (("vulkaninfo", "--summary"), r"TYPE_(DISCRETE|INTEGRATED|VIRTUAL)_GPU"),
}
NO_AMX = ("-mno-amx-tile", "-mno-amx-int8")


def output(argv):
    """What a command prints; "" where it is missing, fails or takes over 20 s."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""


def detect_backend(env, which, system, output=output):
    """The backend to build for, and its CMake arguments.

    Args:
        env: environment; BACKEND= decides if it is set
        which: name of a program -> its path or None
        system: "Linux-x86_64", "Darwin-arm64", …
        output: command -> what it printed, "" if it failed
    Raises:
        SetupError: BACKEND= is unknown, or cannot be built here.
    """
    asked = env.get("BACKEND", "").strip().lower()
    if asked:
        if asked not in BACKENDS:
            raise SetupError(f"BACKEND: unknown; got {asked!r}; known: {', '.join(BACKENDS)}")
        if asked == "metal" and not system.startswith("Darwin"):
            raise SetupError(f"BACKEND: metal is for macOS; got {system}")
        tools = TOOLCHAINS.get(asked, ())
        if tools and not any(which(tool) for tool in tools):
            raise SetupError(f"BACKEND: {asked} needs {' or '.join(tools)} on PATH; not found")
        return Backend(asked, BACKENDS[asked])
    if system == "Darwin-arm64":
        return Backend("metal", BACKENDS["metal"])
    for name, tools in TOOLCHAINS.items():
        command, sign = DEVICES[name]
        if any(which(tool) for tool in tools) and which(command[0]):
            if re.search(sign, output(command)):
                return Backend(name, BACKENDS[name])
    return Backend("cpu", BACKENDS["cpu"])


def compilers(env, which=shutil.which):
    """The C and C++ compilers CMake will find (paths).

    Raises:
        SetupError: one is missing; says what to install.
    """
    cc = env.get("CC") or which("cc") or which("gcc") or which("clang")
    cxx = env.get("CXX") or which("c++") or which("g++") or which("clang++")
    # macOS has a c++ that only tells you to install one: ask for its version, not its path
    if not cc or not cxx or not output([*shlex.split(cxx), "--version"]):
        raise SetupError("no C++ compiler; Debian and Ubuntu: apt install g++; Fedora: dnf install "
                         "gcc-c++; macOS: xcode-select --install")
    return cc, cxx


def amx_off(cc, system, output=output):
    """Flags that keep AMX out of an x86-64 Linux build, where the compiler knows AMX.

    ggml's AMX path crashes in the first decode of a K-quant model (ggml-org/llama.cpp#20824);
    the rest of AVX-512 stays on.
    """
    if system != "Linux-x86_64":
        return ()
    # -E on nothing prints a line marker if, and only if, the flags are known
    known = output([*shlex.split(cc), *NO_AMX, "-E", "-x", "c", os.devnull])
    return NO_AMX if known else ()


def overrides(backend):
    """CMake code, run inside llama.cpp's project, for what llama-cpp-python forces on us.

    It forces `common` (chat templates, downloads: two fifths of the build, unused by the
    bindings' library) and, on macOS, Metal; a -D cannot undo either.
    """
    metal = "ON" if backend.name == "metal" else "OFF"
    return ('set(LLAMA_BUILD_COMMON OFF CACHE BOOL "" FORCE)\n'
            f'set(GGML_METAL {metal} CACHE BOOL "" FORCE)\n')


def cpu_identity():
    """This CPU's model and instruction sets: the build is for this very CPU (GGML_NATIVE)."""
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return output(["sysctl", "-n", "machdep.cpu.brand_string"]).strip() or platform.machine()
    keys = ("vendor_id", "model name", "flags", "Features", "CPU part")
    found = [re.search(rf"^{key}\s*:(.*)$", text, re.M) for key in keys]
    return " | ".join(match.group(1).strip() for match in found if match)


def system_name():
    """System and machine, as detect_backend wants them."""
    return f"{platform.system()}-{platform.machine()}"


def fingerprint(env):
    """All that can change the build and is read in milliseconds: while it stands, so does the build.

    The full key needs a dozen commands; this only looks at names and paths.
    """
    tools = sorted({"cc", "c++", *sum(TOOLCHAINS.values(), ()), *(d[0][0] for d in DEVICES.values())})
    paths = {tool: os.path.realpath(path) for tool in tools for path in [shutil.which(tool)] if path}
    named = {name: env.get(name, "") for name in ("BACKEND", "CMAKE_ARGS", "CC", "CXX")}
    cpu = hashlib.sha256(cpu_identity().encode()).hexdigest()[:16]
    return {"tools": paths, "env": named, "cpu": cpu, "system": system_name()}


def requirement(lock_text, name):
    """One package's lines in a lock file, hashes and all."""
    match = re.search(rf"^{re.escape(name)}==.*(?:\n[ \t]+.*)*", lock_text, re.M)
    if not match:
        raise SetupError(f"lock/bench.txt: {name}: missing; `make lock` writes it")
    return match.group(0) + "\n"


def cache_dir(env):
    """Where built wheels are kept, across checkouts."""
    base = env.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base) / "inklab" / "wheels"


def plan(env, lock_text):
    """What to build: (key, backend, CMake arguments, pinned requirement).

    The key names everything the wheel depends on, so that a wheel built for another backend,
    CPU, compiler or version is never found under it.
    """
    system = system_name()
    backend = detect_backend(env, shutil.which, system)
    cc, cxx = compilers(env)
    flags = " ".join(amx_off(cc, system))
    args = list(backend.cmake_args)
    # LLAVA: image input, not benched.
    args.append("-DLLAVA_BUILD=OFF")
    if flags:
        args += [f"-DCMAKE_C_FLAGS={flags}", f"-DCMAKE_CXX_FLAGS={flags}"]
    args += shlex.split(env.get("CMAKE_ARGS", ""))
    pinned = requirement(lock_text, "llama-cpp-python")
    versions = [output([*shlex.split(tool), "--version"]) for tool in (cc, cxx, *backend_tool(backend))]
    parts = [pinned, backend.name, args, overrides(backend), versions, cpu_identity(),
             sysconfig.get_platform(), platform.libc_ver()]
    key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
    return key, backend, args, pinned


def backend_tool(backend):
    """The backend's own compiler, if it has one and it is here."""
    return [path for tool in TOOLCHAINS.get(backend.name, ()) for path in [shutil.which(tool)] if path][:1]


def wheel(env, python, lock_text, log):
    """The engine's wheel for this machine, from the cache or built now: (path, key, backend)."""
    key, backend, args, pinned = plan(env, lock_text)
    home = cache_dir(env)
    kept = sorted((home / key).glob("*.whl"))
    if kept:
        return kept[0], key, backend
    home.mkdir(parents=True, exist_ok=True)
    for old in home.glob("build-*"):  # left by a build that was killed
        if time.time() - old.stat().st_mtime > 86400:
            shutil.rmtree(old, ignore_errors=True)
    # In the cache, not in the temporary folder, often small and in memory; the finished folder is then
    # renamed into place, so that a key's folder is whole or absent.
    with tempfile.TemporaryDirectory(prefix="build-", dir=home) as scratch:
        scratch = pathlib.Path(scratch)
        (scratch / "engine.txt").write_text(pinned, encoding="utf-8")
        (scratch / "overrides.cmake").write_text(overrides(backend), encoding="utf-8")
        args = [*args, f"-DCMAKE_PROJECT_llama.cpp_INCLUDE={scratch / 'overrides.cmake'}"]
        build_env = {**env, "CMAKE_ARGS": shlex.join(args), "TMPDIR": str(scratch),
                     "PATH": f"{pathlib.Path(python).parent}{os.pathsep}{env.get('PATH', '')}"}
        if backend.name == "rocm" and shutil.which("hipconfig"):
            build_env.setdefault("HIPCXX", output(["hipconfig", "-l"]).strip() + "/clang")
            build_env.setdefault("HIP_PATH", output(["hipconfig", "-R"]).strip())
        out = scratch / "out"
        progress.run(
            f"Compiling llama.cpp ({backend.name})",
            [python, "-m", "pip", "wheel", "-v", "--no-cache-dir", "--no-deps", "--require-hashes",
             "--no-build-isolation", "--no-binary=llama-cpp-python", "--progress-bar=off",
             "--retries=2", "-w", str(out), "-r", str(scratch / "engine.txt")],
            on_line=ninja_progress, env=build_env, log=log)
        try:
            os.replace(out, home / key)
        except OSError:  # another checkout finished the same build first
            if not (home / key).is_dir():
                raise
    return next((home / key).glob("*.whl")), key, backend


def ninja_progress(step, line):
    """Read ninja's [n/m]."""
    match = re.match(r"\s*\[(\d+)/(\d+)\]", line)
    if match:
        step.count(int(match.group(1)), int(match.group(2)))
