"""Everything `make check` looks at: files, seals, git's memory of them, plans, the corpus, numbers typed by hand."""

from __future__ import annotations

from bench import plan
from macros import calibration, corpus, history, labdata, typed
from macros.labdata import LabError


def everything() -> str:
    """What was checked, in a line.

    Raises:
        LabError: every problem found.
    """
    found = history.problems(labdata.ROOT) + typed.problems(labdata.ROOT.parent / "docs")
    for profile in plan.profiles():
        try:
            plan.read(profile)
        except LabError as error:
            found += error.problems
    try:
        lab = labdata.load()
    except LabError as error:
        raise LabError([*error.problems, *found]) from None
    found += history.late(lab, labdata.ROOT)
    others = 0
    try:
        others = len(corpus.measurements())
        if calibration.fitted()["inputs"] != calibration.inputs_sha256():
            found.append("labdata/corpus/fit.json: inputs: measurements or code have changed since the fit; bring it up to date with `make fit`")
    except corpus.CorpusError as error:
        found += error.problems
    if found:
        raise LabError(found)
    return (f"labdata: {len(lab.machines)} machines, {len(lab.models)} models, {len(lab.inks)} inks, {len(lab.runs)} runs, {others} rows of others; every seal holds, no result is typed by hand; nothing wrong.")
