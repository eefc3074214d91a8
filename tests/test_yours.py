"""Predict yours: the browser computes what the Python computes, from any address, and says what is wrong with a number."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from macros import calibration, javascript, labdata, narrative, page_script, predict, values, yours, yours_page
from macros.javascript_code import NotTranslatable

DRAWS, TOLERANCE = 2000, 1e-9


@pytest.fixture(scope="module")
def lab() -> labdata.Lab:
    return labdata.load()


@pytest.fixture(scope="module")
def lists(lab: labdata.Lab) -> tuple[dict, dict]:
    return yours_page.machines(lab), yours_page.models(lab)


@pytest.fixture
def page(open_page: Any) -> Any:
    return open_page()


def drawn(lists: tuple[dict, dict], count: int) -> list[dict]:
    """Forms as readers may fill them: machines of the list as they are, with typed figures, and machines of nobody's."""
    machines, models = lists
    draw = random.Random(7)
    backends = sorted({row[5] for row in machines.values()} | {"CPU"})
    found = []
    for _ in range(count):
        id = draw.choice([*machines, yours_page.OWN])
        row = machines.get(id)
        state = {"machine": id, "bandwidth": row and row[2], "compute": row and row[3], "memory": row and row[4], "backend": row and row[5]}
        if row is None or draw.random() < 0.4:
            state |= {"bandwidth": round(10 ** draw.uniform(-1, 4.5), 3), "compute": draw.choice([None, round(10 ** draw.uniform(-2, 4), 4)]),
                      "memory": draw.choice([None, round(10 ** draw.uniform(-1, 3.5), 2)])}  # fmt: skip
        if row is None or draw.random() < 0.2:
            state["backend"] = draw.choice(backends)
        model = draw.choice(list(models))
        state |= {"model": model, "format": draw.choice(list(models[model]["formats"])), "depth": draw.choice([0, int(10 ** draw.uniform(0, 6.5))]),
                  "batch": draw.choice([1, 1, draw.randint(2, 512)]), "kv": draw.choice(["f16", "q8_0", "q4_0", "f32"])}  # fmt: skip
        found.append(state)
    return found


def asked(lists: tuple[dict, dict], state: dict) -> yours.Ask:
    """What Python asks for a form; another backend as `python -m macros.predict --backend` takes it."""
    machines, models = lists
    vendors = {"CPU": "cpu", "CUDA": "nvidia", "Metal": "apple", "ROCm": "amd"}
    row = list(machines.get(state["machine"], ["", "", 0, 0, 0, "", "", "own", False, 1.0]))
    if state["backend"] == "CPU" != row[5]:
        row[6] = row[7] = "cpu"
    row[6] = row[6] or vendors.get(state["backend"]) or state["backend"].partition("-")[2]
    row[2:6] = state["bandwidth"], state["compute"], state["memory"], state["backend"]
    return yours_page.ask(row, models[state["model"]], state["format"], state["depth"], state["batch"], state["kv"])


def test_the_browser_computes_what_python_computes(page: Any, served: str, lists: tuple[dict, dict]):
    fit = calibration.fitted()
    page.goto(f"{served}predict/")
    states = drawn(lists, DRAWS)
    theirs = page.evaluate("states => states.map(inklabPredict)", states)
    worst, compared = 0.0, 0
    for state, there in zip(states, theirs, strict=True):
        here = yours.answer(asked(lists, state), fit["coefficients"], fit["intervals"])
        assert set(here) == set(there), state
        for name, x in here.items():
            y = there[name]
            if x is None or y is None:
                assert x is y, (name, state)
            elif x != y:
                worst = max(worst, abs(x - y) / max(abs(x), abs(y)))
            compared += 1
    assert compared > 30 * DRAWS
    assert worst <= TOLERANCE


def test_the_example_is_what_day_1_and_the_command_line_say(lab: labdata.Lab, lists: tuple[dict, dict]):
    machine, card = lab.machines["apple-m4-24gb"], lab.models["qwen3-8b-q4_k_m"]
    fit = calibration.fitted()
    found = yours.answer(yours_page.ask(lists[0][machine.id], lists[1]["qwen3-8b"], card.quant, 8192), fit["coefficients"], fit["intervals"])
    # Day 1's hand calculations: 120 GB/s over 5.03 GB, 144 KiB a token, 6.238 GB a step at 8k, 4.4 TFLOP/s over 2 x 8.19 billion.
    assert round(found["ceiling_empty"], 2) == 23.86
    assert found["kv_token"] == 147456
    assert round(found["step_bytes"] / 1e9, 3) == 6.238
    assert round(found["kept"], 4) == 0.8064
    assert round(found["prefill_ceiling"], 1) == 268.6
    assert round(found["ridge"], 1) == 36.7 and round(found["intensity"], 2) == 3.26
    assert found["ceiling"] == predict.decode_ceiling_tok_s(machine, card, 8192)
    from macros import subject_load

    for name, test in (("decode", "tg128"), ("prefill", "pp512")):
        told = subject_load.predict(machine, card, test, 8192)
        assert math.isclose(found[name], told.tok_s, rel_tol=1e-12)
        assert math.isclose(found[f"{name}_low"], told.low_tok_s, rel_tol=1e-12)


