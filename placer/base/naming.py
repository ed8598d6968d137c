"""What messages call an input: the keyword of a call, or the option of the command.

Who writes a hint knows the input by its keyword; the command line says once, for all
that it runs, that it has options instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

# Options that are not called as the keyword is.
_OPTIONS = {
    "topology": "-t",
    "job": "-j",
    "path": "-o",
    "settings": "--set",
    "labels": "--label",
    "ranks": "--rank",
}
_has_options: ContextVar[bool] = ContextVar("has_options", default=False)


@contextmanager
def as_options() -> Iterator[None]:
    """A context in which inputs are called as on the command line."""
    before = _has_options.set(True)
    try:
        yield
    finally:
        _has_options.reset(before)


def named(keyword: str, value: str | Mapping[str, str] | bool = "") -> str:
    """An input, with what it is to be.

    ``keyword``: of the library's call. ``value``: a word in capitals stands for what
    the user has to choose; True is of a flag. Without it the input alone.
    """
    if _has_options.get():
        option = _option(keyword)
        if isinstance(value, Mapping):
            return " ".join(f"{option} {key}={one}" for key, one in value.items())
        return f"{option} {value}" if value and value is not True else option
    if isinstance(value, Mapping):
        entries = ", ".join(f'"{key}": "{one}"' for key, one in value.items())
        return f"{keyword}={{{entries}}}"
    if value and isinstance(value, str) and not (value.isupper() or value.isdecimal()):
        value = f'"{value}"'
    return f"{keyword}={value}"


def numbered(names: Iterable[str], key: Callable[[str], str] = str) -> list[str]:
    """Names of which no two are alike by ``key``: later ones have a number."""
    found: dict[str, str] = {}
    for name in names:
        number, own = 1, name
        while key(own) in found:
            number += 1
            own = f"{name}-{number}"
        found[key(own)] = own
    return [*found.values()]


def entry(keyword: str, key: str) -> str:
    """One entry of an input that has several, by its key."""
    if _has_options.get():
        return f"{_option(keyword)} {key}"
    return f'{keyword}["{key}"]'


def _option(keyword: str) -> str:
    return _OPTIONS.get(keyword) or f"--{keyword.replace('_', '-')}"
