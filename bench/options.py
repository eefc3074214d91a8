"""What a user may set, from flags or the Makefile's environment; every mistake in one message."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from bench import plan


INSTRUMENTS = ("in-process", "llama-bench")


class OptionError(Exception):
    """Every wrong option, one line each."""


@dataclass(frozen=True)
class Options:
    """A bench's options; None: the profile's or the machine's own."""

    profile: str = "quick"
    model: str | None = None
    shape: str | None = None
    depths: list[int] | None = None
    reps: int = 5
    threads: int | None = None
    ngl: int = -1
    machine: str | None = None
    chip: str | None = None
    auto_reps: bool = False  # REPS=auto: more than reps, until the mean is known well enough
    instrument: str = "in-process"
    quiet: bool = False


HELP = {
    "profile": "plan to run: " + ", ".join(plan.profiles()),
    "model": "a GGUF file, or hf:owner/repo:QUANT; instead of synthetic weights",
    "shape": "shapes of the synthetic weights, such as qwen3-1.7b",
    "depths": "depths of the sweep in tokens, such as 0,2048",
    "reps": "repetitions of each test (5); auto: 5, then more until the mean's 95 % interval is within 1 %, 30 at most",
    "threads": "CPU threads (physical cores)",
    "ngl": "layers on the GPU; -1 all, 0 none (-1)",
    "machine": "the machine's name in labdata/machines",
    "chip": "a chip's id in labdata/chips, where the host alone does not tell which it is",
    "instrument": "what measures: in-process, or llama-bench (LLAMA_BENCH= or PATH)",
    "quiet": "1: wait for an idle machine before its roofs are probed, and before each test, ten minutes in all",
}


def add_to(parser: argparse.ArgumentParser) -> None:
    """Flags for every option."""
    for name, words in HELP.items():
        switch = {"nargs": "?", "const": "1"} if name == "quiet" else {}
        parser.add_argument(f"--{name}", help=words.replace("%", "%%"), **switch)


def read(flags: Mapping[str, str | None], env: Mapping[str, str] = os.environ, shapes: list[str] | None = None) -> Options:
    """Options from flags, else from the environment (PROFILE, MODEL, ...), else the defaults.

    Args:
        shapes: the known synthetic shapes, to check SHAPE against

    Raises:
        OptionError: all that is wrong, a line each.
    """
    given = {n: v for n in HELP if (v := flags.get(n) or env.get(n.upper(), "").strip())}
    problems: list[str] = []

    def whole(name: str, low: int, high: int) -> int | None:
        text = given[name]
        if re.fullmatch(r"-?\d{1,9}", text) and low <= int(text) <= high:
            return int(text)
        problems.append(f"{name.upper()}: not a whole number from {low} to {high}; got {text!r}")
        return None

    values: dict[str, object] = {n: given[n] for n in ("profile", "model", "shape", "machine", "chip") if n in given}
    if given.get("reps") == "auto":
        values["auto_reps"] = True
        del given["reps"]
    for name, low, high in (("reps", 1, 1000), ("threads", 1, 4096), ("ngl", -1, 100000)):
        if name in given:
            values[name] = whole(name, low, high)
    if "depths" in given:
        parts = given["depths"].replace(" ", "").split(",")
        if all(re.fullmatch(r"\d{1,7}", p) for p in parts):
            values["depths"] = sorted({int(p) for p in parts})
        else:
            problems.append(f"DEPTHS: not whole numbers of tokens, separated by commas; got {given['depths']!r}")
    if values.get("profile", "quick") not in plan.profiles():
        problems.append(f"PROFILE: unknown profile; got {values['profile']!r}; known: {', '.join(plan.profiles())}")
    if "shape" in values:
        if shapes is not None and values["shape"] not in shapes:
            problems.append(f"SHAPE: unknown shape; got {values['shape']!r}; known: {', '.join(shapes)}")
        if "model" in values:
            problems.append("SHAPE: only for synthetic weights; leave it out with MODEL")
    if "machine" in values and not re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,79}", str(values["machine"])):
        problems.append(f"MACHINE: small letters, digits, dots and hyphens only; got {values['machine']!r}")
    for name, known in (("instrument", INSTRUMENTS), ("quiet", ("0", "1"))):
        if name in given and given[name] not in known:
            problems.append(f"{name.upper()}: unknown; got {given[name]!r}; known: {', '.join(known)}")
    if "instrument" in given:
        values["instrument"] = given["instrument"]
    values["quiet"] = given.get("quiet") == "1"
    if problems:
        raise OptionError("\n".join(problems))
    return Options(**values)  # type: ignore[arg-type]