def test_what_fits_is_the_longest_that_does(lists: tuple[dict, dict]):
    # Qwen3-8B keeps 147,456 B a token (36 layers x 2 x 8 heads x 128 x 2 B): beside weights of 5.02 GB, 8 GB hold 20,224 tokens.
    ask = yours_page.ask(lists[0]["apple-m4-24gb"], lists[1]["qwen3-8b"], "Q4_K_M")
    weights = yours.fits(ask)["need_weights"]
    room = (8e9 - weights) // 147456 // 256 * 256
    assert yours.longest_context(ask, 8e9) == room
    assert yours.longest_context(ask, weights) == 0
    assert yours.longest_context(ask, 1e15) == yours.MOST_CONTEXT


def shown(page: Any, name: str) -> str:
    return page.locator(f'[data-slot="{name}"]').first.text_content()


def test_a_form_changes_the_page_and_its_address(page: Any, served: str):
    page.goto(f"{served}predict/")
    page.select_option("#y-machine", "chip:nvidia-rtx-3090")
    assert page.input_value("#y-bandwidth") == "936"  # GeForce RTX 3090, NVIDIA's data sheet: 936 GB/s
    page.fill("#y-depth", "0")
    assert shown(page, "ceiling") == "186\u202ftok/s"  # 936 / 5.03
    page.fill("#y-bandwidth", "503")
    assert shown(page, "ceiling") == "100\u202ftok/s"
    again = page.url
    assert "bandwidth=503" in again and "machine=chip" in again
    page.goto("about:blank")
    page.goto(again)
    assert shown(page, "ceiling") == "100\u202ftok/s" and page.input_value("#y-bandwidth") == "503"
    assert page.locator('[data-text="llama_bench"]').inner_text().startswith("llama-bench -hf ggml-org/Qwen3-8B-GGUF:Q4_K_M -p 512 -n 128")


@pytest.mark.parametrize(("field", "typed", "told"), [
    ("bandwidth", "fast", "A number from 0.001 to 1,000,000 is needed; got fast."),
    ("bandwidth", "", "got nothing"),
    ("depth", "1.5", "A whole number from 0 to 10,000,000 is needed; got 1.5."),
    ("batch", "0", "A whole number from 1 to 4,096 is needed; got 0."),
])  # fmt: skip
def test_a_wrong_number_is_said_and_the_page_keeps_the_last_whole_setting(page: Any, served: str, field: str, typed: str, told: str):
    page.goto(f"{served}predict/")
    before = page.locator("#content").locator("table").first.inner_text()
    page.fill(f"#y-{field}", typed)
    assert told in page.locator(f"#y-{field}-problem").inner_text()
    assert page.get_attribute(f"#y-{field}", "aria-invalid") == "true"
    assert page.locator("#content").locator("table").first.inner_text() == before


def test_what_is_not_known_is_said(page: Any, served: str):
    page.goto(f"{served}predict/?compute=&memory=&machine=own&format=Q99")
    assert shown(page, "prefill") == "not known" and shown(page, "left") == "not known"
    assert "This build does not know format Q99." in page.inner_text("#yours-said")
    assert "tok/s" in shown(page, "decode")


def test_the_script_prints_what_the_build_printed(page: Any, served: str, site: Path):
    html = (site / "predict/index.html").read_text(encoding="utf-8")
    built = re.findall(r'data-slot="([\w_]+)"[^>]*>([^<]*)<', html)
    built += re.findall(r'data-f="([\w_]+)"[^>]*>([^<]*)<', html.partition("<template>")[0])
    assert len(built) > 60
    page.goto(f"{served}predict/")
    said = page.inner_text("#yours-said")
    page.fill("#y-depth", "0")  # until somebody asks, the script leaves the build's numbers alone
    assert page.inner_text("#yours-said") != said
    page.fill("#y-depth", "4096")
    assert page.inner_text("#yours-said") == said
    there = page.eval_on_selector_all("[data-slot]", "all => all.map(x => [x.dataset.slot, x.textContent])")
    there += page.eval_on_selector_all("[data-f]", "all => all.map(x => [x.dataset.f, x.textContent])")
    assert [list(b) for b in built] == there
    page.fill("#y-memory", "1")
    assert shown(page, "left").startswith("−")  # the true minus


