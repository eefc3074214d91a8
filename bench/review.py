"""What a change brings to the lab, for whoever decides about it in half a minute.

Pure but for git, which `macros.history` asks. A suspicion is no verdict: it names what a person should look at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from bench import chips
from macros import history, labdata, plain, predict, rows
from macros.cards import Machine
from macros.compare import NOISE_SIGMAS, rate, scores
from macros.hardware import BUS_TOLERANCE, Chip
from macros.labdata import Lab, LabError
from macros.narrative import tally_words
from macros.records import Result, Run
from macros.values import Value

CLOCKS_DIFFER = timedelta(minutes=5)  # two honest clocks
SHOWN = 40  # lines of one kind; the rest are counted
_MARK = re.compile(r"([\\`*_{}\[\]<>|#@!~:])")
_ESCAPE = re.compile(rf"\\{_MARK.pattern}")
_OWN_FILE = re.compile(r"labdata/([^:]+):")


@dataclass(frozen=True)
class Review:
    """A summary in Markdown, and the problems that forbid a merge."""

    text: str
    problems: list[str]


def of(root: Path, base: str, now: datetime) -> Review:
    """Review what the checkout around labdata/ has that a base commit has not.

    Raises:
        LabError: no such base, or no git.
    """
    changed = history.changed(root.parent, base)
    if changed is None:
        raise LabError([f"BASE: no such branch or commit here; got {base!r}; git fetch brings it, BASE=origin/main is usual"])
    ours = {path.removeprefix("labdata/"): status for path, status in changed.items() if path.startswith("labdata/")}
    rest = {path: status for path, status in changed.items() if not path.startswith("labdata/")}
    found = history.problems(root)
    try:
        lab = labdata.load(root)
    except LabError as error:
        mine, others = split([*error.problems, *found], set(ours))
        text = [f"# Cannot be merged: {_count(len(mine) or len(others), 'problem')}", "", *_listed(mine or others)]
        if mine and others:
            text += ["", f"{_count(len(others), 'problem')} in files this change does not touch."]
        return Review("\n".join(text), mine or others)
    found += history.late(lab, root)
    return Review(summary(lab, ours, rest, found, now), found)


def told(found: Review, env: Mapping[str, str]) -> str:
    """A review's text, which a workflow's page gets too where there is one; for a terminal without the marks that keep words from being Markdown or a runner's commands."""
    if page := env.get("GITHUB_STEP_SUMMARY"):
        with open(page, "a", encoding="utf-8") as summary_page:
            summary_page.write(f"{found.text}\n")
        return found.text
    return _ESCAPE.sub(r"\1", found.text)


def split(problems: list[str], ours: set[str]) -> tuple[list[str], list[str]]:
    """Problems of the files that a change touches, and of others.

    >>> split(["labdata/ink/a.yml: id: x", "labdata/ink/b.yml: id: y", "BASE: z"], {"ink/a.yml"})
    (['labdata/ink/a.yml: id: x', 'BASE: z'], ['labdata/ink/b.yml: id: y'])
    """
    others = [p for p in problems if (at := _OWN_FILE.match(p)) and at[1] not in ours]
    return [p for p in problems if p not in others], others


def summary(lab: Lab, ours: dict[str, str], rest: dict[str, str], problems: list[str], now: datetime) -> str:
    """What a change brings, in Markdown.

    Args:
        ours: files below labdata/ that changed, with git's letter (A added, M modified, D deleted)
        rest: the same of all other files
        problems: what forbids a merge
        now: the hour of the review
    """
    machines = [lab.machines[i] for i in _ids(ours, "machines") if i in lab.machines]
    names = [n for n in _ids(ours, "runs") if n in lab.runs]
    runs = [lab.runs[n] for n in names]
    odd = suspicions(lab, ours, now)
    title = [_count(sum(ours.get(f"machines/{m.id}.yml") == "A" for m in machines), "new machine"), _count(len(runs), "run"),
             _count(sum(len(r.results) for r in runs), "test"), _count(len(odd), "suspicion")]  # fmt: skip
    lines = [f"# {', '.join(title)}"]
    if problems:
        lines += ["", "## Cannot be merged", "", *_listed(problems)]
    lines += ["", "## Suspicions", "", *(_listed(odd) or ["None of those looked for."])]
    if rest:
        lines += ["", "## Beside the data", "", f"{_count(len(rest), 'file')} outside labdata/, which run or are published:", "",
                  *_listed([f"{path} ({_status(status)})" for path, status in rest.items()])]  # fmt: skip
    for m in machines:
        lines += ["", f"## Machine {words(m.name)} ({_status(ours[f'machines/{m.id}.yml'])})", "", *_listed(_specs(lab, m))]
    for run in runs:
        lines += ["", f"## Run {run.machine}/{run.id} ({_status(ours[f'runs/{run.machine}/{run.id}.yml'])})", "", *_run(lab, run)]
    known = {f"machines/{m.id}.yml" for m in machines} | {f"runs/{n}.yml" for n in names}
    if other := {p: s for p, s in ours.items() if p not in known}:
        lines += ["", "## Other data", "", *_listed([f"labdata/{p} ({_status(s)})" for p, s in other.items()])]
    return "\n".join(lines)


