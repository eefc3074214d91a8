"""`python -m tests.biglab FOLDER MACHINES RUNS`: a lab of generated machines, to see what size costs.

Everything in it is made up and says so. It is valid all the same: ink derived from each machine's roofs, runs
that hold its hash, seals, all written in the bench's own format. The same arguments make the same bytes.
"""

from __future__ import annotations

import random
import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench import plan
from macros import labdata, predict, seals
from macros.cards import Machine, Model, Specs
from macros.fields import Compute, Quantity, Source
from macros.inks import Ink
from macros.labdata import Lab
from macros.records import HostDoc, InkRef, Instrument, Result, Run, Sitting

FIRST_DAY = datetime(2026, 1, 1, 12, tzinfo=UTC)
REPS = 5


def write(root: Path, machines: int, runs: int) -> None:
    """Add machines with their inks and runs to a labdata folder that has models.

    Args:
        root: the labdata folder
        machines: how many
        runs: runs of each; the first of every five follows Day 1's plan, the others the quick one
    """
    lab = labdata.load(root)
    for number in range(machines):
        _machine(root, lab, number, runs)


def _machine(root: Path, lab: Lab, number: int, runs: int) -> None:
    dice = random.Random(number)
    machine = _card(number, dice)
    _put(root / "machines" / f"{machine.id}.yml", labdata.text(root / "machines" / f"{machine.id}.yml", machine))
    first = {profile: _first_run(lab, machine, profile, dice) for profile in ("day1", "quick")}
    for day in range(runs):
        ink, run = first["day1" if day % 5 == 0 else "quick"]
        date = f"{FIRST_DAY + timedelta(days=day):%Y-%m-%d}"
        ink_id = _id(ink)
        ink = ink.replace(f"{FIRST_DAY:%Y-%m-%d}", date)
        path = root / "ink" / f"{_id(ink)}.yml"
        _put(path, seals.close(ink))
        run = run.replace(f"{FIRST_DAY:%Y-%m-%d}", date)
        run = re.sub(r"(?m)^  sha256: .*$", f"  sha256: {seals.sha256(path)}", run)
        run = re.sub(r"samples_ns: \[.*\]", lambda old: f"samples_ns: {_again(old[0], dice)}", run)
        assert ink_id != _id(ink) or day == 0, "every run has an ink of its own"
        _put(root / "runs" / machine.id / f"{_id(run)}.yml", seals.close(run))


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _id(text: str) -> str:
    return re.search(r"(?m)^id: (\S+)$", text)[1]  # type: ignore[index]


def _again(samples: str, dice: random.Random) -> str:
    """Repetitions of another sitting: the same work, a little faster or slower, now and then noisy."""
    mean = int(re.search(r"\d+", samples)[0]) * dice.uniform(0.95, 1.05)  # type: ignore[index]
    noise = 0.12 if dice.random() < 0.03 else 0.01
    return f"[{', '.join(str(round(mean * dice.gauss(1, noise))) for _ in range(REPS))}]"


def _card(number: int, dice: random.Random) -> Machine:
    """A machine with roofs anywhere between a small board's and a server's."""
    bandwidth = round(30 * 10 ** dice.uniform(0, 2), 2)
    return Machine(
        schema=1, id=f"generated-{number:05d}", name=f"Generated machine {number:05d}, {bandwidth:g} GB/s", chip=f"Generated chip {number:05d}",
        os="Debian GNU/Linux 12", cores=dice.choice([4, 6, 8, 12, 16, 24]),
        specs=Specs(memory_bandwidth=Quantity(value=bandwidth, unit="GB/s", source="made"),
                    peak_compute=Compute(value=round(bandwidth * dice.uniform(0.02, 0.2), 3), unit="TFLOP/s", source="made", precision="fp16"),
                    memory=Quantity(value=float(dice.choice([16, 24, 32, 64])), unit="GiB", source="made")),
        notes=["A generated machine: nothing here was measured."],
        sources={"made": Source(title="Drawn at random", kind="assumed", note="tests/biglab.py")})  # fmt: skip


def _first_run(lab: Lab, machine: Machine, profile: str, dice: random.Random) -> tuple[str, str]:
    """The text of a derived ink and of a run on it, both unsealed."""
    told = plan.read(profile)
    shape = dice.choice(sorted(m.id.removesuffix("-q8_0-synthetic") for m in lab.models.values() if m.id.endswith("-q8_0-synthetic")))
    cards = {e.quant: lab.models[f"{shape}-{e.quant.lower()}-synthetic"] for e in told.experiments}
    counts = {"performance": 4, "physical": 4, "logical": 8}
    tests = plan.tests(plan.for_host(told, counts)[0], cards, gpu=True)
    models = {card.id: card for card in cards.values()}
    planned = [t.target.label for t in tests]
    stamp = f"{FIRST_DAY:%Y-%m-%d-%H%M%S}-{profile}"
    ink = Ink(
        schema=1, id=f"{machine.id}-{stamp}", title=f"What {machine.name} should do, plan {profile}", machine=machine.id, author="derived",
        written_at=FIRST_DAY, plan=profile, planned=planned, sealed=seals.Stamp(at=FIRST_DAY, tool=seals.TOOL, commit=None),
        predictions=predict.derive(machine, models, [t.target for t in tests], {t.target.experiment for t in tests if t.cpu_control}),
        written_note="Generated with its run; nothing was predicted before anything.")  # fmt: skip
    run = Run(
        schema=1, id=stamp, machine=machine.id, ink=InkRef(id=ink.id, sha256="0" * 64), profile=profile, started_at=FIRST_DAY,
        command=f"python -m tests.biglab, plan {profile}", planned=planned, notes=["Generated: nothing was measured."],
        instrument=Instrument(name="generated", version=seals.VERSION, engine="none", engine_version=None),
        host=HostDoc(os=machine.os, arch="x86_64", cpu=machine.chip, physical_cores=4, logical_cores=8, gpus=[machine.chip]),
        results=[_result(machine, models[t.target.model], t, FIRST_DAY + timedelta(seconds=30 * i), dice) for i, t in enumerate(tests, 1)])  # fmt: skip
    return labdata.text(Path("labdata/ink/x.yml"), ink), labdata.text(Path("labdata/runs/x/x.yml"), run)


def _result(machine: Machine, model: Model, test: plan.Test, at: datetime, dice: random.Random) -> Result:
    """A test at some share of its roof: most of it on the GPU, less of it on the CPU."""
    of, share = test.target, dice.uniform(0.5, 0.95) * (0.2 if test.cpu_control else 1)
    if test.n_gen:
        seconds = test.n_gen * predict.exact_decode_bytes(model, of.depth) / machine.specs.memory_bandwidth.si / share
    else:
        assert machine.specs.peak_compute
        seconds = test.n_prompt * predict.exact_prefill_flops_per_token(model, test.n_prompt, of.depth) / machine.specs.peak_compute.si / share
    sitting = Sitting(n=REPS, started_at=at, load=[round(dice.uniform(0, 0.1), 3)] * 2, cpu_mhz=[round(dice.uniform(2000, 4000), 1)] * 2)
    return Result(
        experiment=of.experiment, model=of.model, n_prompt=test.n_prompt, n_gen=test.n_gen, depth=of.depth,
        backend="CPU" if test.cpu_control else "Generated", n_gpu_layers=0 if test.cpu_control else -1, n_threads=4, started_at=at,
        load_before=sitting.load[0], samples_ns=[max(1, round(seconds * 1e9 * dice.gauss(1, 0.01))) for _ in range(REPS)],
        sittings=[sitting], stopped="repetitions")  # fmt: skip


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
