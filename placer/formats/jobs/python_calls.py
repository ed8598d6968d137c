"""What a call in a configuration in Python stands for."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from placer.formats.jobs.python_expressions import Expressions
from placer.formats.jobs.python_leaves import CLASS, Copy, Record
from placer.formats.jobs.python_values import (
    NO_CONSTANT,
    called,
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


class Calls(Expressions):
    """Evaluates calls; who follows functions says what one of the file returns."""

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
