"""`make post` and `make check-post`: drafts of a day or a machine into drafts/, true and within each place's limit."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench import polish
from macros import compare, figures, labdata, pictures, plain, posts, rendering, summary, truth
from macros.narrative import Book
from macros.posts import Draft
from macros.records import Run
from macros.summary import Summary

TEMPLATES = Path(__file__).parent / "templates"
PICTURES = {"picture": "wide", "picture-square": "square"}  # file -> size
SUMS = ".written.json"  # hashes of the drafts as made: one that differs was edited by hand and is kept


class PostError(Exception):
    """No post can be made of this; one clear line a problem."""


@dataclass(frozen=True)
class Subject:
    """What a post is about, rendered: its summary, drafts, and what else a text of it may say."""

    summary: Summary
    drafts: list[Draft]
    known: truth.Known
    template: str
    chart: pictures.Chart | None


def make(env: Mapping[str, str], say: Callable[[str], None]) -> None:
    """`make post DAY=1` or `RUN=<machine or run>`: every draft, counted, checked and written.

    Raises:
        PostError: nothing to post yet, a draft that is not true (none is written then), or too long (all are).
    """
    model = env.get("POLISH", "").strip()
    if model and not Path(model).is_file():
        raise PostError(f"POLISH: no such file; got {model!r}; a GGUF file on this machine, nothing is downloaded")
    subject = _subject(env)
    found = [f"{subject.template}: {line}" for d in subject.drafts for line in truth.problems(_checkable(d), subject.known)]
    if found:
        raise PostError("\n".join(dict.fromkeys(found)))
    made = [polish.draft(d, model, subject.known, say) if model else d for d in subject.drafts]
    made = [posts.Draft(d.place, [truth.bare(p) for p in d.parts], d.over) for d in made]
    folder = _folder(subject.summary)
    about = {k: env[k].strip() for k in ("DAY", "RUN") if env.get(k, "").strip()}
    kept = _write(folder, {d.file: d.text for d in made}, about)
    words = summary.picture_words(subject.summary)
    for name, size in PICTURES.items():
        labdata.write_bytes(folder / f"{name}.png", pictures.png(words, subject.chart, size))
    labdata.write_text(folder / "picture.txt", pictures.alt(words, subject.chart) + "\n")
    for d in made:
        say(f"── {d.place.title}: {d.counted} ── {_shown(folder / kept.get(d.file, d.file))}\n\n{d.text}")
    shapes = ", ".join(f"{_shown(folder / name)}.png ({width} × {height})" for name, (width, height) in ((n, pictures.SIZES[s]) for n, s in PICTURES.items()))
    say(f"── Pictures: {shapes} ── alt text: {_shown(folder)}/picture.txt\n\n{pictures.alt(words, subject.chart)}\n")
    for file, other in kept.items():
        say(f"{_shown(folder / file)} was edited by hand and stays; the new draft is {other}. make check-post FILE={_shown(folder / file)} checks it")
    long = [f"{_shown(folder / d.file)}: {line}" for d in made for line in d.over]
    if long:
        raise PostError("\n".join(long))


def check(env: Mapping[str, str], say: Callable[[str], None]) -> None:
    """`make check-post FILE=`: a draft edited by hand, held against the summary of today.

    Raises:
        PostError: every figure, claim and verdict that is not so, and what is too long.
    """
    name = env.get("FILE", "").strip()
    path = Path(name)
    if not name or not path.is_file():
        raise PostError(f"FILE: {'no such file' if name else 'is needed'}; got {name or 'nothing'}; make check-post FILE=drafts/day-01/x.txt")
    try:
        text = path.read_text(encoding="utf-8")
    except ValueError:
        raise PostError(f"{name}: file: not UTF-8 text; got {path.stat().st_size} bytes") from None
    about = {k: env.get(k, "") for k in ("DAY", "RUN")}
    if not any(about.values()):
        about = _about(path)
    subject = _subject({**env, **about})
    known = truth.Known(subject.summary, [truth.bare(d.text) for d in subject.drafts], subject.known.links)
    found = [f"{name}: {line}" for line in truth.problems(text, known)]
    place = next((p for p in posts.PLACES if p.name == path.stem.removesuffix(".new")), None)
    parts = [re.sub(r"\s*$", "", p) for p in re.split(r"(?<=\d/\d)\n\n|(?<=\d/\d\d)\n\n", text)] if place and place.thread else [text.rstrip()]
    for part in parts if place and place.limit else []:
        over = place.count(part) - place.limit
        if over > 0:
            found.append(f"{name}: length: {over:,} {place.unit} over; got {place.count(part):,}, the limit is {place.limit:,}; cut first: “{posts.first_to_cut(part, over, place)}”")
    if found:
        raise PostError("\n".join(found))
    counted = f"{posts.Draft(place, parts).counted}; " if place else ""
    say(f"{name}: {counted}every figure, claim and verdict is the summary's")


def _about(path: Path) -> dict[str, str]:
    """What a draft is about, from the folder `make post` wrote it to."""
    notes = path.parent / SUMS
    if not notes.is_file():
        raise PostError(f"{path}: about what; got a file outside drafts/; name it: make check-post FILE=… DAY=1, or RUN=<machine>")
    return json.loads(notes.read_text(encoding="utf-8"))["about"]


def _subject(env: Mapping[str, str]) -> Subject:
    home = labdata.ROOT.parent
    day, run = env.get("DAY", "").strip(), env.get("RUN", "").strip()
    if bool(day) == bool(run):
        raise PostError(f"DAY or RUN: one of the two is needed; got {f'DAY={day} RUN={run}' if day else 'neither'}; make post DAY=1, make post RUN=<machine or run>")
    site = rendering.macros_of(home / "mkdocs.yml")
    if day:
        entry = next((d for d in site.book.days if str(d.number) == day), None)
        if entry is None:
            raise PostError(f"DAY: no such day; got {day!r}; known: {', '.join(str(d.number) for d in site.book.days) or 'none'}")
        missing = summary.lacking(site.book, entry)
        if missing:
            raise PostError("\n".join(f"docs/{entry.address.rstrip('/')}.md: nothing to post yet; {line}" for line in missing))
        site.render(home / "docs" / f"{entry.address.rstrip('/')}.md", entry.address)  # what the page says is what its post may say
        template = home / "docs" / Path(entry.address).parent / f"{entry.number:02}-post.md"
        found, scores, runs = summary.of_day(site.book, entry), compare.scores(site.book.lab, entry.ink), site.book.lab.runs_on(entry.ink)
        variables: dict[str, str | None] = {}
    else:
        machine, one = _machine_and_run(site.book, run)
        runs = [one] if one else site.book.lab.runs_of(machine)
        if not any(r.results for r in runs):
            raise PostError(f"labdata/runs/{machine}: nothing to post yet; got no run with results; make bench MACHINE={machine} makes one")
        own = labdata.ROOT / "posts" / f"{machine}.md"
        template = own if own.is_file() else TEMPLATES / "post-machine.md"
        found = summary.of_machine(site.book, machine, one)
        scores = summary.of_runs(site.book.lab, runs)
        variables = {"machine_id": machine, "run_id": one.id if one else None}
    shown = template.relative_to(home).as_posix()
    if not template.is_file():
        raise PostError(f"{shown}: file: no template of this day's posts; bench/templates/post.md is the one to start from")
    texts = posts.texts(site.render(template, found.address, posts.print_plain, variables))
    if set(texts) != set(posts.TEXTS):
        wanted = ", ".join(f'<div class="post" id="{t}" markdown>' for t in posts.TEXTS)
        raise PostError(f"{shown}: texts: one of the two is missing; got {', '.join(texts) or 'none'}; a template has {wanted}, each closed by </div>")
    link = f"{site.url.rstrip('/')}/{found.address}" if site.url else ""
    made = posts.drafts(texts, found, site.frame, link, plain.markdown(scores) if scores else "")
    return Subject(found, made, truth.Known(found, links=[link] if link else []), shown, figures.picture_chart(site.book.lab, runs))


def _machine_and_run(book: Book, name: str) -> tuple[str, Run | None]:
    """RUN= is a machine, a run as <machine>/<run>, or a run's id alone.

    Raises:
        PostError: none of these, or runs of two machines have that id.
    """
    if name in book.lab.machines:
        return name, None
    hits = [key for key in book.lab.runs if name in (key, key.split("/")[1])]
    if len(hits) != 1:
        known = hits or [*sorted(book.lab.machines), *sorted(book.lab.runs)]
        raise PostError(f"RUN: {'more than one run has that name' if hits else 'no such machine or run'}; got {name!r}; known: {', '.join(known)}")
    return hits[0].split("/")[0], book.run(hits[0])


def _checkable(d: Draft) -> str:
    """A draft's words, the table of the page left out: it is made of the rows themselves."""
    return "\n".join(line for line in d.text.split("\n") if not line.startswith("|"))


def _folder(found: Summary) -> Path:
    return labdata.ROOT.parent / "drafts" / (found.id if found.kind == "report" or found.id == found.machine else f"{found.machine}-{found.id}")


def _shown(path: Path) -> str:
    return path.relative_to(labdata.ROOT.parent).as_posix()


def _write(folder: Path, files: Mapping[str, str], about: Mapping[str, str]) -> dict[str, str]:
    """Write drafts; one that was edited by hand since stays, and the new one goes beside it (its name by the file's)."""
    notes = folder / SUMS
    before = json.loads(notes.read_text(encoding="utf-8"))["sums"] if notes.is_file() else {}
    sums, kept = {}, {}
    for name, text in files.items():
        path = folder / name
        if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() != before.get(name):
            kept[name] = f"{path.stem}.new{path.suffix}"
            sums |= {name: before.get(name, "")}
        labdata.write_text(folder / kept.get(name, name), text)
        sums.setdefault(name, hashlib.sha256(text.encode()).hexdigest())
    labdata.write_text(notes, json.dumps({"about": about, "sums": sums}, indent=1) + "\n")
    return kept
