"""What a statement of a configuration in Python changes.

A function that is not known may change all of what it is given, where it is called for
what it does. One that is called for what it returns is taken to change nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from placer.formats.jobs.python_calls import Calls
from placer.formats.jobs.python_leaves import (
    CLASS,
    Record,
    is_unknown,
    unknown,
    written,
)
from placer.formats.jobs.python_values import LONGEST, NO_CONSTANT, computed, plain

# What prints or checks, and changes nothing.
_SILENT = ("print", "warn", "validate", "__init__")
_LOGS = ("logger", "logging", "log")


class Changes(Calls):
    """Assigns values to names and to parts of records."""

    def change(self, node: ast.stmt, known: Record) -> None:
        """A statement after which the next one comes."""
        match node:
            case ast.Assign():
                value = self.value(node.value, known)
                for target in node.targets:
                    self.assign(target, value, known)
            case ast.AnnAssign() if node.value is not None:
                self.assign(node.target, self.value(node.value, known), known)
            case ast.AugAssign():
                self._augment(node, known)
            case ast.Expr():
                self._expression(node.value, known)
            case ast.Delete():
                for target in node.targets:
                    self.assign(target, self.unknown(target), known)
            case _:
                self._name_anew(node, known)

    def _name_anew(self, node: ast.stmt, known: Record) -> None:
        """What a statement imports, or defines inside a function."""
        if isinstance(node, ast.FunctionDef) and known is not self.constants:
            known[node.name] = node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for name in node.names:
                short = name.asname or name.name
                known[short] = unknown(self.imported[short], self.place(node))

    def assign(self, target: ast.expr, value: Any, known: Record) -> None:
        """Give a name or a part of a record its value."""
        if isinstance(target, ast.Name):
            known[target.id] = value
        elif isinstance(target, ast.Attribute):
            record = self._part(target.value, known)
            if isinstance(record, dict):
                record[target.attr] = value
        elif isinstance(target, ast.Tuple | ast.List):
            several = isinstance(value, list) and len(value) == len(target.elts)
            for number, item in enumerate(target.elts):
                part = value[number] if several else self.unknown(item)
                self.assign(item, part, known)
        elif isinstance(target, ast.Subscript):
            record = self._part(target.value, known)
            key = plain(self.value(target.slice, known))
            if isinstance(record, dict) and isinstance(key, str | int):
                record[str(key)] = value
            else:
                self._forget(record, target)

    def _part(self, node: ast.expr, known: Record) -> Any:
        """The value of an expression; a part that a record lacks is made."""
        found = self.value(node, known)
        if isinstance(found, dict | list):
            return found
        if isinstance(node, ast.Name) and is_unknown(found):
            known[node.id] = {CLASS: found}
            return known[node.id]
        if not isinstance(node, ast.Attribute):
            return found
        record = self._part(node.value, known)
        if not isinstance(record, dict):
            return found
        told = node.attr in record
        open_one = is_unknown(found) if told else is_unknown(record)
        words = written(found if told else record)
        words = words if told else f"{words}.{node.attr}"
        record[node.attr] = (
            {CLASS: unknown(words, self.place(node))} if open_one else {}
        )
        return record[node.attr]

    def _augment(self, node: ast.AugAssign, known: Record) -> None:
        old, by = self.value(node.target, known), self.value(node.value, known)
        if _added(old, "extend", by):
            return
        value = computed(node.op, old, by)
        told = value is not NO_CONSTANT
        words = self.setting(value, node) if told else self.unknown(node)
        self.assign(node.target, words, known)

    def _expression(self, node: ast.expr, known: Record) -> None:
        """A call for what it changes."""
        if not isinstance(node, ast.Call):
            return
        name = ast.unparse(node.func)
        head, last = name.partition(".")[0], self.full(name).rpartition(".")[2]
        if self.function(name, known) is not None:
            self.value(node, known)
        elif name == "setattr" and len(node.args) == 3:
            self._set(node, known)
        elif last in self.library.changes and node.args:
            self._change(node, self.library.changes[last], known)
        elif last not in _SILENT and head not in _LOGS:
            self._changed(node, known)

    def _set(self, node: ast.Call, known: Record) -> None:
        """``setattr`` of a part by its name."""
        record, key = self._part(node.args[0], known), self.value(node.args[1], known)
        name = plain(key)
        if isinstance(record, dict) and isinstance(name, str):
            record[name] = self.value(node.args[2], known)
        else:
            self._forget(record, node)

    def _change(self, node: ast.Call, keys: Sequence[str], known: Record) -> None:
        """Parts that a function of the framework may set, unless told to do nothing."""
        rest = [self.value(item, known) for item in node.args[1:]]
        rest += [self.value(word.value, known) for word in node.keywords]
        record = self._part(node.args[0], known)
        if isinstance(record, dict) and not (rest and plain(rest[0]) is None):
            record.update((key, self.unknown(node)) for key in keys)

    def _changed(self, node: ast.Call, known: Record) -> None:
        """What a function that is not known may change: all that it is given."""
        words = [word.value for word in node.keywords]
        given = [self.value(item, known) for item in (*node.args, *words)]
        if isinstance(node.func, ast.Name) and node.func.id == "exec":
            given += known.values()
        if isinstance(node.func, ast.Attribute):
            whole, method = self.value(node.func.value, known), node.func.attr
            if len(given) == 1 and _added(whole, method, given[0]):
                return
            if isinstance(whole, dict | list):
                given.append(whole)
            else:
                self._open(node.func.value, node, known)
        for value in given:
            self._forget(value, node)

    def _open(self, node: ast.expr, by: ast.Call, known: Record) -> None:
        """Make a part of a record unknown that a method of it may change."""
        if isinstance(node, ast.Attribute) and not isinstance(
            self.value(node, known), dict
        ):
            record = self.value(node.value, known)
            if isinstance(record, dict):
                record[node.attr] = self.unknown(by)

    def _forget(self, value: Any, by: ast.expr) -> None:
        if isinstance(value, dict):
            value.clear()
            value[CLASS] = self.unknown(by)
        elif isinstance(value, list):
            value[:] = [self.unknown(by)]


def _added(whole: Any, method: str, more: Any) -> bool:
    """Whether a method adds what is known to a list or a dict, and does so."""
    if isinstance(whole, list) and method in ("append", "extend"):
        items = [more] if method == "append" else more
        if isinstance(items, list) and len(whole) + len(items) <= LONGEST:
            whole += items
            return True
    plain_dict = isinstance(whole, dict) and CLASS not in whole
    if plain_dict and method == "update" and isinstance(more, dict):
        whole.update(more)
        return True
    return False
