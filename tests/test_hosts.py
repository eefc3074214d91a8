"""Hosts as their tools describe them (tests/data/hosts, identifiers invented): parsed, looked up, and nothing private kept.

Every expected value was read from the file by hand; every bandwidth is the vendor's.
"""

from __future__ import annotations

import json
import random
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from bench import chips, gpu_lists, gpu_parse, host, session, transcript
from bench.gpu_parse import Gpu
from bench.host import Host
from macros import labdata

HOSTS = Path(__file__).parent / "data" / "hosts"
FILES = sorted(HOSTS.glob("*.txt"))
LAB = labdata.load()
MIB = 2**20


def read(name: str) -> str:
    return (HOSTS / f"{name}.txt").read_text(encoding="utf-8")


def told(name: str) -> tuple[Host, chips.Found]:
    found = transcript.host(read(name))
    return found, host.lookup(found, LAB.chips)


@pytest.mark.parametrize(
    ("name", "cpu", "physical", "fast", "logical"),
    [
        ("lscpu_linux_epyc7451", "AMD EPYC 7451 24-Core Processor", 48, None, 96),
        ("lscpu_linux_i9-13900k-hybrid", "13th Gen Intel(R) Core(TM) i9-13900K", 24, 8, 32),  # 8 with two threads, 16 with one
        ("lscpu_linux_i9-12900k-bios-model-name-oem-junk", "12th Gen Intel(R) Core(TM) i9-12900K", 16, 8, 24),
        ("lscpu_linux_i7-1165g7-no-max-mhz-check", "11th Gen Intel(R) Core(TM) i7-1165G7 @ 2.80GHz", 4, None, 8),
        ("lscpu_linux_vmware", "AMD Opteron(tm) Processor 6328", 8, None, 16),
        ("lscpu_linux_virtualbox-on-windows-no-model-hypervisor", "Intel(R) Core(TM) i5-3317U CPU @ 1.70GHz", 2, None, 2),
        ("lscpu_linux_arm-biglittle-4-clusters", "Cortex-A510 + Cortex-A710 + Cortex-A715 + Cortex-X3", 8, None, 8),  # 3 + 2 + 2 + 1
        ("lscpu_linux_armv7-cortexA15", "Cortex-A15", 2, None, 2),
        ("lscpu_linux_ampere-altra-azure-vm", "Neoverse-N1", 64, None, 64),
        ("lscpu_linux_graviton2-as-root-bios-model", "AWS Graviton2 (Neoverse-N1)", None, None, None),
        ("lscpu_linux_loongarch", "Loongson-3A5000-HV", 4, None, 4),
        ("lscpu_linux_riscv-visionfive2", "sifive,u74-mc", 4, None, 4),
        ("lscpu_linux_strix-halo-ryzen-ai-max-395", "AMD RYZEN AI MAX+ 395 w/ Radeon 8060S", 16, None, 32),
        ("lscpu-e_linux_xeon-e5-2680v2-2-sockets", None, 5, None, None),  # the five lines it shows
        ("cpuinfo_linux_raspberry-pi-4-32bit", "Cortex-A72", None, None, None),  # part 0xd08 under "ARMv7 Processor rev 3"
        ("cpuinfo_linux_raspberry-pi-5-hardware-bcm2835", "Cortex-A76", None, None, None),
        ("cpuinfo_linux_kvm-qemu-virtual-cpu", "QEMU Virtual CPU version 2.5+", None, None, None),
        ("opencl_linux_github-ci-epyc-7763-4-of-64-cores", "AMD EPYC 7763 64-Core Processor", None, None, 4),
        ("opencl_windows_engineering-sample-cpu-genuine-intel-0000", "Genuine Intel(R) 0000", None, None, 16),
        ("sysctl_macos_m3-ultra-impossible-24-cores", "Apple M3 Ultra", 24, 16, None),
        ("sysctl_macos_m5max-core-tiers", "Apple M5 Max", 18, 6, None),
        ("system_profiler_macos_m1-air", "Apple M1", 8, 4, None),
        ("system_profiler_macos_m3max-14c-30gpu-vs-16c-40gpu", "Apple M3 Max", 14, 10, None),
        ("system_profiler_macos_m4max-stderr-noise-interleaved", None, 16, 12, None),
    ],
)
def test_cpu_and_its_cores(name, cpu, physical, fast, logical):
    found = transcript.host(read(name))
    assert (found.cpu, found.physical_cores, found.performance_cores, found.logical_cores) == (cpu, physical, fast, logical)


