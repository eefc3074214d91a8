"""What vendors' own tools print about their GPUs, as facts: text in, GPUs out; none where the text has none.

No parser reads a serial number, a UUID or a process list, and none believes a bandwidth.
"""

from __future__ import annotations

import csv
import json
import re
from dataclasses import dataclass, replace

AMD, INTEL = "1002", "8086"  # PCI vendors
UNNAMED_AMD = "unknown AMD GPU"
# gfx names of processors' own GPUs, where the driver prints no other
INTEGRATED_GFX = ("gfx902", "gfx909", "gfx90c", "gfx1033", "gfx1035", "gfx1036", "gfx1037", "gfx1103", "gfx1150", "gfx1151", "gfx1152")
# A processor's GPU keeps this little memory of its own; the rest it borrows.
BORROWS_BYTES = 2**30


@dataclass(frozen=True)
class Gpu:
    """A GPU by its vendor's name; memory [B] and cores where they are told."""

    name: str
    memory_bytes: int | None = None
    cores: int | None = None
    # a slice of a card has not the whole card's bandwidth, whatever its name says
    partitioned: bool = False
    # a processor's own GPU: it reads the memory the CPU reads
    integrated: bool = False
    pci: str | None = None  # vendor:device, for drivers that print no name


def pci_id(vendor: str, device: str) -> str | None:
    """A PCI vendor:device id in small hexadecimal digits; None where the device does not answer (ffff).

    >>> pci_id("0x8086", "0x56A0"), pci_id("0x10de", "0xFFFF")
    ('8086:56a0', None)
    """
    found = [re.fullmatch(r"(?:0x)?([0-9a-fA-F]{4})", part.strip()) for part in (vendor, device)]
    if not all(found) or found[1][1].lower() in ("ffff", "0000"):
        return None
    return f"{found[0][1]}:{found[1][1]}".lower()


def mebibytes(text: str) -> int | None:
    """The first number in MiB, as bytes; None for [N/A].

    >>> mebibytes("16376 MiB"), mebibytes("[N/A]")
    (17171480576, None)
    """
    match = re.match(r"\s*(\d+)(?:\.\d+)?\s*(?:MiB)?\s*$", text)
    return int(match[1]) * 2**20 if match else None


def nvidia_listing(text: str) -> list[Gpu]:
    """GPUs from `nvidia-smi -L`; one cut into MIG slices is marked."""
    gpus: list[Gpu] = []
    for line in text.splitlines():
        if match := re.match(r"\s*GPU \d+: (.+?) \(UUID:", line):
            gpus.append(Gpu(match[1]))
        elif re.match(r"\s+MIG ", line) and gpus:
            gpus[-1] = replace(gpus[-1], partitioned=True)
    return gpus


def nvidia_query(text: str, listing: str = "") -> list[Gpu]:
    """GPUs from `nvidia-smi --query-gpu=name,memory.total[,...] --format=csv[,noheader,nounits]` and `-L`."""
    slices = nvidia_listing(listing)
    columns, gpus = ["name", "memory.total"], []
    for row in csv.reader(text.splitlines(), skipinitialspace=True):
        if row[:1] == ["name"]:
            columns = [title.split(" ")[0] for title in row]
        elif "memory.total" in columns and len(row) == len(columns) and re.fullmatch(r"\d+( MiB)?|\[.*\]", size := row[columns.index("memory.total")].strip()):
            memory = mebibytes(size)
            cut = slices[len(gpus)].partitioned if len(gpus) < len(slices) else False
            gpus.append(Gpu(row[0].strip(), memory, partitioned=cut, integrated="nvgpu" in row[0]))  # Jetson
        elif columns[0] == "name" and len(columns) > 2:
            columns = ["name", "memory.total"]  # the table of another query has begun
    return gpus


def nvidia_table(text: str) -> list[Gpu]:
    """GPUs from the table of a bare `nvidia-smi`, every layout; a name cut by its column ends with "..."."""
    gpus: list[Gpu] = []
    inside = False
    for line in text.splitlines():
        row = re.match(r"\s*\|\s+\d+\s+(\S.*?)\s+(?:On|Off|WDDM|TCC|MCDM|N/A)\s*\|\s*[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:", line)
        if row:
            gpus.append(Gpu(row[1]))
            inside = True
        elif re.match(r"\s*\+[-=+]+\+", line):
            inside = False
        elif inside and (memory := re.search(r"\d+MiB\s*/\s*(\d+)MiB", line)):
            gpus[-1] = replace(gpus[-1], memory_bytes=int(memory[1]) * 2**20)
        elif inside and re.search(r"\|\s+Enabled\s*\|\s*$", line):
            gpus[-1] = replace(gpus[-1], partitioned=True)
    return gpus


def nvidia_log(text: str) -> list[Gpu]:
    """GPUs from `nvidia-smi -q` (or -a)."""
    gpus: list[Gpu] = []
    section = ""
    for line in text.splitlines():
        key, colon, value = (part.strip() for part in line.partition(" : "))
        if not colon:
            section = key
        elif key == "Product Name":
            gpus.append(Gpu(value))
        elif gpus and section == "FB Memory Usage" and key == "Total":
            gpus[-1] = replace(gpus[-1], memory_bytes=mebibytes(value))
        elif gpus and section == "MIG Mode" and key == "Current":
            gpus[-1] = replace(gpus[-1], partitioned=value == "Enabled")
    return gpus


