"""Intervals: what they hold on chips not seen, class by class, and that no row of a chip has a say in its own."""

from __future__ import annotations

import json
import math
import random

import pytest

from macros import accuracy, accuracy_exhibits, calibration, chip_names, corpus, fit, noise, predict_cli, spread
from macros.corpus_models import NotPredictable


@pytest.fixture(scope="module")
def rows():
    return fit.known_rows(corpus.measurements())


@pytest.fixture(scope="module")
def off(rows):
    return {r.id: math.log(r.tok_s / calibration.fitted()["held_out"][r.id][0]) for r in rows}


@pytest.fixture(scope="module")
def sigma(rows):
    return {r.id: calibration.fitted()["held_out"][r.id][3] for r in rows}


def test_all_rows_and_most_classes_hold_what_they_promise():
    """75 to 85 % over all, and no class of 30 rows so far off that its number of rows does not explain it."""
    assert 0.75 <= accuracy.headline()["all"]["coverage"] <= 0.85
    large = [c for c in accuracy.by_class() if c["rows"] >= accuracy.LEAST_ROWS]
    assert len(large) > 20
    assert sum(0.75 <= c["coverage"] <= 0.85 for c in large) > 0.85 * len(large)
    for c in large:
        assert c["coverage_low"] <= 0.80 <= c["coverage_high"], c["class"]


def test_every_class_the_page_lists_has_a_width_of_its_own(rows):
    """A class of 30 rows or more on the page is one the intervals know, with the same rows in it."""
    inside = {r["id"]: r["inside"] for r in accuracy.scored()}
    own = {}
    for r in rows:
        if r.case.kind != "mixed":
            for name in calibration.case_classes(r.case):
                own.setdefault(name, set()).add(r.id)
    for c in accuracy.by_class():
        phase, _, name = c["class"].partition(", ")
        if c["rows"] >= accuracy.LEAST_ROWS:
            plain = {"other backends": "other backend", "other formats": "other quant", "other architectures": "other arch"}.get(name, name)
            mine = own[f"{phase}, {plain}" if name else phase]
            assert len(mine) == c["rows"], c["class"]
            assert sum(inside[id] for id in mine) / len(mine) == pytest.approx(c["coverage"])


def test_a_chips_rows_have_no_say_in_their_own_interval(rows, off, sigma):
    """The committed ends of one chip are the regression's on the other chips' misses, at one of the levels."""
    mine, others = [r for r in rows if r.chip == "RTX 3070"], [r for r in rows if r.chip != "RTX 3070"]
    assert len(mine) >= 8
    ends = [spread.intervals(others, off, sigma, level) for level in spread.LEVELS]
    for phase in spread.PHASES:
        apart = []
        for of in ends:
            worst = 0.0
            for r in mine:
                if r.case.kind == phase:
                    rate, low, high, _ = calibration.fitted()["held_out"][r.id]
                    again = calibration.interval(calibration.case_classes(r.case), sigma[r.id], of)
                    worst = max(worst, abs(low / rate / again[0] - 1), abs(high / rate / again[1] - 1))
            apart.append(worst)
        assert 0 < min(apart) < 0.01


def made(chips: int, each: int, seed: int) -> tuple[list[fit.Known], dict[str, float]]:
    """Rows of made-up chips whose misses are known: a chip's own, a row's own, three times as wide for MoE."""
    found, off, chance = [], {}, random.Random(seed)
    dense = next(r for r in corpus.measurements() if r["test"] == "tg128" and r["is_moe"] == "0" and r["backend"] == "CUDA")
    moe = next(r for r in corpus.measurements() if r["test"] == "tg128" and r["is_moe"] == "1" and r["backend"] == "CUDA")
    prompt = next(r for r in corpus.measurements() if r["test"] == "pp512" and r["backend"] == "CUDA")
    cases = [corpus.case(row) for row in (dense, moe, prompt)]
    for chip in range(chips):
        own = chance.gauss(0, 0.1)
        for i in range(each):
            case = cases[i % 3]
            row = fit.Known(f"{chip}-{i}", f"chip {chip}", f"machine {chip}", case, 1.0)
            found.append(row)
            off[row.id] = (3 if case.loads[0].moe else 1) * (own + chance.gauss(0, 0.1))
    return found, off