def test_sockets_boards_memory_and_hypervisors():
    assert len({socket for _, socket in chips_topology("lscpu-e_linux_xeon-e5-2680v2-2-sockets")}) == 2
    assert transcript.host(read("cpuinfo_linux_raspberry-pi-5-hardware-bcm2835")).board == "Raspberry Pi 5 Model B Rev 1.0"
    assert transcript.host(read("system_profiler_macos_m3max-14c-30gpu-vs-16c-40gpu")).memory_bytes == 36 * 2**30
    assert transcript.host(read("lscpu_linux_virtualbox-on-windows-no-model-hypervisor")).virtual is True
    assert transcript.host(read("lscpu_linux_azure-hyperv-epyc-2-cores")).virtual is True
    assert transcript.host(read("lscpu_linux_i7-1165g7-no-max-mhz-check")).virtual is False
    assert transcript.host(read("lscpu_linux_ampere-altra-azure-vm")).virtual is None  # Arm's flags do not say


def chips_topology(name: str) -> set[tuple[str, str]]:
    from bench import host_parse

    return set(host_parse.lscpu_table(read(name)).values())


@pytest.mark.parametrize(
    ("name", "gpus"),
    [
        ("nvidia-smi_linux_3090-power-limit-250w-busy", [Gpu("NVIDIA GeForce RTX 3090", 24576 * MIB)] * 2),
        ("nvidia-smi_linux_4080super-idle", [Gpu("NVIDIA GeForce RTX 4080 SUPER", 16376 * MIB)]),
        ("nvidia-smi_linux_l40s", [Gpu("NVIDIA L40S", 46068 * MIB)]),
        ("nvidia-smi_linux_h100-mig", [Gpu("NVIDIA H100 80GB HBM3", 81559 * MIB, partitioned=True)]),
        ("nvidia-smi_linux_h200-mig", [Gpu("NVIDIA H200", 143771 * MIB, partitioned=True)]),
        ("nvidia-smi_linux_mixed-gtx1070-and-p40", [Gpu("NVIDIA GeForce GTX 1070", 8192 * MIB), Gpu("Tesla P40", 23040 * MIB)]),
        ("nvidia-smi_linux_p40-old-layout-ecc-22919mib", [Gpu("Tesla P40", 22919 * MIB)] * 2),
        ("nvidia-smi_windows_2080super-wddm-used-mem-na", [Gpu("NVIDIA GeForce RTX 2080 SUPER", 8192 * MIB)]),
        ("nvidia-smi_windows_two-gpus-truncated-names-tcc-wddm", [Gpu("NVIDIA GeForce ...", 11264 * MIB)] * 2),
        ("nvidia-smi-q_wsl2_gtx1650ti-maxq-laptop", [Gpu("NVIDIA GeForce GTX 1650 Ti with Max-Q Design")]),
        ("nvidia-smi_wsl2_driver-not-loaded", []),
        ("lspci_wsl2_gpu-is-microsoft-basic-render", []),
        ("rocm-smi_linux_6900xt-plus-raphael-igpu-csv", [
            Gpu("Navi 21 [Radeon RX 6800/6800 XT / 6900 XT]", 17163091968, pci="1002:73bf"),
            Gpu("Raphael", 67108864, integrated=True, pci="1002:164e")]),
        ("rocm-smi_linux_7900xt-json", [Gpu("Radeon RX 7900 XT", 21458059264, pci="1002:744c")]),
        ("rocm-smi_linux_mi300a-partitions", [Gpu("unknown AMD GPU", pci="1002:74a1")] * 2),  # SPX: each computes as one
        ("rocm-smi_linux_vega-vram-na", [Gpu("unknown AMD GPU")]),
        ("rocminfo_linux_gfx1151-eng-sample", [Gpu("AMD Radeon 8060S Graphics", integrated=True, pci="1002:1586")]),
        ("xpu-smi_linux_arc-a770", [Gpu("Intel(R) Arc(TM) A770 Graphics", pci="8086:56a0")]),
        ("clinfo_linux_arc-a770-hex-name", [Gpu("Intel(R) Graphics [0x56a0]", pci="8086:56a0")]),
        ("opencl_linux_github-ci-epyc-7763-4-of-64-cores", []),  # a CPU device
        ("opencl_windows_engineering-sample-cpu-genuine-intel-0000", [Gpu("Intel(R) Iris(R) Xe Graphics", integrated=True)]),
        # gfx1036 claims 12284 MB of the machine's own memory
        ("opencl_windows_three-platforms-igpu-shared-memory", [Gpu("NVIDIA GeForce RTX 4070 Ti", 12281 * MIB), Gpu("gfx1036", integrated=True)]),
        ("vulkaninfo_linux_hybrid-laptop-rembrandt-3070ti-llvmpipe", [  # llvmpipe is no GPU
            Gpu("AMD Radeon Graphics (RADV REMBRANDT)", integrated=True), Gpu("NVIDIA GeForce RTX 3070 Ti Laptop GPU")]),
        ("vulkaninfo_windows_r9-380-igpu-rdp-doubled", [
            Gpu("Intel(R) HD Graphics 530", integrated=True, pci="8086:1912"), Gpu("AMD Radeon (TM) R9 380 Series", pci="1002:6939")]),
        ("vulkaninfo_linux_strix-halo-stderr-warnings-first", []),
        ("lscpu_linux_strix-halo-ryzen-ai-max-395", [Gpu("Radeon 8060S Graphics (RADV STRIX_HALO)", integrated=True)]),
        ("powershell_windows_registry-qwmemorysize-two-gpus", [Gpu("unnamed GPU", 536870912), Gpu("unnamed GPU", 10737418240)]),
        ("powershell_windows_rx9070xt-adapterram-json", [Gpu("AMD Radeon RX 9070 XT")]),  # 4293918720 is the cap, not its 16 GiB
        ("wmic_windows_rtx4090-adapterram-4gib-cap", [Gpu("NVIDIA GeForce RTX 4090"), Gpu("Intel(R) UHD Graphics 770", integrated=True)]),
        ("system_profiler_macos_m4-displays-no-vram-line", [Gpu("Apple M4", cores=10, integrated=True)]),
        ("system_profiler_macos_m3max-14c-30gpu-vs-16c-40gpu", [Gpu("Apple M3 Max", cores=30, integrated=True)]),
        ("sysctl_macos_m5max-core-tiers", [Gpu("Apple M5 Max", cores=40, integrated=True)]),
        ("gpuinfo_macos_m2max-m1ultra-bandwidth", [
            Gpu("Apple M1 Ultra", cores=48, integrated=True), Gpu("Apple M2 Max", cores=38, integrated=True), Gpu("Apple M3 Max", cores=40, integrated=True)]),
    ],
)  # fmt: skip
def test_gpus(name, gpus):
    assert transcript.host(read(name)).gpus == gpus


