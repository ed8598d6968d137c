"""What calls in a configuration in Python stand for, and what statements change.

A function that is not known may change all of what it is given, where it is called for
what it does. One that is called for what it returns is taken to change nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from placer.formats.jobs.python_expressions import Expressions
from placer.formats.jobs.python_leaves import (
    CLASS,
    Copy,
    Record,
    is_unknown,
    unknown,
    written,
)
from placer.formats.jobs.python_values import (
    LONGEST,
    NO_CONSTANT,
    called,
    computed,
    is_of_type,
    of_text,
    plain,
)

if TYPE_CHECKING:
    from placer.formats.jobs.python_config import Values

_ENVIRONMENT = ("os.environ.get", "os.getenv", "environ.get", "getenv")
_COPIES = ("copy.deepcopy", "deepcopy", "copy.copy", "copy", "cast", "typing.cast")
_AS_RECORDS = ("dict", "vars")
_DEEPEST = 20
_BUILDERS = ("__init__", "__post_init__", "__new__", "build")
# What prints or checks, and changes nothing.
_SILENT = ("print", "warn", "validate", "__init__")
_LOGS = ("logger", "logging", "log")


class Changes(Expressions):
    """Evaluates calls, and assigns values to names and to parts of records.

    Who follows functions says what one of the file returns.
    """

    def call(
        self, node: ast.FunctionDef, given: Record, around: Record | None = None
    ) -> Any:
        """What a function returns; ``around`` has the names where it is defined."""
        raise NotImplementedError

    def function(self, name: str, known: Record) -> ast.FunctionDef | None:
        """The function of the file that a name stands for."""
        own = known.get(name, self.functions.get(name))
        return own if isinstance(own, ast.FunctionDef) else None

    def called(self, node: ast.Call, known: Record) -> Any:
        """What a call stands for: a record of its keywords, or what it returns."""
        name = ast.unparse(node.func)
        places = self._listed(ast.Tuple(node.args), known)
        words = [
            (ast.Constant(word.arg) if word.arg else None, word.value)
            for word in node.keywords
        ]
        given = self._record(words, known, node)
        if not isinstance(places, list):
            given, places = given | {CLASS: self.unknown(node)}, []
        function = self.function(name, known)
        if function is not None:
            numbered = {str(i): value for i, value in enumerate(places)}
            around = known if name in known else None
            return self.call(function, given | numbered, around)
        full = self.full(name)
        own = self._of_python(full, places, given, node, known)
        if own is not None:
            return own
        return self._of_library(full, places, given, node)

    def _of_python(
        self, name: str, places: list[Any], given: Record, node: ast.Call, known: Record
    ) -> Any:
        """What functions and methods of Python's own return; None if it is no such."""
        if name in _ENVIRONMENT and places and isinstance(plain(places[0]), str):
            default = places[1] if len(places) > 1 else given.get("default")
            return self.environment(plain(places[0]), default, node)
        if name in _COPIES and places:
            return Copy(places[-1]).value
        if name in _AS_RECORDS and (places or given):
            return places[0] if places else given
        if name in ("replace", "dataclasses.replace") and places:
            record = places[0]
            return (record if isinstance(record, dict) else {CLASS: record}) | given
        if name == "isinstance" and len(node.args) == 2:
            kind = is_of_type(places[0], ast.unparse(node.args[1]))
            return self.unknown(node) if kind is None else self.setting(kind, node)
        if name in ("getattr", "hasattr") and len(places) > 1:
            return self._named_part(name, places, node)
        result = NO_CONSTANT if given else called(name, places)
        if isinstance(node.func, ast.Attribute) and not given:
            object_ = self.value(node.func.value, known)
            result = of_text(object_, node.func.attr, places)
            if node.func.attr == "get" and isinstance(object_, dict) and places:
                key = plain(places[0])
                if CLASS not in object_ and isinstance(key, str | int):
                    last = places[1] if len(places) > 1 else self.setting(None, node)
                    return object_.get(str(key), last)
        return None if result is NO_CONSTANT else self.setting(result, node)

    def _named_part(self, name: str, places: list[Any], node: ast.Call) -> Any:
        """``getattr`` and ``hasattr``: what a record has not may be a default."""
        record, key = places[0], plain(places[1])
        if isinstance(record, dict) and isinstance(key, str) and key in record:
            return record[key] if name == "getattr" else self.setting(True, node)
        return self.unknown(node)

    def _of_library(
        self, name: str, places: list[Any], given: Record, node: ast.Call
    ) -> Any:
        """What a function or class of another file returns."""
        module, _, last = name.rpartition(".")
        if last in self.library.returns:
            returned = self.library.returns[last]
            if isinstance(returned, tuple):
                return [self._known(values, last, node) for values in returned]
            return self._known(returned, last, node)
        if last in self.library.shapes:
            kind = {
                CLASS: self.setting(last, node),
                "registry": self.setting(module, node),
            }
            flavor = places[0] if places else given.get("flavor", self.unknown(node))
            return kind | given | {"flavor": flavor}
        shown = ast.unparse(node.func)
        if shown.partition(".")[0] in self.classes:
            return self._of_class(shown, given, node)
        if last.endswith(self.library.named):
            told = plain(places[0]) if places else last
            if isinstance(told, str):
                return given | {CLASS: self.setting(told, node)}
        # Which fields values are of that have no names is not known.
        named = not places or not last[:1].isupper()
        if self._is_theirs(node.func) and CLASS not in given and named:
            return given | {CLASS: self.setting(shown.removesuffix(".Config"), node)}
        return given | {CLASS: self.unknown(node)}

    def _is_theirs(self, node: ast.expr) -> bool:
        """Whether it is a class of the framework, which has the framework's defaults.

        Names of classes begin with a capital; one that is not imported is taken for
        the framework's.
        """
        names: list[str] = []
        while isinstance(node, ast.Attribute | ast.Call | ast.Name):
            if isinstance(node, ast.Call):
                node = node.func
                continue
            names.append(node.attr if isinstance(node, ast.Attribute) else node.id)
            if isinstance(node, ast.Name):
                break
            node = node.value
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

    def _of_class(self, name: str, given: Record, node: ast.expr) -> Record:
        """A record of a class of the file: its fields, then the keywords."""
        fields = self.fields(ast.parse(name, mode="eval").body)
        return ({CLASS: self.unknown(node)} if fields is None else fields) | given

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
                    item.targets if isinstance(item, ast.Assign) else [item.target]
                )
                record |= {t.id: value for t in targets if isinstance(t, ast.Name)}
        record.setdefault(CLASS, self.setting(name, node))
        return record

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
