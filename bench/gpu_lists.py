"""GPUs as Vulkan, OpenCL, the PCI bus and Windows list them: all vendors, with the doubles, software renderers and capped numbers these lists have."""

from __future__ import annotations

import json
import re

from bench.gpu_parse import INTEGRATED_GFX, Gpu, pci_id

# What draws without a GPU, or hands on another machine's: no chip stands behind these names.
_NOT_A_GPU = re.compile(r"llvmpipe|lavapipe|softpipe|swiftshader|virgl|venus|svga|virtualbox|vmware|qxl|cirrus|bochs|aspeed|matrox"
                        r"|basic (?:render|display)|remote display|hyper-v video|parsec|citrix|indirect display", re.I)
# Names of processors' own GPUs; "Radeon Graphics" without a number is one, "Radeon 780M" too.
_INTEGRATED = re.compile(r"\b(?:u?hd graphics|iris|arc\W*(?:tm\W*)?(?:1[34]0[vt]|graphics)|radeon\W*(?:\(tm\)\W*)?(?:vega \d+ )?graphics|radeon \d{3}m\b|radeon 80[4-6]0s)", re.I)
# Win32_VideoController keeps 32 bits and stops short of 4 GiB: any larger card reads as this
ADAPTER_RAM_CAP = 4 * 2**30 - 2**20
HIDDEN = "in WSL2 a GPU shows through its own driver's tool only, and none names one"


def is_gpu(name: str) -> bool:
    """Whether a device name can be a GPU of this machine.

    >>> is_gpu("llvmpipe (LLVM 15.0.7, 256 bits)"), is_gpu("Microsoft Basic Render Driver"), is_gpu("Radeon RX 7900 XT")
    (False, False, True)
    """
    return bool(name.strip()) and not _NOT_A_GPU.search(name) and not re.fullmatch(r"(?:Device )?(?:0x)?[0-9a-fA-F]{4}", name.strip())


def is_integrated(name: str) -> bool:
    """Whether a name is that of a processor's own GPU."""
    return bool(_INTEGRATED.search(name)) or name in INTEGRATED_GFX


def _listed(name: str, memory: int | None = None, integrated: bool = False, pci: str | None = None) -> Gpu:
    """A GPU of a list; what a processor's GPU claims is the machine's memory, so it is not kept."""
    own = integrated or is_integrated(name)
    return Gpu(name, None if own else memory, integrated=own, pci=pci)


def vulkan(text: str) -> list[Gpu]:
    """GPUs from `vulkaninfo [--summary]`; a device listed twice (over RDP, or by two drivers) counts once."""
    gpus: dict[tuple, Gpu] = {}
    for block in re.split(r"^GPU\d+:\s*$", text, flags=re.M)[1:]:
        facts = dict(re.findall(r"^\s+(\w+)\s*=\s*(\S.*?)\s*$", block, re.M))
        name = facts.get("deviceName", "")
        if is_gpu(name) and facts.get("deviceType") != "PHYSICAL_DEVICE_TYPE_CPU":
            pci = pci_id(facts.get("vendorID", ""), facts.get("deviceID", ""))
            # two cards alike have two UUIDs; where none is printed, a double is the likelier
            key = (pci, facts.get("deviceUUID", ""), name if pci is None else "")
            gpus.setdefault(key, _listed(name, integrated=facts.get("deviceType") == "PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU", pci=pci))
    if gpus:
        return list(gpus.values())
    names = re.findall(r"^\s*GPU id\s*[=:]\s*\d+ \((.*)\)\s*$", text, re.M)
    names = names or re.findall(r"^deviceName\s*=\s*(\S.*?)\s*$", text, re.M)
    return [_listed(name) for name in dict.fromkeys(names) if is_gpu(name)]


def opencl(text: str) -> list[Gpu]:
    """GPUs from `clinfo` or another list of OpenCL devices; CPU devices are left out, whoever's platform lists them."""
    devices: list[dict[str, str]] = []
    for line in text.splitlines() if re.search(r"^[ \t]*Platform ", text, re.M) else []:
        match = re.match(r"\s+(\S[\w .()]*?)(?::\s+|\s{2,})(\S.*?)\s*$", line)
        if not match:
            continue
        key = re.sub(r"\W", "", match[1].lower())
        if key == "devicename":
            devices.append({})
        if devices:
            devices[-1].setdefault(key, match[2])
    gpus = []
    for d in devices:
        name, kind = d["devicename"], d.get("devicetype", "GPU")
        if "GPU" not in kind.upper() or not is_gpu(name):
            continue
        size = next((m[1] for key in ("deviceglobalmemorysize", "globalmemory", "maxmemsize") if (m := re.match(r"(\d+) ?M[Bb]", d.get(key, "")))), None)
        number = re.search(r"\[(0x[0-9a-fA-F]{4})\]", name)  # an old driver knows the id only
        gpus.append(_listed(name, int(size) * 2**20 if size else None, pci=pci_id(d.get("devicevendorid", "0x8086"), number[1]) if number else None))
    return gpus


