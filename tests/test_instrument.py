"""Plans, rounds, noise, the machine around a test, and llama-bench as the instrument."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
from conftest import run_module
from test_bench import HANGS_S, TINY, engine_of, new_runs, settings, start

from bench import llama_bench, options, overhead, parity, plan, schedule, surroundings, weights
from bench.engine import EngineFailed, Job
from bench.schedule import Schedule
from macros import compare, labdata, noise, predict
from macros.labdata import LabError
from macros.plans import Plan
from macros.records import Result

M4 = {"performance": 4, "physical": 10, "logical": 10}  # Apple M4: 4 performance cores of 10


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    weights.write(path, TINY, "Q4_K_M")
    return path


# Plans


def names(profile: str, cores: dict[str, int]) -> list[str]:
    return [e.name for e in plan.for_host(plan.read(profile), cores)[0].experiments]


def test_day_1s_experiments_are_plan_files():
    assert {"baseline", "depth", "format", "cpu", "threads", "kv", "flash", "batch", "day1", "quick"} <= set(plan.profiles())
    assert names("threads", M4) == ["threads-4", "threads-1", "threads-2", "threads-8", "threads-10"]
    assert names("kv", M4) == ["kv-f16", "kv-q8_0", "kv-q4_0"]
    assert names("flash", M4) == ["flash-on", "flash-off"]
    assert names("batch", M4) == ["batch-2048-512", "batch-2048", "batch-512", "batch-128", "batch-32"]


def test_threads_a_machine_has_not_are_left_out_and_said():
    two, left_out = plan.for_host(plan.read("threads"), {"performance": 2, "physical": 2, "logical": 2})
    assert [e.name for e in two.experiments] == ["threads-2", "threads-1"]
    assert left_out == ["threads: 4 threads left out; this machine has 2 logical cores", "threads: 8 threads left out; this machine has 2 logical cores"]


def parsed(tmp_path: Path, text: str) -> Plan:
    path = tmp_path / "mine.yml"
    path.write_text(text, encoding="utf-8")
    return labdata.parse(Plan, path, "bench/plans/mine.yml")


ONE = "about: x\nshape: qwen3-0.6b\nexperiments:\n  - {name: a, quant: Q4_K_M, tests: [tg8], %s}\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (ONE % "setting: [{}]", "bench/plans/mine.yml: experiments.0.setting: unknown key; known: name, quant, tests, depths, settings, cpu_control"),
        (ONE % "settings: [{treads: 2}]", "experiments.0.settings.0.treads: unknown key; known: threads,"),
        (ONE % "settings: [{type_k: q9_0}]", "experiments.0.settings.0.type_k: Input should be 'f32', .* got 'q9_0'"),
        (ONE % "settings: [{threads: 0}]", "experiments.0.settings.0.threads.*got 0"),
        (ONE % "settings: [{threads: fast}]", "experiments.0.settings.0.threads.*'performance', 'physical' or 'logical'; got 'fast'"),
        (ONE % "settings: [{flash_attn: maybe}]", "flash_attn.*got 'maybe'"),
        (ONE % "settings: [{type_v: q8_0, flash_attn: off}]", "a quantised value cache needs flash attention; got type_v q8_0"),
        (ONE % "settings: [{n_batch: 256, n_ubatch: 512}]", "n_ubatch is above n_batch; got 512 and 256"),
        (ONE % "settings: [{threads: 2}, {threads: 2}]", "settings: given twice"),
        (ONE % "settings: []", "experiments.0.settings: .*at least 1"),
        (ONE % "depths: [0, 0]", "depths: given twice; got 0"),
        (ONE.replace("tg8", "tg0") % "depths: [0]", "experiments.0.tests.0: .*got 'tg0'"),
        ((ONE % "depths: [0]") + "  - {name: a, quant: Q8_0, tests: [tg8]}\n", "experiments: two of one name; got 'a'"),
        ("rounds: 0\n" + ONE % "depths: [0]", "rounds: .*greater than 0; got 0"),
        ("about: x\nshape: y\nexperiments: []\n", "experiments: .*at least 1"),
        ("", "file: .*got None"),
    ],
)
def test_a_wrong_plan_is_one_line_with_its_key(tmp_path: Path, text: str, line: str):
    with pytest.raises(LabError, match=line) as caught:
        parsed(tmp_path, text)
    assert all(p.startswith("bench/plans/mine.yml: ") for p in caught.value.problems)


def test_yamls_bare_on_and_off_are_words_here(tmp_path: Path):
    found = parsed(tmp_path, ONE % "settings: [{flash_attn: on}, {flash_attn: off}, {flash_attn: auto}]")
    assert [s.flash_attn for s in found.experiments[0].settings] == ["on", "off", "auto"]


def test_settings_of_one_name_are_refused(tmp_path: Path):
    found = parsed(tmp_path, ONE % "settings: [{n_batch: 64, n_ubatch: 32}, {n_batch: 128, n_ubatch: 64, type_k: q8_0}, {n_batch: 64, n_ubatch: 64}, {n_batch: 128, n_ubatch: 32, type_k: q8_0}]")
    assert len({e.name for e in plan.for_host(found, M4)[0].experiments}) == 4
    clash = parsed(tmp_path, ONE % "settings: [{type_k: q8_0}, {type_v: q8_0, type_k: f16}, {}]")
    assert [e.name for e in plan.for_host(clash, M4)[0].experiments] == ["a-q8_0-f16", "a-f16-q8_0", "a-f16"]


def test_a_quantised_cache_is_inked_by_its_own_bytes():
    # Qwen3-0.6B: 28 layers, 8 KV heads of 128; f16 2 B an element, q8_0 34 B and q4_0 18 B a block of 32.
    card = labdata.load().models["qwen3-0.6b-q4_k_m-synthetic"]
    elements = 2 * 28 * 8 * 128
    assert predict.kv_token_bytes(card) == elements * 2
    assert predict.kv_token_bytes(card, ("q8_0", "q8_0")) == elements * 34 / 32
    assert predict.kv_token_bytes(card, ("q4_0", "f16")) == elements * (18 / 32 + 2) / 2


def test_settings_compared_are_told_apart_in_the_ink():
    lab = labdata.load()
    todo = plan.tests(plan.for_host(plan.read("kv"), M4)[0], {"Q4_K_M": lab.models["qwen3-8b-q4_k_m"]}, gpu=True)
    found = predict.derive(lab.machines["apple-m4-24gb"], lab.models, [t.target for t in todo], set(), plan.kv_types(todo))
    assert len({p.quantity for p in found}) == len(found)
    # Qwen3-8B, 5.03 GB (published): f16 147,456 B a token (Day 1); q8_0 is 34/64 and q4_0 18/64 of it.
    ratios = {p.of.experiment: p.value for p in found if p.of.depth and p.of.test == "tg128"}
    kv = 4096 * 147_456
    assert ratios == {
        "kv-f16": pytest.approx(5.03e9 / (5.03e9 + kv), abs=5e-4), "kv-q8_0": pytest.approx(5.03e9 / (5.03e9 + kv * 34 / 64), abs=5e-4),
        "kv-q4_0": pytest.approx(5.03e9 / (5.03e9 + kv * 18 / 64), abs=5e-4)}  # fmt: skip


# Rounds


def result(samples: list[int] | None, failed: str | None = None, **more: object) -> Result:
    now = datetime(2026, 11, 30, tzinfo=UTC)
    fields = {"experiment": "a", "model": "m", "n_prompt": 0, "n_gen": 10, "depth": 0, "backend": "CPU", "started_at": now, "load_before": 0.0}
    return Result(**{**fields, **more}, samples_ns=samples, failed=failed)


def play(chosen: Schedule, n_tests: int, sit, results: list[Result] | None = None, stop_after: int = 10**6) -> tuple[list, list[Result]]:
    """Follow a schedule: the sittings as (test, repetitions), and what is on disk at the end."""
    log, results = [], list(results or [])
    while (step := chosen.next(results, n_tests)) and len(log) < stop_after:
        number, reps = step
        fresh = schedule.sitting(sit(len(log), number, reps), load=[0.0, 0.0])
        merged = schedule.merged(results[number] if number < len(results) else None, fresh, chosen)
        results[number : number + 1] = [Result.model_validate(merged.model_dump())]  # as it would come back from disk
        log.append(step)
    return log, results


def calm(_: int, number: int, reps: int) -> Result:
    return result([1_000_000_000 * (number + 1)] * reps)


def test_one_round_is_llama_benchs_order():
    log, results = play(Schedule(5), 3, calm)
    assert log == [(0, 5), (1, 5), (2, 5)]
    assert all(r.stopped == "repetitions" and len(r.samples_ns) == 5 for r in results)


def test_rounds_turn_their_order():
    log, results = play(Schedule(5, rounds=5), 3, calm)
    assert [number for number, _ in log] == [0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0, 0, 1, 2]
    assert {reps for _, reps in log} == {1}
    assert [[s.n for s in r.sittings] for r in results] == [[1] * 5] * 3
    log, _ = play(Schedule(5, rounds=2), 2, calm)
    assert log == [(0, 3), (1, 3), (1, 2), (0, 2)]
    assert [reps for _, reps in play(Schedule(2, rounds=5), 1, calm)[0]] == [1, 1]


@pytest.mark.parametrize("cut", range(16))
def test_a_run_cut_off_anywhere_goes_on_where_it_stopped(cut: int):
    whole, _ = play(Schedule(5, rounds=5), 3, calm)
    before, on_disk = play(Schedule(5, rounds=5), 3, calm, stop_after=cut)
    after, _ = play(Schedule(5, rounds=5), 3, calm, on_disk)
    assert before + after == whole


def test_drift_does_not_pose_as_an_effect():
    """Two equal settings on a machine that slows by 1 % a repetition: in rounds their means agree, one after the other they do not."""

    def drifting(chosen: Schedule) -> float:
        clock = 0

        def sit(_: int, __: int, reps: int) -> Result:
            nonlocal clock
            times = [round(1e9 * (1 + 0.01 * (clock + i))) for i in range(reps)]
            clock += reps
            return result(times)

        a, b = play(chosen, 2, sit)[1]
        return sum(b.samples_ns) / sum(a.samples_ns) - 1

    # In turn over four rounds (a b b a a b b a): a sits at 0 3 4 7, b at 1 2 5 6; both sums are 14.
    assert drifting(Schedule(4, rounds=4)) == 0
    # One after the other: 0..3 against 4..7, means 1.015 and 1.055.
    assert drifting(Schedule(4)) == pytest.approx(1.055 / 1.015 - 1)


def test_a_round_that_fails_costs_its_own_repetitions():
    def sit(step: int, number: int, reps: int) -> Result:
        return result(None, failed="killed by SIGSEGV") if step == 3 else calm(step, number, reps)

    log, (a, b) = play(Schedule(3, rounds=3), 2, sit)
    assert [number for number, _ in log] == [0, 1, 1, 0, 0, 1]
    assert [s.n for s in a.sittings] == [1, 0, 1] and len(a.samples_ns) == 2
    assert a.failed is None and a.stopped is None and b.stopped == "repetitions"
    assert "1 of 3 rounds failed: killed by SIGSEGV" in compare.conditions(a)


def test_a_test_that_fails_at_once_is_not_tried_again():
    log, results = play(Schedule(3, rounds=3), 2, lambda s, n, r: result(None, failed="no") if n == 0 else calm(s, n, r))
    assert [number for number, _ in log] == [0, 1, 1, 1]
    assert results[0].failed == "no" and results[0].sittings[0].n == 0


def test_repetitions_are_added_until_the_mean_is_known_or_the_cap():
    rough = [1.0, 1.2, 0.8, 1.1, 0.9]

    def sit(step: int, number: int, reps: int) -> Result:
        return calm(step, number, reps) if number == 0 else result([round(1e9 * rough[i % 5]) for i in range(reps)])

    log, (still, shaky) = play(Schedule(5, auto=True), 2, sit)
    assert (len(still.samples_ns), still.stopped) == (5, "interval")
    assert (len(shaky.samples_ns), shaky.stopped) == (schedule.CAP, "cap")
    assert log[:2] == [(0, 5), (1, 5)] and all(number == 1 for number, _ in log[2:])
    # Half the values 2 % under the mean, half over: t x 2 % / sqrt(n - 1), by t's table 2.110 x 2 / 4.123 = 1.02 % for 18
    # and 2.069 x 2 / 4.796 = 0.86 % for 24.
    wave = [0.98, 1.02]
    _, (one,) = play(Schedule(6, auto=True), 1, lambda s, n, r: result([round(1e9 / w) for w in wave * (r // 2)]))
    assert (len(one.samples_ns), one.stopped) == (24, "interval")


# Noise: numbers from NIST's handbook and Kendall's table


def test_grubbs_finds_nists_outlier():
    # NIST/SEMATECH e-Handbook 1.3.5.17.1: G = 2.4687, one-sided 5 % limit 2.032 (two-sided 10 %).
    nist = [199.31, 199.53, 200.19, 200.82, 201.92, 201.95, 202.18, 245.57]
    assert noise.grubbs_critical(8, 0.10) == pytest.approx(2.032, abs=5e-4)
    assert noise.outlier(nist) == 7
    assert noise.outlier(nist[:7]) is None
    assert noise.outlier([5.0, 5.0, 5.0, 5.0, 5.04]) is None  # it stands out, and does not matter
    assert noise.outlier([5.0, 5.0, 5.0, 5.0, 6.0]) == 4
    assert noise.outlier([5.0]) is noise.outlier([]) is None


def test_a_trend_needs_all_five_in_order():
    assert noise.trend([100, 102, 104, 106, 108]) == pytest.approx(8 / 104)
    assert noise.trend([108, 106, 104, 102, 100]) == pytest.approx(-8 / 104)
    assert noise.trend([100, 104, 102, 106, 108]) is None  # one pair out of order: 1 in 12 by chance
    assert noise.trend([100, 100.1, 100.2, 100.3, 100.4]) is None  # under 1 %
    assert noise.trend([100, 110, 120, 130]) is None  # four in order: 1 in 12
    slow = [100 + i // 2 for i in range(30)]
    assert noise.trend(slow) == pytest.approx(0.5 * 29 / 107, rel=0.2)


def test_conditions_name_what_happened():
    hot = result([1_000_000_000 + 20_000_000 * i for i in range(5)])
    around = {"load": [0.0, 0.0], "throttled": 3, "steal": 0.08, "speed_limit": [1.0, 0.8]}
    said = compare.conditions(schedule.sitting(hot, **around))
    assert said == [
        "hot: the CPU slowed itself down meanwhile", "hot: the CPU was held to 80\u202f% of its speed",
        "shared host: 8\u202f% of the cores' time went to others", "trend: 8\u202f% slower from the first to the last repetition"]  # fmt: skip
    odd = result([1_000_000_000] * 4 + [2_000_000_000])
    assert "outlier: repetition 5 of 5 took 2.00 times as long as the others" in compare.conditions(odd)


# The machine around a test


def test_what_the_kernel_tells_is_kept(tmp_path: Path):
    for cpu, (khz, events) in enumerate(((3_200_000, 2), (2_800_000, 5))):
        for folder, name, value in (("cpufreq", "scaling_cur_freq", khz), ("thermal_throttle", "core_throttle_count", events)):
            path = tmp_path / f"cpu{cpu}" / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{value}\n", encoding="utf-8")
    assert surroundings._mhz(tmp_path) == 3000.0
    assert surroundings._throttles(tmp_path) == 7
    assert surroundings._mhz(tmp_path / "none") is surroundings._throttles(tmp_path / "none") is None


def test_before_and_after_make_a_sittings_surroundings():
    cpus = psutil.cpu_count()
    before = surroundings.Moment(0, 0.1, 3200.0, 45.0, None, 7, 100.0)
    after = surroundings.Moment(10, 0.0, 2900.0, 88.0, None, 9, 100.0 + cpus)
    assert surroundings.around(before, after) == {
        "load": [0.1, 0.0], "cpu_mhz": [3200.0, 2900.0], "celsius": [45.0, 88.0], "throttled": 2, "steal": 0.1}  # fmt: skip
    assert surroundings.around(surroundings.Moment(0), surroundings.Moment(1)) == {"load": [None, None]}


def test_quiet_waits_for_calm_and_gives_up_in_the_end():
    said: list[str] = []
    loads = iter([0.9, 0.5, 0.05])
    clock = iter(range(10, 1000, 10))
    look = lambda: surroundings.Moment(next(clock), next(loads))  # noqa: E731
    patience = surroundings.Patience(600)
    moment, waited = patience.wait(surroundings.Moment(0, 0.95), said.append, look, lambda _: None)
    assert (moment.load, waited, patience.left_s) == (0.05, 30, 570)
    assert said == ["Waiting for an idle machine: 95% of the cores in use, up to 600 s"]
    never = surroundings.Patience(25)
    clock2 = iter(range(10, 1000, 10))
    moment, waited = never.wait(surroundings.Moment(0, 0.95), said.append, lambda: surroundings.Moment(next(clock2), 1.0), lambda _: None)
    assert (moment.load, waited) == (1.0, 30) and "No longer waiting" in said[-1]
    assert never.wait(moment, said.append) == (moment, 0)  # no patience left, no look


def test_options_of_the_instrument():
    read = options.read({}, {"REPS": "auto", "INSTRUMENT": "llama-bench", "QUIET": "1"})
    assert (read.reps, read.auto_reps, read.instrument, read.quiet) == (5, True, "llama-bench", True)
    with pytest.raises(options.OptionError, match="INSTRUMENT: unknown; got 'ollama'; known: in-process, llama-bench\nQUIET: unknown; got 'yes'; known: 0, 1"):
        options.read({}, {"INSTRUMENT": "ollama", "QUIET": "yes"})


def test_rounds_end_to_end_and_after_a_kill(project: Path, tiny: Path, tmp_path: Path):
    env = settings(tmp_path, MODEL=tiny, REPS=10, PROFILE="baseline")
    bench = start(project, env)
    engine = engine_of(bench, 2, project)
    bench.send_signal(signal.SIGKILL)
    bench.communicate(timeout=HANGS_S)
    psutil.wait_procs([engine], timeout=HANGS_S)
    (before,) = new_runs(project)
    again = run_module(project, "bench", "run", env=env, timeout=HANGS_S)
    assert again.returncode == 0, again.stderr
    (after,) = new_runs(project)
    assert after.id == before.id and after.ink == before.ink
    for old, new in zip(before.results, after.results, strict=True):
        assert [s.n for s in new.sittings] == [2] * 5 and new.stopped == "repetitions"
        assert new.samples_ns[: len(old.samples_ns)] == old.samples_ns
        assert [s.started_at for s in new.sittings] == sorted(s.started_at for s in new.sittings)
    assert run_module(project, "bench", "check").returncode == 0


# llama-bench. The help and the row are those of llama-bench 0.5.0-dev on two cores.

HELP = """usage: llama-bench [options]
  -o, --output <csv|json|jsonl|md|sql>        output format printed to stdout (default: md)
  --progress                                  print test progress indicators
  -p, --n-prompt <n>                                (default: 512)
  -d, --n-depth <n>                                 (default: 0)
  -fa, --flash-attn <on|off|auto>                   (default: auto)
  -dev, --device <dev0/dev1/...>                    (default: auto)
