"""The plain kind of YAML, as `files.dump` writes it, read ten times faster than in general; every other text is declined.

Twenty thousand files of labdata/ are written by this project, in lines that mean the same in YAML 1.1 and 1.2 to
every reader. `LINE` says which lines those are; what is not wholly of them, and what is wrong in any way, goes to
`macros.files`, whose words about it a person reads.
"""

from __future__ import annotations

import json
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
    r"20\d\d-\d\d-\d\d-\d{6}",  # a run
    r"(?=[0-9be]*+[acdf])[0-9a-f]++",  # a hash; without those letters it could be a number with an exponent
])
_FORMAL = r"(?=[\d +.-])(?!\d{1,6}(?:\.\d{1,6})?['\"]|[^'\"]*[a-su-yA-SU-Y,;/()%])"  # yaml_rs takes '2026-11-30' for a day, '12:30:00' for a time
_QUOTED = rf"'(?!{_FORMAL})(?:[ -&(-~]++|'')*+'|\"(?!{_FORMAL})(?:[ !#-\[\]-~]++|\\[\"\\])*+\""
_KEY = rf"(?!{_WORD}:)[A-Za-z][A-Za-z0-9_.-]{{0,80}}:"
_ENDS = r"(?=[,\]}])"
_REST_INSIDE = r"(?:[!\"$-+\--9;->@-Z\\^-z|~]++|:(?=[\w/])| ++(?![#,\]}]))*+"  # of brackets: a comma, a question mark or a bracket ends it
_TEXT_INSIDE = rf"(?!{_WORD}{_ENDS})[A-Za-z/(]{_REST_INSIDE}|(?=[^,\]}}]*[/()%;G-HJ-MP-SU-WYg-hj-mp-su-wy])\d{_REST_INSIDE}"
_ITEM = rf"(?:(?:{_NUMBER}|{_DAY}|true|false|null){_ENDS}|{_TEXT_INSIDE}|{_QUOTED})"
_AND = r",(?: |\n {2,26})(?![\]}])"
_LIST = rf"\[(?:{_ITEM}(?:{_AND}|(?=\])))*+\]"
_NUMBERS = rf"\[(?:{_NUMBER}|null)(?:,(?: |\n {{2,26}})(?:{_NUMBER}|null))*+\]"  # a run's samples, most of all that stands in brackets
_FLOW = rf"{_LIST}|\{{(?:{_KEY} (?:{_ITEM}|{_LIST})(?:{_AND}|(?=\}})))++\}}"
_JSON = rf"{_NUMBER}|{_NUMBERS}|\[\]|\{{\}}|true|false|null"
_VALUE = rf"(?:(?P<json>{_JSON})|(?P<text>{_TEXT})|(?P<other>{_MOMENT}|{_QUOTED}|{_FLOW}))"  # JSON's words too, itself, the library's
# What stands in brackets alone goes over more lines than one.
LINE = re.compile(rf"(?:(?P<column> {{0,24}})(?!$)(?P<dashes>(?:- ){{0,2}})(?:(?P<key>{_KEY})(?:$| (?!$)))?{_VALUE}?|#[ -~]*)?", re.MULTILINE)
_json = json.JSONDecoder().raw_decode
_TO_COME: Any = object()  # the value of a key that stands on the lines below it


class _Lines(dict[str, Any]):
    """What a line says, found out once: of a lab's lines, one in twenty is new.

    (column, dashes, key, value); without a key: an item of a list. None: a comment, or nothing.
    """

    def __missing__(self, line: str) -> tuple[int, int, str | None, Any] | None:
        found, said = LINE.fullmatch(line.replace("\r", "\n")), None
        if not found:
            raise ValueError
        column, dashes, key, plain, value, other = found.groups()
        if column is not None:
            if plain:
                value = _json(plain)[0]
            elif other:
                value = yaml_rs.loads(f"a: {other}")["a"]
            elif value is None:
                value = _TO_COME
            if not key and (not dashes or value is _TO_COME):
                raise ValueError
            said = len(column), len(dashes) // 2, key and key[:-1], value
        if len(line) < 200 and (value.__class__ is not dict or not value):  # `read` copies what comes again, but not a list inside it
            if len(self) > 50_000:
                self.clear()
            self[line] = said
        return said


_lines = _Lines()


def read(text: str) -> Any:
    """A plain text's YAML as Python: the library reads what a line says, the columns tell what it belongs to.

    Every level of nesting takes a column, a list under its key none: at most 58 levels (`guard.MAX_DEPTH`).

    Raises:
        ValueError: not of the plain kind, or something is wrong with it.
    """
    if yaml_rs is None or "\r" in text or text[-1:] != "\n":
        raise ValueError
    whole: dict[str, Any] = {"": None}
    at, into, is_list, key = -1, whole, False, ""  # what is read into, the column it stands in, the key whose value is to come
    around: list[tuple[int, Any, bool]] = []  # what that lies in
    for line in text[:-1].replace(",\n", ",\r").split("\n"):  # a list in brackets breaks after a comma
        said = _lines[line]
        if said is None:
            continue
        column, dashes, name, value = said
        if key is not None:
            if column > at or column == at and dashes:
                around.append((at, into, is_list))
                into[key] = inner = [] if dashes else {}
                at, into, is_list = column, inner, dashes > 0
            key = None
        if column != at or is_list or dashes:  # most lines are one more key of what is read into
            while column < at or column == at and is_list and not dashes:
                at, into, is_list = around.pop()
            if column != at or is_list != (dashes > 0):
                raise ValueError
            while dashes > 1 or dashes and name is not None:
                dashes -= 1
                inner = [] if dashes else {}
                into.append(inner)
                around.append((at, into, is_list))
                at, into, is_list = at + 2, inner, dashes > 0
        kind = value.__class__
        if kind is list or kind is dict:  # the line may come again
            value = value.copy()
        if name is None:
            into.append(value)
        elif name in into:
            raise ValueError
        elif value is _TO_COME:
            into[name], key = None, name
        else:
            into[name] = value
    return whole[""]
