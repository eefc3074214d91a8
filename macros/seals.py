"""Seals: what makes a changed byte of ink or of a run show.

A file written here ends in a line with the SHA-256 of everything above it. A file that came
before there were seals, or from another hand, gets its hash in a file beside it
(<name>.seal.yml), which says that it was sealed later and why.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import NamedTuple

from pydantic import AwareDatetime

from macros.fields import Document, Strict, key

VERSION = "0.1.0"
TOOL = f"inklab {VERSION}"
MARK = "# sha256 of all above: "
BESIDE = ("seal", "withdrawn", "errata", "open")  # <name>.<word>.yml stands beside <name>.yml
_LAST = re.compile(rb"\n" + re.escape(MARK.encode()) + rb"([0-9a-f]{64})\n\Z")
_LONG = len(f"\n{MARK}") + 64 + 1  # what that matches [B]


Commit = key("Git commit checked out then; null: no git", "4e96b21...", pattern=r"^[0-9a-f]{7,64}$")


class Stamp(Strict):
    """When an ink was sealed, and by what."""

    at: AwareDatetime = key("When", "2026-11-30T04:10:00Z")
    tool: str = key("What sealed it, with its version", TOOL)
    commit: str | None = Commit


class Seal(Document):
    """The hash of an ink or a run that came before there were seals, or from another hand; stands beside it as <name>.seal.yml."""

    sha256: str = key("SHA-256 of the whole file", "9f86d0...", pattern=r"^[0-9a-f]{64}$")
    at: AwareDatetime = key("When it was sealed", "2026-11-30T04:10:00Z")
    tool: str = key("What sealed it, with its version", TOOL)
    commit: str | None = Commit
    because: str = key("Why it was sealed later than it was written", "Older than the lab's seals", min_length=1)


class Withdrawal(Document):
    """Why an ink or a run no longer counts; stands beside it as <name>.withdrawn.yml. The file itself stays."""

    at: AwareDatetime = key("When it was withdrawn", "2026-11-30T04:10:00Z")
    because: str = key("Why", "The laptop was on battery", min_length=1)


def sha256(path: Path) -> str:
    """SHA-256 of a file's bytes [hex]."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def close(text: str) -> str:
    """A text with its seal as the last line."""
    body = text if text.endswith("\n") else text + "\n"
    return f"{body}{MARK}{hashlib.sha256(body.encode()).hexdigest()}\n"


class Sums(NamedTuple):
    """A file's SHA-256, and of everything above its seal, with what the seal says it is [hex]; None: it has no seal."""

    whole: bytes
    above: str | None
    sealed: str | None


def sums(data: bytes) -> Sums:
    """The sums of a file's bytes, each of which is hashed once."""
    last = _LAST.match(data, max(0, len(data) - _LONG))
    if not last:
        return Sums(hashlib.sha256(data).digest(), None, None)
    running = hashlib.sha256(data[: last.start() + 1])
    above = running.hexdigest()
    running.update(data[last.start() + 1 :])
    return Sums(running.digest(), above, last[1].decode())


def problem(found: Sums, shown: str, later: str | None) -> str | None:
    """What is wrong with a sealed file, in one line; None: every byte is as it was sealed.

    Args:
        found: the sums of the file's bytes
        shown: its name in the message
        later: the hash in the seal beside it; None: there is no such seal
    """
    cure = "restore the file (git log -p shows what changed); a wrong one is withdrawn, not edited: python -m bench withdraw"
    for got, sealed in ((found.above, found.sealed), (found.whole.hex(), later)):
        if got and sealed and got != sealed:
            return f"{shown}: seal: a byte was changed since it was sealed; got {got[:12]}…, sealed as {sealed[:12]}…; {cure}"
    if not found.sealed and not later:
        return (f"{shown}: seal: none, so nothing shows that it is as it was written; got a file without one; "
                f"restore its last line, or python -m bench seal {shown} seals it as it stands and says so")
    return None
