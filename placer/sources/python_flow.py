"""Functions and modules of a configuration in Python, statement by statement."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from placer.errors import InputError, Problem
from placer.sources.python_expressions import Expressions
from placer.sources.python_leaves import (
    CLASS,
    Copy,
    Merge,
    Record,
    is_unknown,
    unknown,
    written,
)
from placer.sources.python_values import NO_CONSTANT, computed, plain, truth

if TYPE_CHECKING:
    from placer.sources.findings import Asked
    from placer.sources.python_library import Library


_DEEPEST_CALL = 20
_MOST_STEPS = 20_000
_MOST_ROUNDS = 4
# What prints or checks, and changes nothing.
_SILENT = ("print", "warn", "validate", "__init__")
_LOGS = ("logger", "logging", "log")


class Flow(NamedTuple):
    """How a block ends.

    Attributes
    ----------
    goes_on : bool
        Whether what follows may run.
    returned : tuple
        The value it may return, if it may.
    """

    goes_on: bool = True
    returned: tuple[Any, ...] = ()


class Reader(Expressions):
    """Follows a module and the functions in it."""

    def __init__(
        self, module: ast.Module, source: str, asked: Asked, library: Library
    ) -> None:
        super().__init__(source, asked, library)
        self.steps = 0
        self.depth = 0
        for node in ast.walk(module):
            self._imports(node)
        for node in module.body:
            if isinstance(node, ast.FunctionDef):
                self.functions[node.name] = node
            elif isinstance(node, ast.ClassDef):
                self.classes[node.name] = node
        self._block(module.body, self.constants)

    def _imports(self, node: ast.AST) -> None:
        if isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            dot = "" if module.endswith(".") else "."
            for name in node.names:
                full = f"{module}{dot}{name.name}"
                self.imported[name.asname or name.name] = full
        elif isinstance(node, ast.Import):
            for name in node.names:
                self.imported[name.asname or name.name] = name.name

    def call(self, node: ast.FunctionDef, given: Record) -> Any:
        """What a function returns."""
        if self.depth > _DEEPEST_CALL or node.decorator_list:
            return {CLASS: unknown(f"{node.name}()", self.place(node))}
        known = self._parameters(node, given)
        self.depth += 1
        flow = self._block(node.body, known)
        self.depth -= 1
        if not flow.returned:
            return self.setting(None, node)
        return flow.returned[0]

    def _parameters(self, node: ast.FunctionDef, given: Record) -> Record:
        """Names of a function's arguments with their values."""
        arguments = node.args
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        start = len(names) - len(arguments.defaults)
        defaults = dict(zip(names[start:], arguments.defaults, strict=True))
        for argument, default in zip(
            arguments.kwonlyargs, arguments.kw_defaults, strict=True
        ):
            names.append(argument.arg)
            if default is not None:
                defaults[argument.arg] = default
        further = given.get(CLASS)  # of what stands behind **
        known: Record = {}
        for number, name in enumerate(names):
            by_place = given.get(str(number)) if number < len(names) else None
            value = given.get(name, by_place)
            if value is None and further is not None:
                value = further
            if value is None and name in defaults:
                value = self.value(defaults[name], {})
            known[name] = unknown(name, self.place(node)) if value is None else value
        for rest in (arguments.vararg, arguments.kwarg):
            if rest is not None:
                known[rest.arg] = {CLASS: unknown(rest.arg, self.place(node))}
        if arguments.kwarg is not None:
            left = {
                k: v for k, v in given.items() if k not in known and not k.isdigit()
            }
            known[arguments.kwarg.arg] = left
        return known

    # ------------------------------------------------------------- statements

    def _block(self, body: Sequence[ast.stmt], known: Record) -> Flow:
        returned: list[Any] = []
        for node in body:
            self._count(1)
            flow = self._statement(node, known)
            returned += flow.returned
            if not flow.goes_on:
                return Flow(False, self._one_of(returned, node))
        return Flow(True, self._one_of(returned, body[-1]) if body else ())

    def _count(self, steps: int) -> None:
        self.steps += steps
        if self.steps > _MOST_STEPS:
            message = f"more than {_MOST_STEPS:,} statements of Python are not followed"
            raise InputError([Problem(message, self.source)])

    def _one_of(self, values: list[Any], node: ast.stmt) -> tuple[Any, ...]:
        """One value for those that may be returned."""
        if len(values) < 2:
            return tuple(values)
        ways = [Copy(value) for value in values]
        merge = Merge(ways, ["" for _ in ways], self.place(node))
        return (merge.of([way.value for way in ways]),)

    def _statement(self, node: ast.stmt, known: Record) -> Flow:
        match node:
            case ast.Return():
                value = node.value or ast.copy_location(ast.Constant(None), node)
                return Flow(False, (self.value(value, known),))
            case ast.Raise():
                return Flow(False)
            case ast.If() | ast.Match() | ast.Try() | ast.With():
                return self._branches(node, known)
            case ast.For() | ast.While():
                return self._loop(node, known)
        self._simple(node, known)
        return Flow()

    def _simple(self, node: ast.stmt, known: Record) -> None:
        """A statement after which the next one comes."""
        names: list[str] = []
        match node:
            case ast.Assign():
                value = self.value(node.value, known)
                for target in node.targets:
                    self._assign(target, value, known)
            case ast.AnnAssign() if node.value is not None:
                self._assign(node.target, self.value(node.value, known), known)
            case ast.AugAssign():
                self._augment(node, known)
            case ast.Expr():
                self._expression(node.value, known)
            case ast.Delete():
                for target in node.targets:
                    self._assign(target, self.unknown(target), known)
            case ast.Import() | ast.ImportFrom():
                names = [name.asname or name.name for name in node.names]
            case ast.FunctionDef() | ast.ClassDef() if known is not self.constants:
                names = [node.name]
        for name in names:
            known[name] = unknown(self.imported.get(name, name), self.place(node))

    def _assign(self, target: ast.expr, value: Any, known: Record) -> None:
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
                self._assign(item, part, known)
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
        if isinstance(old, list) and isinstance(by, list):
            self._assign(node.target, [*old, *by], known)
            return
        value = computed(node.op, old, by)
        told = value is not NO_CONSTANT
        words = self.setting(value, node) if told else self.unknown(node)
        self._assign(node.target, words, known)

    def _expression(self, node: ast.expr, known: Record) -> None:
        """A call for what it changes."""
        if not isinstance(node, ast.Call):
            return
        name = ast.unparse(node.func)
        head, last = name.partition(".")[0], self.full(name).rpartition(".")[2]
        if name in self.functions:
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

    # ---------------------------------------------------- branches and loops

    def _branches(self, node: ast.stmt, known: Record) -> Flow:
        match node:
            case ast.If():
                true = truth(self.value(node.test, known))
                if true is not None:
                    return self._block(node.body if true else node.orelse, known)
                test = ast.unparse(node.test)
                bodies: list[list[ast.stmt]] = [node.body, node.orelse]
                words = [f" if {test}", f" unless {test}"]
            case ast.With():
                for item in node.items:
                    if item.optional_vars is not None:
                        value = self.unknown(item.context_expr)
                        self._assign(item.optional_vars, value, known)
                return self._block(node.body, known)
            case ast.Try():
                last = node.finalbody
                bodies = [[*node.body, *node.orelse, *last]]
                bodies += [[*handler.body, *last] for handler in node.handlers]
                words = ["", *(" after an error" for _ in node.handlers)]
            case ast.Match():
                bodies = [*(case.body for case in node.cases), []]
                words = [f" if {ast.unparse(case.pattern)}" for case in node.cases]
                words.append(" else")
            case _:
                return Flow()
        return self._ways([self._way(body) for body in bodies], words, node, known)

    def _loop(self, node: ast.For | ast.While, known: Record) -> Flow:
        if isinstance(node, ast.For):
            return self._for(node, known)
        if truth(self.value(node.test, known)) is False:
            return self._block(node.orelse, known)
        return self._repeated(node.body, (), node, known)

    def _way(self, body: Sequence[ast.stmt]) -> Callable[[Record], Flow]:
        return lambda known: self._block(body, known)

    def _ways(
        self,
        ways: Sequence[Callable[[Record], Flow]],
        words: Sequence[str],
        node: ast.stmt,
        known: Record,
    ) -> Flow:
        """Go each way from here, and keep what all of them lead to."""
        gone: list[tuple[Copy, Flow, str]] = []
        constants = self.constants
        for way, word in zip(ways, words, strict=True):
            copy = Copy([known, constants])
            self._count(len(copy))
            inner, self.constants = copy.value
            flow = way(inner)
            if flow.goes_on or flow.returned:
                gone.append((copy, flow, word))
        self.constants = constants
        if not gone:
            return Flow(False)
        merge = Merge(
            [c for c, _, _ in gone], [w for _, _, w in gone], self.place(node)
        )
        merge.of([copy.value[0] for copy, _, _ in gone])
        merge.of([copy.value[1] for copy, _, _ in gone])
        returned = [value for _, flow, _ in gone for value in flow.returned]
        goes_on = any(flow.goes_on for _, flow, _ in gone)
        return Flow(goes_on, self._one_of(returned, node))

    def _for(self, node: ast.For, known: Record) -> Flow:
        items = self.value(node.iter, known)
        jumps = any(isinstance(n, ast.Break | ast.Continue) for n in ast.walk(node))
        if not isinstance(items, list) or jumps:
            return self._repeated(node.body, (node.target,), node, known)
        returned: list[Any] = []
        for item in list(items):
            self._assign(node.target, item, known)
            flow = self._block(node.body, known)
            returned += flow.returned
            if not flow.goes_on:
                return Flow(False, self._one_of(returned, node))
        flow = self._block(node.orelse, known)
        return Flow(flow.goes_on, self._one_of([*returned, *flow.returned], node))

    def _repeated(
        self,
        body: Sequence[ast.stmt],
        targets: Sequence[ast.expr],
        node: ast.stmt,
        known: Record,
    ) -> Flow:
        """A loop that may run any number of times: what it changes is unknown."""

        def once(inner: Record) -> Flow:
            for target in targets:
                self._assign(target, self.unknown(target), inner)
            return self._block(body, inner)

        flow = Flow()
        for _ in range(_MOST_ROUNDS):
            flow = self._ways([lambda _: Flow(), once], ("", " in a loop"), node, known)
        return flow


def _added(whole: Any, method: str, more: Any) -> bool:
    """Whether a method adds what is known to a list or a dict, and does so."""
    if isinstance(whole, list) and method in ("append", "extend"):
        items = [more] if method == "append" else more
        if isinstance(items, list):
            whole += items
            return True
    plain_dict = isinstance(whole, dict) and CLASS not in whole
    if plain_dict and method == "update" and isinstance(more, dict):
        whole.update(more)
        return True
    return False
