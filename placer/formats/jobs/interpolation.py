"""Interpolations of OmegaConf: ``${a.b}`` and ``${mul:${a}, 2}``, followed as data.

Source: omry/omegaconf, ``docs/source/grammar.rst``; NVIDIA-NeMo/RL 7ea279ab,
``nemo_rl/utils/config.py`` and NVIDIA-NeMo/NeMo, ``nemo/utils/exp_manager.py`` (the
resolvers that they add).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from placer.base.naming import named
from placer.formats.jobs.findings import Asked, Unknown
from placer.formats.jobs.settings import Setting, plain_value

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
