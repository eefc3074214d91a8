"""`python -m bench.successor`: the same pages under Zensical, MkDocs' successor, and a list of what differs.

It has no hooks, so what `macros.hooks` adds is either laid out for it beforehand (the machines' pages)
or is a difference that is listed (data, feed, cards, policy).
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from macros import labdata

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / ".cache" / "successor"
PARTS = ("docs", "macros", "labdata", "mkdocs.yml")
_ARTICLE = re.compile(r"<article\b[^>]*>(.*?)</article>", re.S)
_VALUE = re.compile(r'<data\b[^>]*\bvalue="([^"]*)"')


def lay_out(work: Path = WORK, root: Path = ROOT) -> None:
    """A copy of the project with the machines' pages as files."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    for part in PARTS:
        if (root / part).is_dir():
            shutil.copytree(root / part, work / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(root / part, work / part)
    for machine in labdata.load(root / "labdata").machines.values():
        title = json.dumps(machine.name, ensure_ascii=False)  # JSON's strings are YAML's
        stub = f'---\ntitle: {title}\ntoc: true\n---\n\n[[ machine_page("{machine.id}") ]]\n'
        (work / f"docs/machines/{machine.id}.md").write_text(stub, encoding="utf-8")


def values(page: str) -> list[str]:
    """The computed values of a page's text, in order, as printed in their elements."""
    article = _ARTICLE.search(page)
    return _VALUE.findall(article[1]) if article else []


def words(page: str) -> list[str]:
    """A page's text, word by word."""
    article = _ARTICLE.search(page)
    bare = re.sub(r"<(script|style|svg)\b.*?</\1>", " ", article[1] if article else "", flags=re.S)
    bare = re.sub(r"</?(a|abbr|b|code|data|em|span|strong|sub|sup)\b[^>]*>", "", bare)  # inside a word or beside its comma
    return html.unescape(re.sub(r"<[^>]+>", " ", bare)).split()


def differences(ours: Path, theirs: Path) -> list[str]:
    """What Zensical's site lacks or says otherwise, one line each; `ours` is MkDocs'."""
    found = []
    for path in sorted(ours.rglob("*.html")):
        name = path.relative_to(ours).as_posix()
        other = theirs / name
        if not other.is_file():
            found.append(f"{name}: page: not built")
            continue
        mine, its = path.read_text(encoding="utf-8"), other.read_text(encoding="utf-8")
        both = values(its)
        if values(mine)[: len(both)] != both:
            found.append(f"{name}: values: {len(values(mine))} of ours, {len(both)} of its, not the same")
        elif len(values(mine)) != len(both):
            found.append(f"{name}: notes: the {len(both)} values of its text are ours; the {len(values(mine)) - len(both)} of the notes below it are not there")
        elif words(mine) != words(its):
            at = next((i for i, (a, b) in enumerate(zip(words(mine), words(its), strict=False)) if a != b), min(len(words(mine)), len(words(its))))
            found.append(f"{name}: words: differ from {' '.join(words(mine)[at : at + 6])!r} on; its are {' '.join(words(its)[at : at + 6])!r}")
        for what in ("Content-Security-Policy", 'property="og:title"', "application/atom+xml", "text/markdown", "inklab.css"):
            if what in mine and what not in its:
                found.append(f"{name}: head: no {what}")
    files = {p.relative_to(ours).as_posix() for p in ours.rglob("*") if p.is_file() and p.suffix != ".html" and "assets" not in p.parts and "search" not in p.parts}
    lacking = sorted(f for f in files if not (theirs / f).is_file())
    kinds: dict[str, list[str]] = {}
    for name in lacking:
        kinds.setdefault(name.rpartition(".")[2], []).append(name)
    return found + [f"*.{kind}: files: {len(names)} not written, such as {names[0]}" for kind, names in sorted(kinds.items())]


def main() -> int:
    """Build under both and list what differs; 1 where Zensical builds nothing or a page's values differ."""
    lay_out()
    zensical = Path(sys.executable).with_name("zensical")
    env = {**os.environ, "PYTHONPATH": str(WORK)}  # it loads the macros by file, and they import their siblings by name
    done = subprocess.run([str(zensical), "build", "--clean"], cwd=WORK, env=env, capture_output=True, text=True, check=False)
    said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    if done.returncode or not (WORK / "site/index.html").is_file():
        print("\n".join(["error: Zensical built no site; its last words:", *said[-12:]]), file=sys.stderr)
        return 1
    if subprocess.run([sys.executable, "-m", "mkdocs", "build", "-q"], cwd=ROOT, check=False).returncode:
        return 1
    found = differences(ROOT / "site", WORK / "site")
    print(f"Zensical built {len(list((WORK / 'site').rglob('*.html')))} pages. What differs from MkDocs' site:")
    print("\n".join(f"  {line}" for line in found) or "  nothing")
    return 1 if any(": page: " in line or ": values: " in line for line in found) else 0


if __name__ == "__main__":
    sys.exit(main())
