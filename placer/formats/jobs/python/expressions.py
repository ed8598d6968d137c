"""What an expression of a configuration in Python stands for."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from placer.base.errors import InputError, Problem
from placer.base.naming import named
from placer.formats.jobs.findings import Asked, Place, Scalar
from placer.formats.jobs.python.values import (
    CLASS,
    LONGEST,
    NO_CONSTANT,
    Record,
    compared,
    is_of_type,
    is_unknown,
    plain,
    result,
    truth,
    unknown,
)
from placer.formats.jobs.settings import Setting, plain_value

_MOST_STEPS = 50_000
_DEEPEST = 20
_ENVIRONMENT = ("os.environ.get", "os.getenv", "environ.get", "getenv")
_COPIES = ("copy.deepcopy", "deepcopy", "copy.copy", "copy", "cast", "typing.cast")
_BUILDERS = ("__init__", "__post_init__", "__new__", "build")
# Values by dotted key.
Values = Mapping[str, Scalar]


@dataclass(frozen=True)
class Library:
    """Functions and classes of a framework."""

    # Its classes are there: a keyword that a call leaves out is a default of the
    # framework. Classes from elsewhere may have defaults of their own.
    package: str
    # What functions return, by their names.
    returns: Mapping[str, Values | tuple[Values, ...]] = field(default_factory=dict)
    # Ends of names of functions that say what they return: it stands for itself.
    named: tuple[str, ...] = ()
    # Functions that look up a model by their first argument.
    shapes: tuple[str, ...] = ()
    # What functions may set in their first argument, and nothing else.
    changes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class Expressions:
    """Evaluates expressions; who follows functions says what one of the file returns.

    A function that is called for what it returns is taken to change nothing.
    """

    def __init__(self, source: str, asked: Asked, library: Library) -> None:
        self.source = source
        self.asked = asked
        self.library = library
        self.steps = 0
        self.constants: Record = {}
        self.functions: dict[str, ast.FunctionDef] = {}
        self.classes: dict[str, ast.ClassDef] = {}
        # Names of other files, in full.
        self.imported: dict[str, str] = {}

    def call(
        self, node: ast.FunctionDef, given: Record, around: Record | None = None
    ) -> Any:
        """What a function returns; ``around`` has the names where it is defined."""
        raise NotImplementedError

    def place(self, node: ast.AST) -> Place:
        """Where something stands."""
        line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        return Place(self.source, line, column + 1)

    def setting(self, value: Any, node: ast.AST) -> Any:
        """A constant, or a list of them, as a value; what is none is unknown."""
        if value is NO_CONSTANT:
            return self.unknown(node)
        if isinstance(value, list):
            self.count(len(value))
            return [self.setting(item, node) for item in value]
        return Setting(value, self.place(node))

    def unknown(self, node: ast.AST, hint: str = "") -> Setting:
        """What an expression stands for that is not followed."""
        words = ast.unparse(node)
        if isinstance(node, ast.Name | ast.Attribute):
            words = self.full(words)
        return unknown(words, self.place(node), hint)

    def full(self, name: str) -> str:
        """A dotted name with the file that it is imported from."""
        head, dot, rest = name.partition(".")
        return self.imported.get(head, head) + dot + rest

    def count(self, steps: int = 1) -> None:
        """Take so many steps."""
        self.steps += steps
        if self.steps > _MOST_STEPS:
            message = f"more than {_MOST_STEPS:,} steps of Python are not followed"
            raise InputError([Problem(message, self.source)])

    def value(self, node: ast.expr, known: Record) -> Any:
        """A `Setting`, a record, or a list of these."""
        self.count()
        follow = self.follower(node)
        return follow(node, known) if follow else self.unknown(node)

    def follower(self, node: ast.AST) -> Callable[..., Any] | None:
        """What follows a kind of node, called after it: `ast.If` by `_follow_if`."""
        return getattr(self, f"_follow_{type(node).__name__.lower()}", None)

    def _follow_constant(self, node: ast.Constant, _known: Record) -> Any:
        is_plain = isinstance(node.value, bool | int | float | str | None)
        return self.setting(node.value if is_plain else NO_CONSTANT, node)

    def _follow_name(self, node: ast.Name, known: Record) -> Any:
        found = known.get(node.id, self.constants.get(node.id))
        if found is None:
            return self.unknown(node)
        if isinstance(found, Setting) and is_unknown(found):
            return found._replace(place=self.place(node))
        return found

    def _follow_binop(self, node: ast.BinOp, known: Record) -> Any:
        left, right = self.value(node.left, known), self.value(node.right, known)
        return self.setting(result(type(node.op), left, right), node)

    def _follow_unaryop(self, node: ast.UnaryOp, known: Record) -> Any:
        value = self.value(node.operand, known)
        if isinstance(node.op, ast.Not):
            true = truth(value)
            return self.setting(NO_CONSTANT if true is None else not true, node)
        return self.setting(result(type(node.op), value), node)

    def _follow_compare(self, node: ast.Compare, known: Record) -> Any:
        if len(node.ops) > 1:
            return self.unknown(node)
        left, right = (self.value(n, known) for n in (node.left, node.comparators[0]))
        return self.setting(compared(node.ops[0], left, right), node)

    def _follow_joinedstr(self, node: ast.JoinedStr, known: Record) -> Any:
        parts = [self.value(part, known) for part in node.values]
        return self.setting(result(ast.JoinedStr, *parts), node)

    def _follow_formattedvalue(self, node: ast.FormattedValue, known: Record) -> Any:
        return self.unknown(node) if node.format_spec else self.value(node.value, known)

    def _follow_boolop(self, node: ast.BoolOp, known: Record) -> Any:
        """The first value that decides, or the last."""
        ends = isinstance(node.op, ast.Or)
        values = [self.value(item, known) for item in node.values]
        for value in values[:-1]:
            true = truth(value)
            if true is None:
                break
            if true is ends:
                return value
        else:
            return values[-1]
        if not ends and any(truth(value) is False for value in values):
            return self.setting(False, node)
        return self.unknown(node)

    def _follow_ifexp(self, node: ast.IfExp, known: Record) -> Any:
        true = truth(self.value(node.test, known))
        if true is not None:
            return self.value(node.body if true else node.orelse, known)
        one, other = self.value(node.body, known), self.value(node.orelse, known)
        same = plain(one) is not NO_CONSTANT and plain(one) == plain(other)
        return one if same else {CLASS: self.unknown(node)}

    def _follow_attribute(self, node: ast.Attribute, known: Record) -> Any:
        of_name = node.value.id if isinstance(node.value, ast.Name) else ""
        if of_name == "torch":
            return self.setting(f"torch.{node.attr}", node)
        record = self.value(node.value, known)
        if of_name in self.classes:
            record = self.fields(node.value)
        if isinstance(record, dict) and node.attr in record:
            return record[node.attr]
        return self.unknown(node)

    def listed(self, node: ast.List | ast.Tuple, known: Record) -> Any:
        """The items of a list; unknown where they are not told."""
        items: list[Any] = []
        for item in node.elts:
            if not isinstance(item, ast.Starred):
                items.append(self.value(item, known))
                continue
            value = self.value(item.value, known)
            if not isinstance(value, list) or len(value) + len(items) > LONGEST:
                return self.unknown(item)
            items += value
        return items

    _follow_list = _follow_tuple = listed

    def _follow_subscript(self, node: ast.Subscript, known: Record) -> Any:
        key = plain(self.value(node.slice, known))
        if ast.unparse(node.value) in ("os.environ", "environ") and isinstance(
            key, str
        ):
            return self.environment(key, None, node)
        whole = self.value(node.value, known)
        if _is_plain(whole) and isinstance(key, str | int):
            return whole.get(str(key), self.unknown(node))
        if isinstance(whole, list) and isinstance(key, int):
            return whole[key] if -len(whole) <= key < len(whole) else self.unknown(node)
        return self.unknown(node)

    def environment(self, name: str, default: Any, node: ast.expr) -> Any:
        """A variable of the environment: what an option says, else its default."""
        given = self.asked.setting(name)
        if given is not None:
            return self.setting(plain_value(given), node)
        if default is not None:
            return default
        return self.unknown(node, named("settings", {name: "VALUE"}))

    def _follow_dict(self, node: ast.Dict, known: Record) -> Record:
        return self._record(zip(node.keys, node.values, strict=True), known, node)

    def _record(
        self,
        rows: Iterable[tuple[ast.expr | None, ast.expr]],
        known: Record,
        node: ast.expr,
    ) -> Record:
        """Keys that are texts, and all of a record after ``**``."""
        record: Record = {}
        for key, item in rows:
            value = self.value(item, known)
            name = None if key is None else plain(self.value(key, known))
            if isinstance(name, str | int):
                record[str(name).strip("()")] = value
            elif key is None and isinstance(value, dict) and not is_unknown(value):
                record |= {k: v for k, v in value.items() if k != CLASS}
            else:
                # Of a dict that this goes over, nothing is left that is known.
                record = {} if isinstance(node, ast.Dict) else record
                record[CLASS] = self.unknown(item)
        return record

    def function(self, name: str, known: Record) -> ast.FunctionDef | None:
        """The function of the file that a name stands for."""
        own = known.get(name, self.functions.get(name))
        return own if isinstance(own, ast.FunctionDef) else None

    def _follow_call(self, node: ast.Call, known: Record) -> Any:
        """What a call stands for: a record of its keywords, or what it returns."""
        name = ast.unparse(node.func)
        places = self.listed(ast.Tuple(node.args), known)
        words = node.keywords
        names = (ast.Constant(word.arg) if word.arg else None for word in words)
        values = (word.value for word in words)
        given = self._record(zip(names, values, strict=True), known, node)
        if not isinstance(places, list):
            given, places = given | {CLASS: self.unknown(node)}, []
        if function := self.function(name, known):
            numbered = {str(i): value for i, value in enumerate(places)}
            return self.call(
                function, given | numbered, known if name in known else None
            )
        own = self._of_python(self.full(name), places, given, node, known)
        return self._of_library(name, places, given, node) if own is None else own

    def _of_python(
        self, name: str, places: list[Any], given: Record, node: ast.Call, known: Record
    ) -> Any:
        """What functions and methods of Python's own return; None if it is no such."""
        first = places[0] if places else None
        if name in ("dict", "vars") and (places or given):
            return first if places else given
        if name in _COPIES and places:
            return deepcopy(places[-1])
        if name in ("replace", "dataclasses.replace") and places:
            return (first if isinstance(first, dict) else {CLASS: first}) | given
        if name in _ENVIRONMENT and isinstance(plain(first), str):
            default = [*places[1:], given.get("default")][0]
            return self.environment(plain(first), default, node)
        if name == "isinstance" and len(node.args) == 2:
            return self.setting(is_of_type(first, ast.unparse(node.args[1])), node)
        made = NO_CONSTANT if given else result(name, *places)
        if isinstance(node.func, ast.Attribute) and not given:
            whole, method = self.value(node.func.value, known), node.func.attr
            key = plain(first)
            if method == "get" and _is_plain(whole) and isinstance(key, str | int):
                default = [*places[1:], self.setting(None, node)][0]
                return whole.get(str(key), default)
            is_text = isinstance(plain(whole), str)
            made = result(f".{method}", whole, *places) if is_text else NO_CONSTANT
        return None if made is NO_CONSTANT else self.setting(made, node)

    def _of_library(
        self, name: str, places: list[Any], given: Record, node: ast.Call
    ) -> Any:
        """What a function or class of another file returns."""
        module, _, last = self.full(name).rpartition(".")
        if last in self.library.returns:
            returned = self.library.returns[last]
            if isinstance(returned, tuple):
                return [self._known(values, last, node) for values in returned]
            return self._known(returned, last, node)
        if last in self.library.shapes:
            kind = {"registry": self.setting(module, node)}
            flavor = places[0] if places else given.get("flavor", self.unknown(node))
            return {CLASS: self.setting(last, node)} | kind | given | {"flavor": flavor}
        if name.partition(".")[0] in self.classes:
            fields = self.fields(ast.parse(name, mode="eval").body)
            return ({CLASS: self.unknown(node)} if fields is None else fields) | given
        if last.endswith(self.library.named):
            told = plain(places[0]) if places else last
            if isinstance(told, str):
                return given | {CLASS: self.setting(told, node)}
        # Which fields values are of that have no names is not known.
        is_told = CLASS not in given and not (places and last[:1].isupper())
        if is_told and self._is_theirs(node.func):
            return given | {CLASS: self.setting(name.removesuffix(".Config"), node)}
        return given | {CLASS: self.unknown(node)}

    def _is_theirs(self, node: ast.expr) -> bool:
        """Whether it is a class of the framework, which has the framework's defaults.

        Names of classes begin with a capital; one that is not imported is taken for
        the framework's.
        """
        names: list[str] = []
        while isinstance(node, ast.Attribute | ast.Call):
            if isinstance(node, ast.Attribute):
                names.append(node.attr)
            node = node.func if isinstance(node, ast.Call) else node.value
        if isinstance(node, ast.Name):
            names.append(node.id)
        origin = self.imported.get(names[-1]) if names else None
        inside = origin is None or origin.partition(".")[0] == self.library.package
        return inside and any(name[:1].isupper() for name in names)

    def _known(self, values: Values, name: str, node: ast.expr) -> Record:
        """What a function of the framework returns."""
        record: Record = {CLASS: self.setting(name, node)}
        for path, value in values.items():
            *parts, last = path.split(".")
            inside = record
            for part in parts:
                inside = inside.setdefault(part, {})
            inside[last] = self.setting(value, node)
        return record

    def fields(self, base: ast.expr, depth: int = 0) -> Record | None:
        """Fields of a class and of those it stands on; None where they are not told."""
        name = ast.unparse(base)
        node = self.classes.get(name)
        if node is None:
            inside = name.partition(".")[0] in self.classes
            theirs = self._is_theirs(base) and not inside
            return {CLASS: self.setting(name, base)} if theirs else None
        record: Record = {}
        for further in node.bases:
            fields = self.fields(further, depth + 1) if depth < _DEEPEST else None
            if fields is None:
                return None
            record |= fields
        for item in node.body:
            if isinstance(item, ast.FunctionDef) and item.name in _BUILDERS:
                return None
            if isinstance(item, ast.AnnAssign | ast.Assign) and item.value is not None:
                value = self.value(item.value, {})
                targets = (
                    [item.target] if isinstance(item, ast.AnnAssign) else item.targets
                )
                record |= {t.id: value for t in targets if isinstance(t, ast.Name)}
        record.setdefault(CLASS, self.setting(name, node))
        return record


def _is_plain(value: Any) -> bool:
    """Whether a value is a dict, of which all is known."""
    return isinstance(value, dict) and CLASS not in value
