"""A profile turned into the list of tests to run, for one machine and one choice of weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from macros import labdata, predict
from macros.cards import Model
from macros.inks import Target
from macros.plans import Experiment, Plan, Setting

PLANS = Path(__file__).parent / "plans"
HEADROOM_BYTES = 1.5e9  # the engine's compute buffers, Python, and an operating system that breathes


class PlanError(Exception):
    """The plan cannot be run here; one clear line each."""


@dataclass(frozen=True)
class Test:
    """One test to run, and what the ink calls it."""

    target: Target
    n_prompt: int
    n_gen: int
    cpu_control: bool
    setting: Setting = Setting()  # threads, where it names any, as a number


def profiles() -> list[str]:
    """The known profiles."""
    return sorted(p.stem for p in PLANS.glob("*.yml"))


def read(profile: str) -> Plan:
    """A profile's plan.

    Raises:
        PlanError: unknown; the known ones are named.
        LabError: the plan file is not valid.
    """
    if profile not in profiles():
        raise PlanError(f"PROFILE: unknown profile; got {profile!r}; known: {', '.join(profiles())}")
    return labdata.parse(Plan, PLANS / f"{profile}.yml", f"bench/plans/{profile}.yml")


def for_host(plan: Plan, cores: dict[str, int]) -> tuple[Plan, list[str]]:
    """The plan with numbers of threads for kinds of cores, each setting an experiment of its own; and what is left out.

    Args:
        cores: how many "performance", "physical" and "logical" cores the machine has

    Raises:
        PlanError: two settings of an experiment would go by the same name.
    """
    found: list[Experiment] = []
    left_out = []
    for e in plan.experiments:
        chosen: list[Setting] = []
        for s in e.settings:
            counted = s.model_copy(update={"threads": cores.get(s.threads, s.threads)})  # type: ignore[arg-type]
            if (counted.threads or 0) > cores["logical"]:
                left_out.append(f"{e.name}: {counted.threads} threads left out; this machine has {cores['logical']} logical cores")
            elif counted not in chosen:  # performance and physical cores are the same on most machines
                chosen.append(counted)
        names = [_name(e, s, chosen) for s in chosen]
        if len(set(names)) < len(names):
            raise PlanError(f"plan: {e.name}: two settings would both be called {next(n for n in names if names.count(n) > 1)}; split the experiment")
        found += [e.model_copy(update={"name": n, "settings": [s]}) for n, s in zip(names, chosen, strict=True)]
    return plan.model_copy(update={"experiments": found}), left_out


def _name(e: Experiment, setting: Setting, among: list[Setting]) -> str:
    """An experiment's name with the values in which this setting differs from the others: "threads-4", "kv-q8_0"."""
    if len(e.settings) == 1:
        return e.name
    fields = ("threads", "n_batch", "ubatch", "type_k", "type_v", "flash_attn")
    values = [getattr(setting, f) or "default" for f in fields if len({getattr(s, f) for s in among}) > 1]
    if not values:  # only one of them is left on this machine
        values = [setting.threads or "default"]
    return "-".join([e.name, *dict.fromkeys(map(str, values))])


def kv_types(todo: list[Test]) -> dict[str, tuple[str, str]]:
    """Experiments' types of the key and value cache."""
    return {t.target.experiment: (t.setting.type_k, t.setting.type_v) for t in todo}


def tests(plan: Plan, models: dict[str, Model], gpu: bool, depths: list[int] | None = None) -> list[Test]:
    """The tests to run, in order.

    Args:
        plan: as `for_host` makes it
        models: the weights to use by quantisation; an experiment without one is left out
        gpu: whether there is a GPU to switch off
        depths: instead of the plan's, for experiments that sweep
    """
    found = []
    for e in plan.experiments:
        if e.quant not in models or (e.cpu_control and not gpu):
            continue
        if depths is not None and e.depths != [0]:
            e = e.model_copy(update={"depths": depths})
        for depth in e.depths:
            for test in e.tests:
                n = int(test[2:])
                target = Target(experiment=e.name, model=models[e.quant].id, test=test, depth=depth)
                found.append(Test(target, n if test[:2] == "pp" else 0, n if test[:2] == "tg" else 0, e.cpu_control, e.settings[0]))
    return found


def memory_needed_bytes(test: Test, model: Model) -> float:
    """Memory a test needs at its peak: weights, KV cache and its saved copy, headroom [B]."""
    cells = test.n_prompt + test.n_gen + test.target.depth
    copies = 2 if test.target.depth else 1  # the state after the depth prefill is kept for the repetitions
    return model.file_bytes() + copies * cells * predict.kv_token_bytes(model, (test.setting.type_k, test.setting.type_v)) + HEADROOM_BYTES


def what_fits(available_bytes: float, todo: list[Test], models: dict[str, Model]) -> list[str]:
    """Synthetic shapes in labdata/models whose weights would let this plan run in `available_bytes`."""
    fits = []
    for model in models.values():
        if model.weights == "synthetic" and model.quant == "Q8_0":
            need = max(memory_needed_bytes(t, model) for t in todo)
            if need <= available_bytes:
                fits.append(model.id.removesuffix("-q8_0-synthetic"))
    return fits


def check_memory(available_bytes: float, todo: list[Test], models: dict[str, Model]) -> None:
    """Say before anything starts that the plan will not fit.

    Raises:
        PlanError: what is needed, what there is, and which shapes would fit.
    """
    worst = max(todo, key=lambda t: memory_needed_bytes(t, models[t.target.model]))
    need = memory_needed_bytes(worst, models[worst.target.model])
    if need > available_bytes:
        fits = what_fits(available_bytes, todo, models)
        hint = f"SHAPE={' or SHAPE='.join(fits)} would fit" if fits else "nothing in labdata/models would fit"
        raise PlanError(
            f"memory: not enough for {worst.target.label}; needs {need / 1e9:.1f} GB, {available_bytes / 1e9:.1f} GB available; {hint}"
        )


