"""The author's session, from `make day` to a sealed, scored report; and numbers typed by hand."""

from __future__ import annotations

import html
import re
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from conftest import run_module
from test_bench import TINY, settings
from test_proof import commit, git

from bench import weights
from macros import compare, labdata, seals, surprises, typed

ASKED = {"N": "998", "TITLE": "Small, \"quoted\" [[ x ]]: day", "QUESTION": "What does a model of two layers decode?"}
INK, PAGE = "labdata/ink/day-998", "docs/days/998-small-quoted-x-day.md"
GUESSES = """guesses:
  - {id: roof, quantity: Decode rate, kind: ceiling, value: 9.0e+7, unit: tok/s, as_written: at most 9e7, because: nothing is that fast, of: DECODE}
  - {id: one, quantity: Decode rate, kind: point, value: 0.001, unit: tok/s, as_written: '0.001', because: a snail, of: DECODE}
  - {id: range, quantity: Prefill rate, kind: interval, low: 0.001, high: 9.0e+8, unit: tok/s, as_written: wide, because: caution, of: PREFILL}
  - {id: over, quantity: Prefill over decode, kind: ratio, value: 12, unit: '1', as_written: 12 times, because: folklore, of: PREFILL, over: DECODE}
  - {id: order, quantity: Prefill beats decode, kind: ordering, unit: '1', as_written: prefill first, because: one pass, of: PREFILL, slower: [DECODE]}
  - {id: turn, quantity: Prefill against decode, kind: direction, direction: craters, unit: '1', as_written: craters, because: to be wrong once, of: PREFILL, over: DECODE}
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    weights.write(path, TINY, "Q4_K_M")
    return path


def guess(project: Path) -> None:
    """What the author writes into the open ink."""
    path = project / f"{INK}.open.yml"
    text = path.read_text(encoding="utf-8")
    tests = {t.test: t for t in labdata.load(project / "labdata").open_inks["day-998"].tests if not t.depth}
    words = GUESSES
    for name, test in (("DECODE", "tg128"), ("PREFILL", "pp512")):
        t = tests[test]
        words = words.replace(name, f"{{experiment: {t.experiment}, model: {t.model}, test: {t.test}, depth: 0}}")
    path.write_text(text.replace("guesses: []\n", words, 1), encoding="utf-8")


def test_from_nothing_to_a_sealed_scored_report(project: Path, tiny: Path, tmp_path: Path):
    git(project, "init", "-q", "-b", "main")
    (project / ".gitignore").write_text(".cache/\nsite/\n__pycache__/\n", encoding="utf-8")
    commit(project)
    env = settings(tmp_path, MODEL=tiny, REPS=4, DEPTHS=128)

    def bench(*args: str, **more: str) -> subprocess.CompletedProcess:
        return run_module(project, "bench", *args, env={**env, **more})

    # A day from nothing: page, post, plan, open ink; nothing of it a second time.
    done = bench("day", **ASKED)
    assert done.returncode == 0, done.stderr
    for file in (PAGE, "docs/days/998-post.md", "bench/plans/day998.yml", f"{INK}.open.yml"):
        assert (project / file).is_file(), done.stdout
    again = bench("day", **ASKED)
    assert again.returncode == 1 and again.stderr.count("Day 998 has it already") == 4
    headings = re.findall(r"(?m)^## (.*)$", (project / PAGE).read_text(encoding="utf-8"))
    assert headings == ["Prediction", "Steps", "Measurement", "Score", "Surprises", "Tomorrow"]

    # The preview shows what is open; the published build names all of it and writes nothing.
    assert "Open: the answer in two sentences" in preview(project, "days/998-small-quoted-x-day/")
    build = run_module(project, "mkdocs", "build", "-q", env={"INKLAB_PREVIEW": ""})
    opened = [line for line in build.stderr.splitlines() if ": open: " in line]
    assert build.returncode == 1 and "Traceback" not in build.stderr
    assert any("is not sealed yet" in line for line in opened) and any("998-post.md" in line for line in opened)
    assert not list((project / "site").rglob("*.html"))

    # Wet ink: nothing is measured. The plan may still change, and the ink follows.
    refused = bench("run", PROFILE="day998")
    assert refused.returncode == 1 and "day-998.open.yml: ink: still open" in refused.stderr and "CLOSE=1" in refused.stderr
    assert labdata.load(project / "labdata").runs.keys() == labdata.load().runs.keys()
    guess(project)
    plan = project / "bench/plans/day998.yml"
    plan.write_text(plan.read_text(encoding="utf-8").replace("tests: [tg128], depths", "tests: [pp512, tg128], depths"), encoding="utf-8")
    stale = bench("ink", PROFILE="day998", CLOSE="1")
    assert stale.returncode == 1 and "tests: not what the plan runs now" in stale.stderr
    fresh = bench("ink", PROFILE="day998")
    assert fresh.returncode == 0 and "brought up to date" in fresh.stdout and "6 guesses of your own" in fresh.stdout
    wrong = project / f"{INK}.open.yml"
    kept = wrong.read_text(encoding="utf-8")
    wrong.write_text(kept.replace("because: a snail", "because: ''").replace("test: tg128, depth: 0}}", "test: tg64, depth: 0}}"), encoding="utf-8")
    assert "guesses.1.because" in bench("check").stderr
    wrong.write_text(kept, encoding="utf-8")

    # Sealed: hash, hour, tool, commit; the guesses and what is derived, with its inputs and their sources.
    early = bench("post", DAY="998")
    assert early.returncode == 1 and "998-small-quoted-x-day.md: nothing to post yet; ink: day-998 is not sealed yet" in early.stderr
    closed = bench("ink", PROFILE="day998", CLOSE="1")
    assert closed.returncode == 0, closed.stderr
    path = project / f"{INK}.yml"
    ink = labdata.load(project / "labdata").inks["day-998"]
    assert ink.sealed.commit == git(project, "rev-parse", "HEAD") and ink.sealed.tool == seals.TOOL and not wrong.exists()
    assert path.read_text(encoding="utf-8").splitlines()[-1][2:] in closed.stdout
    kinds = [p.kind for p in ink.predictions]
    assert kinds[:6] == ["ceiling", "point", "interval", "ratio", "ordering", "direction"]
    roof = next(p for p in ink.predictions if p.formula == "BW / W")
    assert {i.name.split()[0] for i in roof.inputs} == {"bandwidth", "bytes"} and all(i.source for i in roof.inputs)
    commit(project)
    for more in ({"CLOSE": "1"}, {}):
        assert bench("ink", PROFILE="day998", **more).returncode == 1  # sealed ink is written once

    # Measured on that ink; afterwards no ink for it any more.
    other = bench("run", PROFILE="day998", DEPTHS="64")
    assert other.returncode == 1 and "planned: not the tests of this run" in other.stderr
    run = bench("run", PROFILE="day998")
    assert run.returncode == 0, run.stderr
    lab = labdata.load(project / "labdata")
    (made,) = lab.runs_on("day-998")
    assert made.ink.sha256 == seals.sha256(path) and ink.sealed.at <= made.started_at
    late = bench("ink", PROFILE="day998", INK="day-998b")
    assert late.returncode == 1 and "has results" in late.stderr and "ink comes first" in late.stderr
    commit(project)
    assert bench("check").returncode == 0, bench("check").stderr
    report = bench("report")
    first = surprises.candidates(compare.scores(lab, "day-998"))[0]
    assert f"Surprise? {first.what}, {first.prediction}: {first.sentence}" in report.stdout

    # The author writes; what is filled is published.
    fill(project, first.prediction)
    build = run_module(project, "mkdocs", "build", "-q", env={"INKLAB_PREVIEW": ""})
    assert build.returncode == 0, build.stderr
    posted = bench("post", DAY="998")  # the default draft of a new day, as it comes
    assert posted.returncode == 0, posted.stderr
    assert "The worst miss. " in posted.stdout and ASKED["QUESTION"] in (project / "drafts/day-998/mastodon.txt").read_text(encoding="utf-8")
    page = (project / "site/days/998-small-quoted-x-day/index.html").read_text(encoding="utf-8")
    words = re.sub(r"[\s\u00a0\u202f]+", " ", re.sub(r"<[^>]+>", " ", page))
    assert f"measured {made.started_at:%-d %B %Y, %H:%M} UTC" in words and f"Inked {ink.sealed.at:%-d %B %Y, %H:%M} UTC" in words
    assert "unaltered since" in words and "Open:" not in words and " ".join(first.sentence.replace("\u202f", " ").split()) in html.unescape(words)
    assert page.count('class="verdict ') == len(ink.predictions)
    machine = (project / f"site/machines/{made.machine}/index.html").read_text(encoding="utf-8")
    assert re.search(r"ink first committed in \w{12}, run in \w{12}, after it", machine)
    assert bench("check").returncode == 0

    # And nobody changes it quietly.
    raw = project / f"labdata/runs/{made.machine}/{made.id}.yml"
    raw.write_bytes(raw.read_bytes().replace(b"samples_ns: [", b"samples_ns: [9", 1))
    caught = run_module(project, "mkdocs", "build", "-q", env={"INKLAB_PREVIEW": ""})
    assert caught.returncode == 1 and f"{made.id}.yml: seal: a byte was changed" in caught.stderr and "differs from what was committed" in caught.stderr


def fill(project: Path, picked: str) -> None:
    """Every open part written, and the surprise picked."""
    for file in (PAGE, "docs/days/998-post.md"):
        path = project / file
        text = re.sub(r'\[\[ open\(".*?"\) \]\]', "Written by the author.", path.read_text(encoding="utf-8"))
        text = text.replace('next: ""', "next: Ask the same of a second machine.")
        path.write_text(text.replace('[[ surprise_list("day-998") ]]', f'[[ surprise("day-998", "{picked}") ]]'), encoding="utf-8")


def preview(project: Path, address: str) -> str:
    """A page as `make serve` shows it, its tags taken out."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-m", "mkdocs", "serve", "-q", "--no-livereload", "-a", f"127.0.0.1:{port}"], cwd=project,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)  # fmt: skip
    try:
        for _ in range(600):
            assert server.poll() is None, server.stderr.read()
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/{address}", timeout=5) as answer:
                    return re.sub(r"<[^>]+>", "", answer.read().decode())
            except OSError:
                time.sleep(0.2)
        raise AssertionError("no preview")
    finally:
        server.terminate()
        server.wait(timeout=60)