def test_new_chips_are_held_class_by_class():
    """Learnt on 24 made-up chips that miss together, three times over: 100 new ones are held to about 80 % in each class.

    One corpus of 24 chips knows a quantile to some 7 % of its rows, the mean of three to 4 %.
    """
    inside: dict[str, list[bool]] = {}
    for seed in (3, 7, 11):
        rows, off = made(24, 6, seed)
        held_out = spread.HeldOut(rows, off, dict.fromkeys(off, 0.1))
        assert held_out.level("decode") > 0.80  # chips' rows miss together, so the plain level would hold too few
        learnt = held_out.chosen()
        new, misses = made(100, 6, seed=4)
        for r in new:
            low, high = calibration.interval(calibration.case_classes(r.case), 0.1, learnt)
            inside.setdefault(f"{r.case.kind} {r.case.loads[0].moe}", []).append(low <= math.exp(misses[r.id]) <= high)
    held = {name: sum(hits) / len(hits) for name, hits in inside.items()}
    assert len(held) == 3 and all(0.70 <= share <= 0.90 for share in held.values()), held
    assert 0.74 <= sum(held.values()) / 3 <= 0.86, held


def test_the_level_of_a_chip_is_not_its_own_rows_choice():
    """A chip whose misses are absurd changes its own score, not the level chosen for it."""
    rows, off = made(12, 3, seed=5)
    held = spread.HeldOut(rows, off, dict.fromkeys(off, 0.1))
    before = held.level("decode", "chip 0")
    held.off = off | {r.id: 5.0 for r in rows if r.chip == "chip 0"}
    assert held.level("decode", "chip 0") == before


def test_share_intervals_are_wilsons():
    """Newcombe 1998, table I, method 3."""
    for hits, n, low, high in ((81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)):
        assert noise.share_interval(hits, n) == pytest.approx((low, high), abs=5e-5)


def test_the_page_counts_its_classes():
    facts = accuracy_exhibits.facts()
    named = [c for part in ("off", "maybe_off") for c in facts[part].split("; ") if c]
    assert facts["classes_kept"] + len(named) == facts["classes"]


@pytest.mark.parametrize("name, peak, how", [
    ("RTX 3090", 71e12, "labdata/chips"),  # NVIDIA: 71 TFLOP/s dense, fp32 sums
    ("Apple M4 10c", 10 * 128 * 2 * 1.578e9, "labdata/chips"),
    ("Apple M5 10c", 10 * 128 * 2 * 1.578e9, "shaders at the M4's clock, assumed"),
    ("GTX 1080 Ti", 11.34e12, "labdata/chips"),
])  # fmt: skip
def test_peaks_come_from_the_hardware_table(name, peak, how):
    found = chip_names.peak_of(name)
    assert found and found[0] == pytest.approx(peak, rel=0.005) and found[1] == how


def test_a_peak_nobody_published_is_no_number():
    assert chip_names.peak_of("Arc A310") is None and chip_names.peak_of("RTX 3080") is None


def test_a_file_larger_than_the_chips_memory_is_a_reason():
    row = next(r for r in corpus.measurements() if r["chip"] == "RTX 3070" and r["test"] == "tg128")
    with pytest.raises(NotPredictable, match=r"model_size_gib: does not fit: .*RTX 3070 has 8"):
        corpus.case(row | {"model_size_gib": "12.55"})
    with pytest.raises(NotPredictable, match="does not fit"):
        corpus.case(row | {"depth": "100000"})


def test_a_chips_memory_bounds_the_command_too(capsys):
    assert predict_cli.main(["RTX 3070", "qwen3-8b-q8_0"]) == 1
    assert "does not fit" in capsys.readouterr().err


def ask(capsys, *arguments: str) -> list[dict]:
    assert predict_cli.main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)["tests"]


def test_a_batch_reads_the_weights_once(capsys):
    """By hand: below the crossover a step of B sequences costs one read of the weights and B caches."""
    single, _, two = ask(capsys, "RTX 3090", "qwen3-8b-q4_k_m", "--batch", "2")
    parts = {name: p["seconds"] for name, p in single["parts"].items()}
    assert two["tok_s"] == pytest.approx(2 / (parts["weights"] + 2 * parts["kv"] + parts["fixed"]), rel=0.02)
    assert two["binds"] == "memory" and "derived, unscored" in two["note"]
    *_, many = ask(capsys, "RTX 3090", "qwen3-8b-q4_k_m", "--batch", str(two["compute_bound_from"]))
    assert many["binds"] == "compute" and many["tok_s"] > two["tok_s"]
    # From there on more sequences share nothing: the rate of all together stays below the prompt's.
    *_, most = ask(capsys, "RTX 3090", "qwen3-8b-q4_k_m", "--batch", "100")
    assert most["tok_s"] < 1.3 * many["tok_s"]
