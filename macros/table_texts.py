"""A table's cells as CSV and as JSON, column by column and for both at once, each by the type that the column has in the schema."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, repeat
from json.encoder import encode_basestring
from typing import Any

import pydantic_core

from macros import guard
from macros.flat import Column

QUOTED = frozenset(',"\n\r')
MOST = 10_000  # strings kept in words
OTHERWISE = ("e", "0.0000", "N", "I")  # in a number as pydantic writes it: Python may write another exponent, or it is none


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


def quoted(words: str) -> str:
    """Words as a cell of a CSV file."""
    return words if QUOTED.isdisjoint(words) else '"' + words.replace('"', '""') + '"'


class _Words(dict[Any, str]):
    """Strings in words, each put into them once: few are different, and most of them recur in other machines' rows."""

    def __init__(self, put: Callable[[Any], str]) -> None:
        super().__init__()
        self.put = put

    def __missing__(self, value: Any) -> str:
        words = self.put(value)
        if isinstance(value, str):  # of others, 1, 1.0 and True are equal
            if len(self) == MOST:
                self.clear()
            self[value] = words
        return words


_in_json = _Words(to_json)
_in_csv = _Words(lambda value: quoted(cell(value, _in_json[value])))
Both = tuple[Iterable[str], Iterable[str]]  # a column's cells as CSV and as JSON


def _one_by_one(values: Sequence[Any]) -> Both:
    as_json = list(map(to_json, values))
    return [quoted(cell(value, words)) for value, words in zip(values, as_json, strict=True)], as_json


def as_python(text: str) -> bool:
    """Whether JSON of numbers, as pydantic writes it in a quarter of the time, is what Python makes of them too."""
    return not any(sign in text for sign in OTHERWISE)


def _scalars(values: Sequence[Any], kind: str) -> Both:
    """Numbers, truths and moments, of which no words hold a comma."""
    text = pydantic_core.to_json(values)[1:-1].decode()
    if not (as_python(text) if kind in ("integer", "number") else kind == "boolean" or text.count('Z"') + text.count("null") == len(values)):
        return _one_by_one(values)
    as_json = text.split(",")
    alike = kind != "datetime" and "null" not in text
    return as_json if alike else text.replace("null", "").replace('"', "").split(","), as_json


def _nested(values: Sequence[Any], sql: str) -> Both:
    """Lists and objects."""
    as_json = [pydantic_core.to_json(value).decode() for value in values]
    if not sql.endswith(("VARCHAR[]", "BIGINT[]")) and not as_python("".join(as_json)):
        return _one_by_one(values)
    return ["" if words == "null" else quoted(words) for words in as_json], as_json


def header(names: Iterable[str]) -> str:
    """The first line of a CSV file."""
    return ",".join(map(quoted, names)) + "\n"


def texts(columns: Sequence[Column], cells: Sequence[tuple[Any, ...]]) -> tuple[str, str]:
    """Rows as lines of CSV, and as JSON objects with a comma and a line's end between them. NaN is refused.

    >>> texts((Column("id", "string", "VARCHAR", ""), Column("n", "integer", "BIGINT", "")), [("a,b", 1), ("c", None)])
    ('"a,b",1\\nc,\\n', '{"id":"a,b","n":1},\\n{"id":"c","n":null}')
    """

    def both(column: Column, values: Sequence[Any]) -> Both:
        if column.type == "string":
            return map(_in_csv.__getitem__, values), map(_in_json.__getitem__, values)
        if column.type in ("array", "object"):
            return _nested(values, column.sql)
        return _one_by_one(values) if column.type == "any" else _scalars(values, column.type)

    as_csv, as_json = zip(*map(both, columns, zip(*cells, strict=True)), strict=True)
    lines = map(",".join, zip(*as_csv, strict=True))
    keys = (repeat(f"{',' if i else '{'}{to_json(column.name)}:") for i, column in enumerate(columns))
    objects = map("".join, zip(*chain.from_iterable(zip(keys, as_json, strict=True)), repeat("}")))
    return "\n".join(lines) + "\n", ",\n".join(objects)
