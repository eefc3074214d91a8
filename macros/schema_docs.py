"""The schema for people and editors: labdata/schema/*.json and the tables of labdata/README.md.

`python -m macros.schema_docs` writes both; a test keeps them current.
"""

from __future__ import annotations

import json
import types
import typing
from pathlib import Path

from pydantic import BaseModel

from macros import cards, costs, hardware, inks, labdata, latency, records, seals, seen, trials

FILES = {
    "machines/<machine>.yml": cards.Machine,
    "models/<model>.yml": cards.Model,
    "ink/<ink>.yml": inks.Ink,
    "ink/<ink>.errata.yml": inks.Errata,
    "ink/<ink>.open.yml": inks.OpenInk,
    "runs/<machine>/<run>.yml": records.Run,
    "<ink or run>.seal.yml": seals.Seal,
    "<ink or run>.withdrawn.yml": seals.Withdrawal,
    "checks/<check>.yml": records.Check,
    "chips/<vendor>.yml": hardware.Chips,
    "gguf_files.yml": seen.GgufFiles,
    "latency/<latency>.yml": latency.Latency,
    "costs/<costs>.yml": costs.Costs,
    "trials/<trial>.yml": trials.Trials,
}
INTRO = """# labdata: the facts, and nothing else

One file a thing; its name is its id. Every spec value is `{value, unit, source}` and its source stands in
the same file's `sources`. Runs hold raw samples; whatever can be computed from them is computed at build.
Unknown keys, NaN, a missing source or a name that leads nowhere stop the build: `make check` names every
problem with its file and key.

GB is 1e9 B and GiB is 2^30 B. YAML reads `1e12` as text: write `1.0e+12`.
`chips/` is the hardware table: a row for each variant that differs in a figure, each figure with its own source
and page. `kind: derived` marks what follows from other figures; what nothing confirms is left out and a note says
why. Peaks are dense, and name what computes and how wide its sums are: GeForce cards run fp16 with fp32 sums at
half rate. A bandwidth that its bus and data rate do not give is refused.
`raw/` keeps what others wrote, word for word. Ink and runs are only added, never edited: the last line of each
is the SHA-256 of all above it, and each run holds the SHA-256 of its ink. What is older than the seals, or came
from another hand, has its hash in `<name>.seal.yml` beside it, which says when and why it was sealed later
(`BECAUSE="…" python -m bench seal FILE`). A wrong ink or run stays and is withdrawn by `<name>.withdrawn.yml`
(`BECAUSE="…" python -m bench withdraw FILE`): it counts no more, and the page says so and why. Where there is a git
history, `make check` and the build also compare every ink, run and raw file with all its committed versions and
with the base branch (`INKLAB_BASE`, else `origin/HEAD`, `main`); only a run that was half done may have grown.

`corpus/` is CSV, for it came as tables and holds hundreds of rows: `measurements.csv` are llama-bench results
of others, each with its address, as gathered (`macros/corpus.py` checks every row; figures are as posted, some
through transcriptions, see `notes`); a peak that a row does not give is read in `chips/`. `fit.json` is what
`make fit` learnt from them, with the hash of its inputs, the coefficients' covariance and each row's held-out prediction.

Files come from strangers too: they are plain YAML (no tags, no aliases), at most 8 MiB, of visible characters, and no
links; `macros/guard.py` has the limits. `schema: 1` is the layout's version: an older file is never rewritten, it is
brought to today's layout while it is read, and `macros/versions.py` says how a next version is made.

The tables are generated from `macros/fields.py`, `cards.py`, `hardware.py`, `inks.py`, `seals.py`, `records.py`, `latency.py`, `trials.py`, `costs.py` and `seen.py` by `make schema`; editors find the same in `schema/`.
"""


def json_schemas() -> dict[str, str]:
    """JSON Schema of each kind of file, by file name."""
    return {
        f"{kind.__name__.lower()}.schema.json": json.dumps(kind.model_json_schema(by_alias=True), indent=1, ensure_ascii=False) + "\n"
        for kind in FILES.values()
    }


def readme() -> str:
    """labdata/README.md: each file's keys with meaning and example, nested parts once each."""
    parts, done = [INTRO], set()
    queue: list[tuple[str, type[BaseModel]]] = [(f"`{path}`", kind) for path, kind in FILES.items()]
    while queue:
        title, kind = queue.pop(0)
        if kind in done:
            continue
        done.add(kind)
        doc = (kind.__doc__ or "").strip().splitlines()
        parts.append(f"## {title}\n" + (f"\n{doc[0]}\n" if doc else ""))
        rows = ["| key | what it is | example |", "|---|---|---|"]
        for name, info in kind.model_fields.items():
            shown = info.alias or name
            need = "" if info.is_required() else " (optional)"
            example = f"`{_example(info.examples[0])}`" if info.examples else ""
            rows.append(f"| `{shown}`{need} | {_cell(info.description or '')} | {_cell(example)} |")
            queue += [(part.__name__, part) for part in _parts(info.annotation)]
        parts.append("\n".join(rows) + "\n")
    return "\n".join(parts)


def _example(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _parts(annotation: object) -> list[type[BaseModel]]:
    """The models inside a field's type."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if typing.get_origin(annotation) in (list, dict, typing.Union, types.UnionType, typing.Annotated):
        return [m for arg in typing.get_args(annotation) for m in _parts(arg)]
    return []


def write(root: Path = labdata.ROOT) -> None:
    """Bring schema/ and README.md up to date."""
    for name, text in json_schemas().items():
        labdata.write_text(root / "schema" / name, text)
    labdata.write_text(root / "README.md", readme())


if __name__ == "__main__":
    write()
