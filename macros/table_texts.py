"""A table's cells as CSV and as JSON, column by column: what recurs in a column is put into words once, for both."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterable, Sequence
from json.encoder import encode_basestring
from types import NoneType
from typing import Any

from macros import guard

EQUAL_IS_ALIKE = {int, str, NoneType, datetime.datetime, datetime.date}  # of one of these, equal values have the same words
QUOTED = frozenset(',"\n\r')


def plain(value: Any) -> str:
    """A moment as ISO 8601, in UTC."""
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.UTC).isoformat().replace("+00:00", "Z")
    return value.isoformat()


_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=plain)


def to_json(value: Any) -> str:
    """JSON on one line; NaN is refused."""
    kind = value.__class__  # what follows is as the encoder does it, which takes twenty times as long to begin
    if kind is str:
        return encode_basestring(value)
    if value is None:
        return "null"
    if kind in (int, float) and math.isfinite(value):
        return repr(value)
    if kind is list:
        return f"[{','.join(map(to_json, value))}]"
    if kind is datetime.datetime:
        return f'"{plain(value)}"'
    return _JSON.encode(value)


def cell(value: Any, as_json: str) -> str:
    """A value in CSV: nothing for None, numbers and lists as in JSON, an apostrophe before words that a spreadsheet would run.

    >>> cell("=HYPERLINK(1)", '"=HYPERLINK(1)"'), cell([1, None], "[1,null]"), cell(None, "null"), cell("a = b", '"a = b"')
    ("'=HYPERLINK(1)", '[1,null]', '', 'a = b')
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return str(guard.not_a_formula(value))
    return as_json.strip('"') if isinstance(value, datetime.date) else as_json


def _quoted(words: str) -> str:
    return words if QUOTED.isdisjoint(words) else '"' + words.replace('"', '""') + '"'


def _column(values: Sequence[Any]) -> tuple[Iterable[str], Iterable[str]]:
    """A column's cells as CSV and as JSON."""
    kinds = set(map(type, values))
    if float in kinds and kinds <= {int, float, NoneType}:  # which hardly recur
        as_json = list(map(to_json, values))
        return [words if words != "null" else "" for words in as_json] if NoneType in kinds else as_json, as_json
    alike = kinds <= EQUAL_IS_ALIKE and len(kinds - {NoneType}) < 2
    keys = values if alike else list(map(repr, values))  # 1, 1.0 and True are equal, and a list is no key
    known = {value: value for value in set(values)} if alike else dict(zip(keys, values, strict=True))
    in_json = {key: to_json(value) for key, value in known.items()}
    in_csv = {key: _quoted(cell(value, in_json[key])) for key, value in known.items()}
    return map(in_csv.__getitem__, keys), map(in_json.__getitem__, keys)


def header(names: Sequence[str]) -> str:
    """The first line of a CSV file."""
    return ",".join(map(_quoted, names)) + "\n"


def texts(names: Sequence[str], cells: Sequence[tuple[Any, ...]]) -> tuple[str, str]:
    """Rows as lines of CSV, and as JSON objects with a comma and a line's end between them.

    >>> texts(("id", "n"), [("a,b", 1), ("c", None)])
    ('"a,b",1\\nc,\\n', '{"id":"a,b","n":1},\\n{"id":"c","n":null}')
    """
    as_csv, as_json = zip(*map(_column, zip(*cells, strict=True)), strict=True)
    row = "{" + ",".join(to_json(name).replace("%", "%%") + ":%s" for name in names) + "}"
    lines = map(",".join, zip(*as_csv, strict=True))
    return "\n".join(lines) + "\n", ",\n".join(map(row.__mod__, zip(*as_json, strict=True)))
