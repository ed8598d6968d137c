"""Sources opened as settings: YAML, JSON and TOML, with the place of each value.

Interpolations of OmegaConf, ``${a.b}`` and ``${mul:${a}, 2}``, are followed as data.
Source: omry/omegaconf, ``docs/source/grammar.rst``; NVIDIA-NeMo/RL 7ea279ab,
``nemo_rl/utils/config.py`` and NVIDIA-NeMo/NeMo, ``nemo/utils/exp_manager.py`` (the
resolvers that they add).
"""

from __future__ import annotations

import operator
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import Any

from placer.base.errors import InputError, Problem
from placer.base.naming import named
from placer.documents import Document, Value, parse_answer, parse_document
from placer.documents.scalars import BOOLEANS, raw
from placer.documents.yaml_reader import MERGE
from placer.formats.jobs.findings import Asked, Findings, Place, Unknown
from placer.formats.jobs.settings import Setting, Settings, number_of, plain_value

_DEEPEST = 64
_TOML_TABLE = re.compile(r"\s*\[\[?\s*([^\]]+?)\s*\]")
_KEY = re.compile(r"""\s*([\w.\-"' ]+?)\s*=\s*""")
_TOML_PLACE = re.compile(r" \(at line (\d+), column (\d+)\)| \(at end of document\)")


def of_yaml(text: str, source: str, found: Findings, asked: Asked) -> Settings:
    """All values of a YAML text, or of JSON with comments."""
    return settings_of(parse_document(text, source, aliases=True), found, asked)


def of_json(text: str, source: str, found: Findings, asked: Asked) -> Settings:
    """All values of a JSON text."""
    return settings_of(parse_answer(text, source), found, asked)


def settings_of(
    document: Document, found: Findings, asked: Asked | None = None
) -> Settings:
    """All values of a document that was read with places."""
    document.fail_if_problems()
    return Settings(found, _merged(dict(flat(document.top))), asked)


def _merged(values: dict[str, Setting]) -> dict[str, Setting]:
    """The values with those under merge keys where these stand; others count more."""
    own = {key: setting for key, setting in values.items() if MERGE not in key}
    for key, setting in values.items():
        if MERGE in key:
            steps = [step for step in key.split(".") if step != MERGE]
            own.setdefault(".".join(steps), setting)
    return own


def flat(value: Value, prefix: str = "") -> Iterator[tuple[str, Setting]]:
    """Leaves of a tree of mappings with their dotted keys; lists are leaves."""
    for key, inner in value.entries():
        name = f"{prefix}{key}"
        if inner.kind == "mapping" and len(inner.path) > _DEEPEST:
            inner.problem("nested too deep")
            inner.document.fail_if_problems()
        elif inner.kind == "mapping":
            yield from flat(inner, f"{name}.")
        else:
            yield name, Setting(_of_document(inner.content), place_of(inner))


def place_of(value: Value) -> Place:
    """Where a value of a document stands."""
    at = value.place
    return Place(at.source, at.line, at.column)


def _of_document(content: Any) -> Any:
    """A parsed value as one of Python's: documents keep numbers as they are written."""
    if isinstance(content, list):
        return [_of_document(item) for item in content]
    kind = Value(Document("", None), content, ()).kind
    if kind == "number" and isinstance(content, str):
        return number_of(raw(content))
    if kind == "boolean":
        return BOOLEANS.get(raw(content).lower(), content)
    return content


def toml_values(text: str, source: str) -> dict[str, Setting]:
    """The values of a TOML text by dotted key; lists are values."""
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        message = str(error)
        at = _TOML_PLACE.search(message)
        line, column = (int(at[1]), int(at[2])) if at and at[1] else (0, 0)
        words = f"not TOML: {_TOML_PLACE.sub('', message)}"
        raise InputError([Problem(words, source, line, column)]) from None
    places = dict(_places(text, source))
    return {
        key: Setting(value, places.get(key, Place(source)))
        for key, value in _flat(data, "")
    }


