"""The hardware table against physics, against itself, and against what vendors print."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

import pytest

from macros import hardware, labdata
from macros.hardware import Chip
from macros.labdata import LabError

LAB = labdata.load()
BY_ID: dict[str, Chip] = {chip.id: chip for chip in LAB.chips}
FILES = sorted(p.stem for p in (labdata.ROOT / "chips").glob("*.yml"))


def figures(chip: Chip) -> list:
    return [chip.memory_bandwidth, *chip.peaks]


def test_the_table_is_whole():
    assert len(LAB.chips) == len(BY_ID) > 250
    assert FILES == ["amd", "apple", "boards", "intel", "memory", "nvidia"]
    assert sum(chip.bus is not None for chip in LAB.chips) > 220
    assert {p.precision for chip in LAB.chips for p in chip.peaks} == {"fp16", "fp32", "int8"}


@pytest.mark.parametrize(
    ("chip", "bandwidth", "precision", "accumulate", "peak"),
    [
        # Apple prints the bandwidth; compute is cores x 256 FLOP x clock (1.296, 1.398, 1.578 GHz)
        ("apple-m1-max-32c", 400, "fp16", None, 10.62),
        ("apple-m2-10c", 100, "fp16", None, 3.58),
        ("apple-m4-10c", 120, "fp16", None, 4.04),
        ("apple-m4-max-40c", 546, "fp16", None, 16.16),
        ("apple-m3-ultra-80c", 819, "fp16", None, 28.26),
        # NVIDIA's RTX Blackwell whitepaper, Table 3: dense, fp32 sums
        ("nvidia-rtx-3090", 936, "fp16", "fp32", 71.2),
        ("nvidia-rtx-4090", 1008, "fp16", "fp32", 165.2),
        ("nvidia-rtx-4090", 1008, "fp16", "fp16", 330.3),
        ("nvidia-rtx-5090", 1792, "fp16", "fp32", 209.5),
        # Turing whitepaper, reference card
        ("nvidia-rtx-2080-ti", 616, "fp16", "fp32", 53.8),
        ("nvidia-rtx-2080-ti", 616, "fp16", "fp16", 107.6),
        # data centre pages
        ("nvidia-a100-sxm4-80gb", 2039, "fp16", "fp32", 312),
        ("nvidia-a100-pcie-80gb", 1935, "int8", None, 624),
        ("nvidia-h100-sxm5-80gb", 3350, "fp16", "fp32", 989.4),
        ("nvidia-h200-sxm", 4800, "int8", None, 1979),
        ("nvidia-l40", 864, "fp16", None, 181.05),
        ("nvidia-l40s", 864, "fp16", None, 362),
        ("nvidia-a40", 696, "int8", None, 299.3),
        ("nvidia-t4", 320, "fp16", None, 65.1),
        ("nvidia-tesla-p40", 347, "fp32", None, 11.76),
        ("amd-rx-7900-xtx", 960, "fp16", None, 122.8),
        ("amd-rx-9070-xt", 640, "fp16", None, 195),
        ("amd-instinct-mi300x", 5300, "fp16", None, 1307.4),
        ("amd-ryzen-ai-max-395", 256, "fp16", None, 59.4),
        ("intel-arc-b580", 456, "int8", None, 233),
    ],
)
def test_figures_as_vendors_print_them(chip, bandwidth, precision, accumulate, peak):
    row = BY_ID[chip]
    assert row.memory_bandwidth.value == pytest.approx(bandwidth, rel=0.001)
    assert row.peak(precision, accumulate).value == pytest.approx(peak, rel=0.003)


@pytest.mark.parametrize("chip", [c for c in LAB.chips if c.bus], ids=lambda c: c.id)
def test_bandwidth_is_bus_width_times_data_rate(chip: Chip):
    """Within 0.7 % where a database computed it; vendors' own pages round to two digits."""
    wire = chip.bus.bits / 8 * chip.bus.gbit_s
    rounded = LAB.chip_sources[chip.memory_bandwidth.source].kind == "published" and chip.memory_bandwidth.source != "techpowerup"
    assert chip.memory_bandwidth.value == pytest.approx(wire, rel=0.03 if rounded else 0.007)


def test_derived_figures_follow_from_their_formulas():
    """"46 SM x 512 FLOP x 2.475 GHz" and "128 bit x 7500 MT/s" are worked out again."""
    checked = 0
    for chip in LAB.chips:
        for figure in figures(chip):
            if match := re.match(r"(\d+) (?:SM|CU|cores) x (\d+) FLOP x ([\d.]+) GHz", figure.note or ""):
                assert figure.value == pytest.approx(int(match[1]) * int(match[2]) * float(match[3]) / 1000, rel=0.006), chip.id
                checked += 1
            elif match := re.match(r"(\d+) bit x (\d+) MT/s", figure.note or ""):
                assert figure.value == pytest.approx(int(match[1]) * int(match[2]) / 8000, rel=0.005), chip.id
                checked += 1
    assert checked > 150


def test_tensor_cores_keep_their_ratios():
    """int8 is twice fp16 with fp16 sums; GeForce runs fp32 sums at half of that."""
    halved = whole = 0
    for chip in LAB.chips:
        int8, wide, narrow = chip.peak("int8"), chip.peak("fp16", "fp32"), chip.peak("fp16", "fp16")
        if not chip.id.startswith("nvidia") or not int8 or int8.via != "tensor" or not wide:
            continue
        if narrow:
            assert (narrow.value / wide.value, int8.value / wide.value) == pytest.approx((2, 4), rel=0.006), chip.id
            halved += "GeForce" in chip.name
        else:
            assert int8.value / wide.value == pytest.approx(2, rel=0.006), chip.id
            whole += 1
    assert halved > 40 and whole > 20