def test_a_day_without_its_words_names_them_all(project: Path):
    done = run_module(project, "bench", "day", env={"N": "two", "TITLE": " ", "QUESTION": ""})
    assert done.returncode == 1
    assert [line.split(":")[1].strip() for line in done.stderr.splitlines()] == ["N", "TITLE", "QUESTION"]


@pytest.mark.parametrize(
    ("text", "literals"),
    [
        ("It reached 87 % of the roof.", ["87 %"]),
        ("It reached 87\u202f% of the roof.", ["87 %"]),
        ("20.80 ± 0.05 tok/s on a 120 GB/s bus", ["20.80 ± 0.05 tok/s", "120 gb/s"]),
        ("from 11.5–12.0 tok/s; 3 of 9 held, 2:1, 1.73× as fast, −36 %", ["11.5–12.0 tok/s", "3 of 9", "2:1", "1.73×", "−36 %"]),
        ("ten times slower, half the tokens, 27,771 tokens", ["ten times", "27,771 tokens"]),
        ("the `87 %` of [[ x(87) ]] [% set y = '5 GB' %]<b title='5 GB'>", []),
        ("```\nllama-bench -n 128 tokens 87 %\n```\nand 5 GiB", ["5 gib"]),
        ("[[ percent(0.87, 'typed') ]]", ["percent(0.87,"]),
        ("a < 5 GB and > 3 GB", ["5 gb", "3 gb"]),
        ("pp512, tg128, Q4_K_M, Qwen3-8B, Day 2, 2026-11-30, section 3", []),
        ("---\ntitle: 87 % of the roof\nday: 1\n---\nwords", ["87 %"]),
    ],
)
def test_typed_numbers_are_found(text: str, literals: list[str]):
    assert [literal for _, literal in typed.found(text)] == literals


def test_a_typed_result_on_day_1_is_named_with_its_line(project: Path):
    page = project / "docs/days/01-local-inference.md"
    text = page.read_text(encoding="utf-8")
    line = text.count("\n") + 2
    page.write_text(text + "\nThat is 87 % of it. [# typed \"99 GB\": nothing #] [# typed 5 #] [# typed \"8k\": #]\n", encoding="utf-8")
    done = run_module(project, "bench", "check")
    assert done.returncode == 1
    for words in (f"line {line}: a number typed by hand; got '87 %'", "marks no number of this page; got '99 gb'", "not a marker; got '[# typed 5 #]'", "gives no reason; got '8k'"):
        assert words in done.stderr, done.stderr


def test_every_literal_of_the_lab_is_justified():
    assert typed.problems(labdata.ROOT.parent / "docs") == []
    assert len(typed.MARKER.findall((labdata.ROOT.parent / "docs/days/01-local-inference.md").read_text(encoding="utf-8"))) >= 5
