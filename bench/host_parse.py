"""What operating systems print about a machine, as facts: text in, values out, None where unknown."""

from __future__ import annotations

import math
import re

# Arm's part numbers, for kernels that print no name
_ARM_PARTS = {"0xd03": "Cortex-A53", "0xd05": "Cortex-A55", "0xd07": "Cortex-A57", "0xd08": "Cortex-A72", "0xd0b": "Cortex-A76",
              "0xd0c": "Neoverse-N1", "0xd40": "Neoverse-V1", "0xd49": "Neoverse-N2", "0xd4f": "Neoverse-V2"}  # fmt: skip
_NO_NAME = re.compile(r"^(ARMv\d|AArch64) Processor rev \d")
# What a hypervisor, a firmware or an early chip prints in the place of a model
_GENERIC_CPU = re.compile(r"^(QEMU Virtual CPU|Common (32-bit )?KVM|Genuine Intel\(R\) (CPU )?0000|AMD Eng Sample|Virtual CPU"
                          r"|AMD EPYC$|AMD EPYC-\w+ Processor|Intel (Xeon|Core) Processor \(|Intel Xeon Processor$|Neoverse-|Cortex-)")
_JUNK = re.compile(r"to be filled|o\.?e\.?m|default string|system product|not specified|virt-|pc-", re.I)


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
    """The CPU's model name; where a kernel prints none, the name of its Arm cores, else the board's."""
    facts = lscpu(lscpu_text)
    name = facts.get("Model name") or _line(cpuinfo, "model name")
    if name and not _NO_NAME.match(name):
        firmware = facts.get("BIOS Model name", "")  # read by root; Intel boards have junk here, AWS its chip's name
        return f"{firmware} ({name})" if facts.get("Vendor ID") == "ARM" and firmware and not _JUNK.search(firmware) else name
    parts = dict.fromkeys(_ARM_PARTS[part] for part in re.findall(r"^CPU part\s*: (0x\w{3})", cpuinfo, re.M) if part in _ARM_PARTS)
    return " + ".join(parts) or board(cpuinfo) or name


def _line(text: str, key: str) -> str | None:
    match = re.search(rf"^{key}\s*:\s*(\S.*?)\s*$", text, re.M)
    return match[1] if match else None


def board(cpuinfo: str, device_tree: str = "") -> str | None:
    """The board's name, from the device tree or the kernel's last line on it ("Hardware" names the wrong chip).

    >>> board("", "Radxa ROCK 5B\\0"), board("", "linux,dummy-virt\\0")    # the second is QEMU's
    ('Radxa ROCK 5B', None)
    """
    name = device_tree.strip("\0 \n") or _line(cpuinfo, "Model")
    return None if name and re.search(r"dummy-virt|qemu|\bxen", name, re.I) else name


def generic_cpu(name: str | None) -> bool:
    """Whether a CPU's name says nothing of the silicon: hypervisors' names, early chips, an Arm core's design.

    >>> generic_cpu("QEMU Virtual CPU version 2.5+"), generic_cpu("AMD EPYC 7451 24-Core Processor")
    (True, False)
    """
    return name is None or bool(_GENERIC_CPU.match(name))


def rated_cores(name: str | None) -> int | None:
    """The cores a CPU's own name claims; a host with fewer has a slice of it.

    >>> rated_cores("AMD EPYC 7763 64-Core Processor")
    64
    """
    match = re.search(r"\b(\d+)-Core Processor", name or "")
    return int(match[1]) if match else None


def lscpu_cores(text: str) -> tuple[int | None, int | None]:
    """(physical, performance) cores from lscpu's lines; performance cores are None where all are alike or not told.

    An Arm chip has a section for each cluster, which add up. On Intel's hybrids "Thread(s) per core" holds for the
    fast cores only: with P fast and E slow ones there are P + E cores and 2P + E CPUs.

    >>> lscpu_cores("CPU(s): 32\\nModel name: x\\nThread(s) per core: 2\\nCore(s) per socket: 24\\nSocket(s): 1")
    (24, 8)
    """
    def numbers(key: str) -> list[int]:
        return [int(n) for n in re.findall(rf"^\s*{re.escape(key)}:\s*(\d+)\s*$", text, re.M)]

    per_socket, sockets, threads, cpus = (numbers(key) for key in ("Core(s) per socket", "Socket(s)", "Thread(s) per core", "CPU(s)"))
    if not per_socket or len(per_socket) != len(sockets):
        return None, None
    cores = sum(c * s for c, s in zip(per_socket, sockets, strict=True))
    hybrid = len(cpus) == 1 and threads == [2] and cores < cpus[0] < 2 * cores
    return cores, cpus[0] - cores if hybrid else None


def lscpu_table(text: str) -> dict[int, tuple[str, str]]:
    """`lscpu -e` as {cpu: (core, socket)}, columns in any order."""
    rows = [line.split() for line in text.splitlines()]
    head = next((row for row in rows if row[:1] == ["CPU"] and {"CORE", "SOCKET"} <= set(row)), None)
    if head is None:
        return {}
    cpu, core, socket = (head.index(name) for name in ("CPU", "CORE", "SOCKET"))
    return {int(row[cpu]): (row[core], row[socket]) for row in rows if len(row) >= 4 and row[cpu].isdigit() and row[core].isdigit()}


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


def sysctl(text: str) -> dict[str, str]:
    """`sysctl KEY...` on macOS, as {key: value}."""
    return dict(re.findall(r"^([a-z][\w.]+): (\S.*?)\s*$", text, re.M))


def apple_hardware(text: str) -> dict[str, str | int]:
    """`system_profiler SPHardwareDataType` as cpu, physical_cores, performance_cores, memory_bytes, where told.

    Its serial number, UUIDs and model identifier are not read; other programs' lines in between do no harm.
    """
    found: dict[str, str | int] = {}
    if name := re.search(r"^\s*Chip: +(Apple M\d[\w ]*?)\s*$", text, re.M):
        found["cpu"] = name[1]
    # the GPU's line of that name has no brackets; from the M5 on the fast cores are called super
    if cores := re.search(r"^\s*Total Number of Cores: +(\d+) \((\d+) (?:performance|super)", text, re.M | re.I):
        found |= {"physical_cores": int(cores[1]), "performance_cores": int(cores[2])}
    if memory := re.search(r"^\s*Memory: +(\d+) GB\s*$", text, re.M):
        found["memory_bytes"] = int(memory[1]) * 2**30
    return found


def wsl(kernel: str | None) -> bool:
    """Whether this Linux runs in WSL2. Its hypervisor is Microsoft's, but so is that of Azure's machines.

    >>> wsl("5.15.90.1-microsoft-standard-WSL2"), wsl("6.5.0-1016-azure")
    (True, False)
    """
    return "microsoft" in (kernel or "").lower()


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