def test_nvidia_smi_says_the_same_in_each_of_its_outputs():
    """The bare table cuts "RTX 4080 SUPER" to "RTX 4080 ..."; its memory and slices are those of --query-gpu."""
    for name in ("nvidia-smi_linux_4080super-idle", "nvidia-smi_linux_h100-mig", "nvidia-smi_linux_h200-mig", "nvidia-smi_linux_l40s"):
        text = read(name)
        (queried,), (tabled,), (listed,) = gpu_parse.nvidia(text), gpu_parse.nvidia_table(text), gpu_parse.nvidia_listing(text)
        assert (tabled.memory_bytes, tabled.partitioned) == (queried.memory_bytes, queried.partitioned)
        assert listed.partitioned == queried.partitioned and listed.name == queried.name
        assert tabled.name == queried.name or tabled.name.endswith("...")
    assert gpu_parse.nvidia_query("NVIDIA GB10, [N/A]\n") == [Gpu("NVIDIA GB10")]
    assert gpu_parse.nvidia_query("a line, with a comma\n") == []
    assert gpu_parse.nvidia_failure(read("nvidia-smi_wsl2_driver-not-loaded")).startswith("NVIDIA-SMI has failed")


def test_rocm_slices_and_two_equal_cards():
    sliced = read("rocm-smi_linux_mi300a-partitions").replace("NPS1, SPX", "NPS4, CPX")
    assert all(gpu.partitioned for gpu in gpu_parse.rocm(sliced))
    card = "GPU{}:\n  vendorID = 0x1002\n  deviceID = 0x744c\n  deviceType = PHYSICAL_DEVICE_TYPE_DISCRETE_GPU\n  deviceName = AMD Radeon RX 7900 XTX\n  deviceUUID = {}\n"
    assert len(gpu_lists.vulkan(card.format(0, "a") + card.format(1, "b"))) == 2
    assert len(gpu_lists.vulkan(card.format(0, "a") + card.format(1, "a"))) == 1


def test_pci_bus_names_and_stand_ins():
    text = """\
00:02.0 VGA compatible controller [0300]: Intel Corporation Raptor Lake-S GT1 [UHD Graphics 770] [8086:a780] (rev 04)
01:00.0 VGA compatible controller [0300]: NVIDIA Corporation AD102 [GeForce RTX 4090] [10de:2684] (rev a1)
03:00.0 VGA compatible controller: Advanced Micro Devices, Inc. [AMD/ATI] Navi 31 [Radeon RX 7900 XT/7900 XTX/7900M] (rev c8)
04:00.0 3D controller: NVIDIA Corporation Device ffff (rev ff)
"""
    assert gpu_lists.lspci(text)[:3] == [
        Gpu("UHD Graphics 770", integrated=True, pci="8086:a780"), Gpu("GeForce RTX 4090", pci="10de:2684"), Gpu("Radeon RX 7900 XT/7900 XTX/7900M")]  # fmt: skip
    assert gpu_lists.stand_in(read("lspci_wsl2_gpu-is-microsoft-basic-render"))
    assert not gpu_lists.stand_in(text)
    registry = '[{"DriverDesc":"AMD Radeon(TM) Graphics","HardwareInformation.qwMemorySize":536870912},{"DriverDesc":"NVIDIA GeForce RTX 3080","HardwareInformation.qwMemorySize":10737418240}]'
    assert gpu_lists.windows_json(registry) == [Gpu("AMD Radeon(TM) Graphics", integrated=True), Gpu("NVIDIA GeForce RTX 3080", 10 * 2**30)]


