"""One file of labdata/ as its model, and what is wrong with it in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from macros import versions
from macros.files import LabError, read_yaml

MAX_SAID = 50  # problems of one file that are said one by one


def parse(kind: type[BaseModel], path: Path, shown: str, data: bytes | None = None) -> Any:
    """One file as its model; problems carry the file as `shown` and the dotted key.

    Args:
        data: its bytes, where they were read before

    Raises:
        LabError: every problem in this file.
    """
    try:
        return kind.model_validate(versions.upgrade(kind.__name__, read_yaml(path, data)))
    except LabError as error:
        raise LabError([p.replace(str(path), shown) for p in error.problems]) from None
    except ValueError as error:
        if not isinstance(error, ValidationError):  # of a later layout
            raise LabError([f"{shown}: {error}"]) from None
        raise LabError(said(kind, shown, error)) from None


def said(kind: type[BaseModel], shown: str, error: ValidationError) -> list[str]:
    """What a model found wrong, one line each; past 50 the rest is counted."""
    found = [_line(kind, shown, e) for e in error.errors(include_url=False)[:MAX_SAID]]
    more = error.error_count() - len(found)
    return found + ([f"{shown}: file: {more} more problems of the kind"] if more > 0 else [])


def _known_keys(annotation: Any, loc: tuple) -> list[str]:
    """The keys of the model that `loc`, a place inside `annotation`, leads to."""
    inner = [a for arg in get_args(annotation) for a in (get_args(arg) or [arg])]
    kinds = [k for k in (annotation, *inner) if isinstance(k, type) and issubclass(k, BaseModel)]
    fields = {f.alias or name: f.annotation for k in kinds for name, f in k.model_fields.items()}
    if len(loc) <= 1:
        return list(fields)
    return _known_keys(fields.get(loc[0], annotation), loc[1:])


def _line(kind: type[BaseModel], shown: str, error: Any) -> str:
    where = ".".join(str(part) for part in error["loc"]) or "file"
    got = error["input"]
    if error["type"] == "extra_forbidden":
        return f"{shown}: {where}: unknown key; known: {', '.join(_known_keys(kind, error['loc']))}"
    text = f"{shown}: {where}: {error['msg'].removeprefix('Value error, ')}"
    if isinstance(got, (str, int, float)) or got is None:
        text += f"; got {got!r}"
    if isinstance(got, str) and "valid number" in error["msg"]:
        text += "; YAML reads 1e12 as text, write 1.0e+12"
    return text
