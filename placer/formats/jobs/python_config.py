"""Configurations that Python functions return, read as syntax and never run.

What can be followed: constants and their arithmetic, names, dicts and calls as records
of their keywords, functions and classes of the same file and those that the caller
knows, assignments to parts of a record, branches whose condition is known and loops
over what is known. Anything else is unknown, and so is what it may change: what a
branch or a loop assigns, what a function of another file returns.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from placer.base.errors import InputError, Problem
from placer.base.naming import named
from placer.documents import closest
from placer.documents.tree import visible
from placer.formats.jobs.findings import Asked, Place, Scalar
from placer.formats.jobs.python_calls import Changes
from placer.formats.jobs.python_leaves import (
    CLASS,
    Copy,
    Merge,
    Record,
    leaves,
    unknown,
)
from placer.formats.jobs.python_values import truth
from placer.formats.jobs.settings import Setting

if TYPE_CHECKING:
    from collections.abc import Iterable

_DEEPEST_CALL = 20
_MOST_ROUNDS = 4


class Flow(NamedTuple):
    """How a block ends."""

    goes_on: bool = True  # whether what follows may run
    returned: tuple[Any, ...] = ()  # the value it may return, if it may


class Reader(Changes):
    """Follows a module and the functions in it."""

    def __init__(
        self, module: ast.Module, source: str, asked: Asked, library: Library
    ) -> None:
        super().__init__(source, asked, library)
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
        for name, inside in _names_outside(node):
            if name in known:
                (outer if inside else self.constants)[name] = known[name]
        if not flow.returned:
            return self.setting(None, node)
        return flow.returned[0]

    def _parameters(self, node: ast.FunctionDef, given: Record) -> Record:
        """Names of a function's arguments with their values."""
        arguments = node.args
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
            self.count()
            flow = self._statement(node, known)
            returned += flow.returned
            if not flow.goes_on:
                return Flow(False, self._one_of(returned, node))
        return Flow(True, self._one_of(returned, body[-1]) if body else ())

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
        self.change(node, known)
        return Flow()

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
                        self.assign(item.optional_vars, value, known)
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
        ways = [partial(self._block, body) for body in bodies]
        return self._ways(ways, words, node, known)

    def _loop(self, node: ast.For | ast.While, known: Record) -> Flow:
        if isinstance(node, ast.For):
            return self._for(node, known)
        if truth(self.value(node.test, known)) is False:
            return self._block(node.orelse, known)
        return self._repeated(node.body, (), node, known)

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
            self.count(len(copy))
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
            self.assign(node.target, item, known)
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
                self.assign(target, self.unknown(target), inner)
            return self._block(body, inner)

        flow = Flow()
        for _ in range(_MOST_ROUNDS):
            flow = self._ways([lambda _: Flow(), once], ("", " in a loop"), node, known)
        return flow


def _names_outside(node: ast.FunctionDef) -> Iterator[tuple[str, bool]]:
    """Names that a function sets outside of itself: of a function, or the module."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Global | ast.Nonlocal):
            yield from ((name, isinstance(inner, ast.Nonlocal)) for name in inner.names)


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


def python_values(
    text: str, source: str, asked: Asked, library: Library
) -> dict[str, Setting]:
    """Values of the configuration that one function returns, by dotted key.

    Parameters
    ----------
    asked : Asked
        Names the function, which is needed where several return one, and sets
        environment variables.
    library : Library
        What is known of other files.
    """
    module = _parsed(text, source)
    try:
        reader = Reader(module, source, asked, library)
        chosen = _chosen(reader.functions.values(), source, asked.select)
        values = dict(leaves(reader.call(chosen, {})))
    except RecursionError:
        raise InputError([Problem("not Python that can be read", source)]) from None
    place = Place(source, chosen.lineno, 1)
    return {"model.name": Setting(chosen.name, place)} | values


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


def _chosen(
    functions: Iterable[ast.FunctionDef], source: str, select: str
) -> ast.FunctionDef:
    """The function that is selected, or the only one there is."""
    found = {
        node.name: node
        for node in functions
        if _returns_record(node) and not node.name.startswith("_")
    }
    chosen = select or (next(iter(found)) if len(found) == 1 else "")
    if chosen in found:
        return found[chosen]
    few = ", ".join(list(found)[:12]) + (", ..." if len(found) > 12 else "")
    message = f"there is no function {visible(select)}" if select else "which function"
    hint = (
        f"{named('select')} is one of {few}" if found else "it returns no configuration"
    )
    hint = (closest(select, found) if select else "") or hint
    raise InputError([Problem(message, source, key="select", hint=hint)])


def _returns_record(node: ast.FunctionDef) -> bool:
    """Whether a function without required arguments is said to return a record."""
    needed = len(node.args.args) - len(node.args.defaults)
    returns = ast.unparse(node.returns) if node.returns else ""
    last = node.body[-1] if node.body else None
    said = returns.rpartition(".")[2].endswith(("Config", "ConfigContainer"))
    called = isinstance(last, ast.Return) and isinstance(last.value, ast.Call)
    returned = any(isinstance(inner, ast.Return) for inner in ast.walk(node))
    return needed == 0 and (called or (said and returned))