# file -> (the row of the table, its bandwidth [GB/s] as the vendor prints it)
ONE = {
    "nvidia-smi_linux_4080super-idle": ("nvidia-rtx-4080-super", 736),
    "nvidia-smi_linux_l40s": ("nvidia-l40s", 864),
    "nvidia-smi_windows_2080super-wddm-used-mem-na": ("nvidia-rtx-2080-super", 495.9),
    "nvidia-smi-q_wsl2_gtx1650ti-maxq-laptop": ("nvidia-gtx-1650-ti-max-q", 160),
    "opencl_windows_three-platforms-igpu-shared-memory": ("nvidia-rtx-4070-ti", 504),
    "vulkaninfo_linux_hybrid-laptop-rembrandt-3070ti-llvmpipe": ("nvidia-rtx-3070-ti-mobile", 448),
    "wmic_windows_rtx4090-adapterram-4gib-cap": ("nvidia-rtx-4090", 1008),
    "rocm-smi_linux_7900xt-json": ("amd-rx-7900-xt", 800),
    "powershell_windows_rx9070xt-adapterram-json": ("amd-rx-9070-xt", 640),
    "lscpu_linux_strix-halo-ryzen-ai-max-395": ("amd-ryzen-ai-max-395", 256),
    "rocminfo_linux_gfx1151-eng-sample": ("amd-ryzen-ai-max-395", 256),
    "system_profiler_macos_m3max-14c-30gpu-vs-16c-40gpu": ("apple-m3-max-30c", 300),
    "system_profiler_macos_m4-displays-no-vram-line": ("apple-m4-10c", 120),
    "sysctl_macos_m5max-core-tiers": ("apple-m5-max-40c", 614),
    "cpuinfo_linux_raspberry-pi-4-32bit": ("raspberry-pi-4", 12.8),
    "cpuinfo_linux_raspberry-pi-5-hardware-bcm2835": ("raspberry-pi-5", 17.1),
}
# file -> (rows it could be, words of why there is no one row)
NONE = {
    "clinfo_linux_arc-a770-hex-name": (["intel-arc-a770-16gb", "intel-arc-a770-8gb"], "Arc A770 16GB or Intel Arc A770 8GB"),
    "xpu-smi_linux_arc-a770": (["intel-arc-a770-16gb", "intel-arc-a770-8gb"], "could be"),
    "rocm-smi_linux_6900xt-plus-raphael-igpu-csv": (["amd-rx-6800", "amd-rx-6800-xt", "amd-rx-6900-xt"], "could be AMD Radeon RX 6800 or"),
    "vulkaninfo_windows_r9-380-igpu-rdp-doubled": (["amd-r9-380", "amd-r9-380x"], "could be"),
    "system_profiler_macos_m1-air": (["apple-m1-7c", "apple-m1-8c"], "could be Apple M1 (7-core GPU) or Apple M1 (8-core GPU)"),
    "sysctl_macos_m3-ultra-impossible-24-cores": ([], "no Apple M3 Ultra is sold with 24 CPU cores"),
    "nvidia-smi_linux_h100-mig": ([], "cut into slices"),
    "nvidia-smi_linux_h200-mig": ([], "cut into slices"),
    "nvidia-smi_linux_3090-power-limit-250w-busy": ([], "2 GPUs share the work"),
    "nvidia-smi_linux_mixed-gtx1070-and-p40": ([], "GTX 1070 + Tesla P40"),
    "nvidia-smi_linux_p40-old-layout-ecc-22919mib": ([], "2 GPUs"),
    "nvidia-smi_windows_two-gpus-truncated-names-tcc-wddm": ([], "2 GPUs"),
    "gpuinfo_macos_m2max-m1ultra-bandwidth": ([], "3 GPUs"),
    "powershell_windows_registry-qwmemorysize-two-gpus": ([], "unnamed GPU"),
    "rocm-smi_linux_mi300a-partitions": ([], "MI300X 192GB + AMD Instinct MI300X"),
    "rocm-smi_linux_vega-vram-na": ([], "not in labdata/chips"),
    "cpuinfo_linux_kvm-qemu-virtual-cpu": ([], "'QEMU Virtual CPU version 2.5+' names no chip"),
    "opencl_windows_engineering-sample-cpu-genuine-intel-0000": ([], "'Genuine Intel(R) 0000' names no chip"),
    "opencl_linux_github-ci-epyc-7763-4-of-64-cores": ([], "4 cores of AMD EPYC 7763 64-Core Processor, which has 64: a slice"),
    "lscpu_linux_ampere-altra-azure-vm": ([], "'Neoverse-N1' names no chip"),
    "lscpu_linux_graviton3-no-model-name": ([], "names no chip"),
    "lscpu_linux_armv7-cortexA15": ([], "names no chip"),
    "lscpu_linux_arm-biglittle-4-clusters": ([], "names no chip"),
    "lscpu_linux_azure-hyperv-epyc-2-cores": ([], "no CPU is named"),
    "lscpu-e_linux_xeon-e5-2680v2-2-sockets": ([], "no CPU is named"),
    "lspci_wsl2_gpu-is-microsoft-basic-render": ([], "no CPU is named"),
    "nvidia-smi_wsl2_driver-not-loaded": ([], "no CPU is named"),
    "system_profiler_macos_m4max-stderr-noise-interleaved": ([], "no CPU is named"),
    "vulkaninfo_linux_strix-halo-stderr-warnings-first": ([], "no CPU is named"),
    **dict.fromkeys(
        ["lscpu_linux_epyc7451", "lscpu_linux_graviton2-as-root-bios-model", "lscpu_linux_i7-1165g7-no-max-mhz-check",
         "lscpu_linux_i9-12900k-bios-model-name-oem-junk", "lscpu_linux_i9-13900k-hybrid", "lscpu_linux_loongarch", "lscpu_linux_riscv-visionfive2",
         "lscpu_linux_virtualbox-on-windows-no-model-hypervisor", "lscpu_linux_vmware"], ([], "not in labdata/chips")),
}  # fmt: skip


