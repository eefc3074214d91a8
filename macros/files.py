"""Files of labdata/ in and out, one at a time: the only module that knows YAML.

What is read may come from a stranger (`macros.guard`); what is written appears whole or not at all.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from macros import guard, quick


READ_BY = f"PyYAML {yaml.__version__}, yaml-rs {quick.VERSION}"


class LabError(Exception):
    """Every problem found in labdata/, one line each."""

    def __init__(self, problems: list[str]):
        lines = (" ".join(p.split()) for p in problems)
        self.problems = [line if len(line) <= 1000 else f"{line[:1000]} …" for line in lines]
        super().__init__("\n".join(self.problems))


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Safe YAML of the plain kind: no aliases, no key given twice (PyYAML keeps the last one), keys that are
    text (numbers can be chosen to collide), numbers of a bounded length, and no character that nobody sees.

    Where `quick` declines, ten thousand files may still come here, so the plain values go past PyYAML's general way.
    """

    def __init__(self, text: str):
        super().__init__(text)
        self._may_repeat = "*" in text  # no alias without one

    def resolve(self, kind: type, value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode and implicit[0]:
            return _tag(value) if len(value) < 64 else _tag.__wrapped__(value)
        return super().resolve(kind, value, (False, False))

    def descend_resolver(self, *_: Any) -> None:
        """Nothing here is typed by its place."""

    ascend_resolver = descend_resolver

    def construct_document(self, node: yaml.Node) -> Any:
        return self.construct_object(node, deep=True)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        if self._may_repeat:
            if node in self.constructed_objects or node in self.recursive_objects:
                raise _refused(node, "an alias (*name) is not used here; write the value out")
            self.constructed_objects[node] = None  # not a second time, from inside itself or later
        kind, tag = type(node), node.tag
        if kind is yaml.ScalarNode:
            text = node.value
            if tag == _TEXT:
                return self.construct_scalar(node)
            if tag == _INTEGER and text.isdigit() and text[0] != "0" and len(text) <= guard.MAX_NUMBER:
                return int(text)
        elif kind is yaml.MappingNode and tag == _TABLE:
            return self.construct_mapping(node, deep=True)
        elif kind is yaml.SequenceNode and tag == _LIST:
            return [self.construct_object(item, deep=True) for item in node.value]
        self.constructed_objects.pop(node, None)  # it is looked for there
        return super().construct_object(node, deep=True)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        found: dict = {}
        for key_node, value_node in node.value:
            name = self.construct_object(key_node, deep=True)
            if type(name) is not str:
                raise _refused(key_node, f"a key must be text; got {str(name)[:40]!r}")
            if name in found:
                raise _refused(key_node, f"key given twice: {name[:80]!r}")
            found[name] = self.construct_object(value_node, deep=deep)
        return found

    def construct_scalar(self, node: yaml.ScalarNode) -> str:
        text = node.value if type(node) is yaml.ScalarNode else super().construct_scalar(node)
        if node.tag in _NUMBERS and len(text) > guard.MAX_NUMBER:
            raise _refused(node, f"a number of {len(text)} characters; at most {guard.MAX_NUMBER}")
        if not (text.isascii() and text.isprintable()) and (wrong := guard.words(text)):
            raise _refused(node, wrong)
        return text


_TEXT, _INTEGER, _TABLE, _LIST = (f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "map", "seq"))


@lru_cache(maxsize=100_000)
def _tag(value: str) -> str:
    """What a scalar without quotes is: PyYAML's own patterns, asked once for each word."""
    patterns = _Loader.yaml_implicit_resolvers
    return next((tag for tag, pattern in [*patterns.get(value[:1], ()), *patterns.get(None, ())] if pattern.match(value)), _TEXT)


_NUMBERS = {f"tag:yaml.org,2002:{kind}" for kind in ("int", "float", "timestamp", "bool", "null")}


def _refused(node: yaml.Node, words: str) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, words, node.start_mark)


def _plain(text: str) -> Any:
    """A text's YAML as plain Python, by the fast reader where it is sure to say the same."""
    try:
        return quick.read(text)
    except ValueError:
        return _in_general(text)


def _in_general(text: str) -> Any:
    """A text's YAML as plain Python. The C parser recurses without a limit, so what may be deep is walked first."""
    if text.count("[") + text.count("{") + text.count("- ") + text.count("? ") > guard.MAX_DEPTH:
        depth = 0
        for event in yaml.parse(text, _Loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > guard.MAX_DEPTH:
                raise yaml.constructor.ConstructorError(None, None, f"nested more than {guard.MAX_DEPTH} levels deep", event.start_mark)
    return yaml.load(text, _Loader)


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """In C where there is one: a run of 10,000 tests takes 3 s, not 10."""

    def ignore_aliases(self, data: Any) -> bool:
        return True  # a moment that two tests share is written twice


def _inline(dumper: yaml.SafeDumper, items: list) -> yaml.Node:
    scalars = all(i is None or isinstance(i, (int, float)) for i in items)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=bool(items) and scalars)


_Dumper.add_representer(list, _inline)


def dump(data: Any) -> str:
    """Plain Python as YAML, keys in their order."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


def from_text(text: str) -> Any:
    """YAML as plain Python.

    Raises:
        ValueError: not YAML, or a key given twice.
    """
    try:
        return _plain(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


def read_yaml(path: Path, data: bytes | None = None) -> Any:
    """One YAML file as plain Python.

    Args:
        data: its bytes, where they were read before

    Raises:
        LabError: unreadable, too large, not UTF-8, not the plain YAML of `_Loader`; one line.
    """
    try:
        data = guard.read_bytes(path) if data is None else data
        with contextlib.suppress(ValueError):
            return quick.read(data.decode("ascii"))  # which takes no sign that nobody sees
        return _plain(guard.plain(data))
    except guard.Refused as error:
        raise LabError([f"{path}: {error}"]) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}" if mark else "file"
        raise LabError([f"{path}: {where}: not valid YAML; {getattr(error, 'problem', None) or error}"]) from None
    except OSError as error:
        raise LabError([f"{path}: file: cannot be read; {error.strerror}"]) from None
    except (ValueError, TypeError, RecursionError) as error:  # not UTF-8, month 13
        raise LabError([f"{path}: file: cannot be read; {error}"]) from None


def write_text(path: Path, text: str) -> None:
    """A text file, atomically and flushed to disk."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """A file, atomically and flushed to disk."""
    name = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException as error:
        if name:
            Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError):  # of the file that was meant, not of the temporary one
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


@contextlib.contextmanager
def all_or_none() -> Iterator[list[Path]]:
    """Files that belong together: those the block lists are removed again, the last first, if it fails."""
    written: list[Path] = []
    try:
        yield written
    except BaseException:
        for path in reversed(written):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        raise
