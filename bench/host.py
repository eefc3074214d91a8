"""Host facts: what this machine says of itself, and the row of the hardware table that holds for it.

No serial number, user or host name is read. What cannot be read is None, never a guess.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import subprocess
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from bench import chips, gpu_lists, gpu_parse
from bench import host_parse as parse
from bench.gpu_parse import Gpu
from macros.hardware import Chip

SHORTEST_S = 0.1  # a busy machine is one whose cores are half in use: ten ticks a core tell that


@dataclass(frozen=True)
class Host:
    """The machine at one moment; memory [B], load per logical core."""

    os: str | None = None
    kernel: str | None = None
    arch: str | None = None
    cpu: str | None = None
    board: str | None = None  # of single-board computers
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
    remarks: list[str] = field(default_factory=list)  # why a tool that is there told nothing

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


def busy_share(over_s: float = 0.5) -> float:
    """Share of all cores that others use while this process waits (fraction).

    Args:
        over_s: how long to wait; the kernel counts in ticks, 10 ms a core
    """
    watch = Watch(over_s)
    return watch.share()


class Watch:
    """Who else uses the cores, from the kernel's running counters: over a time that passes anyway it costs none.

    The load average would count the bench's own last test; what its own processes do meanwhile is taken off.

    Args:
        shortest_s: what is waited for where less has passed; the kernel counts in ticks, 10 ms a core
    """

    def __init__(self, shortest_s: float = SHORTEST_S) -> None:
        self._shortest_s = shortest_s
        self._since_s, self._before = time.monotonic(), _counters()

    def share(self) -> float:
        """Share of all cores that others used since the watch began, or since this was last asked (fraction)."""
        time.sleep(max(0.0, self._since_s + self._shortest_s - time.monotonic()))
        before, self._since_s, self._before = self._before, time.monotonic(), _counters()
        total, idle, own = (b - a for a, b in zip(before, self._before, strict=True))
        return round(min(1.0, max(0.0, (total - idle - own) / total)), 2) if total > 0 else 0.0


def _counters() -> tuple[float, float, float]:
    """All cores' time since boot, their idle time, and this process's and its children's [s]; a child that has ended counts on."""
    import psutil

    own = sum(os.times()[:4])
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            own += sum(child.cpu_times()[:4])
    t = psutil.cpu_times()
    # A guest's time is in its user's already; what a virtual machine's host took is a figure of its own.
    total = sum(t) - getattr(t, "guest", 0) - getattr(t, "guest_nice", 0)
    return total, t.idle + getattr(t, "iowait", 0) + getattr(t, "steal", 0), own


def nvidia() -> tuple[list[Gpu], list[str]]:
    """NVIDIA's GPUs, and why nvidia-smi is silent where it is."""
    query = run("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits", any_exit=True)
    failure = gpu_parse.nvidia_failure(query)
    return ([], [failure]) if failure else (gpu_parse.nvidia_query(query, run("nvidia-smi", "-L")), [])


def linux_gpus() -> tuple[list[Gpu], list[str]]:
    """GPUs by their vendors' tools, and by Vulkan or the PCI bus where a vendor's own tool is missing."""
    green, remarks = nvidia()
    red = gpu_parse.rocm(run("rocm-smi", "--showproductname", "--showmeminfo", "vram", "--json"))
    red = red or gpu_parse.rocminfo(run("rocminfo"))
    own = green + red + gpu_parse.xpu_smi(run("xpu-smi", "discovery"))
    bus = run("lspci", "-nn")
    gpus = gpu_lists.merged(own, gpu_lists.vulkan(run("vulkaninfo", "--summary")) or gpu_lists.lspci(bus))
    hidden = not gpus and (parse.wsl(platform.release()) or gpu_lists.stand_in(bus))
    return gpus, [*remarks, *([gpu_lists.HIDDEN] if hidden else [])]


def collect() -> Host:
    """This machine's facts, read now."""
    common = {"kernel": platform.release() or None, "arch": platform.machine() or None,
              "logical_cores": os.cpu_count(), "load1_per_core": load1_per_core()}
    if platform.system() == "Darwin":
        return Host(**common, **_macos())
    if platform.system() == "Linux":
        return Host(**common, **_linux())
    if platform.system() == "Windows":
        return Host(**common, **_windows())
    return Host(**common, os=platform.system() or None)


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
        "gpus": _apple_gpus(),
        "power": parse.power_macos(run("pmset", "-g", "batt")),
        "virtual": {0: False, 1: True}.get(number("kern.hv_vmm_present")),
    }


def _apple_gpus() -> list[Gpu]:
    gpus = gpu_parse.apple_displays(run("system_profiler", "SPDisplaysDataType"))
    if any(gpu.cores for gpu in gpus):
        return gpus
    cores = gpu_parse.apple_registry_cores(run("ioreg", "-p", "IOService", "-n", "AppleARMPE", "-r", "-l"))
    return [replace(gpu, cores=cores) for gpu in gpus]