def test_every_captured_host_has_an_expected_chip_or_reason():
    assert sorted(ONE | NONE) == [f.stem for f in FILES]
    assert len(FILES) == 54


@pytest.mark.parametrize("name", ONE)
def test_the_one_row_that_holds(name):
    found = told(name)[1]
    assert found.chip is not None, found.why_not
    assert (found.chip.id, found.chip.memory_bandwidth.value) == ONE[name]


@pytest.mark.parametrize("name", NONE)
def test_where_the_host_does_not_decide_nothing_is_guessed(name):
    found = told(name)[1]
    could_be, words = NONE[name]
    assert found.chip is None
    assert sorted(c.id for c in found.could_be) == sorted(could_be)
    assert words in found.why_not


def test_remarks_say_why_a_tool_was_silent():
    assert told("nvidia-smi_wsl2_driver-not-loaded")[0].remarks == ["NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver"]
    assert "WSL2" in told("lspci_wsl2_gpu-is-microsoft-basic-render")[0].remarks[0]


GIB = 2**30


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        # cores and memory decide between two chips of one name, and where neither is told both are named
        ({"cpu": "Apple M3 Max", "gpus": [Gpu("Apple M3 Max", cores=40)]}, ["apple-m3-max-40c"]),
        ({"cpu": "Apple M3 Max", "memory_bytes": 36 * GIB}, ["apple-m3-max-30c"]),
        ({"cpu": "Apple M3 Max", "physical_cores": 16}, ["apple-m3-max-40c"]),
        ({"cpu": "Apple M3 Max"}, ["apple-m3-max-30c", "apple-m3-max-40c"]),
        ({"cpu": "Apple M3 Max", "gpus": [Gpu("Apple M3 Max", cores=38)]}, []),
        ({"cpu": "Apple M4 Max", "physical_cores": 16, "memory_bytes": 128 * GIB}, ["apple-m4-max-40c"]),
        ({"cpu": "Apple M6", "memory_bytes": 16 * GIB, "gpus": [Gpu("Apple M6", cores=12)]}, ["apple-m6-12c-16gb"]),
        ({"cpu": "Apple M6", "memory_bytes": 24 * GIB, "gpus": [Gpu("Apple M6", cores=12)]}, ["apple-m6-12c"]),
        ({"gpus": [Gpu("GeForce RTX 3080", 10240 * MIB)]}, ["nvidia-rtx-3080-10gb"]),  # a driver from before the brand
        ({"gpus": [Gpu("NVIDIA GeForce RTX 3080", 12288 * MIB)]}, ["nvidia-rtx-3080-12gb"]),
        ({"gpus": [Gpu("NVIDIA GeForce RTX 3080")]}, ["nvidia-rtx-3080-10gb", "nvidia-rtx-3080-12gb"]),
        ({"gpus": [Gpu("NVIDIA GeForce RTX 3080", 20480 * MIB)]}, []),  # a modified card
        # GDDR6 and GDDR6X under one name and size: 608 or 448, 504 or 480 GB/s
        ({"gpus": [Gpu("NVIDIA GeForce RTX 3060 Ti", 8192 * MIB)]}, ["nvidia-rtx-3060-ti", "nvidia-rtx-3060-ti-gddr6x"]),
        ({"gpus": [Gpu("NVIDIA GeForce RTX 4070", 12282 * MIB)]}, ["nvidia-rtx-4070", "nvidia-rtx-4070-gddr6"]),
        # nvidia-smi's table cuts names; a name that is whole there is not one of these
        ({"gpus": [Gpu("NVIDIA GeForce ...", 11264 * MIB)]}, ["nvidia-gtx-1080-ti", "nvidia-rtx-2080-ti"]),
        ({"gpus": [Gpu("NVIDIA GeForce RTX 4080 ...", 16376 * MIB)]}, ["nvidia-rtx-4080-super"]),  # the Laptop's has 12 GiB
        ({"gpus": [Gpu("NVIDIA GeForce RTX 4090 Laptop GPU", 16376 * MIB)]}, ["nvidia-rtx-4090-mobile"]),
        ({"gpus": [Gpu("AMD Radeon RX 7900 XTX (RADV NAVI31)")]}, ["amd-rx-7900-xtx"]),
        ({"gpus": [Gpu("Intel(R) Arc(TM) A770 Graphics", 15930 * MIB)]}, ["intel-arc-a770-16gb"]),
        ({"gpus": [Gpu("AMD Radeon 780M", integrated=True)], "cpu": "AMD Ryzen 7 8845HS w/ Radeon 780M Graphics"},
         ["amd-radeon-780m-ddr5-5600", "amd-radeon-780m-lpddr5x-7500"]),  # the maker chose the memory
        ({"gpus": [Gpu("AMD Radeon Graphics", integrated=True)], "cpu": "AMD RYZEN AI MAX+ 395 w/ Radeon 8060S"}, ["amd-ryzen-ai-max-395"]),
        ({"board": "NVIDIA Jetson AGX Orin Developer Kit", "cpu": "Cortex-A78AE", "memory_bytes": 61 * GIB, "gpus": [Gpu("Orin (nvgpu)", integrated=True)]},
         ["nvidia-jetson-agx-orin-64gb"]),
        ({"cpu": "Snapdragon(R) X Elite - X1E80100 - Qualcomm(R) Oryon(TM) CPU", "physical_cores": 12, "memory_bytes": 32 * GIB}, ["qualcomm-x-elite"]),
        ({"gpus": [Gpu("NVIDIA Imaginary 1")]}, []),
        ({}, []),
    ],
)  # fmt: skip
def test_cores_and_memory_decide_where_they_can(facts, expected):
    found = host.lookup(Host(**facts), LAB.chips)
    assert sorted(c.id for c in found.could_be) == sorted(expected)
    assert (found.chip.id if found.chip else None) == (expected[0] if len(expected) == 1 else None)
    assert found.chip or found.why_not


