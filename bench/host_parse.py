"""What operating systems print about a machine, as facts: text in, values out, None where unknown."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Gpu:
    """A GPU by its vendor's name; memory [B] and cores where they are told."""

    name: str
    memory_bytes: int | None = None
    cores: int | None = None
    # a slice of a card has not the whole card's bandwidth, whatever its name says
    partitioned: bool = False


def lscpu(text: str) -> dict[str, str]:
    """lscpu's lines as {key: value}; a repeated key (clusters of an Arm chip) joins its values.

    >>> lscpu("Model name: Cortex-A510\\n  BIOS Model name: junk\\nModel name: Cortex-X3")["Model name"]
    'Cortex-A510 + Cortex-X3'
    """
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon and value.strip() not in ("", "-"):
            values = found.setdefault(key.strip(), [])
            if value.strip() not in values:
                values.append(value.strip())
    return {key: " + ".join(values) for key, values in found.items()}


def cpu_name(lscpu_text: str, cpuinfo: str) -> str | None:
    """The CPU's model name; for boards that have none, the board's."""
    name = lscpu(lscpu_text).get("Model name")
    if name:
        return name
    for key in ("model name", "Model"):
        match = re.search(rf"^{key}\s*:\s*(\S.*)$", cpuinfo, re.M)
        if match:
            return match.group(1).strip()
    return None


def topology(lscpu_p: str) -> dict[int, tuple[str, str]]:
    """`lscpu -p=CPU,CORE,SOCKET` as {cpu: (core, socket)}; threads of a core share a value.

    >>> len(set(topology("# c\\n0,0,0\\n1,0,0\\n2,1,0").values()))    # 3 CPUs, 2 cores
    2
    """
    rows = (line.split(",") for line in lscpu_p.splitlines() if line[:1].isdigit())
    return {int(row[0]): (row[1], row[2]) for row in rows if len(row) >= 3 and row[1]}


def cpu_list(text: str) -> set[int]:
    """The kernel's CPU list.

    >>> sorted(cpu_list("0-2,8"))
    [0, 1, 2, 8]
    """
    found: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            found.update(range(int(first), int(last or first) + 1))
    return found


def virtual_linux(lscpu_text: str, detect_virt: str) -> bool | None:
    """Is this a virtual machine? None where neither lscpu nor systemd-detect-virt --vm can tell."""
    fields = lscpu(lscpu_text)
    if "Hypervisor vendor" in fields or "hypervisor" in fields.get("Flags", "").split():
        return True
    if detect_virt.strip():
        return detect_virt.strip() != "none"
    # x86 guests carry the flag, so a list of flags without it is an answer
    return False if "Flags" in fields and fields.get("Vendor ID") in ("GenuineIntel", "AuthenticAMD") else None


def nvidia_gpus(query: str, listing: str) -> list[Gpu]:
    """GPUs from `nvidia-smi --query-gpu=name,memory.total --format=csv,noheader,nounits` and `-L`."""
    gpus = []
    for line in query.splitlines():
        name, comma, mebibytes = line.rpartition(",")
        if not comma:  # "NVIDIA-SMI has failed because …" is printed on stdout
            continue
        size = re.fullmatch(r"\s*(\d+)(?: MiB)?\s*", mebibytes)
        gpus.append(Gpu(name.strip(), int(size[1]) * 2**20 if size else None,
                        partitioned=bool(re.search(r"^\s+MIG ", listing, re.M))))
    return gpus


def apple_gpus(displays: str) -> list[Gpu]:
    """GPUs from `system_profiler SPDisplaysDataType`."""
    gpus: list[Gpu] = []
    for line in displays.splitlines():
        key, _, value = (part.strip() for part in line.partition(":"))
        if key == "Chipset Model":
            gpus.append(Gpu(value))
        elif key == "Total Number of Cores" and value.isdigit() and gpus and gpus[-1].cores is None:
            gpus[-1] = Gpu(gpus[-1].name, cores=int(value))
    return gpus


def meminfo(text: str) -> dict[str, int]:
    """/proc/meminfo [B].

    >>> meminfo("MemTotal:       24576 kB")
    {'MemTotal': 25165824}
    """
    return {key: int(kib) * 1024 for key, kib in re.findall(r"^(\w+):\s+(\d+) kB$", text, re.M)}


def vm_stat_available(text: str) -> int | None:
    """Memory macOS could hand out now, from vm_stat [B]: free, inactive, speculative, purgeable."""
    page = re.search(r"page size of (\d+) bytes", text)
    pages = dict(re.findall(r"^Pages (\w+):\s+(\d+)\.", text, re.M))
    if not page or "free" not in pages:
        return None
    return int(page[1]) * sum(int(pages.get(kind, 0)) for kind in ("free", "inactive", "speculative", "purgeable"))


def cgroup_room(limit: str, used: str, stat: str) -> tuple[int, int] | None:
    """A memory cgroup's (limit, room left) [B]; None without a limit.

    File cache that the kernel would drop counts as room: weights are read through it.
    """
    if not limit.strip().isdigit() or not used.strip().isdigit() or int(limit) >= 2**60:
        return None  # "max", or v1's way to say so
    cache = re.search(r"^(?:total_)?inactive_file (\d+)$", stat, re.M)
    return int(limit), max(0, int(limit) - int(used) + (int(cache[1]) if cache else 0))


def cgroup_cpus(cpu_max: str) -> int | None:
    """Whole CPUs a cgroup may use, at least 1; None without a limit.

    >>> cgroup_cpus("150000 100000"), cgroup_cpus("max 100000")
    (1, None)
    """
    match = re.fullmatch(r"(\d+) (\d+)\s*", cpu_max)
    return max(1, math.floor(int(match[1]) / int(match[2]))) if match else None


def power_linux(supplies: list[dict[str, str]]) -> str | None:
    """"ac" or "battery" from /sys/class/power_supply; None where the machine has neither."""
    own = [s for s in supplies if s.get("scope") != "Device"]  # not a mouse's battery
    chargers = [s for s in own if s.get("type") in ("Mains", "USB") and s.get("online", "").isdigit()]
    if any(s["online"] != "0" for s in chargers):
        return "ac"
    batteries = [s for s in own if s.get("type") == "Battery"]
    if batteries:
        return "battery" if chargers or any(s.get("status") == "Discharging" for s in batteries) else None
    return None


def power_macos(pmset: str) -> str | None:
    """"ac" or "battery" from `pmset -g batt`."""
    match = re.search(r"drawing from '(AC|Battery|UPS) Power'", pmset)
    return {"AC": "ac", "Battery": "battery", "UPS": "battery"}[match[1]] if match else None
