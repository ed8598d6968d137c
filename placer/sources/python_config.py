"""Configurations that Python functions return, read as syntax and never run.

What can be followed: constants and their arithmetic, names, dicts and calls as records
of their keywords, functions of the same file and those that the caller knows, and
assignments to parts of a record. Anything else stands for nothing.
"""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from placer.document import closest
from placer.document.tree import visible
from placer.errors import InputError, Problem
from placer.sources.findings import Place, Scalar
from placer.sources.python_leaves import CLASS, Record, leaves
from placer.sources.settings import Setting

_DEEPEST_CALL = 20
_MOST_CALLS = 1000
_LARGEST = 10**15
_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}
_BRANCHES = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Match, ast.AugAssign)
_MODEL_NAMES = ("model_registry",)


def python_values(
    text: str,
    source: str,
    select: str,
    notes: list[str],
    known: Mapping[str, Mapping[str, Scalar]] = MappingProxyType({}),
) -> dict[str, Setting]:
    """Values of the configuration that one function returns, by dotted key.

    Parameters
    ----------
    select : str
        Name of the function; needed where several return one.
    notes : list of str
        Takes what is not followed.
    known : mapping
        Values by dotted key that functions of other files return.

    Raises
    ------
    InputError
        If it is no Python, there is no such function, or none is selected.
    """
    reader = _Reader(_parsed(text, source), source, known)
    names = [
        name
        for name in reader.functions
        if reader.returns_record(name) and not name.startswith("_")
    ]
    chosen = select or (names[0] if len(names) == 1 else "")
    if chosen not in names:
        few = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
        message = (
            f"there is no function {visible(select)}" if select else "which function"
        )
        hint = f"--select one of {few}" if names else "it returns no configuration"
        hint = (closest(select, names) if select else "") or hint
        raise InputError([Problem(message, source, key="--select", hint=hint)])
    record = reader.call(chosen, {}, 0)
    notes += [f"line {line} is not followed" for line in reader.left_out]
    place = Place(source, reader.functions[chosen].lineno, 1)
    values = dict(leaves(record))
    return {"model.name": Setting(chosen, place)} | values