def words(text: str) -> str:
    r"""A stranger's words on one line of Markdown, as words: no link, markup or table cell is made of them.

    >>> words("[x](http://a) | <b>")
    '\\[x\\](http\\://a) \\| \\<b\\>'
    """
    return _MARK.sub(r"\\\1", " ".join(text.split()))


def _count(n: int, thing: str) -> str:
    return f"{n or 'no'} {thing}{'' if n == 1 else 's'}"


def _status(letter: str) -> str:
    return {"A": "new", "M": "changed", "D": "deleted"}.get(letter, letter)


def _listed(items: list[str]) -> list[str]:
    more = len(items) - SHOWN
    return [f"- {words(i)}" for i in items[:SHOWN]] + ([f"- and {more} more"] if more > 0 else [])


def _ids(ours: dict[str, str], folder: str) -> list[str]:
    return [p.removeprefix(f"{folder}/").removesuffix(".yml") for p in ours if p.startswith(f"{folder}/") and p.endswith(".yml")]


def _specs(lab: Lab, m: Machine) -> list[str]:
    """A machine's roofs with their sources, and what the hardware table has under its chip's name."""
    said = [f"chip {m.chip}, {m.os}"]
    for name in ("memory_bandwidth", "peak_compute"):
        if q := getattr(m.specs, name):
            source = m.sources[q.source]
            said.append(f"{name.replace('_', ' ')} {q.value:g} {q.unit}, {source.kind}: {source.title}")
    rows_of = candidates(m, lab.chips)
    return [*said, f"in labdata/chips: {', '.join(f'{c.name}, {c.memory_bandwidth.value:g} {c.memory_bandwidth.unit}' for c in rows_of) or 'not listed'}", *m.notes]


def _run(lab: Lab, run: Run) -> list[str]:
    """A run in a few lines and two tables: what it is, its ink against it, its tests."""
    kinds = sorted({lab.models[r.model].weights for r in run.results})
    loads = [r.load_before for r in run.results if r.load_before is not None]
    load = f"{max(loads):.0%} of the cores in use at most before a test" if loads else "load not recorded"
    ink = f"ink {run.ink.id} ({lab.inks[run.ink.id].author})" if run.ink else "no ink: nothing was predicted first"
    lines = [words(f"{' and '.join(kinds) or 'no'} weights; {load}; {ink}; {run.instrument.name}, {run.instrument.engine}") + "."]
    if run.ink:
        scored = scores(lab, run.ink.id, [run])
        lines += ["", f"{tally_words(scored)}.", "", _table(plain.COLUMNS, plain.rows(scored))]
    cells = [(r.experiment, r.test, str(r.depth), r.model, r.backend, _rate(r), _share(lab, run, r)) for r in run.results[:SHOWN]]
    lines += ["", _table(("Experiment", "Test", "Depth", "Model", "Backend", "Measured", "Of the roof"), cells)]
    return lines + ([f"\nAnd {len(run.results) - SHOWN} more."] if len(run.results) > SHOWN else [])


def _table(head: tuple[str, ...], body: list[tuple[str, ...]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["--"] * len(head), *(map(words, row) for row in body)))


def _rate(r: Result) -> str:
    m = rate(r)
    return Value(m.mean, "tok/s", "measured", sigma=m.sigma).text if m else f"failed: {r.failed}"


def roof_tok_s(lab: Lab, run: Run, r: Result) -> float | None:
    """The first-order ceiling of a test [tok/s]; None: the machine's roofs say nothing about it."""
    if not rows.explained(lab, run, r):
        return None
    machine, card = lab.machines[run.machine], lab.models[r.model]
    return predict.decode_ceiling_tok_s(machine, card, r.depth, r.kv_types) if r.n_gen else predict.prefill_ceiling_tok_s(machine, card)


def _share(lab: Lab, run: Run, r: Result) -> str:
    m, roof = rate(r), roof_tok_s(lab, run, r)
    return f"{m.mean / roof:.0%}" if m and roof and roof == roof else "not known"


