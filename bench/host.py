"""Host facts: what this machine says of itself, and the chip whose published roofs fit it.

No serial number, user or host name is read. What cannot be read is None, never a guess.
"""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench import host_parse as parse
from bench.host_parse import Gpu


@dataclass(frozen=True)
class Host:
    """The machine at one moment; memory [B], load per logical core."""

    os: str | None = None
    kernel: str | None = None
    arch: str | None = None
    cpu: str | None = None
    physical_cores: int | None = None
    logical_cores: int | None = None
    performance_cores: int | None = None  # None on chips whose cores are all alike
    usable_cpus: int | None = None  # what affinity and cgroup leave of the logical cores
    memory_bytes: int | None = None
    memory_limit_bytes: int | None = None  # a cgroup's limit
    available_bytes: int | None = None
    gpus: list[Gpu] = field(default_factory=list)
    power: str | None = None  # "ac" or "battery"
    virtual: bool | None = None
    load1_per_core: float | None = None
    governor: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The facts as plain JSON values."""
        return asdict(self)


def run(*argv: str, any_exit: bool = False) -> str:
    """What a command prints on stdout; "" if it is missing, fails (unless any_exit) or takes over 20 s."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=20,
                              env={**os.environ, "LC_ALL": "C"})
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace") if any_exit or done.returncode == 0 else ""


def read(path: str | Path) -> str:
    """A file's text; "" if it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def load1_per_core() -> float | None:
    """One-minute load average per logical core, now."""
    try:
        return round(os.getloadavg()[0] / (os.cpu_count() or 1), 2)
    except OSError:
        return None


def busy_share() -> float:
    """Share of all cores in use over half a second, while this process waits (fraction).

    The load average would count the bench's own last test.
    """
    import psutil

    return round(psutil.cpu_percent(interval=0.5) / 100, 2)


def nvidia() -> list[Gpu]:
    """NVIDIA's GPUs."""
    query = run("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits")
    return parse.nvidia_gpus(query, run("nvidia-smi", "-L")) if query else []


def collect() -> Host:
    """This machine's facts, read now."""
    common = {"kernel": platform.release() or None, "arch": platform.machine() or None,
              "logical_cores": os.cpu_count(), "load1_per_core": load1_per_core()}
    if platform.system() == "Darwin":
        return Host(**common, **_macos())
    if platform.system() == "Linux":
        return Host(**common, **_linux())
    return Host(**common, os=platform.system() or None, gpus=nvidia())


def available_bytes() -> int | None:
    """Memory a program could get now, a cgroup's limit respected [B]."""
    if platform.system() == "Darwin":
        return parse.vm_stat_available(run("vm_stat"))
    free = parse.meminfo(read("/proc/meminfo")).get("MemAvailable")
    rooms = [room for _, room in _cgroup_limits()]
    return min([free, *rooms]) if free is not None else None


def _macos() -> dict[str, Any]:
    def number(key: str) -> int | None:
        text = run("sysctl", "-n", key).strip()
        return int(text) if text.isdigit() else None

    return {
        "os": f"macOS {platform.mac_ver()[0]}",
        "cpu": run("sysctl", "-n", "machdep.cpu.brand_string").strip() or None,
        "physical_cores": number("hw.physicalcpu"),
        "performance_cores": number("hw.perflevel0.physicalcpu") if (number("hw.nperflevels") or 1) > 1 else None,
        "memory_bytes": number("hw.memsize"),
        "available_bytes": available_bytes(),
        # the displays section has no serial number; the hardware section has
        "gpus": parse.apple_gpus(run("system_profiler", "SPDisplaysDataType")),
        "power": parse.power_macos(run("pmset", "-g", "batt")),
        "virtual": {0: False, 1: True}.get(number("kern.hv_vmm_present")),
    }


