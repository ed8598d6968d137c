"""Interpolations of OmegaConf: ``${a.b}`` and ``${mul:${a}, 2}``, followed as data.

Source: omry/omegaconf, ``docs/source/grammar.rst``; NVIDIA-NeMo/RL 7ea279ab,
``nemo_rl/utils/config.py`` and NVIDIA-NeMo/NeMo, ``nemo/utils/exp_manager.py`` (the
resolvers that they add).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from placer.sources.settings import Setting, plain_value

_REFERENCE = re.compile(r"\$\{([^${}]*)\}")
_MOST_ROUNDS = 50
_LONGEST = 10_000
_RESOLVERS: dict[str, Callable[..., Any]] = {
    "mul": lambda *values: prod(values),
    "multiply": lambda *values: prod(values),
    "add": lambda *values: sum(values),
    "sum": lambda *values: sum(values),
    "sub": lambda one, other: one - other,
    "div": lambda one, other: one / other,
    "floor_div": lambda one, other: one // other,
    "int_div": lambda one, other: one // other,
    "max": lambda *values: max(values),
    "min": lambda *values: min(values),
}
_PASSED_ON = ("oc.decode", "oc.env")


def resolved(values: Mapping[str, Setting]) -> dict[str, Setting]:
    """The values with every interpolation put in that can be followed.

    One that cannot stays as it is written. Environment variables have their defaults.
    """
    return {
        key: setting._replace(value=_resolved(setting.value, values))
        for key, setting in values.items()
    }


def _resolved(value: Any, values: Mapping[str, Setting]) -> Any:
    """A text with its innermost interpolations put in, again and again."""
    if not isinstance(value, str) or "${" not in value:
        return value
    text = value
    for _ in range(_MOST_ROUNDS):
        found = _REFERENCE.search(text)
        if found is None or len(text) > _LONGEST:
            break
        inner = _inner(found[1].strip(), values)
        if inner is None:
            return value
        if found.span() == (0, len(text)) and not isinstance(inner, str):
            return inner
        text = text[: found.start()] + str(inner) + text[found.end() :]
    return value if "${" in text else plain_value(text)


def _inner(text: str, values: Mapping[str, Setting]) -> Any:
    """What stands for one interpolation without others in it; None when unknown."""
    name, colon, rest = text.partition(":")
    if not colon:
        setting = values.get(name)
        return setting.value if setting is not None else None
    arguments = [plain_value(part.strip()) for part in rest.split(",")]
    if name in _PASSED_ON:
        return arguments[-1] if name == "oc.decode" or len(arguments) > 1 else None
    apply = _RESOLVERS.get(name)
    numbers = all(
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) < 1e15
        for value in arguments
    )
    if apply is None or not numbers:
        return None
    try:
        return apply(*arguments)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        return None