def test_every_row_is_found_by_a_host_that_tells_all_and_by_no_other():
    """Rows that share a name, and whatever a host tells, are named together; any other row is found alone."""
    for chip in LAB.chips:
        if chip.match is None:
            continue
        size = chip.memory_gb[-1] * GIB if chip.memory_gb else None
        name = chip.match.names[0]
        gpu = Gpu(name, size if chip.kind == "gpu" else None, cores=chip.match.gpu_cores)
        cpu_cores = chip.match.cpu_cores[0] if chip.match.cpu_cores else None
        found = host.lookup(Host(cpu=name, gpus=[gpu], physical_cores=cpu_cores, memory_bytes=size), LAB.chips)
        assert chip in found.could_be, chip.id
        for other in found.could_be:
            assert other is chip or (set(other.match.names) & set(chip.match.names)), (chip.id, other.id)
            # two sizes told apart must not both be possible
            assert other is chip or not chip.memory_gb or other.memory_gb[-1] == chip.memory_gb[-1] or chip.kind == "soc", (chip.id, other.id)


def test_an_engine_computes_on_its_own_vendors_cards():
    both = Host(gpus=[Gpu("NVIDIA GeForce RTX 4090"), Gpu("Radeon RX 7900 XTX")])
    assert host.lookup(both, LAB.chips).why_not.startswith("2 GPUs share the work")
    cuda = "CUDA : ARCHS = 890 | USE_GRAPHS = 1 | CPU : SSE3 = 1 | AVX2 = 1 | "
    assert host.lookup(host.for_engine(both, cuda), LAB.chips).chip.id == "nvidia-rtx-4090"
    assert host.lookup(host.for_engine(both, cuda.replace("CUDA", "ROCm")), LAB.chips).chip.id == "amd-rx-7900-xtx"
    assert host.for_engine(both, "CPU : SSE3 = 1 | ") == both