@pytest.mark.parametrize(("address", "scheme"), [("predict/?depth=x&batch=3", "light"), ("predict/?machine=own", "dark"), ("compare/?find=apple", "light"), ("compare/", "dark")])
def test_axe_finds_nothing_and_a_phone_scrolls_one_way(read: Any, address: str, scheme: str):
    from axe_playwright_python.sync_playwright import Axe

    page = read(address, color_scheme=scheme, viewport={"width": 390, "height": 844}, bypass_csp=True)  # axe is a script of ours
    if "predict" in address:
        page.fill("#y-batch", "none")  # an error to look at
    found = Axe().run(page)
    assert not found.violations_count, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_keyboard_alone_will_do(page: Any, served: str):
    page.goto(f"{served}predict/")
    page.focus("#y-machine")
    for _ in range(3):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "y-memory"
    page.keyboard.press("Control+A")
    page.keyboard.type("4")
    assert page.locator("text=It does not fit").first.is_visible()


def test_without_scripts_there_is_the_example_and_no_form(read: Any):
    page = read("predict/", java_script_enabled=False)
    assert not page.locator("#yours").is_visible()
    assert page.locator("text=The form needs JavaScript").is_visible()
    assert shown(page, "ceiling_empty") == "23.9\u202ftok/s"


def test_it_works_from_a_folder_and_asks_nobody(page: Any, site: Path):
    asked_for = []
    page.on("request", lambda request: asked_for.append(request.url))
    page.goto(f"file://{site}/predict/index.html?depth=0&machine=chip:nvidia-rtx-3090")
    assert shown(page, "ceiling") == "186\u202ftok/s"
    page.fill("#y-bandwidth", "503")
    assert shown(page, "ceiling") == "100\u202ftok/s" and "bandwidth=503" in page.url
    assert asked_for and all(url.startswith("file://") for url in asked_for)


def test_the_scripts_make_no_code_and_ask_for_nothing(site: Path):
    for name in ("predict", "compare"):
        (path,) = site.glob(f"assets/{name}-*.js")
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\beval\b|new Function|setTimeout\(\s*[\"'`]|innerHTML|fetch\(|import\(|https?://", text), name


def test_translation_refuses_what_it_does_not_understand():
    def slices(xs: list[float]) -> list[float]:
        return xs[1:]

    with pytest.raises(NotTranslatable, match=r"slices.*Subscript is not translated; got 'xs\[1:\]'"):
        javascript.program(slices)


def test_translated_numbers_are_rounded_and_counted_alike(page: Any, served: str):
    """What Python and JavaScript could take differently: remainders, floors of negatives, chained comparisons, defaults by name."""
    page.goto(f"{served}predict/")
    program = javascript.program(_odd)
    for a, b in ((7, 3), (-7, 3), (7.5, 2), (0, 5), (-1, 4)):
        there = page.evaluate(f"(() => {{ {program}\nreturn {javascript.named(_odd)}({a}, {b}); }})()")
        assert there == _odd(a, b), (a, b)


def _by_name(x: float, y: float = 2.0, c: float = 0.0) -> float:
    return x - y * c


def _odd(a: float, b: float) -> list:
    names = ["x"] * (a > 0) + [f"n{int(abs(b))}"]
    names += [f"{n}!" for n in names if n != "x"]
    table = {**dict.fromkeys(names, 1.0), "last": a // b}
    both = table | {"k": a % b}
    return [a // b, a % b, 0 < a <= 7, both["last"], sum(both.values()), _by_name(b, c=a), max(names, key=lambda n: len(n)), "q".upper(), names[-1], len(both)]


def test_the_script_rounds_as_the_build_does(page: Any, served: str):
    page.goto(f"{served}predict/")
    draw = random.Random(3)
    numbers = [(22.15, 1), (1.005, 2), (-0.364, 2), (27771.2, 0), (0.5, 0), (2.5, 0), (-0.001, 2), (1e15, 0), (123456789.125, 2)]
    numbers += [(round(draw.uniform(-1, 1) * 10 ** draw.randint(-3, 9), draw.randint(0, 6)), draw.randint(0, 6)) for _ in range(500)]
    text = (page_script.FOLDER / "print.js").read_text(encoding="utf-8")
    there = page.evaluate(f"numbers => {{ {text}\nreturn numbers.map(([x, d]) => decimal(x, d)); }}", numbers)
    assert there == [values.number(x, d) for x, d in numbers]


def test_a_script_is_ascii_and_says_the_same(page: Any, served: str):
    words = "−12 \u202f 机器 😀 \\ ' é"
    book = narrative.Book(SimpleNamespace(inks={}, runs={}), here="predict/")
    page_script.element(book, "words", page_script.script((), {"words": words}, ()).replace("})();", "return DATA.words; })()"))
    (text,) = book.files.values()
    page.goto(f"{served}predict/")
    assert text.isascii() and page.evaluate(text) == words
