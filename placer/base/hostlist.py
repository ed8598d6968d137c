"""Host lists in Slurm's bracket syntax: ``n[001-003,7]``; order is kept both ways.

The rules are those of ``scontrol show hostnames`` and ``scontrol show hostlist``
(Slurm, ``scontrol`` manual page). Two forms that scontrol lets through are refused: a
bracket that is never closed, and names that are not host names (``n1*2``, ``n{1-2}``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from math import prod

MAX_NAMES = 100_000  # of one list
MAX_NAMES_IN_ALL = 1 << 20  # of all lists of a file
_MAX_CHARACTERS = 253  # of a name

_LITERAL = re.compile(r"[A-Za-z0-9._-]+")
_BRACKET = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")
_NUMBERED = re.compile(r"(.*?)([0-9]{1,18})")
# The last number that is not in brackets, with what stands before and after it.
_OUTER = re.compile(r"([^\[]*?)([0-9]{1,18})([^0-9\[]+)(?:([0-9]{1,18})|(\[.*))")
_LABEL = r"[A-Za-z0-9_-]{1,63}"
_NAME = re.compile(rf"(?!-){_LABEL}(?:\.{_LABEL})*")
_BLANKS = " \t"
_COMMAS = re.compile(r",(?![^\[]*\])")  # outside brackets
_TOO_MANY = f"more than {MAX_NAMES} hosts in one list"


@dataclass(frozen=True)
class _Range:
    """The numbers ``first .. last``, written at least ``width`` digits wide."""

    first: int
    last: int
    width: int

    def texts(self) -> Iterator[str]:
        for number in range(self.first, self.last + 1):
            yield str(number).zfill(self.width)


_Parts = list[str | list[_Range]]


def expand(text: str) -> list[str]:
    """The host names of a host list, in order, repeats kept.

    Brackets expand with the rightmost fastest; a number is as wide as the first bound
    of its range; empty items and blanks around items are skipped.

    Raises `ValueError` if the list is malformed, holds something that is not a host
    name, or names more than ``MAX_NAMES`` hosts; the message says what and at which
    position.
    """
    if _NAME.fullmatch(text) and len(text) <= _MAX_CHARACTERS:
        return [text]
    items: list[tuple[int, _Parts]] = []
    total = 0
    for position, parts in _parse(text):
        items.append((position, parts))
        total += _count(parts)
        if total > MAX_NAMES:
            raise ValueError(_TOO_MANY)
    names: list[str] = []
    for position, parts in items:
        # Names of one item differ in digits alone: where the longest is good, all are.
        checked = _expand_item(parts) if name_problem(_longest(parts)) else ()
        if reason := next(filter(None, map(name_problem, checked)), ""):
            raise ValueError(f"{reason} (position {position + 1})")
        names.extend(_expand_item(parts))
    return names


class HostLists:
    """The host lists of one file, which together may name so many hosts.

    Each may be short and still name a hundred thousand.
    """

    def __init__(self, most: int = MAX_NAMES_IN_ALL) -> None:
        self._most = most
        self._left = most

    def expand(self, text: str) -> list[str]:
        """The host names of one list, as `expand` gives them.

        Raises `ValueError` if the list is malformed, or the lists so far name too many
        hosts.
        """
        names = expand(text) if self._left >= 0 else []
        self._left -= len(names)
        if self._left < 0:
            raise ValueError(f"more than {self._most} hosts in all host lists together")
        return names


def matching(text: str, names: Iterable[str]) -> list[str]:
    """Those of ``names`` that a host list means, in their order.

    An item that ends in ``*`` means every name that begins with it: ``r[01-08]*``.

    Raises `ValueError` if the list is malformed, or an item means none of the names.
    """
    items = [item.strip() for item in _COMMAS.split(text)]
    wanted: set[str] = set()
    known = list(names)
    for item in filter(None, items):
        if item.endswith("*"):
            starts = tuple(expand(item[:-1])) if item != "*" else ("",)
        else:
            starts = ()
        named = set() if starts else {*expand(item)}
        found = {n for n in known if n in named or (starts and n.startswith(starts))}
        if not found or named - found:
            lost = min(named - found, default=item)
            raise ValueError(f'no node is called "{lost}"')
        wanted |= found
    return [name for name in known if name in wanted]


def compress(names: Iterable[str]) -> str:
    """A host list that expands to ``names``, in that order, repeats kept.

    Neighbours that differ only in their last number share a bracket; ascending numbers
    become a range.
    """
    items: list[str] = []
    # Names share a bracket that have a number, and the same before it.
    families = groupby(map(_split, names), key=lambda name: (name[0], bool(name[1])))
    for (prefix, numbered), group in families:
        numbers = [number for _, number in group]
        items += [prefix + _bracket(numbers)] if numbered else [prefix] * len(numbers)
    return ",".join(items)


def compress_grid(names: Iterable[str]) -> str:
    """As `compress`, and neighbours that differ in a number in front share those too.

    ``r[01-02]t[01-18]`` is what both expand to, and ``b[1-2]-r[7]``.
    """
    items = _COMMAS.split(compress(names))
    while len(fewer := [*_fewer(items)]) < len(items):
        items = fewer
    return ",".join(items)


def _fewer(items: Sequence[str]) -> Iterator[str]:
    """The items, neighbours joined that differ in their last outer number alone."""
    for around, group in groupby(items, key=_around):
        members = [*group]
        if around is None or len(members) == 1:
            yield from members
            continue
        found = filter(None, map(_OUTER.fullmatch, members))
        before, after = around
        yield before + compress(match[2] for match in found) + after


def _around(item: str) -> tuple[str, str] | None:
    """What stands before and after the last outer number of an item, if it has one.

    No list ends in plain text after a bracket, so a last number gets its own.
    """
    found = _OUTER.fullmatch(item)
    if found is None:
        return None
    return found[1], found[3] + (f"[{found[4]}]" if found[4] else found[5])


def with_blanks(text: str) -> str:
    """A host list with blanks after the commas between items, where lines may end."""
    return _COMMAS.sub(", ", text)


def fold(names: Sequence[str], longest: int) -> Iterator[str]:
    """Host lists that together expand to ``names``, none longer than ``longest``.

    A list of a single name may be, and none names more than ``MAX_NAMES``.
    """
    text = compress(names)
    if len(names) < 2 or (len(text) <= longest and len(names) <= MAX_NAMES):
        yield text
        return
    middle = len(names) // 2
    yield from fold(names[:middle], longest)
    yield from fold(names[middle:], longest)


def name_problem(name: str) -> str:
    """Why ``name`` is no host name; empty when it is one.

    RFC 1123 letters, digits, ``-`` and ``.``, and ``_`` besides: labels of at most 63
    characters, 253 in all, no ``-`` in front.
    """
    if _NAME.fullmatch(name) and len(name) <= _MAX_CHARACTERS:
        return ""
    if not name:
        return "a host name is empty"
    shown = repr(name if len(name) <= 80 else name[:77] + "...")
    strange = _LITERAL.sub("", name)
    if strange:
        return f"{shown} is no host name: {strange[0]!r} is not allowed"
    if name.startswith("-"):
        return f"{shown} is no host name: it starts with '-'"
    if len(name) > _MAX_CHARACTERS:
        length = f"{len(name)} characters, the most is {_MAX_CHARACTERS}"
        return f"{shown} is no host name: {length}"
    if max(map(len, name.split("."))) > 63:
        return f"{shown} is no host name: more than 63 characters between dots"
    return f"{shown} is no host name: nothing between two dots"


def _parse(text: str) -> Iterator[tuple[int, _Parts]]:
    """Start and parts of every item that is not empty."""
    at = 0
    while at <= len(text):
        at = _skip_blanks(text, at)
        start = at
        parts: _Parts = []
        while at < len(text) and text[at] not in "," + _BLANKS:
            at = _parse_part(text, at, parts)
            if len(parts) > _MAX_CHARACTERS:
                most = _MAX_CHARACTERS
                message = f"a name of more than {most} characters"
                raise ValueError(f"{message} (position {start + 1})")
        if len(parts) > 1 and isinstance(parts[-1], str):
            raise ValueError(
                f"text after the last bracket, as Slurm has none: {parts[-1]!r} "
                f"(position {at - len(parts[-1]) + 1})"
            )
        if parts:
            yield start, parts
        at = _skip_blanks(text, at)
        if at < len(text) and text[at] != ",":
            raise ValueError(f"a comma is missing (position {at + 1})")
        at += 1


def _skip_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANKS:
        at += 1
    return at


def _longest(parts: _Parts) -> str:
    """The longest name that an item expands to."""
    return "".join(
        part
        if isinstance(part, str)
        else max((str(r.last).zfill(r.width) for r in part), key=len)
        for part in parts
    )


def _parse_part(text: str, at: int, parts: _Parts) -> int:
    """Position after the part at ``at``, which is added to ``parts``."""
    if match := _LITERAL.match(text, at):
        parts.append(match[0])
        return match.end()
    if text[at] != "[":
        raise ValueError(
            f"{text[at]!r} is not allowed in a host list (position {at + 1})"
        )
    match = _BRACKET.match(text, at)
    if match is None:
        raise ValueError(f"'[' is never closed (position {at + 1})")
    parts.append(_parse_ranges(match[1], at + 1))
    return match.end()


def _parse_ranges(inside: str, start: int) -> list[_Range]:
    ranges: list[_Range] = []
    at = start
    if inside.count(",") >= MAX_NAMES:
        raise ValueError(_TOO_MANY)
    for item in inside.split(","):
        match = _RANGE.fullmatch(item)
        if match is None:
            what = f"{item!r} is not a number or a range" if item else "empty range"
            raise ValueError(f"{what} (position {at + 1})")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ValueError(f"range {item!r} runs backwards (position {at + 1})")
        ranges.append(_Range(first, last, len(match[1])))
        at += len(item) + 1
    return ranges


def _count(parts: _Parts) -> int:
    return prod(
        sum(r.last - r.first + 1 for r in part)
        for part in parts
        if not isinstance(part, str)
    )


def _expand_item(parts: _Parts) -> Iterator[str]:
    choices = [
        [part] if isinstance(part, str) else [t for r in part for t in r.texts()]
        for part in parts
    ]
    return map("".join, product(*choices))


def _split(name: str) -> tuple[str, str]:
    """What comes before the last number of a name, and that number (or nothing)."""
    match = _NUMBERED.fullmatch(name)
    return (match[1], match[2]) if match else (name, "")


def _bracket(numbers: Iterable[str]) -> str:
    """Numbers in a bracket, ascending neighbours of one width as a range."""
    runs: list[list[str]] = []
    for number in numbers:
        last = runs[-1] if runs else [number]
        if runs and number == str(int(last[0]) + len(last)).zfill(len(last[0])):
            last.append(number)
        else:
            runs.append([number])
    parts = [run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    is_one = len(runs) == len(runs[0]) == 1
    return parts[0] if is_one else f"[{','.join(parts)}]"