def tools(monkeypatch: pytest.MonkeyPatch, outputs: dict[str, str]) -> None:
    """A machine whose commands print these; the longest matching start of a command line wins."""
    def run(*argv: str, any_exit: bool = False) -> str:
        line = " ".join(argv)
        return next((outputs[k] for k in sorted(outputs, key=len, reverse=True) if line.startswith(k)), "")

    monkeypatch.setattr(host, "run", run)


def body(name: str, start: str) -> str:
    """A captured output from the first line that holds `start`."""
    text = read(name)
    return text[text.index(start):]


def test_the_collectors_ask_each_vendors_tool_and_count_no_card_twice(monkeypatch):
    hybrid = read("vulkaninfo_linux_hybrid-laptop-rembrandt-3070ti-llvmpipe")
    tools(monkeypatch, {"nvidia-smi --query": "NVIDIA GeForce RTX 3070 Ti Laptop GPU, 8192\n", "nvidia-smi -L": "", "vulkaninfo": hybrid})
    assert host.linux_gpus() == ([Gpu("NVIDIA GeForce RTX 3070 Ti Laptop GPU", 8192 * MIB), Gpu("AMD Radeon Graphics (RADV REMBRANDT)", integrated=True)], [])
    tools(monkeypatch, {"rocm-smi": body("rocm-smi_linux_7900xt-json", "{"), "rocminfo": read("rocminfo_linux_gfx1151-eng-sample"), "vulkaninfo": "GPU0:\n deviceName = AMD Radeon RX 7900 XT (RADV NAVI31)\n"})
    assert [gpu.name for gpu in host.linux_gpus()[0]] == ["Radeon RX 7900 XT"]
    tools(monkeypatch, {"rocminfo": read("rocminfo_linux_gfx1151-eng-sample")})
    assert [gpu.name for gpu in host.linux_gpus()[0]] == ["AMD Radeon 8060S Graphics"]
    failed, bus = body("nvidia-smi_wsl2_driver-not-loaded", "NVIDIA-SMI"), body("lspci_wsl2_gpu-is-microsoft-basic-render", "8756:")
    tools(monkeypatch, {"nvidia-smi": failed, "lspci": bus})
    assert host.linux_gpus() == ([], ["NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver", gpu_lists.HIDDEN])


def test_collectors_of_macos_and_windows(monkeypatch):
    displays = body("system_profiler_macos_m4-displays-no-vram-line", "Apple M4:")
    tools(monkeypatch, {"system_profiler SPDisplaysDataType": displays})
    assert host._apple_gpus() == [Gpu("Apple M4", cores=10, integrated=True)]
    tools(monkeypatch, {"system_profiler SPDisplaysDataType": displays.replace("Total Number of Cores: 10", ""), "ioreg": '"gpu-core-count" = 10'})
    assert host._apple_gpus() == [Gpu("Apple M4", cores=10, integrated=True)]
    capped = body("powershell_windows_rx9070xt-adapterram-json", '{"Name"')
    registry = '{"DriverDesc":"AMD Radeon RX 9070 XT","HardwareInformation.qwMemorySize":17095983104}'
    cpu = "powershell -NoProfile -Command (Get-CimInstance Win32_Processor"
    tools(monkeypatch, {cpu: '"AMD Ryzen 7 7700 8-Core Processor             "\n', "powershell -NoProfile -Command Get-CimInstance Win32_VideoController": capped})
    assert host._windows()["gpus"] == [Gpu("AMD Radeon RX 9070 XT")] and host._windows()["cpu"] == "AMD Ryzen 7 7700 8-Core Processor"
    tools(monkeypatch, {"powershell -NoProfile -Command Get-ItemProperty": registry, "powershell -NoProfile -Command Get-CimInstance Win32_VideoController": capped})
    assert host._windows()["gpus"] == [Gpu("AMD Radeon RX 9070 XT", 17095983104)]


PRIVATE = re.compile(
    r"C02QX0AAQ6L4|10000000c0ffee42|LQAC20305316|0x924671b8d1f0a3c5|7D3A91C4-52EE|00008103-001C0D2A|GPU-5a1d7c3e|MIG-81e6f2aa|CPU-93bc0d51|GPU-6f2e1ab8"
    r"|[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}|serial|uuid|Users/|/home/", re.I)  # fmt: skip


def test_the_fixtures_hold_what_must_not_be_kept():
    text = "\n".join(f.read_text(encoding="utf-8") for f in FILES)
    assert len(set(PRIVATE.findall(text))) > 8


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_no_identifier_enters_a_record(file: Path):
    found = transcript.host(file.read_text(encoding="utf-8"))
    kept = json.dumps(found.as_json()) + session.host_doc(found).model_dump_json() + "\n".join(transcript.lines(found, host.lookup(found, LAB.chips), LAB.chip_sources))
    assert not PRIVATE.search(kept), PRIVATE.search(kept)
    assert host.platform.node() not in kept.replace('"', " ").split()


