"""Host facts against what real machines print (shortened), oddities first."""

from __future__ import annotations

import json

import pytest

from bench import host, host_parse
from bench.gpu_parse import Gpu
from bench.host import Host

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
