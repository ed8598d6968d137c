"""What arguments of library calls must be, checked before anything is done with them.

A wrong type then is an `InputError` that names the argument, as a wrong file is.
"""

from __future__ import annotations

import os
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from numbers import Integral, Real
from typing import ParamSpec, TypeVar

from placer.base.errors import Problem, refuse

P = ParamSpec("P")
T = TypeVar("T")

_PLAIN = (str, bytes, Real, list, tuple, dict, set)


@dataclass(frozen=True)
class Kind:
    """What an argument may be: in words, and whether a value is that."""

    words: str
    fits: Callable[[object], bool]

    def __or__(self, other: Kind) -> Kind:
        return Kind(
            f"{self.words} or {other.words}",
            lambda value: self.fits(value) or other.fits(value),
        )


def instance(kind: type) -> Kind:
    """Whatever is of this class."""
    return Kind(f"a {kind.__name__}", lambda value: isinstance(value, kind))


def sequence(words: str, item: Kind) -> Kind:
    """A list, tuple or array of items that all fit; a text is none."""

    def fits(value: object) -> bool:
        is_array = hasattr(value, "__array__") and getattr(value, "ndim", 1) > 0
        listed = isinstance(value, Sequence) or is_array
        if not listed or isinstance(value, str | bytes):
            return False
        return all(map(item.fits, value))  # type: ignore[call-overload]

    return Kind(words, fits)


def mapping(words: str, item: Kind) -> Kind:
    """A mapping of texts to items that all fit."""

    def fits(value: object) -> bool:
        return isinstance(value, Mapping) and all(
            isinstance(key, str) and item.fits(one) for key, one in value.items()
        )

    return Kind(words, fits)


NOTHING = Kind("None", lambda value: value is None)
TEXT = Kind("a text", lambda value: isinstance(value, str))
PATH = Kind("a path", lambda value: isinstance(value, str | os.PathLike))
INTEGER = Kind(
    "an integer",
    lambda value: isinstance(value, Integral) and not isinstance(value, bool),
)
NUMBER = Kind(
    "a number", lambda value: isinstance(value, Real) and not isinstance(value, bool)
)
CALL = Kind("a function", callable)
TEXTS = sequence("a list of texts", TEXT)
NUMBERS = sequence("a list of numbers", NUMBER)
INTEGERS = sequence("a list of integers", INTEGER)
# A plan, or what has one, shows itself by what it holds: neither is loaded for that.
PLAN = Kind(
    "a Plan, a Result, a path or a dict",
    lambda value: (
        hasattr(getattr(value, "plan", value), "node_of_rank")
        or PATH.fits(value)
        or (isinstance(value, Mapping) and all(map(TEXT.fits, value)))
    ),
)


# What an argument may be, by its annotation without ``None``.
_KINDS = {
    "bool": Kind("True or False", lambda value: isinstance(value, bool)),
    "int": INTEGER,
    "float": NUMBER,
    "str": TEXT,
    "float | str": NUMBER | TEXT,
    "str | os.PathLike[str]": PATH,
    "Sequence[str] | str": Kind("a host list", TEXT.fits)
    | sequence("a list of names", TEXT),
    "Sequence[str]": TEXTS,
    "Sequence[int]": INTEGERS,
    "Sequence[int] | int": INTEGERS | INTEGER,
    "Sequence[float]": NUMBERS,
    "Sequence[float] | Mapping[str, Sequence[float]]": NUMBERS
    | mapping("a mapping of names to lists of numbers", NUMBERS),
    "Mapping[str, str]": mapping("a mapping of names to texts", TEXT),
    "Mapping[str, float]": mapping("a mapping of names to numbers", NUMBER),
    "Progress": CALL,
    "Engine": Kind("an engine", lambda value: hasattr(value, "opened")),
    "PlanLike": PLAN,
    "Sequence[PlanLike]": sequence("a list of plans", PLAN),
}


def takes(**kinds: Kind) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A decorator: the function refuses arguments that are not of their kinds.

    It then raises `InputError` with every such argument, by its name. The kind of an
    argument follows from its annotation, a text; ``**kinds`` are those of others. What
    has neither is the function's to check.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        parameters = signature(function)
        known = {
            name: kind
            for name, said in function.__annotations__.items()
            if (kind := kinds.get(name) or _kind_of(said))
        }

        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                given = parameters.bind(*args, **kwargs).arguments
            except TypeError as error:
                raise TypeError(f"{function.__name__}() {error}") from None
            refuse(
                Problem(f"expected {kind.words}, got {_shown(given[name])}", key=name)
                for name, kind in known.items()
                if name in given and not kind.fits(given[name])
            )
            return function(*args, **kwargs)

        return checked

    return decorate


def _kind_of(annotation: str) -> Kind | None:
    """What an argument with this annotation may be; None where that is not known."""
    said = annotation.removesuffix(" | None")
    kind = _KINDS.get(said)
    if said.startswith("Callable["):
        kind = CALL
    elif said.isidentifier() and said.endswith("Name"):  # one of some texts
        kind = TEXT
    return kind | NOTHING if kind and said != annotation else kind


def _shown(value: object) -> str:
    """A value in a message: plain ones as they are, of others the type."""
    plain = value is None or isinstance(value, _PLAIN)
    return reprlib.repr(value) if plain else f"a {type(value).__name__}"
