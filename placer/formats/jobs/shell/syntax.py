"""What a script consists of. Words are kept as they are written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from placer.formats.jobs.shell.text import Text


class Assignment(NamedTuple):
    """``NAME=value``, ``NAME+=value``, ``NAME[index]=value`` or ``NAME=(values)``."""

    name: Text
    value: Text | tuple[Text, ...]
    key: Text | None = None  # of one element
    append: bool = False


@dataclass(slots=True)
class Redirection:
    """``> word``, ``< word`` or a here document."""

    operator: str
    target: Text
    document: Text | None = None
    is_quoted: bool = False  # the end mark, so that the document is not expanded


@dataclass(slots=True)
class Simple:
    """Assignments, words and redirections of one command."""

    assignments: list[Assignment] = field(default_factory=list)
    words: list[Text] = field(default_factory=list)
    redirections: list[Redirection] = field(default_factory=list)


class Condition(NamedTuple):
    """``[[ ... ]]``: words, and operators as they are."""

    tokens: tuple[Text, ...]


class Arithmetic(NamedTuple):
    """``(( ... ))``."""

    expression: Text


class Chain(NamedTuple):
    """Commands, and what stands before each: ``&&``, ``||``, ``|``, ``!``, nothing."""

    links: tuple[tuple[str, Node], ...]


class Choice(NamedTuple):
    """``if``; an ``elif`` is a choice in what is done otherwise."""

    condition: tuple[Node, ...]
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...]


class Case(NamedTuple):
    """``case``: patterns with what is done."""

    word: Text
    branches: tuple[tuple[tuple[Text, ...], tuple[Node, ...]], ...]


class Loop(NamedTuple):
    """``for`` over words (None: the arguments), or while a condition holds.

    ``select`` is a menu: the user takes one of the words.
    """

    body: tuple[Node, ...]
    condition: tuple[Node, ...] = ()
    step: tuple[Node, ...] = ()  # what ends each pass
    name: Text | None = None
    words: tuple[Text, ...] | None = None
    is_menu: bool = False


class Group(NamedTuple):
    """``{ ...; }`` or ``( ... )``, which changes no variables outside."""

    body: tuple[Node, ...]
    is_inner: bool = False


class Function(NamedTuple):
    """``name() { ... }``."""

    name: str
    body: Node


Node = Simple | Condition | Arithmetic | Chain | Choice | Case | Loop | Group | Function
