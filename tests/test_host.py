"""Host facts against what real machines print (shortened), oddities first."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from bench import host, host_parse
from bench.host import Host
from bench.host_parse import Gpu

LSCPU_HYBRID = """\
Architecture:            x86_64
CPU(s):                  24
Vendor ID:               GenuineIntel
  Model name:            12th Gen Intel(R) Core(TM) i9-12900K
    BIOS Model name:     12th Gen Intel(R) Core(TM) i9-12900K To Be Filled By O.E.M. CPU @ 4.9GHz
    Thread(s) per core:  2
    Core(s) per socket:  16
Flags:                   fpu vme avx2
"""
# 8 cores of 2 threads and 8 of 1: 24 CPUs, where threads x cores says 32
HYBRID_P = "# CPU,Core,Socket\n" + "".join(f"{c},{c // 2 if c < 16 else c - 8},0\n" for c in range(24))


def test_cpu_names():
    assert host_parse.cpu_name(LSCPU_HYBRID, "") == "12th Gen Intel(R) Core(TM) i9-12900K"
    assert host_parse.cpu_name("CPU(s): 64\nVendor ID: ARM\n", "processor\t: 0\n") is None
    # a board without a model name; its "Hardware" line names the wrong chip
    board = "Hardware\t: BCM2835\nSerial\t\t: 00\nModel\t\t: Raspberry Pi 5 Model B Rev 1.0\n"
    assert host_parse.cpu_name("Model name: -\n", board) == "Raspberry Pi 5 Model B Rev 1.0"


def test_hybrid_cores_are_counted_not_multiplied():
    cores = host_parse.topology(HYBRID_P)
    assert len(cores) == 24
    assert len(set(cores.values())) == 16
    assert len({cores[cpu] for cpu in host_parse.cpu_list("0-15")}) == 8


def test_two_sockets_share_core_numbers():
    assert len(set(host_parse.topology("0,0,0\n1,0,1\n2,1,0\n3,1,1\n").values())) == 4


@pytest.mark.parametrize(
    ("text", "detect", "expected"),
    [
        ("Hypervisor vendor: Microsoft\n", "", True),
        ("Vendor ID: AuthenticAMD\nFlags: fpu hypervisor lahf_lm\n", "", True),
        (LSCPU_HYBRID, "", False),
        (LSCPU_HYBRID, "none\n", False),
        ("Vendor ID: ARM\nFlags: fp asimd\n", "", None),  # Arm has no such flag
        ("Vendor ID: ARM\n", "kvm\n", True),
    ],
)
def test_virtual(text, detect, expected):
    assert host_parse.virtual_linux(text, detect) is expected


def test_nvidia_gpus():
    two = "NVIDIA GeForce GTX 1070, 8192\nTesla P40, 23040\n"
    assert host_parse.nvidia_gpus(two, "") == [
        Gpu("NVIDIA GeForce GTX 1070", 8 * 2**30), Gpu("Tesla P40", 23040 * 2**20)]
    assert host_parse.nvidia_gpus("NVIDIA GB10, [N/A]\n", "") == [Gpu("NVIDIA GB10")]
    assert host_parse.nvidia_gpus("NVIDIA-SMI has failed because it couldn't communicate with the driver.\n", "") == []
    sliced = host_parse.nvidia_gpus("NVIDIA H100 80GB HBM3, 81559\n", "GPU 0: NVIDIA H100\n  MIG 3g.40gb     Device  0:\n")
    assert sliced[0].partitioned


def test_apple_gpu_cores_and_noise():
    text = """\
Graphics/Displays:
2026-04-28 08:52:35.280 system_profiler[29046:41174793] hw.cpufamily: 0x17d5b93a
    Apple M3 Max:
      Chipset Model: Apple M3 Max
      Total Number of Cores: 30
      Metal Support: Metal 3