def test_junk_is_nothing_and_takes_no_time():
    rng = random.Random(1)
    whole = "\n".join(f.read_text(encoding="utf-8") for f in FILES)
    junk = ["", "\0\1\2" * 50_000, "\n" * 200_000, " " * 200_000, "(" * 200_000, "{" * 5_000, '{"card0": ' * 5_000, "GPU0:\n" * 20_000, "a=b " * 50_000,
            whole[:: 7], "".join(rng.sample(whole, len(whole)))]  # fmt: skip
    began = time.perf_counter()
    for text in junk:
        found = transcript.host(text)
        assert not host.lookup(found, LAB.chips).chip
    assert time.perf_counter() - began < 20
    for file in FILES:  # cut anywhere
        text = file.read_text(encoding="utf-8")
        for end in range(0, len(text), max(1, len(text) // 20)):
            transcript.host(text[:end])


def test_the_command_says_the_chip_with_its_sources(capsys):
    from bench.__main__ import main

    assert main(["host", str(HOSTS / "nvidia-smi_linux_l40s.txt")]) == 0
    out = capsys.readouterr().out
    assert "NVIDIA L40S (nvidia-l40s)" in out and "864 GB/s memory bandwidth; published: NVIDIA L40S product page" in out
    assert main(["host", str(HOSTS / "xpu-smi_linux_arc-a770.txt")]) == 0
    assert "Chip     unknown: could be Intel Arc A770 16GB or Intel Arc A770 8GB" in capsys.readouterr().out
    assert main(["host", "gone.txt"]) == 1
    assert capsys.readouterr().err == "error: gone.txt: No such file or directory\n"
    assert main(["host"]) == 0


def written(tmp_path, monkeypatch, facts: dict, **options):
    from bench import prepare

    monkeypatch.setattr(labdata, "ROOT", tmp_path)
    machine = prepare.machine(LAB, Host(**facts), "mine", True, print, **options)
    assert labdata.parse(type(machine), tmp_path / "machines" / "mine.yml", "mine.yml") == machine
    return machine


def test_a_machines_file_cites_the_page_of_each_figure(tmp_path, monkeypatch):
    machine = written(tmp_path, monkeypatch, {"gpus": [Gpu("NVIDIA GeForce RTX 4070 Ti", 12282 * MIB)], "memory_bytes": 32 * GIB})
    specs = machine.specs
    assert (specs.memory_bandwidth.value, specs.peak_compute.value, specs.peak_compute.precision) == (504, 80.2, "fp16")
    assert machine.sources[specs.memory_bandwidth.source].url == "https://www.techpowerup.com/gpu-specs/geforce-rtx-4070-ti.c3950"
    assert machine.sources[specs.peak_compute.source].kind == "derived"
    assert (specs.memory.value, machine.name) == (12.0, "NVIDIA GeForce RTX 4070 Ti, 12 GB")  # the card's 12282 MiB, not the machine's 32


def test_two_variants_are_asked_for_and_the_answer_is_checked(tmp_path, monkeypatch):
    from bench.plan import PlanError
    from bench.prepare import UnknownChip

    two = {"gpus": [Gpu("NVIDIA GeForce RTX 3060 Ti", 8192 * MIB)], "memory_bytes": 32 * GIB}
    with pytest.raises(UnknownChip, match=r"could be .*\(GDDR6\) or .*\(GDDR6X\)\); CHIP=nvidia-rtx-3060-ti\|nvidia-rtx-3060-ti-gddr6x chooses"):
        written(tmp_path, monkeypatch, two)
    assert written(tmp_path, monkeypatch, two, chosen="nvidia-rtx-3060-ti-gddr6x").specs.memory_bandwidth.value == 608.3
    with pytest.raises(PlanError, match=r"CHIP: not this host; got 'nvidia-rtx-4090'; this host could be nvidia-rtx-3060-ti,"):
        written(tmp_path, monkeypatch, two, chosen="nvidia-rtx-4090")
    with pytest.raises(PlanError, match=r"CHIP: no such chip in labdata/chips; got 'nvidia-rtx-3060ti'; close to it: nvidia-rtx-3060"):
        written(tmp_path, monkeypatch, two, chosen="nvidia-rtx-3060ti")
    sliced = {"gpus": [replace(Gpu("NVIDIA H100 80GB HBM3"), partitioned=True)], "memory_bytes": 32 * GIB}
    with pytest.raises(PlanError, match="not this host.*slices"):
        written(tmp_path, monkeypatch, sliced, chosen="nvidia-h100-sxm5-80gb")