"""
ROW = {
    "build_commit": "1a2b3c4", "build_number": 7000, "cpu_info": "AMD EPYC", "gpu_info": "", "backends": "CPU", "model_filename": "tiny.gguf",
    "model_type": "qwen3 ?B Q4_K - Medium", "model_size": 926976, "model_n_params": 1443328, "n_batch": 2048, "n_ubatch": 512, "n_threads": 2,
    "type_k": "f16", "type_v": "f16", "n_gpu_layers": -1, "flash_attn": -1, "devices": "auto", "n_prompt": 0, "n_gen": 16, "n_depth": 128,
}  # fmt: skip
STAND_IN = """#!{python}
import json, os, sys
argv = sys.argv[1:]
if "--help" in argv:
    print({help!r})
    sys.exit(0)
value = lambda flag, default: argv[argv.index(flag) + 1] if flag in argv else default
{act}
reps = int(value("-r", "5"))
for i in range(reps):
    print(f"llama-bench: benchmark 1/1: generation run {{i + 1}}/{{reps}}", file=sys.stderr, flush=True)
row = dict({row!r}, n_prompt=int(value("-p", "512")), n_gen=int(value("-n", "128")), n_depth=int(value("-d", "0")), n_threads=int(value("-t", "2")),
           type_k=value("-ctk", "f16"), n_gpu_layers=int(value("-ngl", "-1")), samples_ns=[1000000 * (i + 1) for i in range(reps)])