def lspci(text: str) -> list[Gpu]:
    """GPUs from `lspci` or `lspci -nn`; the name is what stands in brackets, often several cards of one chip."""
    gpus = []
    for line in text.splitlines():
        match = re.search(r"(?:VGA compatible|3D|Display) controller(?: \[\w{4}\])?: (.*)", line)
        if not match or re.match(r"(Microsoft|Red Hat|VMware)", match[1]):  # WSL2's and VMs' stand-ins
            continue
        numbers = re.search(r"\[([0-9a-f]{4}):([0-9a-f]{4})\]", match[1])
        bare = re.sub(r"\s*(\[[0-9a-f]{4}:[0-9a-f]{4}\]|\(rev \w+\))", "", match[1])
        names = [n for n in re.findall(r"\[([^\]]+)\]", bare) if n != "AMD/ATI"]
        if is_gpu(name := names[-1] if names else bare):
            gpus.append(_listed(name, pci=pci_id(*numbers.groups()) if numbers else None))
    return gpus


def stand_in(lspci_text: str) -> bool:
    """Whether Microsoft's virtual device stands where a GPU would, as in WSL2."""
    return "controller: Microsoft Corporation" in lspci_text or "Microsoft Corporation Basic Render" in lspci_text


def adapter_ram(value: object) -> int | None:
    """AdapterRAM [B]; None where it has hit its cap, or is no number.

    >>> adapter_ram(4293918720), adapter_ram(2147483648)
    (None, 2147483648)
    """
    return value if isinstance(value, int) and 0 < value < ADAPTER_RAM_CAP else None


def windows_json(text: str) -> list[Gpu]:
    """GPUs from JSON of Win32_VideoController (Name, AdapterRAM) or the display class's registry keys
    (DriverDesc, HardwareInformation.qwMemorySize, which has no cap). PowerShell prints one object for one adapter."""
    gpus = []
    for match in re.finditer(r"^\s*[\[{]", text, re.M):
        try:
            found = json.JSONDecoder().raw_decode(text[match.start():].lstrip())[0]
        except ValueError:
            continue
        for row in found if isinstance(found, list) else [found]:
            name = str(row.get("Name") or row.get("DriverDesc") or "") if isinstance(row, dict) else ""
            if is_gpu(name):
                whole = row.get("HardwareInformation.qwMemorySize")
                gpus.append(_listed(name, whole if isinstance(whole, int) and whole > 0 else adapter_ram(row.get("AdapterRAM"))))
        break
    return gpus


def windows_wmic(text: str) -> list[Gpu]:
    """GPUs from `wmic path win32_VideoController get Name,AdapterRAM,...`: columns in any order, by position."""
    lines = [line for line in text.splitlines() if line.strip()]
    head = next((i for i, line in enumerate(lines) if "AdapterRAM" in line.split() and "Name" in line.split()), None)
    if head is None:
        return []
    starts = {m[0]: m.start() for m in re.finditer(r"\S+", lines[head])}
    ends = [*sorted(starts.values())[1:], None]
    column = {name: slice(start, ends[sorted(starts.values()).index(start)]) for name, start in starts.items()}
    gpus = []
    for line in lines[head + 1 :]:
        name, ram = line[column["Name"]].strip(), line[column["AdapterRAM"]].strip()
        if is_gpu(name):
            gpus.append(_listed(name, adapter_ram(int(ram)) if ram.isdigit() else None))
    return gpus


def windows_sizes(text: str) -> list[Gpu]:
    """Adapters from qwMemorySize alone: one size a line, and which is which is not told."""
    lines = text.split()
    return [Gpu("unnamed GPU", int(line)) for line in lines] if lines and all(line.isdigit() and int(line) >= 2**20 for line in lines) else []


def merged(own: list[Gpu], listed: list[Gpu]) -> list[Gpu]:
    """What vendors' tools name, and of a list of all devices only other vendors' GPUs (the tools know theirs better)."""
    vendors = {vendor(g.name) for g in own}
    return own + [g for g in listed if vendor(g.name) not in vendors]


def vendor(name: str) -> str:
    """The vendor a device name tells, "" where it does not.

    >>> vendor("AMD Radeon Graphics (RADV REMBRANDT)"), vendor("Quadro RTX 4000"), vendor("gfx1036")
    ('amd', 'nvidia', 'amd')
    """
    words = {"amd": r"amd|radeon|instinct|navi|gfx\d", "nvidia": r"nvidia|geforce|quadro|tesla|\brtx\b", "intel": r"intel|\barc\b|iris", "apple": r"apple m\d"}
    return next((v for v, pattern in words.items() if re.search(pattern, name, re.I)), "")