def test_every_figure_has_a_source_that_leads_somewhere():
    for name in FILES:
        table = labdata.parse(labdata.Chips, labdata.ROOT / "chips" / f"{name}.yml", name)
        used = {f.source for chip in table.chips for f in figures(chip)}
        assert used == set(table.sources), name
        for chip in table.chips:
            for figure in figures(chip):
                source = table.sources[figure.source]
                assert source.url or source.kind == "derived" or figure.confidence == "low", (chip.id, figure.source)
                assert not figure.page or source.url
                # a database's page is that of this very chip
                assert figure.source not in ("techpowerup", "nvidia-clock", "amd-clock") or figure.page, chip.id


def test_what_could_not_be_confirmed_is_left_out_or_marked():
    for chip in ("apple-m5-pro-16c", "apple-m5-max-40c", "nvidia-titan-v", "nvidia-a10g", "nvidia-rtx-pro-6000-blackwell-server", "intel-arc-a750", "intel-arc-pro-b50"):
        assert not BY_ID[chip].peaks and any("left out" in n or "No compute" in n for n in BY_ID[chip].notes), chip
    assert BY_ID["nvidia-rtx-4000-ada"].peak("fp16").confidence == "low"
    assert BY_ID["apple-m3-max-40c"].peak("fp16").confidence == "low"
    assert BY_ID["nvidia-rtx-pro-6000-blackwell-server"].memory_bandwidth.value == 1597  # not the Workstation's 1792
    assert not any("qcs6490" in chip for chip in BY_ID)
    # Pascal's fp16 is of no use, so no figure of it can be taken for a roof
    assert BY_ID["nvidia-tesla-p40"].peak("fp16") is None and BY_ID["nvidia-gtx-1080"].peak("fp16") is None
    assert all(chip.notes or chip.peaks or chip.kind in ("memory", "soc") for chip in LAB.chips)


def test_a_name_that_covers_two_memories_has_a_row_for_each():
    pairs = [("apple-m3-max-30c", "apple-m3-max-40c", 300, 400), ("nvidia-rtx-3080-10gb", "nvidia-rtx-3080-12gb", 760, 912),
             ("nvidia-rtx-3060-ti", "nvidia-rtx-3060-ti-gddr6x", 448, 608.3), ("intel-arc-a770-8gb", "intel-arc-a770-16gb", 512, 560),
             ("apple-m6-12c-16gb", "apple-m6-12c", 153, 170)]  # fmt: skip
    for a, b, slow, fast in pairs:
        assert BY_ID[a].match.names == BY_ID[b].match.names
        assert (BY_ID[a].memory_bandwidth.value, BY_ID[b].memory_bandwidth.value) == (slow, fast)


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        ("apple", "value: 546, unit", "value: 646, unit", None),  # no bus is recorded there
        ("nvidia", "value: 936, unit", "value: 963, unit", None),  # within rounding
        ("nvidia", "value: 936, unit", "value: 1036, unit", ("chips.", "memory_bandwidth: 384 bit x 19.5 Gbit/s / 8 is 936.0 GB/s; got 1036")),
        ("nvidia", "value: 936, unit: GB/s", "value: 936, unit: GB", ("memory_bandwidth: not a bandwidth's unit; got 'GB'",)),
        ("nvidia", "id: nvidia-rtx-3090-ti", "id: nvidia-rtx-3090", ("id: given twice; got 'nvidia-rtx-3090'",)),
        ("amd", "id: amd-rx-580", "id: nvidia-l4", ("nvidia.yml: chips.", "id: given twice; got 'nvidia-l4'", "amd.yml")),
        ("amd", "title: TechPowerUp GPU database", "title: Another database", ("sources.techpowerup: differs", "labdata/chips/amd.yml")),
        ("intel", "source: arc-b-launch", "source: arc-launch", ("peaks.1.source: not in this file's sources; got 'arc-launch'",)),
        ("intel", "precision: int8, via: matrix", "precision: int4, via: matrix", ("peaks.1.precision", "'int4'")),
        ("boards", "memory_gb: [2, 16]", "memory_gb: [16, 2]", ("memory_gb: not in ascending order",)),
        ("boards", "cores: 4 Cortex-A76", "core: 4 Cortex-A76", ("core: unknown key", "cores")),
    ],
)
def test_a_mistake_in_the_table_is_named(tmp_path: Path, file, old, new, expected):
    root = tmp_path / "labdata"
    shutil.copytree(labdata.ROOT, root)
    path = root / "chips" / f"{file}.yml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    if expected is None:
        labdata.load(root)
        return
    with pytest.raises(LabError) as caught:
        labdata.load(root)
    assert any(all(words in p for words in expected) for p in caught.value.problems), caught.value.problems


def test_the_table_loads_in_a_fraction_of_a_second():
    """About 0.1 s idle; the bound leaves room for a busy machine."""
    best = min(_load_s() for _ in range(3))
    assert best < 1.0


def _load_s() -> float:
    began = time.perf_counter()
    for name in FILES:
        labdata.parse(labdata.Chips, labdata.ROOT / "chips" / f"{name}.yml", name)
    return time.perf_counter() - began


def test_two_figures_of_one_chip_never_need_two_pages_of_one_source():
    """A machine's card keeps one source of a name, with the page of its figure."""
    for chip in LAB.chips:
        best = chip.peak("fp16") or chip.peak("fp32")
        pages = {(f.source, f.page) for f in (chip.memory_bandwidth, best) if f}
        assert len(pages) == len({source for source, _ in pages}), chip.id
        bandwidth, peak, sources = hardware.roofs(chip, LAB.chip_sources)
        assert {bandwidth.source, *([peak.source] if peak else [])} == set(sources)
