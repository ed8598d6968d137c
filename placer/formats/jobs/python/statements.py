"""What the statements of a configuration in Python change, and what functions return.

A function that is not known may change all of what it is given, where it is called for
what it does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from copy import copy, deepcopy
from typing import Any, NamedTuple

from placer.formats.jobs.findings import Asked
from placer.formats.jobs.python.expressions import Expressions, Library
from placer.formats.jobs.python.values import (
    CLASS,
    LONGEST,
    Merge,
    Part,
    Record,
    is_unknown,
    parts_of,
    plain,
    refill,
    result,
    truth,
    unknown,
    written,
)

_DEEPEST_CALL = 20
_MOST_ROUNDS = 4
# What prints or checks, and changes nothing.
_SILENT = ("print", "warn", "validate", "__init__")
_LOGS = ("logger", "logging", "log")


class Flow(NamedTuple):
    """How a block ends."""

    goes_on: bool = True  # whether what follows may run
    returned: tuple[Any, ...] = ()  # the value it may return, if it may


class Reader(Expressions):
    """Follows a module and the functions in it."""

    def __init__(
        self, module: ast.Module, source: str, asked: Asked, library: Library
    ) -> None:
        super().__init__(source, asked, library)
        self.depth = 0
        for node in ast.walk(module):
            if isinstance(node, ast.ImportFrom | ast.Import):
                self.imported |= _imports(node)
        for node in module.body:
            if isinstance(node, ast.FunctionDef):
                self.functions[node.name] = node
            elif isinstance(node, ast.ClassDef):
                self.classes[node.name] = node
        self._block(module.body, self.constants)

    def call(
        self, node: ast.FunctionDef, given: Record, around: Record | None = None
    ) -> Any:
        """What a function returns; ``around`` has the names where it is defined."""
        if self.depth > _DEEPEST_CALL or node.decorator_list:
            return {CLASS: unknown(f"{node.name}()", self.place(node))}
        outer = around or {}
        known = dict(outer) | self._parameters(node, given)
        self.depth += 1
        flow = self._block(node.body, known)
        self.depth -= 1
        for inner in ast.walk(node):
            if isinstance(inner, ast.Global | ast.Nonlocal):
                outside = self.constants if isinstance(inner, ast.Global) else outer
                outside |= {name: known[name] for name in inner.names if name in known}
        return flow.returned[0] if flow.returned else self.setting(None, node)

    def _parameters(self, node: ast.FunctionDef, given: Record) -> Record:
        """Names of a function's arguments with their values."""
        arguments, place = node.args, self.place(node)
        listed = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        usual = [*arguments.defaults, *arguments.kw_defaults]
        defaults = [*[None] * (len(listed) - len(usual)), *usual]
        further = given.get(CLASS)  # of what stands behind **
        known: Record = {}
        for number, (argument, default) in enumerate(
            zip(listed, defaults, strict=True)
        ):
            name = argument.arg
            value = given.get(name, given.get(str(number), further))
            if value is None and default is not None:
                value = self.value(default, {})
            known[name] = unknown(name, place) if value is None else value
        if arguments.vararg is not None:
            name = arguments.vararg.arg
            known[name] = {CLASS: unknown(name, place)}
        if arguments.kwarg is not None:
            rest = given.keys() - known.keys()
            left = {k: v for k, v in given.items() if k in rest and not k.isdigit()}
            known[arguments.kwarg.arg] = left
        return known

    def _block(self, body: Sequence[ast.stmt], known: Record) -> Flow:
        returned: list[Any] = []
        for node in body:
            self.count()
            follow = self.follower(node)
            flow = (follow and follow(node, known)) or Flow()
            returned += flow.returned
            if not flow.goes_on:
                return Flow(False, self._one_of(returned, node))
        return Flow(True, self._one_of(returned, body[-1]) if body else ())

    def _one_of(self, values: list[Any], node: ast.stmt) -> tuple[Any, ...]:
        """One value for those that may be returned."""
        if len(values) < 2:
            return tuple(values)
        return (Merge(["" for _ in values], self.place(node)).of(values),)

    def _follow_return(self, node: ast.Return, known: Record) -> Flow:
        value = node.value or ast.copy_location(ast.Constant(None), node)
        return Flow(False, (self.value(value, known),))

    def _follow_raise(self, _node: ast.Raise, _known: Record) -> Flow:
        return Flow(False)

    def _follow_if(self, node: ast.If, known: Record) -> Flow:
        true = truth(self.value(node.test, known))
        if true is not None:
            return self._block(node.body if true else node.orelse, known)
        test = ast.unparse(node.test)
        ways = (f" if {test}", node.body), (f" unless {test}", node.orelse)
        return self._ways(ways, node, known)

    def _follow_with(self, node: ast.With, known: Record) -> Flow:
        for item in node.items:
            if item.optional_vars is not None:
                value = self.unknown(item.context_expr)
                self.assign(item.optional_vars, value, known)
        return self._block(node.body, known)

    def _follow_try(self, node: ast.Try, known: Record) -> Flow:
        last = node.finalbody
        ways = [("", [*node.body, *node.orelse, *last])]
        ways += [(" after an error", [*way.body, *last]) for way in node.handlers]
        return self._ways(ways, node, known)

    _follow_trystar = _follow_try

    def _follow_match(self, node: ast.Match, known: Record) -> Flow:
        """Any of the cases, whose names are not followed."""
        for inner in (n for case in node.cases for n in ast.walk(case.pattern)):
            name = getattr(inner, "name", None) or getattr(inner, "rest", None)
            if name is not None:
                known[name] = unknown(name, self.place(node))
        ways = [(f" if {ast.unparse(way.pattern)}", way.body) for way in node.cases]
        return self._ways([*ways, (" else", [])], node, known)

    def _ways(
        self,
        ways: Iterable[tuple[str, Sequence[ast.stmt]]],
        node: ast.stmt,
        known: Record,
        targets: Sequence[ast.expr] = (),
    ) -> Flow:
        """Go each way from here, and keep what all of them lead to.

        ``ways``: when each is gone, in words, and its statements. ``targets``: what has
        a value that is not known in those that have any.
        """
        parts = parts_of([known, self.constants])
        before = [copy(part) for part in parts]
        flows: list[Flow] = []
        said: list[str] = []
        after: list[list[Part]] = []
        for word, body in ways:
            self.count(len(parts))
            for target in targets if body else ():
                self.assign(target, self.unknown(target), known)
            flow = self._block(body, known)
            if flow.goes_on or flow.returned:
                # What is returned is not changed by what follows.
                flows.append(Flow(flow.goes_on, deepcopy(flow.returned)))
                said.append(word)
                after.append([copy(part) for part in parts])
            for part, content in zip(parts, before, strict=True):
                refill(part, content)
        if not flows:
            return Flow(False)
        merge = Merge(said, self.place(node))
        for part, *contents in zip(parts, *after, strict=True):
            refill(part, merge.content(contents))
        returned = [value for flow in flows for value in flow.returned]
        return Flow(any(flow.goes_on for flow in flows), self._one_of(returned, node))

    def _follow_while(self, node: ast.While, known: Record) -> Flow:
        if truth(self.value(node.test, known)) is False:
            return self._block(node.orelse, known)
        return self._repeated(node, (), known)

    def _follow_for(self, node: ast.For, known: Record) -> Flow:
        items = self.value(node.iter, known)
        jumps = any(isinstance(n, ast.Break | ast.Continue) for n in ast.walk(node))
        is_told = isinstance(items, list) and not any(map(is_unknown, items))
        if jumps or not is_told:
            return self._repeated(node, (node.target,), known)
        returned: list[Any] = []
        for item in list(items):
            self.assign(node.target, item, known)
            flow = self._block(node.body, known)
            returned += flow.returned
            if not flow.goes_on:
                return Flow(False, self._one_of(returned, node))
        flow = self._block(node.orelse, known)
        return Flow(flow.goes_on, self._one_of([*returned, *flow.returned], node))

    def _repeated(
        self, node: ast.For | ast.While, targets: Sequence[ast.expr], known: Record
    ) -> Flow:
        """A loop that may run any number of times: what it changes is unknown."""
        flow, ways = Flow(), (("", node.body[:0]), (" in a loop", node.body))
        for _ in range(_MOST_ROUNDS):
            flow = self._ways(ways, node, known, targets)
        return flow

    def _follow_assign(self, node: ast.Assign, known: Record) -> None:
        value = self.value(node.value, known)
        for target in node.targets:
            self.assign(target, value, known)

    def _follow_annassign(self, node: ast.AnnAssign, known: Record) -> None:
        if node.value is not None:
            self.assign(node.target, self.value(node.value, known), known)

    def _follow_augassign(self, node: ast.AugAssign, known: Record) -> None:
        old, by = self.value(node.target, known), self.value(node.value, known)
        if not _added(old, "extend", by):
            value = self.setting(result(type(node.op), old, by), node)
            self.assign(node.target, value, known)

    def _follow_delete(self, node: ast.Delete, known: Record) -> None:
        for target in node.targets:
            self.assign(target, self.unknown(target), known)

    def _follow_functiondef(self, node: ast.FunctionDef, known: Record) -> None:
        """A function inside of another."""
        if known is not self.constants:
            known[node.name] = node

    def _follow_import(self, node: ast.Import | ast.ImportFrom, known: Record) -> None:
        for short in _imports(node):
            known[short] = unknown(self.imported[short], self.place(node))

    _follow_importfrom = _follow_import

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
        record = None
        if isinstance(node, ast.Attribute):
            record = self._part(node.value, known)
        if not isinstance(node, ast.Attribute) or not isinstance(record, dict):
            return found
        told = node.attr in record
        words = written(found) if told else f"{written(record)}.{node.attr}"
        is_open = is_unknown(found if told else record)
        made = {CLASS: unknown(words, self.place(node))} if is_open else {}
        record[node.attr] = made
        return made

    def _follow_expr(self, node: ast.Expr, known: Record) -> None:
        call = node.value
        if not isinstance(call, ast.Call):
            return
        name = ast.unparse(call.func)
        head, last = name.partition(".")[0], self.full(name).rpartition(".")[2]
        if self.function(name, known) is not None:
            self.value(call, known)
        elif name == "setattr" and len(call.args) == 3:
            self._set(call, known)
        elif last in self.library.changes and call.args:
            self._change(call, self.library.changes[last], known)
        elif last not in _SILENT and head not in _LOGS:
            self._changed(call, known)

    def _set(self, node: ast.Call, known: Record) -> None:
        """``setattr`` of a part by its name."""
        whole, key, value = node.args
        name = plain(self.value(key, known))
        if isinstance(name, str):
            self.assign(ast.Attribute(whole, name), self.value(value, known), known)
        else:
            self._forget(self._part(whole, known), node)

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
            given.append(whole)
            if not isinstance(whole, dict | list):
                self._open(node.func.value, node, known)
        for value in given:
            self._forget(value, node)

    def _open(self, node: ast.expr, by: ast.Call, known: Record) -> None:
        """Make a part of a record unknown that a method of it may change."""
        if isinstance(node, ast.Attribute):
            record = self.value(node.value, known)
            if isinstance(record, dict):
                record[node.attr] = self.unknown(by)

    def _forget(self, value: Any, by: ast.expr) -> None:
        if isinstance(value, dict):
            value.clear()
            value[CLASS] = self.unknown(by)
        elif isinstance(value, list):
            value[:] = [self.unknown(by)]


def _imports(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """Names that a statement imports, each in full."""
    module = ""
    if isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        module += "" if module.endswith(".") else "."
    return {name.asname or name.name: f"{module}{name.name}" for name in node.names}


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