def _flat(data: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _places(text: str, source: str) -> Iterator[tuple[str, Place]]:
    """Where keys stand that have a line of their own."""
    table = ""
    for number, line in enumerate(text.splitlines(), start=1):
        header, key = _TOML_TABLE.match(line), _KEY.match(line)
        if header:
            table = f"{_bare(header[1])}."
        elif key:
            yield f"{table}{_bare(key[1])}", Place(source, number, key.end() + 1)


def _bare(key: str) -> str:
    """A dotted key without quotes and blanks."""
    return re.sub(r"""["'\s]""", "", key)


_REFERENCE = re.compile(r"\$\{([^${}]*)\}")
_MOST_ROUNDS = 50
_LONGEST, _MOST_VALUES = 10_000, 20_000
_MISSING = "???"
_RESOLVERS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("mul", "multiply"), lambda *values: prod(values)),
    **dict.fromkeys(("add", "sum"), lambda *values: sum(values)),
    "sub": operator.sub,
    **dict.fromkeys(("div", "divide"), operator.truediv),
    **dict.fromkeys(("floor_div", "int_div"), operator.floordiv),
    "max": lambda *values: max(values),
    "min": lambda *values: min(values),
}


def resolved(
    values: Mapping[str, Setting], asked: Asked | None = None
) -> dict[str, Setting]:
    """The values with every interpolation put in that can be followed.

    One that cannot is `Unknown`, as is what must be given (``???``). Environment
    variables have the values of ``--set``, else their defaults.
    """
    return _Resolver(values, asked or Asked()).all()


class _Resolver:
    """Values by key, each followed once."""

    def __init__(self, values: Mapping[str, Setting], asked: Asked) -> None:
        self.values = values
        self.asked = asked
        self.found: dict[str, Any] = {}
        self.open: list[str] = []  # keys that are being followed
        self.records = {
            key[:end] for key in values for end in range(len(key)) if key[end] == "."
        }

    def all(self) -> dict[str, Setting]:
        """All values; a record that another stands for is taken key by key."""
        whole: dict[str, Setting] = {}
        for key, setting in self.values.items():
            value = setting.value
            match = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
            name = _absolute(match[1].strip(), key) if match else ""
            if name in self.records and len(whole) < _MOST_VALUES:
                whole |= {
                    key + inner.removeprefix(name): setting._replace(
                        value=self.value(inner)
                    )
                    for inner in self.values
                    if inner.startswith(f"{name}.")
                }
            else:
                whole[key] = setting._replace(value=self.value(key))
        return whole

    def value(self, key: str) -> Any:
        """What stands under a key."""
        if key not in self.found:
            if key in self.open or len(self.open) > _MOST_ROUNDS:
                return Unknown(str(self.values[key].value))
            self.open.append(key)
            self.found[key] = self._followed(self.values[key].value, key)
            self.open.pop()
        return self.found[key]

    def _followed(self, value: Any, key: str) -> Any:
        """A text with its innermost interpolations put in, again and again."""
        if value == _MISSING:
            return Unknown(_MISSING)
        if isinstance(value, list):
            items = [self._followed(item, key) for item in value]
            return next((i for i in items if isinstance(i, Unknown)), items)
        if not isinstance(value, str) or "${" not in value:
            return value
        text = value
        for _ in range(_MOST_ROUNDS):
            found = _REFERENCE.search(text)
            if found is None or len(text) > _LONGEST:
                break
            inner = self._inner(found[1].strip(), key)
            if isinstance(inner, Unknown):
                return Unknown(value, inner.hint)
            if found.span() == (0, len(text)) and not isinstance(inner, str):
                return inner
            text = text[: found.start()] + str(inner) + text[found.end() :]
        return Unknown(value) if "${" in text else plain_value(text)

    def _inner(self, text: str, key: str) -> Any:
        """What stands for one interpolation without others in it."""
        name, colon, rest = text.partition(":")
        if not colon:
            name = _absolute(name, key)
            given = self.asked.setting(name) if name else None
            if given is not None:
                return plain_value(given)
            return self.value(name) if name in self.values else Unknown(text)
        arguments = [plain_value(part.strip(" '\"")) for part in rest.split(",")]
        if name == "oc.decode":
            return arguments[-1]
        if name == "oc.env":
            variable, *default = arguments
            given = self.asked.setting(str(variable))
            if given is not None:
                return plain_value(given)
            hint = named("settings", {str(variable): "VALUE"})
            return default[0] if default else Unknown(str(variable), hint)
        apply = _RESOLVERS.get(name)
        numbers = all(
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and abs(value) < 1e15
            for value in arguments
        )
        if apply is None or not numbers:
            return Unknown(text)
        try:
            return apply(*arguments)
        except (TypeError, ValueError, ZeroDivisionError, OverflowError):
            return Unknown(text)


def _absolute(name: str, key: str) -> str:
    """A key from the root: ``.x`` stands beside ``key``, ``..x`` a record higher."""
    above = len(name) - len(name.lstrip("."))
    if not above:
        return name
    parts = key.split(".")[:-above]
    return ".".join([*parts, name[above:]])