def _windows() -> dict[str, Any]:
    import psutil

    def powershell(command: str) -> str:
        return run("powershell", "-NoProfile", "-Command", f"{command} | ConvertTo-Json -Compress")

    class_key = r"HKLM:\SYSTEM\CurrentControlSet\Control\Class\{4d36e968-e325-11ce-bfc1-08002be10318}\0*"
    # the registry's sizes have no cap, Win32_VideoController's stop below 4 GiB
    registry = powershell(f"Get-ItemProperty '{class_key}' -ErrorAction SilentlyContinue | Select-Object DriverDesc,HardwareInformation.qwMemorySize")
    green, remarks = nvidia()
    listed = gpu_lists.windows_json(registry) or gpu_lists.windows_json(powershell("Get-CimInstance Win32_VideoController | Select-Object Name,AdapterRAM"))
    return {
        "os": f"Windows {platform.release()}",
        "cpu": powershell("(Get-CimInstance Win32_Processor | Select-Object -First 1).Name").strip().strip('"').strip() or None,
        "physical_cores": psutil.cpu_count(logical=False),
        "memory_bytes": psutil.virtual_memory().total,
        "available_bytes": psutil.virtual_memory().available,
        "gpus": gpu_lists.merged(green, listed),
        "remarks": remarks,
    }


def _linux() -> dict[str, Any]:
    text = run("lscpu")
    cores = parse.topology(run("lscpu", "-p=CPU,CORE,SOCKET"))
    # Intel hybrids list their performance CPUs here; nothing else is certain which cores are fast
    fast = parse.cpu_list(read("/sys/devices/cpu_core/cpus")) if read("/sys/devices/cpu_atom/cpus").strip() else set()
    gpus, remarks = linux_gpus()
    cpuinfo = read("/proc/cpuinfo")
    release = dict(line.split("=", 1) for line in read("/etc/os-release").splitlines() if "=" in line)
    limits = _cgroup_limits()
    quotas = [cpus for folder in _cgroups() if (cpus := parse.cgroup_cpus(read(folder / "cpu.max")))]
    supplies = [{name: read(folder / name).strip() for name in ("type", "online", "status", "scope")}
                for folder in sorted(Path("/sys/class/power_supply").glob("*"))]
    return {
        "os": release.get("PRETTY_NAME", "").strip('"') or None,
        "cpu": parse.cpu_name(text, cpuinfo),
        "board": parse.board(cpuinfo, read("/proc/device-tree/model")),
        "physical_cores": len(set(cores.values())) or parse.lscpu_cores(text)[0],
        "performance_cores": len({cores[cpu] for cpu in fast if cpu in cores}) or None,
        "usable_cpus": min([len(os.sched_getaffinity(0)), *quotas]),
        "memory_bytes": parse.meminfo(read("/proc/meminfo")).get("MemTotal"),
        "memory_limit_bytes": min(limit for limit, _ in limits) if limits else None,
        "available_bytes": available_bytes(),
        "gpus": gpus,
        "remarks": remarks,
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


def lookup(host: Host, table: list[Chip]) -> chips.Found:
    """The row of the hardware table that holds for this host, the rows it could be, or why there is none."""
    return chips.lookup(chips.Facts(
        host.cpu, host.board, host.physical_cores, host.logical_cores, host.memory_bytes, tuple(host.gpus)), table)


def core_counts(host: Host) -> dict[str, int]:
    """Cores by the kinds a plan may name; those of one kind are all performance cores."""
    logical = host.logical_cores or 1
    physical = host.physical_cores or logical
    return {"performance": default_threads(host), "physical": physical, "logical": logical}


_BACKENDS = {"CUDA": "nvidia", "ROCm": "amd", "Metal": "apple"}  # as llama.cpp's system info names them


def for_engine(host: Host, system_info: str) -> Host:
    """The host with the GPUs the engine's backends compute on; a card of another vendor takes no part.

    Vulkan and SYCL do not name themselves there and may use any.
    """
    vendors = {vendor for backend, vendor in _BACKENDS.items() if re.search(rf"\b{backend} :", system_info)}
    return replace(host, gpus=[g for g in host.gpus if gpu_lists.vendor(g.name) in vendors]) if vendors else host


def chip_key(host: Host) -> str | None:
    """The computing chip in words: "Apple M4 (10-core GPU)", "NVIDIA GeForce RTX 4090", else the CPU or the board."""
    if (host.cpu or "").startswith("Apple"):
        cores = next((gpu.cores for gpu in host.gpus if gpu.cores), None)
        return f"{host.cpu} ({cores}-core GPU)" if cores else host.cpu
    names = sorted({_with_brand(gpu.name) for gpu in chips.compute_gpus(host.gpus)})
    return " + ".join(names) or host.cpu or host.board


def _with_brand(name: str) -> str:
    """An NVIDIA name with the brand, which older drivers leave out."""
    return f"NVIDIA {name}" if re.match(r"GeForce|Quadro|Tesla|TITAN", name) else name