def suspicions(lab: Lab, ours: dict[str, str], now: datetime) -> list[str]:
    """What is odd about the files of a change, a line each, by the file it is in."""
    found = []
    for ident in _ids(ours, "machines"):
        if ident in lab.machines:
            found += [f"labdata/machines/{ident}.yml: {why}" for why in specs_off(lab.machines[ident], lab.chips)]
    new = {name: lab.runs[name] for name in _ids(ours, "runs") if name in lab.runs}
    copied = list(same_samples(lab, set(new)))
    for name, run in new.items():
        odd = [*above_roof(lab, run), *no_noise(run), *future(run, now)]
        found += [f"labdata/runs/{name}.yml: {why}" for why in odd] + [why for where, why in copied if where == name]
        if f"runs/{name}" in lab.seals:
            found.append(f"labdata/runs/{name}.yml: sealed later than it was written, because {lab.seals[f'runs/{name}'].because}")
    for ident in _ids(ours, "ink"):
        if ident in lab.inks and (dry := lab.inks[ident].dry_at) and dry > now + CLOCKS_DIFFER:
            found.append(f"labdata/ink/{ident}.yml: dry in the future; got {dry}, now {now:%Y-%m-%d %H:%M} UTC")
    return found


def above_roof(lab: Lab, run: Run) -> Iterator[str]:
    """Tests faster than physics allows with this machine's specs, beyond noise."""
    for i, r in enumerate(run.results):
        m, roof = rate(r), roof_tok_s(lab, run, r)
        if m and roof and m.mean - (NOISE_SIGMAS * m.sigma if m.sigma == m.sigma else 0) > roof:
            yield f"results.{i}: {r.test} at depth {r.depth} is above its roof; got {m.mean:.4g} tok/s; the roof is {roof:.4g} tok/s"


def no_noise(run: Run) -> Iterator[str]:
    """Repetitions that all took the same time, to the nanosecond: no clock does that."""
    for i, r in enumerate(run.results):
        m = rate(r)
        if m and m.n != 1 and m.sigma == 0:
            yield f"results.{i}: σ of exactly 0; got {m.n or 'an untold number of'} repetitions of {m.mean:.4g} tok/s"


def _fingerprint(r: Result) -> tuple | None:
    """What two honest tests never share; None: too little to tell them apart."""
    if r.samples_ns:
        return tuple(r.samples_ns) if max(r.samples_ns) > 10**6 else None  # below a millisecond chance repeats
    return (r.published.mean_tok_s, r.published.sigma_tok_s) if r.published and r.published.sigma_tok_s else None


def same_samples(lab: Lab, new: set[str]) -> Iterator[tuple[str, str]]:
    """(run, where and what) of every test of the new runs whose samples another test has too."""
    seen: dict[tuple, tuple[str, int]] = {}
    for name in sorted(lab.runs, key=lambda n: (n in new, n)):  # what was there first is the original
        for i, r in enumerate(lab.runs[name].results):
            mark = _fingerprint(r)
            if mark is None:
                continue
            first = seen.setdefault((mark, r.test if r.published else ""), (name, i))
            if name in new and first != (name, i):
                yield name, f"labdata/runs/{name}.yml: results.{i}: the same samples as another test; labdata/runs/{first[0]}.yml has them as results.{first[1]}"


def future(run: Run, now: datetime) -> Iterator[str]:
    """Hours that have not come yet."""
    hours = [("started_at", run.started_at)]
    for i, r in enumerate(run.results):
        hours += [(f"results.{i}.started_at", r.started_at), *((f"results.{i}.sittings.{n}.started_at", sat.started_at) for n, sat in enumerate(r.sittings))]
    for where, at in hours:
        if at and at > now + CLOCKS_DIFFER:
            yield f"{where}: in the future; got {at}, now {now:%Y-%m-%d %H:%M} UTC"


def candidates(m: Machine, table: list[Chip]) -> list[Chip]:
    """The rows of the hardware table that a machine's chip can be by its name."""
    said = chips.names(m.chip)
    return [c for c in table if c.name == m.chip or (c.match and said & {n.lower() for n in c.match.names})]


def specs_off(m: Machine, table: list[Chip]) -> Iterator[str]:
    """Roofs that no row of that chip has; a probe's may be below the row's, never above."""
    known = candidates(m, table)
    bandwidth, peak = m.specs.memory_bandwidth, m.specs.peak_compute
    pairs = [("memory_bandwidth", bandwidth, [c.memory_bandwidth for c in known])]
    if peak:
        pairs.append(("peak_compute", peak, [p for c in known for p in c.peaks if p.precision == peak.precision]))
    for name, ours, theirs in pairs:
        probed = m.sources[ours.source].kind == "measured"
        off = [ours.si / t.si - 1 for t in theirs]
        if theirs and all(o > BUS_TOLERANCE if probed else abs(o) > BUS_TOLERANCE for o in off):
            listed = ", ".join(dict.fromkeys(f"{t.value:g} {t.unit}" for t in theirs))
            yield f"specs.{name}: disagrees with labdata/chips; got {ours.value:g} {ours.unit}; known for {m.chip}: {listed}"
