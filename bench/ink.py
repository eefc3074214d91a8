"""`make ink`: for which machine and tests, then open, or seal with CLOSE=1."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from bench import desk, instruments, plan, prepare
from bench import host as hosts
from bench.engine import Engine
from bench.host import Host
from bench.options import Options
from bench.plan import PlanError, Test
from macros import labdata
from macros.cards import Machine
from macros.inks import OpenInk
from macros.labdata import Lab


def run(options: Options, env: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Open the ink of a plan; with CLOSE=1 seal the one that is open.

    Args:
        env: CLOSE, INK (the ink's name) and TITLE, where given

    Raises:
        PlanError, DeskError, LabError: one clear line each.
    """
    lab = labdata.load()
    wet = [i for i in lab.open_inks.values() if i.plan == options.profile and options.machine in (None, i.machine)]
    wet = [i for i in wet if env.get("INK", "") in ("", i.id)]
    if len(wet) > 1:
        raise desk.DeskError(f"INK: several inks of plan {options.profile} are open; got {', '.join(i.id for i in wet)}; INK= says which")
    closing = env.get("CLOSE", "") not in ("", "0")
    if closing and not wet:
        raise desk.DeskError(f"CLOSE: no ink of plan {options.profile} is open; got {env['CLOSE']!r}; make ink PROFILE={options.profile} opens one")
    if wet:
        options = replace(options, machine=wet[0].machine)
    machine, tests = _about(lab, options, say)
    if wet:
        _go_on(lab, wet[0], tests, closing, say)
        return
    lab = labdata.load()  # with the cards of a new machine or model
    ident = env.get("INK") or _name(options.profile, machine.id, lab)
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,79}", ident):
        raise desk.DeskError(f"INK: small letters, digits, dots and hyphens only; got {ident!r}")
    control = sorted({t.target.experiment for t in tests if t.cpu_control})
    title = env.get("TITLE") or f"What {machine.name} should do, plan {options.profile}"
    path = desk.open_ink(lab, ident, title, machine, options.profile, [t.target for t in tests], control)
    say(f"Opened: labdata/ink/{path.name}. Write your guesses into it, or none; make ink PROFILE={options.profile} CLOSE=1 seals it.")


def _go_on(lab: Lab, ink: OpenInk, tests: list[Test], closing: bool, say: Callable[[str], None]) -> None:
    """Seal an open ink, or bring it up to its plan and say what it would be sealed with."""
    shown, targets = f"labdata/ink/{ink.id}.open.yml", [t.target for t in tests]
    if closing:
        if targets != ink.tests:
            raise desk.DeskError(f"{shown}: tests: not what the plan runs now; got {'; '.join(t.label for t in ink.tests)}; make ink PROFILE={ink.plan} "
                                 "brings them up to date, with MODEL, SHAPE, DEPTHS and NGL as the bench will get them")  # fmt: skip
        path = desk.close_ink(lab, ink.id)
        sealed = labdata.load().inks[path.stem]
        say(f"Sealed: labdata/ink/{path.name}, {sealed.dry_at:%Y-%m-%d %H:%M:%S} UTC, {path.read_text(encoding='utf-8').splitlines()[-1][2:]}")
        desk.summary(sealed.predictions, say)
        say(f"Commit it now: git then shows that it came first. To measure: make bench PROFILE={sealed.plan}")
        return
    if targets != ink.tests:
        desk.rewrite(lab, ink.model_copy(update={"tests": targets, "control": sorted({t.target.experiment for t in tests if t.cpu_control})}))
        say(f"{shown}: the plan has changed; its tests were brought up to date, your guesses kept")
    say(f"Open: {shown}, {len(ink.guesses)} guesses of your own; CLOSE=1 seals it with these:")
    fresh = labdata.load().open_inks[ink.id]
    desk.summary([*fresh.guesses, *desk.derived(lab, fresh.machine, fresh.tests, fresh.control)], say)


def _name(profile: str, machine: str, lab: Lab) -> str:
    """day-02 for plan day2, unless another machine has that name; else machine, hour and plan."""
    day = re.fullmatch(r"day(\d+)", profile)
    if day and f"day-{int(day[1]):02}" not in lab.inks:
        return f"day-{int(day[1]):02}"
    return f"{machine}-{desk.now():%Y-%m-%d-%H%M%S}-{profile}"


def _about(lab: Lab, options: Options, say: Callable[[str], None]) -> tuple[Machine, list[Test]]:
    """The machine and the tests the ink is about: this machine, or the one MACHINE names in labdata/machines."""
    host = hosts.collect()
    chosen, _ = plan.for_host(plan.read(options.profile), hosts.core_counts(host))
    if options.model:
        cards = prepare.own_model(lab, options.model, chosen.experiments[0].quant).cards
    else:
        cards = prepare.synthetic(lab, options.shape or chosen.shape, list(dict.fromkeys(e.quant for e in chosen.experiments)))
    named = lab.machines.get(options.machine or "")
    machine = _this(lab, options, host, say, quiet=named is not None)
    if machine is None and named:
        # elsewhere: roofs from a probe of the CPU mean that there is no GPU to switch off
        gpu = options.ngl != 0 and named.sources[named.specs.memory_bandwidth.source].kind != "measured"
        return named, plan.tests(chosen, cards, gpu, options.depths)
    assert machine is not None
    return machine[0], plan.tests(chosen, cards, machine[1], options.depths)


def _this(lab: Lab, options: Options, host: Host, say: Callable[[str], None], quiet: bool) -> tuple[Machine, bool] | None:
    """This machine and whether its GPU computes; None: MACHINE names another one (`quiet`)."""
    try:
        with Engine() as own:
            instrument = instruments.choose(options.instrument, prepare.cache_dir(), own)
        gpu = instrument.gpu and options.ngl != 0
        return prepare.machine(lab, hosts.for_engine(host, instrument.system), options.machine, gpu, say, options.chip, options.quiet), gpu
    except PlanError:
        if quiet:
            return None
        raise
