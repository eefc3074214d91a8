"""`python -m bench.publish`: build the site and put it on any static host, DEST= a folder or host:path for rsync."""

from __future__ import annotations

import filecmp
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "site"
LISTING = ".inklab-site"  # in a folder published to: which files are ours


class Refused(Exception):
    """Why nothing was published, one line."""


def is_remote(dest: str) -> bool:
    """Whether rsync would take it for another host: host:path, or rsync://.

    >>> is_remote("me@example.org:www"), is_remote("rsync://h/m"), is_remote("/srv/www:8080"), is_remote("../public")
    (True, True, False, False)
    """
    return bool(re.match(r"[^/:]+::?|rsync://", dest))


def check(dest: str, site: Path = SITE, root: Path = ROOT) -> None:
    """Refuse a destination that is none, or where something of somebody's would be lost.

    Raises:
        Refused: why.
    """
    if not dest.strip():
        raise Refused("DEST: not given; got ''; a folder, or host:path for rsync")
    if is_remote(dest):
        if shutil.which("rsync") is None:
            raise Refused(f"DEST: {dest!r} is on another host and rsync is not installed; apt install rsync, or publish into a folder")
        return
    folder = Path(dest).expanduser().resolve()
    if folder.exists() and not folder.is_dir():
        raise Refused(f"DEST: not a folder; got {dest!r}")
    if folder == site or site in folder.parents or folder == root or folder in root.parents:
        raise Refused(f"DEST: the project itself lies there; got {dest!r}; name a folder of its own")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / LISTING).is_file():
        raise Refused(f"DEST: not empty, and nothing was published there from here; got {dest!r}; empty it, or name another")


def into_folder(site: Path, folder: Path) -> tuple[int, int]:
    """Make a folder hold the site: what is new or other is written, what an older build left is removed, the rest is not touched.

    Returns: files written, files removed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    listing = folder / LISTING
    before = set(listing.read_text(encoding="utf-8").splitlines()) if listing.is_file() else set()
    files = sorted(p.relative_to(site).as_posix() for p in site.rglob("*") if p.is_file())
    # Named before they are copied: whoever is stopped half-way finds them all in the list the next time.
    listing.write_text("".join(f"{name}\n" for name in sorted(before | set(files))), encoding="utf-8")
    written = 0
    for name in sorted(files, key=lambda n: n.endswith(".html")):  # pages last: what they load is there before them
        target = folder / name
        if not (target.is_file() and filecmp.cmp(site / name, target, shallow=False)):
            target.parent.mkdir(parents=True, exist_ok=True)
            draft = target.with_name(f".{target.name}.draft")
            shutil.copyfile(site / name, draft)
            draft.replace(target)
            written += 1
    gone = [folder / name for name in before - set(files)]
    removed = [p for p in gone if folder in p.resolve().parents and p.is_file()]
    for path in removed:
        path.unlink()
        for parent in path.parents:
            if parent == folder or any(parent.iterdir()):
                break
            parent.rmdir()
    listing.write_text("".join(f"{name}\n" for name in files), encoding="utf-8")
    return written, len(removed)


def to_host(site: Path, dest: str, delete: bool) -> None:
    """Send the site by rsync, each file put in its place when all have arrived.

    Raises:
        Refused: rsync failed; its last line.
    """
    command = ["rsync", "--recursive", "--links", "--times", "--checksum", "--compress", "--delay-updates"]
    done = subprocess.run([*command, *(["--delete-after"] if delete else []), "--", f"{site}/", dest], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refused(f"DEST: rsync to {dest!r} failed, code {done.returncode}; {(done.stderr.strip().splitlines() or ['it gave no reason'])[0]}")


def publish(env: Mapping[str, str], build: bool = True) -> str:
    """Check DEST, build, publish; what was done, in a line.

    Raises:
        Refused: nothing was published, or the build failed.
    """
    dest = env.get("DEST", "")
    check(dest)
    if build and subprocess.run([sys.executable, "-m", "mkdocs", "build", "-q"], cwd=ROOT, env=dict(env), check=False).returncode:
        raise Refused("site: the build failed, nothing was published")
    if is_remote(dest):
        to_host(SITE, dest, delete=env.get("DELETE", "") == "1")
        return f"Published to {dest}"
    written, removed = into_folder(SITE, Path(dest).expanduser().resolve())
    return f"Published to {dest}: {written} files written, {removed} removed"


def main() -> int:
    """Publish; 1 and one line on failure."""
    try:
        print(publish(os.environ))
    except Refused as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
