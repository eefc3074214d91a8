"""A run as one file to send: itself, its ink, machine and models, byte for byte, so that every seal still holds on the other side."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from pathlib import Path

from macros import guard, labdata
from macros.labdata import Lab

MARK = b'{"inklab_share": 1,'
_ID = r"[a-z0-9][a-z0-9._-]{0,79}"
# What a shared file may bring, what others name first; never a chip, a schema or anything outside these.
PLACES = (r"raw/[A-Za-z0-9][A-Za-z0-9._-]{0,99}", rf"machines/{_ID}\.yml", rf"models/{_ID}\.yml", rf"ink/{_ID}\.yml", rf"runs/{_ID}/{_ID}\.yml")
MAX_FILES = 200


class ShareRefused(Exception):
    """Why nothing was shared or taken in, one line a problem."""


def write(root: Path, name: str) -> str:
    """Write a run's shared file into the folder around labdata/; what was written, in a line.

    Args:
        name: "<machine>/<run>", or a machine: its newest run

    Raises:
        ShareRefused: no such run, or a name that several runs could be.
        LabError: labdata/ is not whole.
    """
    lab = labdata.load(root)
    if name in lab.machines and (mine := lab.runs_of(name)):
        name = f"{name}/{mine[-1].id}"
    if name not in lab.runs:
        raise ShareRefused(f"RUN: no such run; got {name!r}; known: {', '.join(sorted(lab.runs)[-20:]) or 'none'}")
    parts = files(lab, root, name)
    target = root.parent / f"inklab-{name.replace('/', '-')}.json"
    held = {place: (root / place).read_bytes().decode("utf-8", "surrogateescape") for place in parts}
    labdata.write_bytes(target, MARK + b' "files": ' + json.dumps(held, indent=0).encode() + b"}\n")
    return f"Written: {target.name}, {len(parts)} files of labdata/ in one. Attach it to an issue; make import FILE={target.name} takes it in."


def files(lab: Lab, root: Path, name: str) -> list[str]:
    """The files below labdata/ that a run cannot be read without, what others name first."""
    run = lab.runs[name]
    inks = [run.ink.id] if run.ink else []
    predicted = [t.model for i in inks for p in lab.inks[i].predictions for t in p.targets]
    models = sorted({r.model for r in run.results} | set(predicted))
    documents = [lab.machines[run.machine], *(lab.models[m] for m in models), *(lab.inks[i] for i in inks), run]
    raw = sorted({s.raw for d in documents for s in d.sources.values() if s.raw})
    stems = [f"machines/{run.machine}", *(f"models/{m}" for m in models), *(f"ink/{i}" for i in inks), f"runs/{name}"]
    beside = [f"{stem}.{word}.yml" for stem in stems for word in ("seal", "errata", "withdrawn") if (root / f"{stem}.{word}.yml").is_file()]
    return [*(f"raw/{r}" for r in raw), *(f"{stem}.yml" for stem in stems), *beside]


def is_one(data: bytes) -> bool:
    """Whether some bytes are a shared file."""
    return data.startswith(MARK)


def take(data: bytes, shown: str, root: Path) -> list[str]:
    """Take a shared file in: all of it, checked with its seals as labdata/ is, or nothing; what was done, a line each.

    Raises:
        ShareRefused: no shared file, names that lead elsewhere, files that differ from what is here.
        LabError: what it brings does not load.
        OSError: the disk refused; labdata/ is as before.
    """
    fresh = {place: body for place, body in read(data, shown).items() if not _same(root / place, place, body, shown)}
    if not fresh:
        return ["Already there: every file of it is in labdata/; nothing was written."]
    with tempfile.TemporaryDirectory(dir=root.parent, prefix=".share-") as folder:
        after = Path(folder) / "labdata"
        shutil.copytree(root, after, copy_function=_link, symlinks=True)
        _put(after, fresh)
        labdata.load(after)  # seals, references and the order of ink and run, before anything is written here
    _put(root, fresh)
    return [f"Recorded in labdata/{place}" for place in fresh]


def read(data: bytes, shown: str) -> dict[str, bytes]:
    """The files in a shared one, in the order they are written.

    Raises:
        ShareRefused: it is none, or has what no run brings.
    """
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ShareRefused(f"{shown}: file: no whole JSON, perhaps cut off; got {type(error).__name__}; ask for it again") from None
    if not isinstance(document, dict):
        raise ShareRefused(f"{shown}: file: no shared file, which is a mapping; got {type(document).__name__}; make share RUN= writes one")
    held = document.get("files")
    if set(document) != {"inklab_share", "files"} or not isinstance(held, dict) or not held:
        raise ShareRefused(f"{shown}: files: must be a mapping of files of labdata/; got keys {', '.join(sorted(document))[:80]!r}")
    if len(held) > MAX_FILES:
        raise ShareRefused(f"{shown}: files: too many for one run; got {len(held)}; at most {MAX_FILES}")
    wrong = [f"{shown}: files.{place[:120]!r}: no text; got {type(body).__name__}" for place, body in held.items() if not isinstance(body, str)]
    wrong += [f"{shown}: files: not a place a run is shared from; got {place[:120]!r}; known: raw/, machines/, models/, ink/, runs/<machine>/"
              for place in held if _order(place) is None]  # fmt: skip
    if wrong:
        raise ShareRefused("\n".join(wrong))
    bodies = {place: _bytes(body, place, shown) for place, body in held.items()}
    return dict(sorted(bodies.items(), key=lambda item: (_order(item[0]), item[0])))


def _bytes(text: str, place: str, shown: str) -> bytes:
    try:
        body = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ShareRefused(f"{shown}: files.{place}: a character that is none; got half of a surrogate pair; ask for it again") from None
    limit = guard.MAX_YAML_BYTES if place.endswith(".yml") else guard.MAX_OTHER_BYTES
    if len(body) > limit:
        raise ShareRefused(f"{shown}: files.{place}: {guard.too_large(len(body), limit)}")
    return body


def _order(place: str) -> int | None:
    """Where in the order a file is written; None: nowhere."""
    found = next((i for i, pattern in enumerate(PLACES) if re.fullmatch(pattern, place)), None)
    return None if ".." in place or place.endswith(".open.yml") else found


def _same(path: Path, place: str, body: bytes, shown: str) -> bool:
    """Whether labdata/ has this very file.

    Raises:
        ShareRefused: it has another of that name.
    """
    if not (path.exists() or path.is_symlink()):
        return False
    if path.is_symlink() or path.read_bytes() != body:
        raise ShareRefused(f"{shown}: files.{place}: labdata/ has another file of that name; got one that differs; "
                           "nothing is overwritten: the sender names it otherwise (MACHINE=), or brings the lab up to date first")  # fmt: skip
    return True


def _link(source: str, target: str) -> None:
    """A file of the trial copy, without its bytes where the disk can."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target)


def _put(root: Path, fresh: dict[str, bytes]) -> None:
    """Write all, or take back what was written."""
    with labdata.all_or_none() as written:
        for place, body in fresh.items():
            (root / place).parent.mkdir(parents=True, exist_ok=True)
            written.append(root / place)
            labdata.write_bytes(root / place, body)