"""
    assert host_parse.apple_gpus(text) == [Gpu("Apple M3 Max", cores=30)]
    # the hardware section counts CPU cores, with both kinds in brackets
    assert host_parse.apple_gpus("Total Number of Cores: 14 (10 performance and 4 efficiency)\n") == []


def test_memory():
    assert host_parse.cgroup_room("max\n", "1\n", "") is None
    assert host_parse.cgroup_room("9223372036854771712", "1", "") is None  # v1's "no limit"
    assert host_parse.cgroup_room("1000", "900", "anon 1\ninactive_file 300\n") == (1000, 400)
    text = "Mach Virtual Memory Statistics: (page size of 16384 bytes)\nPages free:  10.\nPages inactive:  5.\n"
    assert host_parse.vm_stat_available(text) == 15 * 16384
    assert host_parse.vm_stat_available("") is None


@pytest.mark.parametrize(
    ("supplies", "expected"),
    [
        ([], None),
        ([{"type": "Mains", "online": "1"}, {"type": "Battery", "status": "Charging"}], "ac"),
        ([{"type": "Mains", "online": "0"}, {"type": "Battery", "status": "Discharging"}], "battery"),
        ([{"type": "Battery", "status": "Discharging", "scope": "Device"}], None),  # a mouse
    ],
)
def test_power_linux(supplies, expected):
    assert host_parse.power_linux(supplies) == expected


def test_power_macos():
    assert host_parse.power_macos("Now drawing from 'AC Power'\n") == "ac"
    assert host_parse.power_macos("Now drawing from 'Battery Power'\n -InternalBattery-0 90%") == "battery"
    assert host_parse.power_macos("") is None


@pytest.mark.parametrize(
    ("facts", "threads"),
    [
        ({"physical_cores": 16, "logical_cores": 24, "performance_cores": 8}, 8),
        ({"physical_cores": 8, "logical_cores": 16}, 8),
        ({"logical_cores": 3}, 3),
        ({"physical_cores": 64, "logical_cores": 128, "usable_cpus": 4}, 4),  # a slice of a server
        ({}, 1),
    ],
)
def test_default_threads(facts, threads):
    assert host.default_threads(Host(**facts)) == threads


CHIPS = [
    SimpleNamespace(id=name, match=match)
    for name, match in {
        "m3-max-30c": {"apple": "Apple M3 Max", "gpu_cores": 30},
        "m3-max-40c": {"apple": "Apple M3 Max", "gpu_cores": 40},
        "3080-10": {"nvidia": "NVIDIA GeForce RTX 3080", "memory_gb": 10},
        "3080-12": {"nvidia": "NVIDIA GeForce RTX 3080", "memory_gb": 12},
        "4090": {"nvidia": "NVIDIA GeForce RTX 4090", "memory_gb": 24},
        "h100": {"nvidia": "NVIDIA H100 80GB HBM3", "memory_gb": 80},
    }.items()
]


@pytest.mark.parametrize(
    ("cpu", "gpus", "candidates"),
    [
        ("Apple M3 Max", [Gpu("Apple M3 Max", cores=30)], ["m3-max-30c"]),
        ("Apple M3 Max", [Gpu("Apple M3 Max")], ["m3-max-30c", "m3-max-40c"]),
        ("Apple M3 Max", [], ["m3-max-30c", "m3-max-40c"]),
        ("Apple M3", [Gpu("Apple M3", cores=10)], []),
        ("x", [Gpu("GeForce RTX 3080", 10240 * 2**20)], ["3080-10"]),  # a driver from before the brand
        ("x", [Gpu("NVIDIA GeForce RTX 3080")], ["3080-10", "3080-12"]),
        ("x", [Gpu("NVIDIA GeForce RTX 4090", 24564 * 2**20)], ["4090"]),
        ("x", [Gpu("NVIDIA GeForce RTX 4090 Laptop GPU", 16376 * 2**20)], []),
        ("x", [Gpu("NVIDIA H100 80GB HBM3", 81559 * 2**20)], ["h100"]),
        ("x", [Gpu("NVIDIA H100 80GB HBM3", 81559 * 2**20, partitioned=True)], []),
        ("QEMU Virtual CPU version 2.5+", [], []),
    ],
)
def test_a_chip_is_found_or_left_open_but_never_guessed(cpu, gpus, candidates):
    machine = Host(cpu=cpu, gpus=gpus)
    assert [chip.id for chip in host.chip_candidates(machine, CHIPS)] == candidates
    found = host.find_chip(machine, CHIPS)
    assert (found.id if found else None) == (candidates[0] if len(candidates) == 1 else None)


def test_two_gpus_are_not_one_chip():
    assert host.find_chip(Host(gpus=[Gpu("NVIDIA GeForce RTX 4090", 24 * 2**30)] * 2), CHIPS) is None


def test_chip_key():
    assert host.chip_key(Host(cpu="Apple M4", gpus=[Gpu("Apple M4", cores=10)])) == "Apple M4 (10-core GPU)"
    assert host.chip_key(Host(cpu="x", gpus=[Gpu("GeForce RTX 3080")])) == "NVIDIA GeForce RTX 3080"
    assert host.chip_key(Host(cpu="AMD EPYC")) == "AMD EPYC"


def test_this_machine():
    here = host.collect()
    assert here.logical_cores >= 1
    assert here.memory_bytes is None or here.available_bytes <= here.memory_bytes
    text = json.dumps(here.as_json())
    assert host.platform.node() not in text.replace('"', " ").split()


def test_every_chip_in_the_table_can_be_told_apart():
    """Any two chips differ in what a host says; a host that says it all finds exactly one."""
    from macros import labdata

    chips = labdata.load().chips
    assert len(chips) > 100
    for chip in chips:
        match = chip.match
        if "apple" in match:
            machine = Host(cpu=match["apple"], gpus=[Gpu(match["apple"], cores=match["gpu_cores"])])
        else:
            size = match.get("memory_gb")
            machine = Host(gpus=[Gpu(match["nvidia"], size * 2**30 if size else None)])
        assert host.find_chip(machine, chips) is chip
