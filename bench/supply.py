"""`python -m bench.supply`: LICENCES.md, every locked package with its licence, from the bill of materials `make sbom` wrote."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from bench.setup import locked_packages

ROOT = Path(__file__).resolve().parent.parent
SBOM = "sbom.cdx.json"
TARGET = "LICENCES.md"
NOT_HERE = "not installed on the system that wrote this"


def canonical(name: str) -> str:
    """A package's name as indexes compare it (PEP 503).

    >>> canonical("Foo.Bar_baz")
    'foo-bar-baz'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def normal(version: str) -> str:
    """A version as locks write it, without leading zeros (PEP 440).

    >>> normal("4.004"), normal("4.1.post1"), normal("2026.10")
    ('4.4', '4.1.post1', '2026.10')
    """
    return re.sub(r"(?<![0-9a-z])0+(?=\d)", "", version)


def locked(root: Path) -> dict[tuple[str, str], list[str]]:
    """The lock files that name each package: {(name, version): [lock, ...]}."""
    found: dict[tuple[str, str], list[str]] = {}
    for path in sorted(root.glob("lock/*.txt")):
        for pin in locked_packages(path.read_text(encoding="utf-8")):
            name, version = pin.split("==")
            found.setdefault((canonical(name), version), []).append(path.stem)
    return found


def licence(component: dict[str, Any]) -> str:
    """What a package declares in its own metadata, in SPDX's words where it uses them."""
    said = []
    for one in component.get("licenses", []):
        inner = one.get("license", {})
        name = one.get("expression") or inner.get("id") or inner.get("name", "").removeprefix("License :: ").removeprefix("OSI Approved :: ")
        said.append(" ".join(name.split())[:80])
    return ", ".join(dict.fromkeys(filter(None, said))) or "none declared"


def table(sbom: dict[str, Any], packages: dict[tuple[str, str], list[str]]) -> str:
    """LICENCES.md: a row a locked package."""
    declared = {(canonical(c["name"]), normal(c["version"])): licence(c) for c in sbom["components"]}
    # Which version is installed depends on the Python: one of a package speaks for its others, by its name.
    others = {name: f"{words} (of {version})" for (name, version), words in declared.items()}
    cells = [(name, version, declared.get((name, version), others.get(name, NOT_HERE)), ", ".join(locks)) for (name, version), locks in sorted(packages.items())]
    body = [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in cells]
    return "\n".join([
        "# Licences of what is installed", "",
        "Written by `make sbom` from the packages' own metadata; none of them is part of this repository. The last column is the lock file that names it.", "",
        "| Package | Version | Licence | Lock |", "|:--|:--|:--|:--|", *body, ""])  # fmt: skip


if __name__ == "__main__":
    (ROOT / TARGET).write_text(table(json.loads((ROOT / SBOM).read_text(encoding="utf-8")), locked(ROOT)), encoding="utf-8")
    print(f"Written: {SBOM}, {TARGET}")
