"""A model that checks files as flat tables: a nested part becomes columns, a list of parts a table of its own."""

from __future__ import annotations

import datetime
import itertools
import operator
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import AwareDatetime, BaseModel

SCALARS = {bool: ("boolean", "BOOLEAN"), int: ("integer", "BIGINT"), float: ("number", "DOUBLE"), str: ("string", "VARCHAR"),
           AwareDatetime: ("datetime", "TIMESTAMPTZ"), datetime.datetime: ("datetime", "TIMESTAMPTZ"), datetime.date: ("date", "DATE")}  # fmt: skip


@dataclass(frozen=True)
class Column:
    """One column.

    Args:
        type: of a Table Schema field (string, integer, number, boolean, date, datetime, array, object, any)
        sql: of the Parquet file
        about: what it is, unit included
        path: where it lies in its part of a document
    """

    name: str
    type: str
    sql: str
    about: str
    path: tuple[str, ...] = ()


@dataclass
class Table:
    """A table with its rows, None where there is no value.

    Args:
        key: columns that name a row
        derived: computed at build from recorded rows, not recorded
        cells: each row's values in the columns' order: a large lab has half a million rows
    """

    name: str
    about: str
    key: tuple[str, ...]
    columns: list[Column]
    parent: str = ""
    derived: bool = False
    cells: list[tuple[Any, ...]] = field(default_factory=list)

    @property
    def rows(self) -> Iterator[dict[str, Any]]:
        """Each row by column."""
        names = [c.name for c in self.columns]
        return (dict(zip(names, row, strict=True)) for row in self.cells)


@dataclass(frozen=True)
class Child:
    """A list of parts inside a part, which becomes a table."""

    path: tuple[str, ...]
    name: str
    about: str
    kind: type[BaseModel]


def kinds(annotation: Any) -> tuple[Any, ...]:
    """What a field may hold, None left out.

    >>> kinds(int | list[int] | None)
    (<class 'int'>, list[int])
    """
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return kinds(args[0])
    if origin in (typing.Union, types.UnionType):
        found = [k for a in args for k in kinds(a)]
    elif origin is typing.Literal:
        found = [type(a) for a in args]
    else:
        found = [] if annotation is types.NoneType else [annotation]
    return tuple(dict.fromkeys(found))


def value_type(annotation: Any) -> tuple[str, str]:
    """A value's types, (Table Schema, SQL); what may be one thing or a list of it is `any`, as JSON.

    >>> value_type(list[float | None]), value_type(dict[str, int]), value_type(int | list[int])
    (('array', 'DOUBLE[]'), ('object', 'MAP(VARCHAR, BIGINT)'), ('any', 'JSON'))
    """
    found = kinds(annotation)
    if len(found) != 1:
        return "any", "JSON"
    if found[0] in SCALARS:
        return SCALARS[found[0]]
    origin, args = typing.get_origin(found[0]), typing.get_args(found[0])
    if origin is list:
        return "array", f"{value_type(args[0])[1]}[]"
    if origin is dict:
        return "object", f"MAP(VARCHAR, {value_type(args[1])[1]})"
    raise TypeError(f"no column holds {found[0]}")


def layout(kind: type[BaseModel], path: tuple[str, ...] = (), prefix: str = "", about: str = "") -> tuple[list[Column], list[Child]]:
    """The columns of a part and the lists in it; `sources` is left out, all documents' stand in one table."""
    columns, children = [], []
    for name, info in kind.model_fields.items():
        if name == "sources":
            continue
        at, shown, said = (*path, name), prefix + (info.alias or name), about + (info.description or "")
        found = kinds(info.annotation)
        inner = kinds(typing.get_args(found[0])[0]) if len(found) == 1 and typing.get_origin(found[0]) is list else ()
        if len(found) == 1 and isinstance(found[0], type) and issubclass(found[0], BaseModel):
            deeper = layout(found[0], at, f"{shown}_", f"{said}: ")
            columns, children = columns + deeper[0], children + deeper[1]
        elif len(inner) == 1 and isinstance(inner[0], type) and issubclass(inner[0], BaseModel):
            children.append(Child(at, shown, said, inner[0]))
        else:
            columns.append(Column(shown, *value_type(info.annotation), said, at))
    return columns, children


def _getter(paths: Sequence[tuple[str, ...]]) -> Callable[[Any], Sequence[Any]]:
    """What finds the values at several paths; None where a part on the way is not given."""
    heads, below = [], []
    for head, found in itertools.groupby(paths, operator.itemgetter(0)):
        deeper = [path[1:] for path in found]
        if deeper != [()]:
            below.insert(0, (len(heads), _getter(deeper), [None] * len(deeper)))  # last first, so that what comes before keeps its place
        heads.append(head)
    outer = operator.itemgetter(*heads) if len(heads) > 1 else lambda fields: (fields[heads[0]],)

    def values(part: Any) -> Sequence[Any]:
        found = outer(vars(part))
        if not below:
            return found
        found = list(found)
        for at, inner, nothing in below:
            found[at : at + 1] = nothing if found[at] is None else inner(found[at])
        return found

    return values


@dataclass(frozen=True)
class Filled:
    """A kind's table while it is filled, and those of the lists in it.

    Args:
        values: of a part, those of its columns, then the lists in it
    """

    table: Table
    values: Callable[[Any], Sequence[Any]]
    below: list[Filled]

    def add(self, key: tuple[Any, ...], part: BaseModel) -> None:
        """A part's row, and those of the lists in it."""
        row = (*key, *self.values(part))
        if not self.below:
            self.table.cells.append(row)
            return
        width = len(self.table.columns)
        self.table.cells.append(row[:width])
        for items, inner in zip(row[width:], self.below, strict=True):
            for n, item in enumerate(items or (), 1):
                inner.add((*key, n), item)

    def tables(self) -> list[Table]:
        """This table and those below it."""
        return [self.table, *(table for inner in self.below for table in inner.tables())]


def flat(name: str, about: str, kind: type[BaseModel], keys: list[Column], parent: str = "") -> Filled:
    """A kind's table and those of the lists in it, empty.

    Args:
        keys: the columns that name a row
    """
    columns, children = layout(kind)
    table = Table(name, about, tuple(c.name for c in keys), [*keys, *columns], parent)
    below = []
    for child in children:
        number = Column(f"{child.name}_n", "integer", "BIGINT", f"Its place in the list {child.name}, from 1")
        below.append(flat(f"{name}_{child.name}", child.about, child.kind, [*keys, number], name))
    return Filled(table, _getter([part.path for part in (*columns, *children)]), below)
