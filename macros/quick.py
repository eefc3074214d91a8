"""The plain kind of YAML, as `files.dump` writes it, read ten times faster than in general; every other text is declined.

Twenty thousand files of labdata/ are written by this project, in lines that mean the same in YAML 1.1 and 1.2 to
every reader. `PLAIN` says which lines those are; what is not wholly of them, and what is wrong in any way, goes to
`macros.files`, whose words about it a person reads.
"""

from __future__ import annotations

import re
from typing import Any

try:
    import yaml_rs
except ImportError:  # no wheel for this machine: PyYAML reads everything
    yaml_rs = None  # type: ignore[assignment]

VERSION = yaml_rs.__version__ if yaml_rs else "none"

_INTEGER = r"-?(?:0|[1-9]\d{0,17})"  # no octal, no 1_000, no 12:30
_NUMBER = rf"{_INTEGER}(?:\.\d{{1,20}}(?:[eE][+-]\d{{1,3}})?)?"  # 1e12 without a point is text in YAML 1.1, a number in 1.2
_DAY = r"(?:19|20)\d\d-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))"
_MOMENT = rf"{_DAY}(?:[T ](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{{6}})?(?:Z|\+00:00))?"
_WORD = r"(?i:yes|no|on|off|true|false|null)"  # what is no text; the first four in YAML 1.1 alone
_REST = r"(?:[!-\"$-9;-~]++|:(?! |$)| ++(?!#|$))*+"  # of a text without quotes: no ": ", no " #", no blank at its end
_TEXT = "|".join([
    rf"(?!{_WORD}$)[A-Za-z/(]{_REST}",
    rf"(?=.*[/()%,;G-HJ-MP-SU-WYg-hj-mp-su-wy])\d{_REST}",  # 14450 tok/s; what no number has and no moment
    r"\d+\.\d+\.\d+(?:\.\d+)?",  # a version
    r"(?=[0-9be]*+[acdf])[0-9a-f]++",  # a hash; without those letters it could be a number with an exponent
])
_FORMAL = r"(?!\d{1,6}(?:\.\d{1,6})?['\"])[\d +.-]"  # yaml_rs takes '2026-11-30' for a day
_QUOTED = rf"'(?!{_FORMAL})(?:[ -&(-~]++|'')*+'|\"(?!{_FORMAL})[ !#-\[\]-~]*+\""
_FLOW = rf"\[(?:(?:{_NUMBER}|null)(?:,(?: |\n {{2,26}})(?:{_NUMBER}|null))*)?\]|\{{\}}"
_VALUE = rf"(?:{_NUMBER}|{_MOMENT}|true|false|null|{_TEXT}|{_QUOTED}|{_FLOW})"
_KEY = rf"(?!{_WORD}:)[A-Za-z][A-Za-z0-9_.-]{{0,80}}:"
# Every level of nesting takes a column, a list under its key none: at most 58 levels (`guard.MAX_DEPTH`).
PLAIN = re.compile(rf"(?:(?: {{0,24}}(?:(?:- ){{0,2}}{_KEY}(?: {_VALUE})?|- (?:- )?{_VALUE})|#[ -~]*)?\n)*+", re.MULTILINE)
_taken: set[str] = set()  # lines known to be plain: of a lab's, one in twenty is new


def plain(text: str) -> bool:
    """Whether a text is wholly of the plain kind: what `PLAIN` says of it, asked once for each line.

    A list in brackets may go over several lines, and breaks after a comma alone: such lines stay together.
    """
    if "\r" in text or not text.endswith("\n"):
        return False
    new = set(text.replace(",\n", ",\r").split("\n")) - _taken
    if not all(PLAIN.fullmatch(line.replace("\r", "\n") + "\n") for line in new):
        return False
    if len(_taken) > 50_000:
        _taken.clear()
    _taken.update(line for line in new if len(line) < 200)
    return True


def read(text: str) -> Any:
    """A plain text's YAML as Python.

    Raises:
        ValueError: not of the plain kind, or something is wrong with it.
    """
    if yaml_rs is None or not plain(text):
        raise ValueError
    return yaml_rs.loads(text)
