"""The author's desk: open ink, seal it, find the one that waits for a run; withdraw, seal later."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from macros import history, labdata, predict, seals
from macros.cards import Machine
from macros.inks import Ink, OpenInk, Prediction, Target
from macros.labdata import Lab, LabError
from macros.seals import Seal, Stamp, Withdrawal


class DeskError(Exception):
    """What the author asked for cannot be done; one clear line each."""


def now() -> datetime:
    """This second, UTC."""
    return datetime.now(UTC).replace(microsecond=0)


def stamp() -> Stamp:
    """When, by what, at which commit."""
    return Stamp(at=now(), tool=seals.TOOL, commit=history.head(labdata.ROOT))


def results_of(lab: Lab, machine: str, plan: str) -> list[str]:
    """Runs of a plan on a machine that have results, withdrawn ones left out."""
    return [r.id for r in lab.runs_of(machine) if r.profile == plan and r.results]


def waiting(lab: Lab, machine: str, plan: str) -> Ink | None:
    """The author's sealed ink that has no run yet; None: there is none.

    Raises:
        DeskError: two inks wait for one run.
    """
    found = [i for i in lab.inks.values() if (i.machine, i.plan, i.author) == (machine, plan, "lab")
             and f"ink/{i.id}" not in lab.withdrawn and not lab.runs_on(i.id)]  # fmt: skip
    if len(found) > 1:
        names = ", ".join(i.id for i in found)
        raise DeskError(f"labdata/ink: two inks for one run of plan {plan} on {machine}; got {names}; withdraw all but one: python -m bench withdraw")
    return found[0] if found else None


def opened(lab: Lab, machine: str, plan: str) -> OpenInk | None:
    """The ink being written for a plan on a machine; None: there is none."""
    return next((i for i in lab.open_inks.values() if (i.machine, i.plan) == (machine, plan)), None)


def refuse_open(lab: Lab, machine: str, plan: str) -> None:
    """Nothing is measured while its ink is wet.

    Raises:
        DeskError: the ink of this plan is open.
    """
    wet = opened(lab, machine, plan)
    if wet:
        raise DeskError(f"labdata/ink/{wet.id}.open.yml: ink: still open, so nothing is measured; got plan {plan} on {machine}; "
                        f"make ink PROFILE={plan} MACHINE={machine} CLOSE=1 seals it")  # fmt: skip


def for_run(lab: Lab, machine: str, plan: str, planned: list[str]) -> Path | None:
    """The sealed ink a run of these tests is made on; None: the author wrote none, the bench derives it.

    Raises:
        DeskError: still open, two of them, about other tests, or from a later hour than this clock's.
    """
    refuse_open(lab, machine, plan)
    ink = waiting(lab, machine, plan)
    if ink is None:
        return None
    shown = f"labdata/ink/{ink.id}.yml"
    if set(ink.planned) != set(planned):
        lacking = "; ".join(sorted(set(ink.planned) ^ set(planned)))
        raise DeskError(f"{shown}: planned: not the tests of this run; they differ in {lacking}; "
                        "give MODEL, SHAPE, DEPTHS and NGL as for the ink, or withdraw it")  # fmt: skip
    if ink.dry_at and ink.dry_at > now():
        raise DeskError(f"{shown}: sealed.at: this machine's clock ran backwards; got {now()}, sealed at {ink.dry_at}; set the clock")
    return labdata.ROOT / "ink" / f"{ink.id}.yml"


def derived(lab: Lab, machine: str, tests: list[Target], control: list[str]) -> list[Prediction]:
    """What the specs say about some tests of a machine."""
    models = {t.model: lab.get("models", t.model) for t in tests}
    return predict.derive(lab.get("machines", machine), models, tests, set(control))


def open_ink(lab: Lab, ident: str, title: str, machine: Machine, plan: str, tests: list[Target], control: list[str]) -> Path:
    """Open the ink of a plan on a machine: a file for the author's guesses, with what is derived shown beside.

    Raises:
        DeskError: there is ink of that name or for that run, or the run already has results.
    """
    done = results_of(lab, machine.id, plan)
    if done:
        raise DeskError(f"labdata/ink/{ident}: ink: plan {plan} has results on {machine.id} already, and ink comes first; "
                        f"got run {done[-1]}; a new day has a plan of its own: make day N=… TITLE=… QUESTION=…")  # fmt: skip
    dry = waiting(lab, machine.id, plan)
    if dry or ident in lab.inks or ident in lab.open_inks:
        raise DeskError(f"labdata/ink/{(dry.id if dry else ident)}.yml: ink: there is one already, and ink is written once; "
                        f"got {ident!r}; INK= names another, python -m bench withdraw takes a wrong one back")  # fmt: skip
    ink = OpenInk(schema=1, id=ident, title=title, machine=machine.id, plan=plan, opened_at=now(), tests=tests, control=control, guesses=[])
    return rewrite(lab, ink)


def rewrite(lab: Lab, ink: OpenInk) -> Path:
    """An open ink on disk, with what is derived and how to write a guess in comments below."""
    path = labdata.ROOT / "ink" / f"{ink.id}.open.yml"
    labdata.write(path, ink)
    labdata.write_text(path, path.read_text(encoding="utf-8") + _help(derived(lab, ink.machine, ink.tests, ink.control), ink.tests))
    return path


def _help(found: list[Prediction], tests: list[Target]) -> str:
    """Comments below an open ink: what will be derived, and a guess of each kind to copy."""
    first = {kind: next((t for t in tests if t.test[:2] == kind), tests[0]) for kind in ("tg", "pp")}
    decode, prefill = (json.dumps(first[k].model_dump()).replace('"', "") for k in ("tg", "pp"))
    lines = ["", "Added on closing, derived from the specs:"]
    lines += [f"  {p.id}: {p.quantity}: {'at most ' if p.kind == 'ceiling' else ''}{p.as_written} = {p.formula}" for p in found]
    lines += [
        "", "The tests of the plan:", *(f"  {json.dumps(t.model_dump())}".replace('"', "") for t in tests),
        "", "Your own go under guesses, each with a reason. One of each kind:", "guesses:",
        f"  - {{id: my-roof, quantity: Decode rate, kind: ceiling, value: 24, unit: tok/s, as_written: at most 24, because: '120 / 5', of: {decode}}}",
        f"  - {{id: my-point, quantity: Prefill rate, kind: point, value: 360, unit: tok/s, as_written: '360', because: folklore, of: {prefill}}}",
        f"  - {{id: my-range, quantity: Decode rate, kind: interval, low: 18, high: 22, unit: tok/s, as_written: 18 to 22, because: '...', of: {decode}}}",
        f"  - {{id: my-ratio, quantity: Prefill over decode, kind: ratio, value: 12, unit: '1', as_written: 12 times, because: '...', of: {prefill}, over: {decode}}}",
        f"  - {{id: my-order, quantity: Prefill beats decode, kind: ordering, unit: '1', as_written: prefill first, because: '...', of: {prefill}, slower: [{decode}]}}",
        f"  - {{id: my-turn, quantity: Prefill against decode, kind: direction, direction: rises, unit: '1', as_written: rises, because: '...', of: {prefill}, over: {decode}}}",
    ]  # fmt: skip
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)


def close_ink(lab: Lab, ident: str) -> Path:
    """Seal an open ink: the author's guesses, then what the specs derive, each with its inputs; the open file goes.

    Raises:
        LabError: no such open ink.
        DeskError: an id given to two predictions, results already there, or a clock that ran backwards.
    """
    wet: OpenInk = lab.get("open_inks", ident)
    shown = f"labdata/ink/{ident}.open.yml"
    done = results_of(lab, wet.machine, wet.plan)
    if done:
        raise DeskError(f"{shown}: ink: plan {wet.plan} has results on {wet.machine} already, and ink comes first; got run {done[-1]}; delete it")
    computed = derived(lab, wet.machine, wet.tests, wet.control)
    twice = {p.id for p in wet.guesses} & {p.id for p in computed}
    if twice:
        raise DeskError(f"{shown}: guesses: the name of a derived prediction; got {', '.join(sorted(twice))}; name it otherwise")
    if not wet.guesses and not computed:
        raise DeskError(f"{shown}: guesses: nothing is predicted; got no guess, and the specs derive none")
    seal = stamp()
    if seal.at < wet.opened_at:
        raise DeskError(f"{shown}: opened_at: this machine's clock ran backwards; got {seal.at}, opened at {wet.opened_at}; set the clock")
    ink = Ink(
        schema=1, id=ident, title=wet.title, machine=wet.machine, author="lab", written_at=wet.opened_at, plan=wet.plan,
        written_note="Opened, written and sealed before its run; the bench refuses a plan whose ink is open.",
        planned=[t.label for t in wet.tests], sealed=seal, predictions=[*wet.guesses, *computed], sources=wet.sources)  # fmt: skip
    path = labdata.ROOT / "ink" / f"{ident}.yml"
    labdata.write(path, ink)
    (labdata.ROOT / "ink" / f"{ident}.open.yml").unlink()
    return path


def finish_closing() -> list[str]:
    """Names of inks whose closing was cut off after the sealed file was there: the open one goes."""
    done = []
    for path in sorted(labdata.ROOT.glob("ink/*.open.yml")):
        sealed = path.with_name(path.name.replace(".open.yml", ".yml"))
        try:
            wet, dry = (labdata.parse(kind, file, file.name) for kind, file in ((OpenInk, path), (Ink, sealed)))
        except LabError:
            continue  # no such pair; what is wrong with one alone is said by whoever loads it
        if (dry.written_at, dry.plan, dry.machine) == (wet.opened_at, wet.plan, wet.machine):
            path.unlink()
            done.append(wet.id)
    return done


def _named(file: str, env: Mapping[str, str]) -> tuple[Path, str]:
    """An ink or a run by its path, and the reason given for doing something to it."""
    path = Path(file)
    path = path if path.is_absolute() else labdata.ROOT.parent / path
    inside = labdata.ROOT in path.resolve().parents and path.resolve().relative_to(labdata.ROOT).parts[0] in ("ink", "runs")
    if not (inside and path.is_file() and path.suffix == ".yml" and path.stem.rpartition(".")[2] not in seals.BESIDE):
        raise DeskError(f"FILE: not a file of labdata/ink or labdata/runs; got {file!r}")
    because = " ".join(env.get("BECAUSE", "").split())
    if not because:
        raise DeskError(f'BECAUSE: a reason is needed; got none; BECAUSE="the laptop was on battery" says why {path.name} is touched')
    return path.resolve(), because


def withdraw(file: str, env: Mapping[str, str]) -> Path:
    """Take an ink or a run back by a new file with the reason; the file itself stays and the page says so.

    Raises:
        DeskError: no such file, no reason, or withdrawn before.
    """
    path, because = _named(file, env)
    return _beside(path, "withdrawn", Withdrawal(schema=1, at=now(), because=because))


def seal_later(file: str, env: Mapping[str, str]) -> Path:
    """Seal a file that has no seal as it stands, said to be later and why.

    Raises:
        DeskError: no such file, no reason, or sealed before.
    """
    path, because = _named(file, env)
    if seals.MARK.encode() in path.read_bytes():
        raise DeskError(f"{file}: seal: it has one; got its last line; a sealed file is not sealed again")
    mark = stamp()
    return _beside(path, "seal", Seal(schema=1, sha256=seals.sha256(path), at=mark.at, tool=mark.tool, commit=mark.commit, because=because))


def _beside(path: Path, word: str, document: Seal | Withdrawal) -> Path:
    target = path.with_name(f"{path.stem}.{word}.yml")
    if target.exists():
        raise DeskError(f"{target.name}: file: is there already; got a second one for {path.name}; what is written stays")
    labdata.write(target, document)
    return target


def summary(found: list[Prediction], say: Callable[[str], None]) -> None:
    """Each prediction on one line."""
    for p in found:
        say(f"  {p.quantity}: {'≤ ' if p.kind == 'ceiling' else ''}{p.as_written}{'' if p.formula else f', because {p.because}'}")


