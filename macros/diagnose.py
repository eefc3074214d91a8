"""Why a measurement lies far below its interval: likely causes, ranked, each with the check that settles it.

The weights are judgement, not statistics: each rule says what its cause does to decode and to prefill,
and on which machines it happens at all. `tests/test_diagnose.py` holds them to the corpus's known cases.
Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from macros.calibrated import NEW_BUILD

SERVER = re.compile(r"EPYC|Xeon|Threadripper|Graviton|Altra", re.I)
HYBRID = re.compile(r"i[3579]-1[2-9]\d{3}|Core Ultra|Ryzen AI|RK3588|Snapdragon|Dragon Q|Apple M\d", re.I)
PORTABLE = re.compile(r"\bAir\b|MacBook|laptop|mobile|notebook|phone|tablet|Legion Go|Deck|fanless", re.I)
SMALL_HOST = re.compile(r"\bPi \d|Raspberry|RK3588|Orange Pi|eGPU|Thunderbolt|OCuLink|x1\b", re.I)
SEVERAL = re.compile(r"\b[2-9]\s?x\b|\b[2-9]×|#\d| \+ ", re.I)


@dataclass(frozen=True)
class Symptom:
    """A measurement over its prediction, and what is known of how it came about.

    Args:
        decode, prefill: measured over predicted rate [1]; None: not measured
        machine: how the machine was described, chip included
        backend: as the predictor groups it
        n_gpu_layers: layers asked onto the GPU; None: not recorded
        file_bytes, memory_bytes: of the model, and of the memory it must fit in [B]; None: not known
    """

    decode: float | None
    prefill: float | None
    machine: str
    backend: str
    build: int | None = None
    n_gpu_layers: int | None = None
    n_threads: int | None = None
    file_bytes: float | None = None
    memory_bytes: float | None = None

    @property
    def gpu(self) -> bool:
        """Whether a GPU should have done the work."""
        return self.backend != "CPU"

    @property
    def worst(self) -> float:
        """The lower of the two ratios [1]."""
        return min(r for r in (self.decode, self.prefill, 1.0) if r is not None)


@dataclass(frozen=True)
class Cause:
    """A likely cause, how well it fits (0 to 1), and the check that settles it."""

    cause: str
    fit: float
    check: str


def causes(s: Symptom, most: int = 4) -> list[Cause]:
    """Likely causes of a rate far below its prediction, the best fitting first."""
    found = [Cause(name, round(score, 2), check) for name, rule, check in RULES if (score := rule(s)) > 0]
    return sorted(found, key=lambda c: -c.fit)[:most]


def _near(ratio: float | None, low: float, high: float) -> float:
    """1 within a range of ratios, falling to 0 at half and at twice its ends; 0.5 where not measured."""
    if ratio is None:
        return 0.5
    if ratio < low:
        return max(0.0, 1 - 2 * (1 - ratio / low))
    return 1.0 if ratio <= high else max(0.0, 2 - ratio / high)


def _numa(s: Symptom) -> float:
    return 0.0 if s.gpu or not SERVER.search(s.machine) else 0.95 * _near(s.decode, 0.05, 0.5)


def _no_layers(s: Symptom) -> float:
    if not s.gpu:
        return 0.0
    if s.n_gpu_layers == 0:
        return 1.0
    return 0.7 * min(_near(s.decode, 0.03, 0.3), _near(s.prefill, 0.005, 0.1))


def _partial(s: Symptom) -> float:
    if not s.gpu or s.decode is None:
        return 0.0
    tight = s.file_bytes is not None and s.memory_bytes is not None and s.file_bytes > 0.8 * s.memory_bytes
    unified = "Metal" in s.backend or "GB10" in s.machine
    return (0.95 if tight else 0.2 if unified else 0.8) * min(_near(s.decode, 0.1, 0.5), _near(s.prefill, 0.4, 1.3))


def _second_gpu(s: Symptom) -> float:
    if not s.gpu or re.search(r"Apple|GB10", s.machine):
        return 0.0  # one GPU, and no other to split with
    likely = 0.9 if SEVERAL.search(s.machine) else 0.5
    return likely * max(_near(s.decode, 0.5, 0.85), 0.95 * _near(s.decode, 0.05, 0.3))


def _heat(s: Symptom) -> float:
    likely = 0.9 if PORTABLE.search(s.machine) else 0.35
    return likely * min(_near(s.decode, 0.3, 0.8), _near(s.prefill, 0.4, 0.95))


def _small_cores(s: Symptom) -> float:
    return 0.0 if s.gpu or not HYBRID.search(s.machine) else 0.7 * _near(s.decode, 0.4, 0.85)


def _swap(s: Symptom) -> float:
    if s.file_bytes is None or s.memory_bytes is None:
        return 0.25 * _near(s.decode, 0.001, 0.1)
    return 0.98 * _near(s.decode, 0.001, 0.2) if s.file_bytes > 0.85 * s.memory_bytes else 0.0


def _old_build(s: Symptom) -> float:
    if s.build is None:
        return 0.3 * _near(s.prefill, 0.4, 0.8)
    return (0.75 if s.build < NEW_BUILD else 0.4) * max(_near(s.prefill, 0.4, 0.8), 0.8 * _near(s.decode, 0.5, 0.8))


def _one_channel(s: Symptom) -> float:
    shared = not s.gpu or re.search(r"iGPU|Ryzen AI|Z1|780M|890M|Iris|UHD", s.machine)
    return 0.0 if not shared or SERVER.search(s.machine) else 0.65 * min(_near(s.decode, 0.4, 0.65), _near(s.prefill, 0.6, 1.3))


def _no_matrix_units(s: Symptom) -> float:
    if not s.backend.startswith("Vulkan") or s.prefill is None:
        return 0.0
    return 0.85 * min(_near(s.prefill, 0.1, 0.45), _near(s.decode, 0.7, 1.3))


def _slow_host(s: Symptom) -> float:
    if not s.gpu or not SMALL_HOST.search(s.machine):
        return 0.0
    return 0.85 * _near(s.prefill, 0.1, 0.5)


def _translated(s: Symptom) -> float:
    return 0.9 if s.backend == "Vulkan-apple" else 0.0


def _display(s: Symptom) -> float:
    return 0.5 * _near(s.decode, 0.82, 0.92) if s.gpu and s.backend != "Metal" else 0.0


RULES: tuple[tuple[str, Callable[[Symptom], float], str], ...] = (
    ("weights on one NUMA node", _numa, "`numactl --hardware`; again with `--numa distribute`, page cache dropped first"),
    ("CPU fallback: no layers offloaded", _no_layers, "the log line “offloaded N/N layers to GPU”; again with `-ngl 99`"),
    ("some layers left on the CPU", _partial, "“offloaded N/N layers” and the memory free on the GPU; a smaller file or context"),
    ("a second GPU in the split", _second_gpu, "`llama-bench --list-devices`; again with `-sm none -mg 0`, or one device made visible"),
    ("thermal or power limit", _heat, "clock and temperature during the test; again cold, on mains power, with `-r 1` and a pause"),
    ("efficiency cores in the thread pool", _small_cores, "`-t` at the number of performance cores; threads pinned"),
    ("swap: the weights do not stay in memory", _swap, "page faults in `vmstat 1` during the test; a smaller file; `--mlock`"),
    ("an old or an early build", _old_build, "the build number; again with today's release"),
    ("memory in one channel", _one_channel, "`sudo dmidecode -t memory` for the slots filled; a read-bandwidth test"),
    ("driver without matrix units (no cooperative matrix)", _no_matrix_units, "the device line “matrix cores: none”; a newer driver"),
    ("a slow host: few PCIe lanes or weak cores feed the GPU", _slow_host, "`lspci -vv` for the link's width and speed; one CPU core at 100 % during prefill"),
    ("Vulkan translated to Metal", _translated, "a Metal build of the same release"),
    ("a display or another program on the GPU", _display, "processes on the GPU; again headless"),
)
