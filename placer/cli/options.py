"""Options: how one is said in a line."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from inspect import signature
from typing import Any, TypeVar

import click

from placer.cli import complete

_Value = TypeVar("_Value")
Decorator = Callable[[Any], Any]

# What completes a value, by the word that stands for it in the help.
_COMPLETED = {
    "H": complete.hosts,
    "T": complete.topologies,
    "J": complete.jobs,
    "PLAN": complete.files,
    "PATH": complete.files,
    "FILE": complete.files,
    "AXIS=TIER": complete.rules,
    "TIER=N": complete.tiers,
}


class OneOf(click.Choice[str]):
    """A choice whose error names the nearest word, or what came in place of one."""

    def __init__(
        self, choices: Sequence[str], gone: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(choices)
        self.gone = dict(gone or {})

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """What is wrong with ``value``, what it may mean, and what it may be."""
        near = get_close_matches(str(value), self.choices, n=1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        if instead := self.gone.get(str(value)):
            meant = f" {instead}"
        return super().get_invalid_choice_message(value, ctx) + meant


class Whole(click.ParamType[int]):
    """A whole number from ``least``, to ``most`` where there is one."""

    name = "integer"

    def __init__(self, least: int, most: int | None = None) -> None:
        self.least, self.most = least, most

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """The number that ``value`` is."""
        try:
            number = int(value)
        except ValueError:
            number = self.least - 1
        if number < self.least or (self.most is not None and number > self.most):
            words = "or more" if self.most is None else f"to {self.most:,}"
            self.fail(f"expected {self.least:,} {words}, got {value}", param, ctx)
        return number


def option(
    said: str,
    help: str,
    read: Callable[[Any], object] | None = None,
    to: str = "",
    **more: Any,
) -> Decorator:
    """An option with a value.

    ``said``: as the help shows it, ``-o --output PATH``; one whose help ends in
    "Repeatable." may be repeated. ``read`` makes of the text, or of the texts of such
    a one, what the command gets; its `ValueError` says what is wrong with them. ``to``:
    the command's argument, where it is not called like the option.
    """
    names = [word for word in said.split() if word.startswith("-")]
    value = "".join(word for word in said.split() if word not in names)

    def checked(_context: object, _option: object, given: Any) -> Any:
        try:
            return None if given is None or read is None else read(given)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    if read is not None:
        more["callback"] = checked
    own: dict[str, Any] = {"shell_complete": _COMPLETED.get(value)}
    own |= {"multiple": True} if help.endswith("Repeatable.") else {}
    named = (*names, to) if to else names
    return click.option(*named, metavar=value or None, help=help, **own | more)


def flag(names: str, help: str) -> Decorator:
    """An option without a value."""
    return click.option(*names.split(), is_flag=True, help=help)


def together(*options: Decorator) -> Decorator:
    """Several options as one decorator, in the order of the help."""

    def add(function: Any) -> Any:
        for each in reversed(options):
            function = each(function)
        return function

    return add


def by_name(
    read: Callable[[str], _Value],
    wrong: str,
    two: str = "",
    cut: Callable[[str, str], tuple[str, str, str]] = str.partition,
) -> Callable[[Sequence[str]], dict[str, _Value]]:
    """Reads texts ``NAME=VALUE`` as a mapping.

    ``wrong`` says what one is not. ``two`` is said of a name with two values, of which
    without it the last counts. ``cut`` is `str.rpartition` where names may have a
    ``=``.
    """

    def found(texts: Sequence[str]) -> dict[str, _Value]:
        values: dict[str, _Value] = {}
        for text in texts:
            name, equals, value = cut(text, "=")
            name = name.strip()
            try:
                if not (name and equals):
                    raise ValueError
                own = read(value)
            except ValueError:
                raise ValueError(f"{text!r} is not {wrong}") from None
            if two and values.get(name, own) != own:
                said = {"name": name, "one": values[name], "other": own, "text": text}
                raise ValueError(f"{name} has two {two.format(**said)}")
            values[name] = own
        return values

    return found


def share(text: str) -> float:
    """Share from 0 to 1 that a text means; ``1%`` is 0.01."""
    is_percentage = text.endswith("%")
    try:
        found = float(text.removesuffix("%")) / (100 if is_percentage else 1)
    except ValueError:
        found = math.nan
    if not 0 <= found <= 1:
        raise ValueError(f"{text!r} is not a share such as 0.01 or 1%")
    return found


def called(
    call: Callable[..., _Value], options: Mapping[str, Any], **more: Any
) -> _Value:
    """What a library call gives: its arguments are ``more``, else options so called."""
    names = signature(call).parameters
    return call(**{name: options[name] for name in names if name in options} | more)


def hosts_of(options: Mapping[str, Any], key: str = "hosts") -> list[str] | None:
    """The hosts that an option names; None where it is not given."""
    from placer.topology.allocation import parse_hosts

    return None if options[key] is None else parse_hosts(options[key], key)


def teller(options: Mapping[str, Any]) -> Callable[[str], None]:
    """Prints what a reader has to say, unless the command is quiet."""

    def tell(remark: str) -> None:
        if not options.get("quiet"):
            click.echo(f"note: {remark}", err=True)

    return tell


def tell_new_name(options: Mapping[str, Any], old: str, new: str) -> None:
    """Say what to type instead of a name of the release before."""
    teller(options)(f'{old} is "{new}" now; the old name will be removed')
