"""What an expression of a configuration in Python stands for."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from placer.base.errors import InputError, Problem
from placer.base.naming import named
from placer.formats.jobs.findings import Asked, Place
from placer.formats.jobs.python_leaves import CLASS, Record, is_unknown, unknown
from placer.formats.jobs.python_values import (
    LONGEST,
    NO_CONSTANT,
    compared,
    computed,
    joined,
    plain,
    truth,
)
from placer.formats.jobs.settings import Setting, plain_value

if TYPE_CHECKING:
    from placer.formats.jobs.python_config import Library


_MOST_STEPS = 50_000


class Expressions:
    """Evaluates expressions; who follows calls says what one stands for."""

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

    def fields(self, base: ast.expr, depth: int = 0) -> Record | None:
        """Fields of a class; None where they are not told."""
        raise NotImplementedError

    def called(self, node: ast.Call, known: Record) -> Any:
        """What a call stands for."""
        raise NotImplementedError

    def place(self, node: ast.AST) -> Place:
        """Where something stands."""
        line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        return Place(self.source, line, column + 1)

    def setting(self, value: Any, node: ast.AST) -> Any:
        """A constant, or a list of them, as a value."""
        if isinstance(value, list):
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
        match node:
            case ast.Constant(value=bool() | int() | float() | str() | None as value):
                return self.setting(value, node)
            case ast.Name():
                return self._name(node, known)
            case ast.Attribute():
                return self._attribute(node, known)
            case ast.List() | ast.Tuple():
                return self._listed(node, known)
            case ast.Dict():
                pairs = zip(node.keys, node.values, strict=True)
                return self._record(pairs, known, node)
            case ast.Call():
                return self.called(node, known)
            case ast.Subscript():
                return self._item(node, known)
            case ast.IfExp():
                return self._either(node, known)
        return self._operation(node, known)

    def _name(self, node: ast.Name, known: Record) -> Any:
        found = known.get(node.id, self.constants.get(node.id))
        if found is None:
            return self.unknown(node)
        if isinstance(found, Setting) and is_unknown(found):
            return found._replace(place=self.place(node))
        return found

    def _operation(self, node: ast.expr, known: Record) -> Any:
        """What operators make of values."""
        result = NO_CONSTANT
        match node:
            case ast.BinOp():
                left, right = (
                    self.value(node.left, known),
                    self.value(node.right, known),
                )
                result = computed(node.op, left, right)
            case ast.UnaryOp(op=ast.Not()):
                true = truth(self.value(node.operand, known))
                result = NO_CONSTANT if true is None else not true
            case ast.UnaryOp(op=ast.USub()):
                zero = self.setting(0, node)
                result = computed(ast.Sub(), zero, self.value(node.operand, known))
            case ast.BoolOp():
                return self._all_or_any(node, known)
            case ast.Compare(ops=[kind], comparators=[other]):
                left, right = self.value(node.left, known), self.value(other, known)
                result = compared(kind, left, right)
            case ast.JoinedStr():
                parts = [self.value(part, known) for part in node.values]
                texts = [plain(part) for part in parts]
                if NO_CONSTANT not in texts:
                    result = joined(texts)
            case ast.FormattedValue(format_spec=None):
                return self.value(node.value, known)
        return (
            self.unknown(node) if result is NO_CONSTANT else self.setting(result, node)
        )

    def _all_or_any(self, node: ast.BoolOp, known: Record) -> Any:
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

    def _either(self, node: ast.IfExp, known: Record) -> Any:
        true = truth(self.value(node.test, known))
        if true is not None:
            return self.value(node.body if true else node.orelse, known)
        one, other = self.value(node.body, known), self.value(node.orelse, known)
        same = plain(one) is not NO_CONSTANT and plain(one) == plain(other)
        return one if same else {CLASS: self.unknown(node)}

    def _attribute(self, node: ast.Attribute, known: Record) -> Any:
        if isinstance(node.value, ast.Name) and node.value.id == "torch":
            return self.setting(f"torch.{node.attr}", node)
        record = self.value(node.value, known)
        if isinstance(node.value, ast.Name) and node.value.id in self.classes:
            record = self.fields(node.value)
        if isinstance(record, dict) and node.attr in record:
            return record[node.attr]
        if isinstance(record, dict) and node.attr == "__dict__":
            return record
        return self.unknown(node)

    def _listed(self, node: ast.List | ast.Tuple, known: Record) -> Any:
        items: list[Any] = []
        for item in node.elts:
            value = self.value(
                item.value if isinstance(item, ast.Starred) else item, known
            )
            if not isinstance(item, ast.Starred):
                items.append(value)
            elif isinstance(value, list) and len(value) + len(items) <= LONGEST:
                items += value
            else:
                return self.unknown(item)
        return items

    def _item(self, node: ast.Subscript, known: Record) -> Any:
        words = ast.unparse(node.value)
        key = plain(self.value(node.slice, known))
        if words in ("os.environ", "environ") and isinstance(key, str):
            return self.environment(key, None, node)
        whole = self.value(node.value, known)
        if (
            isinstance(whole, dict)
            and isinstance(key, str | int)
            and CLASS not in whole
        ):
            return whole.get(str(key), self.unknown(node))
        if (
            isinstance(whole, list)
            and isinstance(key, int)
            and (-len(whole) <= key < len(whole))
        ):
            return whole[key]
        return self.unknown(node)

    def environment(self, name: str, default: Any, node: ast.expr) -> Any:
        """A variable of the environment: what an option says, else its default."""
        given = self.asked.setting(name)
        if given is not None:
            return self.setting(plain_value(given), node)
        if default is not None:
            return default
        return self.unknown(node, named("settings", {name: "VALUE"}))

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