def nvidia_failure(text: str) -> str | None:
    """Why nvidia-smi has nothing to say, in its own words; it says so on stdout."""
    match = re.search(r"^\s*(NVIDIA-SMI has failed[^.\n]*|No devices were found|Failed to initialize NVML[^\n]*)", text, re.M)
    return match[1].strip() if match else None


def nvidia(text: str) -> list[Gpu]:
    """GPUs from any of nvidia-smi's outputs, the one that tells most first: its table cuts names."""
    queried = nvidia_query(text[text.index("name, memory.total"):], text) if "name, memory.total" in text else []
    return queried or nvidia_log(text) or nvidia_table(text) or nvidia_listing(text)


def rocm(text: str) -> list[Gpu]:
    """AMD GPUs from `rocm-smi --showproductname --showmeminfo vram` (--json, --csv) or its bare table."""
    start = text.find("{")
    if start >= 0:
        try:
            cards = json.JSONDecoder().raw_decode(text[start:])[0]
        except ValueError:
            return []
        return [_rocm_card(facts) for name, facts in cards.items() if name.startswith("card") and isinstance(facts, dict)]
    lines = text.splitlines()
    head = next((i for i, line in enumerate(lines) if line.startswith("device,")), None)
    if head is not None:
        return [_rocm_card(row) for row in csv.DictReader(lines[head:]) if (row.get("device") or "").startswith("card")]
    return _rocm_table(lines)


def _rocm_card(facts: dict[str, str]) -> Gpu:
    told = {str(key).lower(): str(value or "") for key, value in facts.items()}
    memory = told.get("vram total memory (b)", "")
    size = int(memory) if memory.isdigit() else None
    pci = pci_id(AMD, told.get("card model", ""))
    name = told.get("card series", "") or told.get("gfx version", "")
    return Gpu(name if name not in ("", "N/A") else UNNAMED_AMD, size, pci=pci,
               integrated=(size is not None and size < BORROWS_BYTES) or told.get("gfx version") in INTEGRATED_GFX)


def _rocm_table(lines: list[str]) -> list[Gpu]:
    """The bare table names no card: newer ones have a device id, older ones nothing."""
    gpus, inside = [], False
    for line in lines:
        inside = inside or bool(re.match(r"(Device|GPU)\s+(Node|Temp)", line))
        row = re.match(r"\d+\s", line)
        if inside and row:
            device = re.search(r"\b(0x[0-9a-f]{4}),", line)
            # SPX: the whole card computes as one; in the other modes each slice lists the whole card's memory
            mode = re.search(r"NPS\d, (\w+),", line)
            gpus.append(Gpu(UNNAMED_AMD, pci=pci_id(AMD, device[1]) if device else None, partitioned=bool(mode) and mode[1] != "SPX"))
    return gpus


def rocminfo(text: str) -> list[Gpu]:
    """AMD GPUs from `rocminfo`; its CPU agents are left out."""
    gpus = []
    for agent in re.split(r"^Agent \d+\s*$", text, flags=re.M)[1:]:
        facts = {key: value for key, value in re.findall(r"^  (\w[\w .()]*?):\s+(\S.*?)\s*$", agent, re.M)}
        if facts.get("Device Type") == "GPU":
            chip = re.search(r"\((0x[0-9a-f]{4})\)", facts.get("Chip ID", ""))
            gpus.append(Gpu(facts.get("Marketing Name") or facts.get("Name") or UNNAMED_AMD,
                            integrated=facts.get("Name") in INTEGRATED_GFX, pci=pci_id(AMD, chip[1]) if chip else None))
    return gpus


def xpu_smi(text: str) -> list[Gpu]:
    """Intel GPUs from `xpu-smi discovery` (with -d: one card's details, else a table of cards)."""
    gpus: list[Gpu] = []
    for device in re.split(r"(?=Device Type:|^\s*\|\s*\d+\s*\|)", text, flags=re.M):
        name = re.search(r"Device Name: (\S.*?)\s*(?:\||$)", device, re.M)
        if name:
            pci = re.search(r"PCI Device ID: (0x\w{4})", device)
            size = re.search(r"Memory Physical Size: ([\d.]+) MiB", device)
            gpus.append(Gpu(name[1], mebibytes(size[1]) if size else None, integrated="Device Type: Integrated" in device,
                            pci=pci_id(INTEL, pci[1]) if pci else None))
    return gpus


def apple_displays(text: str) -> list[Gpu]:
    """Apple's GPUs from `system_profiler SPDisplaysDataType`."""
    gpus: list[Gpu] = []
    for line in text.splitlines():
        key, _, value = (part.strip() for part in line.partition(":"))
        if key == "Chipset Model":
            gpus.append(Gpu(value, integrated=value.startswith("Apple")))
        elif key == "Total Number of Cores" and value.isdigit() and gpus and gpus[-1].cores is None:
            gpus[-1] = replace(gpus[-1], cores=int(value))
    return gpus


def apple_gpu_info(text: str) -> list[Gpu]:
    """Apple's GPUs from applegpuinfo. Its bandwidth (819.2 for Apple's 800) is its own arithmetic and is not read."""
    found = re.findall(r"^GPU name: (Apple .+)\nGPU core count: (\d+)", text, re.M)
    return [Gpu(name.strip(), cores=int(cores), integrated=True) for name, cores in found]


def apple_registry_cores(text: str) -> int | None:
    """GPU cores from `ioreg`, where system_profiler does not print them."""
    match = re.search(r'"gpu-core-count" = (\d+)', text)
    return int(match[1]) if match else None
