"""Compare: the rows, what two rates' noise says, filters and orders in the address, and a thousand machines' weight."""

from __future__ import annotations

import gzip
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from macros import compare, compare_page, labdata, narrative, side_by_side
from macros.compare import Measured
from macros.side_by_side import Line


@pytest.fixture(scope="module")
def lines() -> list[Line]:
    return side_by_side.lines(labdata.load(), {})


def of(lines: list[Line], machine: str, model: str, test: str, backend: str) -> Line:
    (found,) = [x for x in lines if (x.machine, x.model, x.test, x.backend) == (machine, model, test, backend)]
    return found


def test_rows_are_the_labs_own(lines: list[Line]):
    q4 = of(lines, "apple-m4-24gb", "Qwen3-8B Q4_K_M", "tg128", "Metal")
    assert (q4.measured.mean, q4.measured.sigma, q4.run) == (20.80, 0.05, "day1-baseline")
    # 20.80 tok/s x 4.6718 GB streamed a token (Day 1's tensor table) over 120 GB/s.
    assert q4.share == pytest.approx(20.80 * 4.6718e9 / 120e9, rel=1e-4)
    # 228.94 tok/s x 14.05 GFLOP a token over 4.4 TFLOP/s.
    assert of(lines, "apple-m4-24gb", "Qwen3-8B Q4_K_M", "pp512", "Metal").share == pytest.approx(228.94 * 14.05e9 / 4.4e12, rel=1e-3)
    assert len({(x.subject, x.test) for x in lines}) == len(lines)


def test_what_noise_says_of_two_rates(lines: list[Line]):
    # Day 1: prefill of two formats, 228.94 ± 0.10 and 226.70 ± 7.47; decode, 20.80 ± 0.05 and 12.52 ± 0.08.
    q4, q8 = ([of(lines, "apple-m4-24gb", f"Qwen3-8B {q}", t, "Metal") for t in ("pp512", "tg128")] for q in ("Q4_K_M", "Q8_0"))
    assert [side_by_side.difference(a.measured, b.measured) for a, b in side_by_side.pairs(q4, q8)] == [compare.SAME, "differ beyond noise"]
    assert side_by_side.difference(Measured(5.0, float("nan"), 1), Measured(9.0, 0.1, 5)) == "noise not known"


def test_axes_end_where_they_should():
    assert compare_page.bar(1.0) == compare_page.AXIS and compare_page.bar(3.0) == pytest.approx(1.1 * compare_page.AXIS)
    assert [compare_page.dot(r) for r in (0.1, 0.5, 1.0, 2.0, 9.0)] == [0.0, 0.0, 50.0, 100.0, 100.0]


@pytest.fixture
def page(open_page: Any) -> Any:
    return open_page()


ROWS, PAIR = "#lines tbody tr", "#pair-table tbody tr"


def texts(page: Any, rows: str) -> list[str]:
    return [re.sub(r"\s+", " ", t).strip() for t in page.locator(rows).all_inner_texts()]


def test_the_script_shows_what_the_build_wrote(read: Any, page: Any, served: str):
    bare = read("compare/", java_script_enabled=False)
    page.goto(f"{served}compare/")
    for rows in (ROWS, PAIR):
        assert texts(bare, rows) == texts(page, rows) and texts(page, rows)
    assert not bare.locator("#compare-form").is_visible()
    ends = "all => all.map(x => Number(x.getAttribute('d').split('H')[1]))"  # drawn from the share as printed, to half a unit of the axis
    assert bare.eval_on_selector_all(f"{ROWS} [data-c=bar]", ends) == pytest.approx(page.eval_on_selector_all(f"{ROWS} [data-c=bar]", ends), abs=0.5)
    page.select_option("#c-b", page.input_value("#c-a"))  # and back, so that the script has written the pair itself
    page.select_option("#c-b", label="Apple M4 MacBook Pro, 24 GB: Qwen3-8B Q4_K_M, Metal")
    assert any("226.7 ± 7.5" in row and "not distinguishable" in row for row in texts(page, PAIR))


def test_filters_and_order_live_in_the_address(page: Any, served: str):
    page.goto(f"{served}compare/")
    every = len(texts(page, ROWS))
    page.select_option("#c-test", "tg128")
    page.fill("#c-find", "apple")
    page.select_option("#c-sort", "-rate")
    found = texts(page, ROWS)
    assert 0 < len(found) < every and all("tg128" in row and "Apple" in row for row in found)
    rates = [float(re.search(r"([\d.]+) ±", row)[1]) for row in found]
    assert rates == sorted(rates)
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    assert texts(page, ROWS) == found and page.input_value("#c-find") == "apple"
    page.fill("#c-find", "no such machine")
    assert page.inner_text("#compare-said") == "No row is like that."


def test_names_in_a_link_that_are_not_known_change_nothing(page: Any, served: str):
    page.goto(f"{served}compare/?test=tg1&sort=loudest&page=99&a=nobody")
    assert len(texts(page, ROWS)) and page.input_value("#c-test") == "" and texts(page, PAIR)


@pytest.fixture(scope="module")
def thousand(lines: list[Line]) -> list[Line]:
    """A lab of a thousand machines, every rate another."""
    found = []
    for i in range(1000):
        for k, x in enumerate(x for x in lines if x.ratio):
            by = 1 + (i * 7919 % 1009 + k * 101) % 1009 / 1009
            m = Measured(x.measured.mean * by, x.measured.sigma * by, 5)
            found.append(replace(x, machine=f"machine-{i:04}", measured=m, share=x.share / by, ratio=x.ratio * by))
    return sorted(found, key=lambda x: -x.share)


def test_a_thousand_machines_stay_light_and_turn_over(page: Any, thousand: list[Line], monkeypatch: pytest.MonkeyPatch, site: Path):
    lab = labdata.load()
    machine = lab.machines["apple-m4-24gb"]
    names = {x.machine: machine.model_copy(update={"id": x.machine, "name": f"Machine {x.machine[-4:]} of {int(x.machine[-4:]) * 31 % 997}", "chip": "Apple M4"}) for x in thousand}
    monkeypatch.setattr(side_by_side, "lines", lambda *_: thousand)
    book = narrative.Book(replace(lab, machines=names), here="compare/")
    view = compare_page.View(book)
    html = view.table("lines", "All of them.") + view.difference("pair-table")
    view.script()
    columns = compare_page.packed(thousand)
    for x, mean, share, ratio in list(zip(thousand, columns["mean"], columns["share"], columns["ratio"], strict=True))[::7]:  # packed, and printed alike
        assert compare_page.rate_text(replace(x.measured, mean=mean)) == compare_page.rate_text(x.measured)
        assert compare_page.share_text(share) == compare_page.share_text(x.share) and compare_page.ratio_text(ratio) == compare_page.ratio_text(x.ratio)
    (text,) = [t for name, t in book.files.items() if name.endswith(".js")]
    built = (site / "compare/index.html").read_text(encoding="utf-8")
    assert len(gzip.compress((built + html).encode())) + len(gzip.compress(text.encode())) < 150_000
    page.set_content(f"<body>{html}</body>")
    page.add_script_tag(content=text)
    assert page.inner_text("#compare-said") == f"Rows 1–50 of {len(thousand):,}"
    page.click("#compare-on")
    assert page.inner_text("#compare-said") == f"Rows 51–100 of {len(thousand):,}" and page.locator(ROWS).count() == 50
    page.fill("#c-find", "0007 of")
    assert page.inner_text("#compare-said") == "Rows 1–9 of 9"
