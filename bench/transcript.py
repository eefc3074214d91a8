"""A host as someone pasted it: any of the outputs the parsers know, told apart by what is in them."""

from __future__ import annotations

import re

from bench import gpu_lists, gpu_parse
from bench import host as hosts
from bench import host_parse as parse
from bench.chips import Found
from bench.gpu_parse import Gpu
from bench.host import Host
from macros.fields import Source
from macros.labdata import Lab

LONGEST, LINE = 2**18, 1000  # of a pasted output and of its lines [characters]; no host's is longer


def host(text: str) -> Host:
    """The facts in a pasted output; prompts and comments are passed over."""
    # blank and endless lines mean nothing here, and make patterns slow
    text = "\n".join(line[:LINE] for line in text.splitlines() if line.strip() and not re.match(r"\s*(#|\$ |>|PS [A-Z]:)", line[:LINE]))
    facts: dict[str, object] = dict(parse.apple_hardware(text)) or _cpu(text)
    if apple := parse.sysctl(text):
        facts["physical_cores"] = _int(apple.get("hw.physicalcpu")) or facts.get("physical_cores")
        if (_int(apple.get("hw.nperflevels")) or 1) > 1:
            facts["performance_cores"] = _int(apple.get("hw.perflevel0.physicalcpu"))
    brand = re.search(r"^(Apple M\d[\w ]*)$", text, re.M)  # sysctl -n machdep.cpu.brand_string
    if brand and "cpu" not in facts:
        facts["cpu"] = brand[1].strip()
    cores = gpu_parse.apple_registry_cores(text)
    gpus = gpus_in(text) or ([Gpu(str(facts["cpu"]), cores=cores, integrated=True)] if cores and "cpu" in facts else [])
    remarks = [words for words in (gpu_parse.nvidia_failure(text), gpu_lists.HIDDEN if gpu_lists.stand_in(text) and not gpus else None) if words]
    if not facts.get("cpu") and len(gpus) == 1 and gpus[0].name.startswith("Apple"):
        facts["cpu"] = gpus[0].name
    return Host(**facts, gpus=gpus, remarks=remarks)  # type: ignore[arg-type]


def gpus_in(text: str) -> list[Gpu]:
    """The GPUs in a pasted output: vendors' tools first, then the lists of all devices."""
    vendors = [gpu_parse.nvidia, gpu_parse.rocm, gpu_parse.rocminfo, gpu_parse.xpu_smi, gpu_parse.apple_displays, gpu_parse.apple_gpu_info]
    lists = [gpu_lists.vulkan, gpu_lists.opencl, gpu_lists.windows_json, gpu_lists.windows_wmic, gpu_lists.lspci, gpu_lists.windows_sizes]
    own = next((found for read in vendors if (found := read(text))), [])
    return gpu_lists.merged(own, next((found for read in lists if (found := read(text))), []))


def _cpu(text: str) -> dict[str, object]:
    """CPU facts from lscpu, lscpu -e or /proc/cpuinfo."""
    listed = re.split(r"(?=^processor\s*:)", text, maxsplit=1, flags=re.M)
    lscpu_text, cpuinfo = listed[0], listed[1] if len(listed) > 1 else ""
    fields = parse.lscpu(lscpu_text)
    physical, fast = parse.lscpu_cores(lscpu_text)
    table = parse.lscpu_table(text)
    found = {
        "cpu": parse.cpu_name(lscpu_text if "Model name" in fields or "Vendor ID" in fields else "", cpuinfo),
        "board": parse.board(cpuinfo),
        "physical_cores": physical or len(set(table.values())) or None,
        "performance_cores": fast,
        "logical_cores": _int(fields.get("CPU(s)")),
        "virtual": parse.virtual_linux(lscpu_text, ""),
    }
    if cpu := re.search(r"^\s+Device ?[nN]ame: (.*\S)\s*\n\s+Device ?[tT]ype: CPU", text, re.M):  # an OpenCL list
        units = re.search(r"ompute units: (\d+)", text[cpu.start():])
        found |= {"cpu": cpu[1], "logical_cores": int(units[1]) if units else None}
    return {key: value for key, value in found.items() if value is not None}


def _int(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None


def lines(host: Host, found: Found, sources: dict[str, Source]) -> list[str]:
    """A host and its chip in words, a fact a line; what is not told has no line."""
    def gib(size: int | None) -> str:
        return f", {size / 2**30:.1f} GiB" if size else ""

    cores = [f"{n} {words}" for n, words in ((host.physical_cores, "cores"), (host.performance_cores, "of them fast"), (host.logical_cores, "threads")) if n]
    said = [f"CPU      {host.cpu}"] if host.cpu else []
    said += [f"Board    {host.board}"] if host.board else []
    said += [f"Cores    {', '.join(cores)}"] if cores else []
    said += [f"Memory   {host.memory_bytes / 2**30:.1f} GiB"] if host.memory_bytes else []
    for gpu in host.gpus:
        extra = "".join([f", {gpu.cores} cores" if gpu.cores else "", gib(gpu.memory_bytes), ", integrated" if gpu.integrated else "", ", in slices" if gpu.partitioned else ""])
        said.append(f"GPU      {gpu.name}{extra}")
    said += [f"Remark   {remark}" for remark in host.remarks]
    if found.chip is None:
        return [*said, f"Chip     unknown: {found.why_not}"]
    chip = found.chip
    figures = [(chip.memory_bandwidth, "memory bandwidth"), *((p, " ".join(filter(None, [p.precision, p.via, p.accumulate and f"{p.accumulate} sums"]))) for p in chip.peaks)]
    said.append(f"Chip     {chip.name} ({chip.id})")
    said += [f"         {q.value:g} {q.unit} {words}; {sources[q.source].kind}: {sources[q.source].title}" for q, words in figures]
    return said + [f"         {note}" for note in chip.notes]


def report(lab: Lab, file: str | None) -> str:
    """This host, or one from a pasted output ("-": standard input), and its row of the hardware table, in words.

    Raises:
        OSError: the file cannot be read.
    """
    if file is None:
        seen = hosts.collect()
    else:
        with open(0 if file == "-" else file, encoding="utf-8", errors="replace") as text:
            seen = host(text.read(LONGEST))
    return "\n".join(lines(seen, hosts.lookup(seen, lab.chips), lab.chip_sources))