print(json.dumps(row))
"""


def stand_in(folder: Path, help_text: str = HELP, act: str = "", row: dict | None = None) -> Path:
    """A program that answers as llama-bench does, for the endings a real one seldom shows."""
    path = folder / "llama-bench"
    path.write_text(STAND_IN.format(python=sys.executable, help=help_text, act=act, row=row or ROW), encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def job(**more: object) -> Job:
    return Job(**{"model_path": "m.gguf", "n_prompt": 0, "n_gen": 16, "n_threads": 2, "n_gpu_layers": -1, "reps": 3, **more})


def test_llama_benchs_samples_and_facts_are_kept(tmp_path: Path):
    found = llama_bench.identify(stand_in(tmp_path), tmp_path)
    assert found.build == "b7000 (1a2b3c4)" and found.gpu == ""
    events: list[dict] = []
    outcome = found.run(job(type_k="q8_0", n_gpu_layers=0), events.append)
    assert outcome.samples_ns == [1_000_000, 2_000_000, 3_000_000]
    assert (outcome.facts["backend"], outcome.facts["type_k"], outcome.facts["n_gpu_layers"], outcome.facts["flash_attn"]) == ("CPU", "q8_0", 0, "auto")
    assert [(e["done_tokens"], e["total_tokens"]) for e in events] == [(0, 3), (1, 3), (2, 3)]


def test_llama_bench_is_asked_in_its_own_words():
    new = llama_bench.LlamaBench(Path("x"), HELP, "b1", "")
    argv = " ".join(new.arguments(job(depth=128, flash_attn="on", n_gpu_layers=0)))
    assert argv == "-m m.gguf -p 0 -n 16 -d 128 -r 3 -t 2 -b 2048 -ub 512 -ctk f16 -ctv f16 -o jsonl -ngl 0 -dev none -fa on --progress"
    old = llama_bench.LlamaBench(Path("x"), HELP.replace("on|off|auto", "0|1").replace("-dev,", ""), "b1", "")
    assert old.arguments(job(flash_attn="on"))[-3:] == ["-fa", "1", "--progress"]
    assert "-fa" not in old.arguments(job()) and "-ngl" not in old.arguments(job())


@pytest.mark.parametrize(
    ("row", "backend"),
    [
        ({}, "CPU"),
        ({"backends": "ROCm", "gpu_info": "AMD Radeon Graphics", "n_gpu_layers": 99}, "ROCm"),
        ({"backends": "MTL,BLAS", "gpu_info": "Apple M4", "n_gpu_layers": -1}, "Metal"),
        ({"backends": "MTL,BLAS", "gpu_info": "Apple M4", "n_gpu_layers": 0}, "CPU"),
        ({"backends": "CUDA", "gpu_info": "", "n_gpu_layers": 99}, "CPU"),  # built for it, and none there
        ({"backends": "BLAS,RPC", "gpu_info": "x", "n_gpu_layers": 99}, "CPU"),
    ],
)
def test_the_backend_truly_used(row: dict, backend: str):
    assert llama_bench.facts({**ROW, **row})["backend"] == backend


def test_flash_attention_of_older_rows_is_a_bool():
    assert [llama_bench.facts({**ROW, "flash_attn": f})["flash_attn"] for f in (False, True, -1)] == ["off", "on", "auto"]


@pytest.mark.parametrize(
    ("act", "line"),
    [
        ("print('llama_bench: error: failed to load model', file=sys.stderr); sys.exit(1)", "ended with exit code 1; last words: llama_bench: error: failed to load model"),
        ("import signal; os.kill(os.getpid(), signal.SIGKILL)", "killed (SIGKILL), most likely by the out-of-memory killer"),
        ("print('GGML_ASSERT(x) failed', file=sys.stderr); sys.stderr.flush(); os.abort()", "killed by SIGABRT; last words: GGML_ASSERT"),
        ("sys.exit(0)", "printed 0 rows with 3 samples; expected one"),
    ],
)
def test_llama_benchs_ends_are_one_line(tmp_path: Path, act: str, line: str):
    found = llama_bench.LlamaBench(stand_in(tmp_path, act=act), HELP, "b1", "")
    with pytest.raises(EngineFailed) as caught:
        found.run(job())
    assert line in str(caught.value) and "\n" not in str(caught.value)


def test_no_llama_bench_is_one_line(tmp_path: Path):
    with pytest.raises(llama_bench.NoLlamaBench, match="not on PATH; LLAMA_BENCH=<file> names one"):
        llama_bench.find({"PATH": str(tmp_path)})
    with pytest.raises(llama_bench.NoLlamaBench, match="got '/gone/llama-bench'; not a program"):
        llama_bench.find({"LLAMA_BENCH": "/gone/llama-bench", "PATH": ""})
    with pytest.raises(llama_bench.NoLlamaBench, match="not llama-bench; got"):
        llama_bench.identify(Path("/bin/true"), tmp_path)
    with pytest.raises(llama_bench.NoLlamaBench, match="too old; llama-bench knows no -d; a build of April 2025"):
        llama_bench.identify(stand_in(tmp_path, HELP.replace("-d, --n-depth", "")), tmp_path)


def test_a_killed_bench_takes_llama_bench_along(tmp_path: Path):
    path = stand_in(tmp_path, act="import time; time.sleep(600)")
    code = f"from bench.llama_bench import *; print('on', flush=True); LlamaBench(Path({str(path)!r}), {HELP!r}, '', '').run({job()!r})"
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).resolve().parent.parent, stdout=subprocess.PIPE)
    parent.stdout.readline()
    for _ in range(600):
        family = psutil.Process(parent.pid).children(recursive=True)
        if len(family) == 2:
            break
        psutil.wait_procs(family, timeout=0.1)
    assert len(family) == 2
    os.kill(parent.pid, signal.SIGKILL)
    parent.communicate()
    _, alive = psutil.wait_procs(family, timeout=60)
    assert not [p for p in alive if p.status() != psutil.STATUS_ZOMBIE]


def test_llama_bench_through_plan_ink_and_record(project: Path, tiny: Path, tmp_path: Path):
    env = settings(tmp_path, MODEL=tiny, REPS=3, DEPTHS=128, INSTRUMENT="llama-bench", LLAMA_BENCH=stand_in(tmp_path))
    done = run_module(project, "bench", "run", env=env)
    assert done.returncode == 0, done.stderr
    (run,) = new_runs(project)
    assert (run.instrument.name, run.instrument.version) == ("llama-bench", "b7000 (1a2b3c4)")
    assert "INSTRUMENT=llama-bench" in run.command
    assert [r.samples_ns for r in run.results] == [[1_000_000, 2_000_000, 3_000_000]] * 3
    assert run.ink and [r.depth for r in run.results] == [0, 0, 128]
    missing = run_module(project, "bench", "run", env={**env, "LLAMA_BENCH": "/gone"})
    assert missing.returncode == 1 and missing.stderr == "error: LLAMA_BENCH: no llama-bench; got '/gone'; not a program\n"


def test_parity_is_recorded_as_a_check(project: Path, tiny: Path, tmp_path: Path):
    env = settings(tmp_path, MODEL=tiny, REPS=1, LLAMA_BENCH=stand_in(tmp_path), PAIRS=2)
    done = run_module(project, "bench", "parity", env=env)
    assert done.returncode == 0, done.stderr
    (name,) = set(labdata.load(project / "labdata").checks) - set(labdata.load().checks)
    check = labdata.load(project / "labdata").checks[name]
    assert [(p.test, len(p.a), len(p.b)) for p in check.pairs] == [("pp512", 2, 2), ("tg128", 2, 2), ("tg128 @ d2048", 2, 2)]
    assert check.pairs[0].a == [512 / 0.001] * 2  # the stand-in says a millisecond
    assert len(check.loop_ns) == overhead.ROUNDS and min(check.loop_ns) > 100  # two calls through ctypes take more
    assert "llama-bench b7000 (1a2b3c4), each over its own libraries" in check.setting
    assert "95 % interval" in done.stdout and f"labdata/checks/{name}.yml" in done.stdout
    wrong = run_module(project, "bench", "parity", env={**env, "PAIRS": "none"})
    assert wrong.stderr == "error: PAIRS: not a whole number from 2 to 1000; got 'none'\n"


def test_pairs_turn_their_order():
    assert "".join(way for _, way in parity.order(4)) == "abbaabba"


def test_a_real_llama_bench_agrees_on_what_ran(tiny: Path, tmp_path: Path):
    """Only where there is one: its row names what it was asked."""
    try:
        found = llama_bench.identify(llama_bench.find(), tmp_path)
    except llama_bench.NoLlamaBench:
        pytest.skip("no llama-bench on PATH or in LLAMA_BENCH")
    outcome = found.run(job(model_path=str(tiny), n_gpu_layers=0, depth=32, n_threads=1, type_k="q8_0", flash_attn="on"))
    assert len(outcome.samples_ns) == 3 and min(outcome.samples_ns) > 0
    told = {k: outcome.facts[k] for k in ("backend", "n_threads", "type_k", "flash_attn", "n_gpu_layers")}
    assert told == {"backend": "CPU", "n_threads": 1, "type_k": "q8_0", "flash_attn": "on", "n_gpu_layers": 0}


def test_a_wrong_plan_stops_the_check(project: Path):
    (project / "bench/plans/mine.yml").write_text("about: x\n", encoding="utf-8")
    done = run_module(project, "bench", "check")
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["error: bench/plans/mine.yml: shape: Field required", "error: bench/plans/mine.yml: experiments: Field required"]


def test_a_plan_with_nothing_for_this_machine_is_one_line(project: Path, tiny: Path, tmp_path: Path):
    (project / "bench/plans/huge.yml").write_text(ONE % "settings: [{threads: 4000}]", encoding="utf-8")
    done = run_module(project, "bench", "run", env=settings(tmp_path, MODEL=tiny, PROFILE="huge"))
    assert done.returncode == 1
    assert done.stderr.startswith("error: PROFILE: nothing of huge can be run here; a: 4000 threads left out;")



def test_a_llama_bench_is_built_once_from_the_engines_source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """The steps with their tools left out: the pinned source is fetched, built with the engine's flags, and kept whole."""
    steps: list[list[str]] = []

    def run(what: str, argv: list[str], **_: object) -> None:
        steps.append(argv)
        if "download" in argv:
            home = Path(argv[argv.index("-d") + 1])
            (home / "src/llama_cpp_python-9/vendor/llama.cpp").mkdir(parents=True)
            with tarfile.open(home / "llama_cpp_python-9.tar.gz", "w:gz") as archive:
                archive.add(home / "src/llama_cpp_python-9", "llama_cpp_python-9")
        elif "--build" in argv:
            out = Path(argv[argv.index("--build") + 1]) / "bin"
            out.mkdir(parents=True)
            (out / "llama-bench").write_text("built", encoding="utf-8")

    monkeypatch.setattr("bench.parity.progress.run", run)
    (tmp_path / "lock").mkdir()
    pinned = "llama-cpp-python==9 \\\n    --hash=sha256:00\n"
    (tmp_path / "lock/bench.txt").write_text(pinned, encoding="utf-8")
    env = {"XDG_CACHE_HOME": str(tmp_path), "PATH": os.environ["PATH"], "BACKEND": "cpu", "CMAKE_ARGS": "-DGGML_NATIVE=OFF"}
    path, libraries = parity.binary({**env, "PATH": "/usr/bin:/bin"}, tmp_path)
    assert path.read_text(encoding="utf-8") == "built" and libraries == path.parent and path.is_relative_to(tmp_path / "inklab/llama-bench")
    download, configure, compile_ = steps
    assert "--require-hashes" in download and "-DGGML_NATIVE=OFF" in configure and "-DGGML_METAL=OFF" in configure
    assert compile_[-2:] == ["--target", "llama-bench"]
    assert not list((tmp_path / "inklab/llama-bench").glob("build-*"))
    parity.binary({**env, "PATH": "/usr/bin:/bin"}, tmp_path)
    assert len(steps) == 3  # kept
