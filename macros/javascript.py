"""Python's own arithmetic as JavaScript, so that a page computes with the very functions the build does.

From some functions, everything they reach is translated: other functions, dataclasses, constants.
Only what the project's pure modules use is understood; any other construct is refused by name, never
guessed. Transcrypt, PScript and Brython bring a runtime larger than the page or generate no
plain functions; this needs the few lines of PRELUDE. Standard library only.

Assumes: whole numbers stay below 2**53; containers are not tested for truth, as an empty one is true in JavaScript.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from macros.javascript_code import Function, NotTranslatable, literal

# What Python has and JavaScript has not, in the least number of words.
PRELUDE = """
const $iter = x => x[Symbol.iterator] ? [...x] : Object.keys(x);
const $in = (x, c) => typeof c === "string" || Array.isArray(c) ? c.includes(x) : Object.hasOwn(c, x);
const $at = (c, k) => { const x = Array.isArray(c) && k < 0 ? c.at(k) : c[k]; if (x === undefined) throw new Error("KeyError: " + k); return x; };
const $get = (c, k, other = null) => Object.hasOwn(c, k) ? c[k] : other;
const $sum = (xs, start = 0) => $iter(xs).reduce((a, b) => a + Number(b), start);
const $best = (better, xs, key, other) => {
  const all = $iter(xs);
  if (!all.length && other !== undefined) return other;
  if (!all.length) throw new Error("ValueError: empty");
  return all.reduce((a, b) => better(key(b), key(a)) ? b : a);
};
const $min = (xs, key = x => x, other = undefined) => $best((a, b) => a < b, xs, key, other);
const $max = (xs, key = x => x, other = undefined) => $best((a, b) => a > b, xs, key, other);
const $range = (a, b, step = 1) => { const xs = []; for (let i = a; i < b; i += step) xs.push(i); return xs; };
const $zip = (...xs) => { const all = xs.map($iter); return all[0].map((_, i) => all.map(x => x[i])); };
const $times = (x, n) => typeof x === "string" ? x.repeat(Number(n)) : $range(0, Number(n)).flatMap(() => x);
const $replace = (o, changes) => Object.assign(Object.create(Object.getPrototypeOf(o)), o, changes);
const $partition = (s, by) => { const i = s.indexOf(by); return i < 0 ? [s, "", ""] : [s.slice(0, i), by, s.slice(i + by.length)]; };
""".strip()


def program(*roots: Any, given: Mapping[Any, str] | None = None) -> str:
    """JavaScript of some functions and classes, with everything they reach, each named module_name.

    Args:
        given: functions the page has in JavaScript already, by what they are called there

    Raises:
        NotTranslatable: where, and which construct.

    >>> from macros import roofline
    >>> print(program(roofline.decode_ceiling_tok_s).split("\\n\\n")[-1])
    function roofline_decode_ceiling_tok_s(bandwidth_bytes_s, step_bytes) {
      return (bandwidth_bytes_s / step_bytes);
    }
    """
    whole = _Program(given or {})
    for root in roots:
        whole.reach(root)
    return "\n\n".join([PRELUDE, *whole.done.values()])


def named(thing: Any) -> str:
    """What a function or class is called in the program."""
    return f"{thing.__module__.rpartition('.')[2]}_{thing.__name__}"


def _tree(thing: Any) -> ast.stmt:
    """What a function or a class is in its module's text, which is read once: `inspect` looks through it anew for each."""
    module = inspect.getmodule(thing)
    found = _defined(module.__file__).get(thing.__qualname__) if module and module.__file__ else None
    return found or ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]


@cache
def _defined(file: str) -> dict[str, ast.stmt]:
    tree = ast.parse(Path(file).read_bytes())
    return {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


class _Program:
    """What was translated so far, in an order in which all is defined before it is used at load time."""

    def __init__(self, given: Mapping[Any, str]) -> None:
        self.done: dict[str, str] = {}
        self.given = given

    def reach(self, thing: Any) -> str:
        """A function's or a class's name; it is translated unless it was."""
        if thing in self.given:
            return self.given[thing]
        thing = inspect.unwrap(thing)
        name = named(thing)
        if name not in self.done:
            self.done[name] = ""  # its place is taken while what it reaches is translated
            tree = _tree(thing)
            text = self._class(thing, tree) if isinstance(thing, type) else Function(self, thing, tree).text(name)
            del self.done[name]  # after what it reached
            self.done[name] = text
        return name

    def constant(self, module: str, name: str, value: Any) -> str:
        full = f"{module.rpartition('.')[2]}_{name}"
        self.done.setdefault(full, f"const {full} = {literal(value)};")
        return full

    def _class(self, kind: type, tree: ast.AST) -> str:
        if not dataclasses.is_dataclass(kind) or not isinstance(tree, ast.ClassDef):
            raise NotTranslatable(f"{named(kind)}: a dataclass needed")
        fields = [f.name for f in dataclasses.fields(kind)]
        defaults = []
        for f in dataclasses.fields(kind):
            factory = {dict: "{}", list: "[]"}.get(f.default_factory) if f.default_factory is not dataclasses.MISSING else None  # type: ignore[call-overload]
            shown = factory if factory else None if f.default is dataclasses.MISSING else literal(f.default)
            defaults.append(f.name + (f" = {shown}" if shown is not None else ""))
        lines = [f"class {named(kind)} {{", f"  constructor({', '.join(defaults)}) {{ Object.assign(this, {{{', '.join(fields)}}}); }}"]
        for item in tree.body:
            if isinstance(item, ast.FunctionDef):
                getter = any(isinstance(d, ast.Name) and d.id == "property" for d in item.decorator_list)
                member = inspect.getattr_static(kind, item.name)
                function = member.fget if isinstance(member, property) else member
                text = Function(self, function, item).text(item.name, "get " if getter else "method ")
                lines.append(textwrap.indent(text, "  "))
        return "\n".join([*lines, "}"])


