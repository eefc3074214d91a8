"""One Python function as one JavaScript function: the part of `macros.javascript` that reads code.

Only what the project's pure modules use is understood; any other construct is refused by name.
Standard library only.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import math
import textwrap
from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType
from typing import Any, Protocol

_MATH = {"log": "Math.log", "log10": "Math.log10", "exp": "Math.exp", "expm1": "Math.expm1", "sqrt": "Math.sqrt", "ceil": "Math.ceil", "floor": "Math.floor",
         "hypot": "Math.hypot", "isnan": "Number.isNaN", "isfinite": "Number.isFinite"}  # fmt: skip
_BUILTINS = {"float": "Number({})", "int": "Math.trunc({})", "bool": "Boolean({})", "abs": "Math.abs({})", "len": "$iter({}).length",
             "tuple": "$iter({})", "list": "$iter({})", "any": "$iter({}).some(Boolean)", "all": "$iter({}).every(Boolean)",
             "sum": "$sum({})", "zip": "$zip({})"}  # fmt: skip
_METHODS = {"items": "Object.entries({0})", "values": "Object.values({0})", "keys": "Object.keys({0})", "get": "$get({0}, {1})",
            "startswith": "{0}.startsWith({1})", "partition": "$partition({0}, {1})", "append": "{0}.push({1})",
            "join": "$iter({1}).join({0})", "upper": "{0}.toUpperCase()"}  # fmt: skip
_COMPARE: dict[type, str] = {ast.Eq: "===", ast.NotEq: "!==", ast.Is: "===", ast.IsNot: "!==", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_BINARY: dict[type, str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
_RESERVED = set("arguments case catch const debugger default delete do enum eval export extends function implements interface let new "
                "package private protected public static super switch this throw typeof var void with".split())  # fmt: skip


class NotTranslatable(ValueError):
    """A construct, or a thing reached, that has no counterpart in JavaScript."""


class Whole(Protocol):
    """The program a function becomes a part of."""

    def reach(self, thing: Any) -> str: ...

    def constant(self, module: str, name: str, value: Any) -> str: ...


def literal(value: Any) -> str:
    """A constant as JavaScript; dataclasses as the constructors' calls.

    >>> literal({"a": (1, None, True)}), literal(math.inf)
    ('{"a": [1, null, true]}', 'Infinity')
    """
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(k)}: {literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(literal(v) for v in value) + "]"
    if value is None or isinstance(value, (bool, int, float, str)):
        return json.dumps(value, ensure_ascii=False)
    raise NotTranslatable(f"no constant: {value!r}")


class Function:
    """One function, or one method (its first parameter is `this`)."""

    def __init__(self, whole: Whole, function: FunctionType, tree: Any, outer: frozenset[str] = frozenset()):
        self.whole, self.function, self.tree, self.outer = whole, function, tree, outer
        self.me = ""
        self.locals: set[str] = set(outer)

    def fail(self, node: ast.AST, why: str = "") -> NotTranslatable:
        line = getattr(node, "lineno", 0) - self.tree.lineno + 1
        return NotTranslatable(f"{self.function.__module__}.{self.function.__qualname__}: line {line} of it: {why or type(node).__name__ + ' is not translated'}; got {ast.unparse(node)[:80]!r}")

    def text(self, name: str, kind: str = "function ") -> str:
        """The function as a declaration, a getter, a method or (kind "arrow") an arrow."""
        args = self.tree.args
        if args.vararg or args.kwarg or args.posonlyargs:
            raise self.fail(self.tree, "parameters by star")
        params = [a.arg for a in (*args.args, *args.kwonlyargs)]
        if kind in ("get ", "method "):
            self.me, params = params[0], params[1:]
        defaults = [*args.defaults, *[d for d in args.kw_defaults if d is not None]]
        shown = [_id(p) for p in params[: len(params) - len(defaults)]]
        shown += [f"{_id(p)} = {self.expr(d)}" for p, d in zip(params[len(shown) :], defaults, strict=True)]
        self.locals |= set(params)
        body, stored = self.tree.body, _stored(self.tree)
        self.locals |= stored
        lines = self.block(body[1:] if ast.get_docstring(self.tree) else body)
        nodes = list(ast.walk(self.tree))
        fresh = sorted(stored - set(params) - {n.name for n in nodes if isinstance(n, ast.FunctionDef)})
        if fresh:
            lines.insert(0, f"let {', '.join(map(_id, fresh))};")
        star = "*" if any(isinstance(n, ast.Yield) for n in nodes) else ""
        inner = textwrap.indent("\n".join(lines), "  ")
        head = {"function ": f"function{star} {name}({', '.join(shown)})", "get ": f"get {name}()",
                "method ": f"{star}{name}({', '.join(shown)})", "arrow": f"const {_id(name)} = ({', '.join(shown)}) =>"}[kind]  # fmt: skip
        return f"{head} {{\n{inner}\n}}" + (";" if kind == "arrow" else "")

    def block(self, nodes: list[ast.stmt]) -> list[str]:
        return [line for node in nodes for line in self.statement(node)]

    def braces(self, head: str, nodes: list[ast.stmt]) -> list[str]:
        return [f"{head} {{", *("  " + line for line in self.block(nodes)), "}"]

    def statement(self, node: ast.stmt) -> list[str]:
        match node:
            case ast.Return(value=None):
                return ["return null;"]
            case ast.Return(value=value):
                return [f"return {self.expr(value)};"]
            case ast.Assign(targets=targets, value=value):
                return [f"{' = '.join(map(self.target, targets))} = {self.expr(value)};"]
            case ast.AnnAssign(target=target, value=value) if value is not None:
                return [f"{self.target(target)} = {self.expr(value)};"]
            case ast.AugAssign(target=target, op=ast.Add(), value=value) if _is_list(value):
                return [f"{self.target(target)}.push(...{self.expr(value)});"]
            case ast.AugAssign(target=target, op=op, value=value):
                return [f"{self.target(target)} = {self.binary(ast.BinOp(left=target, op=op, right=value))};"]
            case ast.If(test=test, body=body, orelse=orelse):
                lines = self.braces(f"if ({self.expr(test)})", body)
                return lines + (self.braces("else", orelse) if orelse else [])
            case ast.For(target=target, iter=iterated, body=body, orelse=[]):
                return self.braces(f"for ({self.target(target)} of $iter({self.expr(iterated)}))", body)
            case ast.While(test=test, body=body, orelse=[]):
                return self.braces(f"while ({self.expr(test)})", body)
            case ast.Raise(exc=ast.Call(args=[told])):
                return [f"throw new Error({self.expr(told)});"]
            case ast.FunctionDef():
                return Function(self.whole, self.function, node, frozenset(self.locals)).text(node.name, "arrow").split("\n")
            case ast.Expr(value=ast.Yield(value=value)) if value is not None:
                return [f"yield {self.expr(value)};"]
            case ast.Expr(value=ast.Constant()):
                return []
            case ast.Expr(value=value):
                return [f"{self.expr(value)};"]
            case ast.Continue() | ast.Break():
                return [type(node).__name__.lower() + ";"]
        raise self.fail(node)

    def target(self, node: ast.expr) -> str:
        match node:
            case ast.Name(id=name):
                return _id(name)
            case ast.Tuple(elts=items):
                return f"[{', '.join(map(self.target, items))}]"
            case ast.Subscript(value=value, slice=key):
                return f"{self.expr(value)}[{self.expr(key)}]"
        raise self.fail(node)

    def expr(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(value=value):
                return literal(value)
            case ast.Name(id=name):
                return "this" if name == self.me else _id(name) if name in self.locals else self.of_module(node, None, name)
            case ast.Attribute(value=ast.Name(id=module), attr=name) if isinstance(self.known(module), ModuleType):
                return self.of_module(node, self.known(module), name)
            case ast.Attribute(value=value, attr=name):
                return f"{self.expr(value)}.{name}"
            case ast.Subscript(value=value, slice=key) if not isinstance(key, ast.Slice):
                return f"$at({self.expr(value)}, {self.expr(key)})"
            case ast.BinOp():
                return self.binary(node)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return f"!{self.expr(operand)}"
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"(-{self.expr(operand)})"
            case ast.BoolOp(op=op, values=values):
                return "(" + (" && " if isinstance(op, ast.And) else " || ").join(map(self.expr, values)) + ")"
            case ast.Compare(left=left, ops=ops, comparators=rights):
                pairs = zip([left, *rights], ops, rights)
                return "(" + " && ".join(self.compared(*pair) for pair in pairs) + ")"
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return f"({self.expr(test)} ? {self.expr(body)} : {self.expr(orelse)})"
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return f"[{self.items(items)}]"
            case ast.Dict(keys=keys, values=values):
                return "{" + ", ".join(self.entry(k, v) for k, v in zip(keys, values)) + "}"
            case ast.JoinedStr(values=values):
                return "`" + "".join(self.piece(v) for v in values) + "`"
            case ast.GeneratorExp(elt=each, generators=loops) | ast.ListComp(elt=each, generators=loops):
                return self.loop(lambda inner: inner.expr(each), loops)
            case ast.DictComp(key=key, value=value, generators=loops):
                return f"Object.fromEntries({self.loop(lambda inner: f'[{inner.expr(key)}, {inner.expr(value)}]', loops)})"
            case ast.Lambda(args=args, body=body):
                inner = self.inside({a.arg for a in args.args})
                return f"(({', '.join(_id(a.arg) for a in args.args)}) => {inner.expr(body)})"
            case ast.Call():
                return self.call(node)
        raise self.fail(node)

    def entry(self, key: ast.expr | None, value: ast.expr) -> str:
        if key is None:
            return f"...{self.expr(value)}"
        return f"{self.expr(key) if isinstance(key, ast.Constant) else f'[{self.expr(key)}]'}: {self.expr(value)}"

    def inside(self, names: set[str]) -> Function:
        """The same function, seen from within an arrow with parameters of its own."""
        inner = Function(self.whole, self.function, self.tree, self.outer)
        inner.me, inner.locals = self.me, self.locals | names
        return inner

    def loop(self, each: Callable[[Function], str], loops: list[ast.comprehension]) -> str:
        first, rest = loops[0], loops[1:]
        inner = self.inside(_stored(first.target))
        head = f"$iter({self.expr(first.iter)})"
        shown = inner.target(first.target)
        for test in first.ifs:
            head += f".filter(({shown}) => {inner.expr(test)})"
        if rest:
            return f"{head}.flatMap(({shown}) => {inner.loop(each, rest)})"
        body = each(inner)
        return f"{head}.map(({shown}) => {f'({body})' if body.startswith('{') else body})"

    def piece(self, node: ast.expr) -> str:
        if isinstance(node, ast.FormattedValue):
            return f"${{{self.expr(node.value)}}}"
        text = str(node.value)  # type: ignore[attr-defined]
        return text.replace("\\", "\\\\").replace("`", "\\`").replace("${", "\\${")

    def items(self, nodes: list[ast.expr]) -> str:
        return ", ".join(f"...{self.expr(n.value)}" if isinstance(n, ast.Starred) else self.expr(n) for n in nodes)

    def compared(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> str:
        if isinstance(op, (ast.In, ast.NotIn)):
            return f"{'!' if isinstance(op, ast.NotIn) else ''}$in({self.expr(left)}, {self.expr(right)})"
        return f"{self.expr(left)} {_COMPARE[type(op)]} {self.expr(right)}"

    def binary(self, node: ast.BinOp) -> str:
        left, right = self.expr(node.left), self.expr(node.right)
        match node.op:
            case ast.FloorDiv():
                return f"Math.floor({left} / {right})"
            case ast.Mod():
                return f"((({left} % {right}) + {right}) % {right})"
            case ast.Mult() if isinstance(node.left, ast.List) or isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
                return f"$times({left}, {right})"
            case ast.Add() if isinstance(node.right, ast.Call) and self.adds(node.right):
                return f"{left}.__add__({right})"
            case ast.Add() if _is_list(node.left) or _is_list(node.right):
                return f"[...{left}, ...{right}]"
            case ast.BitOr():
                return f"({{...{left}, ...{right}}})"
        if type(node.op) not in _BINARY:
            raise self.fail(node)
        return f"({left} {_BINARY[type(node.op)]} {right})"

    def adds(self, node: ast.Call) -> bool:
        """Whether a call answers, by its annotation, with a class that says what + is."""
        told = getattr(self.object(node.func), "__annotations__", {}).get("return")
        return hasattr(self.known(told), "__add__")

    def known(self, name: Any) -> Any:
        """What a global name stands for; None for a local."""
        return None if name in self.locals else self.function.__globals__.get(name)

    def object(self, node: ast.expr) -> Any:
        match node:
            case ast.Name(id=name):
                return self.known(name)
            case ast.Attribute(value=ast.Name(id=module), attr=name) if isinstance(self.known(module), ModuleType):
                return getattr(self.known(module), name, None)
        return None

    def of_module(self, node: ast.AST, module: Any, name: str) -> str:
        """A name of a module, or (None) of the function's own."""
        if module is math:
            if name not in _MATH and name not in ("inf", "nan"):
                raise self.fail(node)
            return {"inf": "Infinity", "nan": "NaN"}.get(name) or _MATH[name]
        inside = vars(module) if module else self.function.__globals__
        if name not in inside:
            raise self.fail(node, "a name that is not known")
        if callable(inside[name]):
            return self.whole.reach(inside[name])
        return self.whole.constant(inside["__name__"], name, inside[name])

    def call(self, node: ast.Call) -> str:
        made = self.object(node.func)
        if isinstance(node.func, ast.Name) and made is None and node.func.id not in self.locals:
            return self.builtin(node, node.func.id)
        if made is dataclasses.replace:
            changes = ", ".join(f"{k.arg}: {self.expr(k.value)}" for k in node.keywords)
            return f"$replace({self.expr(node.args[0])}, {{{changes}}})"
        if isinstance(node.func, ast.Attribute) and made is None:
            return self.method(node, node.func)
        if made is None or getattr(made, "__module__", "") == "math" or made in vars(math).values():
            if node.keywords:
                raise self.fail(node, "names of arguments are not known here")
            return f"{self.expr(node.func)}({self.items(node.args)})"
        shown = self.expr(node.func)
        return f"{'new ' if isinstance(made, type) else ''}{shown}({self.arguments(node, made)})"

    def arguments(self, node: ast.Call, made: Any) -> str:
        """Arguments by position, those given by name in their place."""
        if not node.keywords:
            return self.items(node.args)
        names = list(inspect.signature(made).parameters)
        given = {**dict(zip(names, node.args)), **{k.arg: k.value for k in node.keywords}}
        if any(isinstance(a, ast.Starred) for a in node.args) or not set(given) <= set(names):
            raise self.fail(node, "arguments by star and by name, or an unknown name")
        last = max(names.index(n) for n in given)  # type: ignore[arg-type]
        return ", ".join(self.expr(given[n]) if n in given else "undefined" for n in names[: last + 1])

    def builtin(self, node: ast.Call, name: str) -> str:
        if name in ("min", "max"):
            if len(node.args) > 1 and not node.keywords:
                return f"Math.{name}({self.items(node.args)})"
            named_ = {k.arg: self.expr(k.value) for k in node.keywords}
            return f"${name}({self.expr(node.args[0])}, {named_.get('key', 'undefined')}, {named_.get('default', 'undefined')})"
        if name == "range":
            return f"$range({'0, ' if len(node.args) == 1 else ''}{self.items(node.args)})"
        if name not in _BUILTINS or any(k.arg != "strict" for k in node.keywords):
            raise self.fail(node)
        return _BUILTINS[name].format(self.items(node.args))

    def method(self, node: ast.Call, func: ast.Attribute) -> str:
        if isinstance(func.value, ast.Name) and func.value.id == "dict" and func.attr == "fromkeys":
            keys, value = map(self.expr, node.args)
            return f"Object.fromEntries($iter({keys}).map((k) => [k, {value}]))"
        if node.keywords:
            raise self.fail(node, "names of arguments are not known here")
        if func.attr in _METHODS:
            return _METHODS[func.attr].format(self.expr(func.value), self.items(node.args))
        return f"{self.expr(func.value)}.{func.attr}({self.items(node.args)})"


def _id(name: str) -> str:
    return f"{name}_" if name in _RESERVED else name


def _stored(tree: ast.AST) -> set[str]:
    """Names a function binds itself; comprehensions, lambdas and nested functions have their own."""
    found, todo = set(), list(ast.iter_child_nodes(tree)) if isinstance(tree, ast.FunctionDef) else [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif not isinstance(node, (ast.GeneratorExp, ast.ListComp, ast.DictComp, ast.Lambda)):
            todo += ast.iter_child_nodes(node)
    return found


def _is_list(node: ast.expr) -> bool:
    """Whether an expression is written as a list: + joins it, where JavaScript would make text of it."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _is_list(node.left) or _is_list(node.right)
    return isinstance(node, (ast.List, ast.ListComp))
