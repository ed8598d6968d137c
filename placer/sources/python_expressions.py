"""What an expression of a configuration in Python stands for."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from placer.sources.findings import Asked, Place
from placer.sources.python_leaves import CLASS, Copy, Record, is_unknown, unknown
from placer.sources.python_values import (
    NO_CONSTANT,
    called,
    compared,
    computed,
    is_of_type,
    of_text,
    plain,
    truth,
)
from placer.sources.settings import Setting, plain_value

if TYPE_CHECKING:
    from placer.sources.python_library import Library, Values


_ENVIRONMENT = ("os.environ.get", "os.getenv", "environ.get", "getenv")
_COPIES = ("copy.deepcopy", "deepcopy", "copy.copy", "copy", "cast", "typing.cast")
_DEEPEST = 20
_AS_RECORDS = ("dict", "vars")
_BUILDERS = ("__init__", "__post_init__", "__new__", "build")


class Expressions:
    """Evaluates expressions; who follows functions says what a call of one returns."""

    def __init__(self, source: str, asked: Asked, library: Library) -> None:
        self.source = source
        self.asked = asked
        self.library = library
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

    def value(self, node: ast.expr, known: Record) -> Any:
        """A `Setting`, a record, or a list of these."""
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
                return self._called(node, known)
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
                    result = "".join(map(str, texts))
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
            record = self._fields(node.value, 0)
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
            elif isinstance(value, list):
                items += value
            else:
                return self.unknown(item)
        return items

    def _item(self, node: ast.Subscript, known: Record) -> Any:
        words = ast.unparse(node.value)
        key = plain(self.value(node.slice, known))
        if words in ("os.environ", "environ") and isinstance(key, str):
            return self._environment(key, None, node)
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

    def _environment(self, name: str, default: Any, node: ast.expr) -> Any:
        """A variable of the environment: what an option says, else its default."""
        given = self.asked.setting(name)
        if given is not None:
            return self.setting(plain_value(given), node)
        if default is not None:
            return default
        return self.unknown(node, f"--set {name}=VALUE")

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

    # ------------------------------------------------------------------ calls

    def function(self, name: str, known: Record) -> ast.FunctionDef | None:
        """The function of the file that a name stands for."""
        own = known.get(name, self.functions.get(name))
        return own if isinstance(own, ast.FunctionDef) else None

    def _called(self, node: ast.Call, known: Record) -> Any:
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
            return self._environment(plain(places[0]), default, node)
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
        fields = self._fields(ast.parse(name, mode="eval").body, 0)
        return ({CLASS: self.unknown(node)} if fields is None else fields) | given

    def _fields(self, base: ast.expr, depth: int) -> Record | None:
        """Fields of a class and of those it stands on; None where they are not told."""
        name = ast.unparse(base)
        node = self.classes.get(name)
        if node is None:
            inside = name.partition(".")[0] in self.classes
            theirs = self._is_theirs(base) and not inside
            return {CLASS: self.setting(name, base)} if theirs else None
        record: Record = {}
        for further in node.bases:
            fields = self._fields(further, depth + 1) if depth < _DEEPEST else None
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
