"""The diagnosis names what the corpus's posters found out themselves, without reading their notes."""

from __future__ import annotations

import pytest

from macros import accuracy, diagnose
from macros.diagnose import Symptom


def named(row_id: str) -> list[str]:
    row = next(r for r in accuracy.scored() if r["id"] == row_id)
    return [c.cause for c in diagnose.causes(accuracy.symptom(accuracy.scored(), row))]


@pytest.mark.parametrize("row, cause", [
    ("m1134", "weights on one NUMA node"),  # "2 NUMA nodes, no --numa flag seen: decode at ~8% of spec bandwidth"
    ("m1216", "a second GPU in the split"),  # "layers were split onto V3D, decode collapsed"
    ("m0447", "some layers left on the CPU"),  # "30.64 on a 12 GB card: partial offload suspected"
    ("m1074", "thermal or power limit"),  # "fanless batch run: thermal throttling suspected"
    ("m1098", "a second GPU in the split"),  # "two cards, layer split: slower than one"
])  # fmt: skip
def test_cases_whose_cause_is_known(row, cause):
    assert cause in named(row)[:2]


def test_nothing_is_read_from_the_notes():
    assert "notes" not in Symptom.__dataclass_fields__


@pytest.mark.parametrize("symptom, first", [
    (Symptom(0.1, 0.02, "RTX 3090", "CUDA", n_gpu_layers=0), "CPU fallback: no layers offloaded"),
    (Symptom(0.02, 0.02, "Core i5", "CPU", file_bytes=40e9, memory_bytes=16e9), "swap: the weights do not stay in memory"),
    (Symptom(1.0, 0.25, "RX 9070 XT", "Vulkan-amd"), "driver without matrix units (no cooperative matrix)"),
    (Symptom(0.52, 0.95, "Ryzen 7 5700G, desktop", "CPU"), "memory in one channel"),
    (Symptom(0.3, 0.9, "RTX 3060", "CUDA", file_bytes=11.9e9, memory_bytes=12e9), "some layers left on the CPU"),
    (Symptom(0.75, 0.5, "RTX 3090", "CUDA", build=2824), "an old or an early build"),
])  # fmt: skip
def test_textbook_symptoms(symptom, first):
    found = diagnose.causes(symptom)
    assert found[0].cause == first
    assert all(c.check for c in found) and [c.fit for c in found] == sorted((c.fit for c in found), reverse=True)


def test_causes_fit_the_machine():
    cpu = {c.cause for c in diagnose.causes(Symptom(0.4, 0.5, "AMD EPYC 9655", "CPU"), 20)}
    assert not cpu & {"a second GPU in the split", "CPU fallback: no layers offloaded", "a display or another program on the GPU"}
    gpu = {c.cause for c in diagnose.causes(Symptom(0.4, 0.5, "RTX 3090", "CUDA"), 20)}
    assert not gpu & {"weights on one NUMA node", "efficiency cores in the thread pool", "memory in one channel"}