def _linux() -> dict[str, Any]:
    text = run("lscpu")
    cores = parse.topology(run("lscpu", "-p=CPU,CORE,SOCKET"))
    # Intel hybrids list their performance CPUs here; nothing else is certain which cores are fast
    fast = parse.cpu_list(read("/sys/devices/cpu_core/cpus")) if read("/sys/devices/cpu_atom/cpus").strip() else set()
    release = dict(line.split("=", 1) for line in read("/etc/os-release").splitlines() if "=" in line)
    limits = _cgroup_limits()
    quotas = [cpus for folder in _cgroups() if (cpus := parse.cgroup_cpus(read(folder / "cpu.max")))]
    supplies = [{name: read(folder / name).strip() for name in ("type", "online", "status", "scope")}
                for folder in sorted(Path("/sys/class/power_supply").glob("*"))]
    return {
        "os": release.get("PRETTY_NAME", "").strip('"') or None,
        "cpu": parse.cpu_name(text, read("/proc/cpuinfo")),
        "physical_cores": len(set(cores.values())) or None,
        "performance_cores": len({cores[cpu] for cpu in fast if cpu in cores}) or None,
        "usable_cpus": min([len(os.sched_getaffinity(0)), *quotas]),
        "memory_bytes": parse.meminfo(read("/proc/meminfo")).get("MemTotal"),
        "memory_limit_bytes": min(limit for limit, _ in limits) if limits else None,
        "available_bytes": available_bytes(),
        "gpus": nvidia(),
        "power": parse.power_linux(supplies),
        "virtual": parse.virtual_linux(text, run("systemd-detect-virt", "--vm", any_exit=True)),  # exits 1 on "none"
        "governor": read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip() or None,
    }


def _cgroups() -> list[Path]:
    """This process's cgroup v2 folder and all above it: each may set a limit."""
    own = next((line[3:] for line in read("/proc/self/cgroup").splitlines() if line.startswith("0::")), "/")
    root = Path("/sys/fs/cgroup")
    folder = root / own.lstrip("/")
    return [folder, *(parent for parent in folder.parents if parent.is_relative_to(root))]


def _cgroup_limits() -> list[tuple[int, int]]:
    """(limit, room left) of every memory cgroup over this process that has a limit [B]."""
    v1 = Path("/sys/fs/cgroup/memory")
    texts = [(read(f / "memory.max"), read(f / "memory.current"), read(f / "memory.stat")) for f in _cgroups()]
    texts.append((read(v1 / "memory.limit_in_bytes"), read(v1 / "memory.usage_in_bytes"), read(v1 / "memory.stat")))
    return [room for limit, used, stat in texts if (room := parse.cgroup_room(limit, used, stat))]


def default_threads(host: Host) -> int:
    """Threads for the engine: performance cores on hybrids, else physical, else logical cores.

    Never more than affinity and cgroup allow: threads that wait for a CPU ruin the others' work.
    """
    cores = host.performance_cores or host.physical_cores or host.logical_cores or 1
    return max(1, min(cores, host.usable_cpus or cores))


def core_counts(host: Host) -> dict[str, int]:
    """Cores by the kinds a plan may name; those of one kind are all performance cores."""
    logical = host.logical_cores or 1
    physical = host.physical_cores or logical
    return {"performance": default_threads(host), "physical": physical, "logical": logical}


def _bare(name: str) -> str:
    """An NVIDIA name without the brand, which older drivers leave out."""
    return name.removeprefix("NVIDIA ").strip().lower()


def _fits(match: dict[str, Any], host: Host, gpu: Gpu) -> bool:
    """Could this GPU be the chip? A fact the host does not tell rules nothing out."""
    if "apple" in match:
        return host.cpu == match["apple"] and gpu.cores in (None, match["gpu_cores"])
    if gpu.partitioned or _bare(gpu.name) != _bare(match["nvidia"]):
        return False
    if "memory_gb" not in match or gpu.memory_bytes is None:
        return True
    # "24 GB" on the box is 24 GiB less what ECC and the driver take
    return abs(gpu.memory_bytes / 2**30 / match["memory_gb"] - 1) < 0.08


def chip_candidates(host: Host, chips: list[Any]) -> list[Any]:
    """The chips (anything with .match) this host's GPUs could be."""
    gpus = host.gpus or ([Gpu(host.cpu)] if (host.cpu or "").startswith("Apple") else [])
    return [chip for chip in chips if any(_fits(chip.match, host, gpu) for gpu in gpus)]


def find_chip(host: Host, chips: list[Any]) -> Any | None:
    """The one chip whose roofs hold here; None if none fits, several could, or several GPUs share the work."""
    candidates = chip_candidates(host, chips)
    return candidates[0] if len(candidates) == 1 and len(host.gpus) <= 1 else None


def chip_key(host: Host) -> str | None:
    """The computing chip in words: "Apple M4 (10-core GPU)", "NVIDIA GeForce RTX 4090", else the CPU."""
    if (host.cpu or "").startswith("Apple"):
        cores = next((gpu.cores for gpu in host.gpus if gpu.cores), None)
        return f"{host.cpu} ({cores}-core GPU)" if cores else host.cpu
    names = sorted({gpu.name for gpu in host.gpus})
    if names:
        return " + ".join(n if n.startswith("NVIDIA") else f"NVIDIA {n}" for n in names)
    return host.cpu
