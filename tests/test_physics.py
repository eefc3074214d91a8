"""Physics against the world: published sizes, hand-worked numbers, and laws that must hold."""

from __future__ import annotations

import pytest

from macros import labdata, predict, roofline, work

LAB = labdata.load()
M4 = LAB.machines["apple-m4-24gb"]
Q4, Q8 = LAB.models["qwen3-8b-q4_k_m"], LAB.models["qwen3-8b-q8_0"]


@pytest.mark.parametrize(
    ("model", "published_gb"),
    [("qwen3-8b-q4_k_m", 5.03), ("qwen3-8b-q8_0", 8.71)],  # file sizes on the hub
)
def test_the_recipe_comes_to_the_published_file_size(model: str, published_gb: float):
    assert work.total_bytes(LAB.models[model].table()) / 1e9 == pytest.approx(published_gb, rel=0.003)


@pytest.mark.parametrize(
    ("shape", "params"),  # llama-bench's own counts; Qwen's model cards give 0.6, 1.7, 4.0 and 8.2 B
    [("0.6b", 596_049_920), ("1.7b", 1_720_574_976), ("4b", 4_022_468_096), ("8b", 8_190_735_360)],
)
def test_parameter_counts(shape: str, params: int):
    assert work.total_params(LAB.models[f"qwen3-{shape}-q8_0-synthetic"].table()) == params


def test_exact_shares_of_day_1():
    decode = 20.80 * predict.exact_decode_bytes(Q4) / 120e9
    q8 = 12.52 * predict.exact_decode_bytes(Q8) / 120e9
    flops = predict.exact_prefill_flops_per_token(Q4, 512)
    assert [round(x, 2) for x in (decode, q8, 228.94 * flops / 4.4e12, 228.94 * flops / 4.04e12)] == [0.81, 0.84, 0.73, 0.80]


def test_prefill_flops_by_hand():
    # 2 x 6,945,767,424 x 512 + 4 x 36 x 32 x 128 x (512 x 513 / 2) + 2 x 151,936 x 4,096
    assert work.prefill(Q4.structure(), 512).flops == 7_112_465_842_176 + 77_460_406_272 + 1_244_659_712


def test_kv_cache_of_llama_2_7b():
    # llama.cpp logs "KV self size = 2048.00 MiB" for 4096 cells: 32 layers, 32 heads, 128, f16
    assert 4096 * roofline.kv_bytes_per_token(32, 32, 128) == 2048 * 2**20


@pytest.mark.parametrize("model", sorted(LAB.models))
def test_deeper_is_never_faster_and_never_above_the_roof(model: str):
    card = LAB.models[model]
    decode = [predict.decode_depth_ratio(card, d) for d in (0, 1, 512, 8192, 131072)]
    prefill = [predict.prefill_depth_ratio(card, d) for d in (0, 1, 512, 8192, 131072)]
    for ratios in (decode, prefill):
        assert ratios[0] == 1
        assert all(a > b > 0 for a, b in zip(ratios, ratios[1:]))
    assert predict.exact_decode_bytes(card) <= work.total_bytes(card.table())


def test_kv_cells_are_padded_as_llama_cpp_pads_them():
    assert work.kv_cells(0) == 256
    assert work.kv_cells(256) == 512
    assert work.kv_cells(2048, 128) == 2304


@pytest.mark.parametrize("bad", [("Q4_K", 255), ("Q5_X", 256)])
def test_unknown_types_and_broken_blocks_are_refused(bad: tuple[str, int]):
    with pytest.raises(ValueError, match=f"{bad[0]}|{bad[1]}"):
        work.tensor_bytes(bad[1], bad[0])


def test_derived_ink_speaks_about_every_test_of_the_plan():
    from bench import plan

    cards = {q: LAB.models[f"qwen3-1.7b-{q.lower()}-synthetic"] for q in ("Q4_K_M", "Q8_0")}
    tests = plan.tests(plan.read("day1"), cards, gpu=True)
    found = predict.derive(M4, LAB.models, [t.target for t in tests], {"cpu"})
    spoken = {(p.of.experiment, p.of.test, p.of.depth) for p in found}
    # The sweep's own depth 0 is an anchor: nothing is predicted about it.
    planned = {(t.target.experiment, t.target.test, t.target.depth) for t in tests} - {("depth", "pp512", 0), ("depth", "tg128", 0)}
    assert spoken == planned
    by_id = {p.id: p for p in found}
    # 120e9 B/s over 1,101,457,408 B; 4.4e12 over 2 x 1,720,574,976
    assert by_id["baseline-tg128-ceiling"].value == 108.9
    assert by_id["baseline-pp512-ceiling"].value == 1279
    assert by_id["baseline-tg128-range"].low == pytest.approx(0.7 * 108.95, rel=1e-3)
    assert by_id["depth-tg128-d8192"].over.experiment == "depth"
    assert by_id["format-tg128"].value == pytest.approx(1_101_457_408 / 1_828_474_880, rel=1e-3)
    assert by_id["cpu-tg128"].over.experiment == "baseline"