def _parsed(text: str, source: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        place = error.lineno or 0, error.offset or 0
        message = f"not Python: {visible(error.msg)}"
        raise InputError([Problem(message, source, *place)]) from None
    except (RecursionError, MemoryError, ValueError):
        raise InputError([Problem("not Python that can be read", source)]) from None


class _Reader:
    """Follows the functions of a module."""

    def __init__(
        self,
        module: ast.Module,
        source: str,
        known: Mapping[str, Mapping[str, Scalar]],
    ) -> None:
        self.source = source
        self.known = known
        self.functions = {
            node.name: node for node in module.body if isinstance(node, ast.FunctionDef)
        }
        self.calls = 0
        self.left_out: list[int] = []
        self.constants: Record = {}
        for node in module.body:
            if isinstance(node, ast.Assign | ast.AnnAssign):
                self._statement(node, self.constants, 0)

    def returns_record(self, name: str) -> bool:
        """Whether a function without required arguments is said to return a record."""
        node = self.functions[name]
        needed = len(node.args.args) - len(node.args.defaults)
        returns = ast.unparse(node.returns) if node.returns else ""
        last = node.body[-1] if node.body else None
        said = returns.rpartition(".")[2].endswith(("Config", "ConfigContainer"))
        called = isinstance(last, ast.Return) and isinstance(last.value, ast.Call)
        return needed == 0 and isinstance(last, ast.Return) and (said or called)

    def call(self, name: str, given: Record, depth: int) -> Any:
        """What a function returns, None where that cannot be followed."""
        self.calls += 1
        if depth > _DEEPEST_CALL or self.calls > _MOST_CALLS:
            return None
        node = self.functions[name]
        names = [argument.arg for argument in node.args.args]
        start = len(names) - len(node.args.defaults)
        by_name = [argument.arg for argument in node.args.kwonlyargs]
        defaults = [
            *zip(names[start:], node.args.defaults, strict=True),
            *zip(
                (a.arg for a in node.args.kwonlyargs),
                node.args.kw_defaults,
                strict=True,
            ),
        ]
        known = {name: self._value(default, {}, depth) for name, default in defaults}
        names += by_name
        places = {
            names[int(k)]: v
            for k, v in given.items()
            if k.isdigit() and int(k) < len(names)
        }
        known |= places | {k: v for k, v in given.items() if k in names}
        for statement in node.body:
            if isinstance(statement, ast.Return):
                return self._value(statement.value, known, depth)
            self._statement(statement, known, depth)
        return None

    def _statement(self, node: ast.stmt, known: Record, depth: int) -> None:
        if isinstance(node, ast.Assign):
            value = self._value(node.value, known, depth)
            for target in node.targets:
                self._assign(target, value, known, depth)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._assign(
                node.target, self._value(node.value, known, depth), known, depth
            )
        elif isinstance(node, ast.Expr):
            self._value(node.value, known, depth)
        elif isinstance(node, _BRANCHES) and node.lineno not in self.left_out:
            self.left_out.append(node.lineno)

    def _assign(self, target: ast.expr, value: Any, known: Record, depth: int) -> None:
        if isinstance(target, ast.Name):
            known[target.id] = value
        elif isinstance(target, ast.Attribute):
            record = self._part(target.value, known, depth)
            if isinstance(record, dict):
                record[target.attr] = value

    def _part(self, node: ast.expr, known: Record, depth: int) -> Any:
        """The value of an expression; a part that a record lacks is made."""
        found = self._value(node, known, depth)
        if found is None and isinstance(node, ast.Attribute):
            record = self._part(node.value, known, depth)
            if isinstance(record, dict):
                found = record[node.attr] = {}
        return found

    def _value(self, node: ast.expr | None, known: Record, depth: int) -> Any:
        """A `Setting`, a record, a list of these, or None."""
        if isinstance(node, ast.Constant):
            plain = isinstance(node.value, bool | int | float | str | None)
            return self._setting(node.value, node) if plain else None
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self._value(node.operand, known, depth)
            return self._arithmetic(ast.Sub(), 0, _plain(inner), node)
        if isinstance(node, ast.BinOp):
            left = _plain(self._value(node.left, known, depth))
            right = _plain(self._value(node.right, known, depth))
            return self._arithmetic(node.op, left, right, node)
        if isinstance(node, ast.Name):
            return known.get(node.id, self.constants.get(node.id))
        if isinstance(node, ast.Attribute):
            record = self._value(node.value, known, depth)
            return record.get(node.attr) if isinstance(record, dict) else None
        if isinstance(node, ast.List | ast.Tuple):
            return [self._value(item, known, depth) for item in node.elts]
        if isinstance(node, ast.Dict):
            return self._record(zip(node.keys, node.values, strict=True), known, depth)
        return self._called(node, known, depth) if isinstance(node, ast.Call) else None

    def _record(
        self,
        rows: Iterable[tuple[ast.expr | None, ast.expr]],
        known: Record,
        depth: int,
    ) -> Record:
        """Keys that are texts, and all of a record after ``**``."""
        record: Record = {}
        for key, item in rows:
            value = self._value(item, known, depth)
            if key is None and isinstance(value, dict):
                record |= {k: v for k, v in value.items() if k != CLASS}
            elif isinstance(key, ast.Constant) and isinstance(key.value, str):
                record[key.value.strip("()")] = value
        return record

    def _called(self, node: ast.Call, known: Record, depth: int) -> Any:
        name = ast.unparse(node.func)
        words = [
            (ast.Constant(word.arg) if word.arg else None, word.value)
            for word in node.keywords
        ]
        given = self._record(words, known, depth)
        places = {
            str(i): self._value(item, known, depth) for i, item in enumerate(node.args)
        }
        if name in self.functions:
            return self.call(name, given | places, depth + 1)
        if name in self.known:
            return self._known(name, node)
        if name.endswith("replace") and isinstance(places.get("0"), dict):
            return places["0"] | given
        record = given | {CLASS: self._setting(name.removesuffix(".Config"), node)}
        if name in _MODEL_NAMES and "0" in places:
            record["flavor"] = places["0"]
        return record

    def _known(self, name: str, node: ast.expr) -> Record:
        """What a function of another file returns."""
        record: Record = {}
        for path, value in self.known[name].items():
            *parts, last = path.split(".")
            inside = record
            for part in parts:
                inside = inside.setdefault(part, {})
            inside[last] = self._setting(value, node)
        return record

    def _arithmetic(
        self, kind: ast.operator, left: Any, right: Any, node: ast.expr
    ) -> Any:
        apply = _OPERATORS.get(type(kind))
        numbers = (isinstance(side, int | float) for side in (left, right))
        if apply is None or not all(numbers):
            return None
        try:
            value = apply(left, right)
        except (ZeroDivisionError, OverflowError):
            return None
        return self._setting(value, node) if abs(value) < _LARGEST else None

    def _setting(self, value: Any, node: ast.expr) -> Setting:
        return Setting(value, Place(self.source, node.lineno, node.col_offset + 1))


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Setting) else None
