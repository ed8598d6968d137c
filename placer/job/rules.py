"""Rules about hosts and failures: pins, hosts to avoid, replicas a domain, spares."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from placer.base.errors import Problem
from placer.base.hostlist import HostLists, compress
from placer.documents import Section, Value
from placer.documents.keys import TEXT, integer, key, list_of, map_of, special
from placer.documents.records import entries, nested
from placer.job.axes import MAX_WORLD_SIZE

if TYPE_CHECKING:
    from placer.base.budget import HostBudget

MAX_HOSTS = 1 << 17  # that pins and avoid may name in all

MAX_RANKS = 1 << 20

_RANGE = re.compile(r"\s*([0-9]{1,12})\s*(?:-\s*([0-9]{1,12})\s*)?")


_HOSTS = special(lambda: {"anyOf": [TEXT.schema(), list_of(TEXT).schema()]})


@dataclass(frozen=True)
class Pin:
    """Ranks that must run on one of some hosts."""

    ranks: tuple[int, ...] = key(
        special(lambda: {"type": ["string", "integer"]}), "ranks, such as `0-7,12`"
    )
    hosts: tuple[str, ...] = key(
        _HOSTS, "a host list, or a list of them", called="nodes"
    )

    def __str__(self) -> str:
        noun = "rank" if len(self.ranks) == 1 else "ranks"
        return f"{noun} {ranks_text(self.ranks)} on {compress(self.hosts)}"


@dataclass(frozen=True)
class Rules:
    """What a placement must keep besides the requirements of groups.

    Attributes
    ----------
    budgets : tuple of HostBudget
        What sets of hosts may run: those of the machine, which no job file has.
    where : mapping of str to (str, int, int)
        Source, line and column of ``pin[0]``, ``at_most.rack`` and so on.
    """

    pin: tuple[Pin, ...] = key(
        list_of(nested(Pin)),
        "each of these ranks runs on one of these nodes; a rank is in one pin only",
        (),
    )
    avoid: tuple[str, ...] = key(
        _HOSTS,
        "as few of these nodes as possible are used: none at all when the job fits "
        "without",
        (),
    )
    at_most: Mapping[str, int] = key(
        map_of(integer()),
        "so many data-parallel replicas may have ranks in one domain of the tier. A "
        "replica counts wherever any of its ranks is, for that is where a failure hits "
        "it",
        dict,
    )
    spares: Mapping[str, int] = key(
        map_of(integer()),
        "so many nodes without ranks in every domain of the tier that has any. They "
        "are nodes the job may use: of its hosts, available and not excluded; nodes to "
        "avoid count",
        dict,
    )
    budgets: tuple[HostBudget, ...] = ()
    where: Mapping[str, tuple[str, int, int]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def __bool__(self) -> bool:
        numbers = self.at_most or self.spares or self.budgets
        return bool(self.pin or self.avoid or numbers)

    def and_also(self, more: Rules) -> Rules:
        """Both rules together: all pins, all hosts to avoid, the stricter numbers."""
        shift = len(self.pin)
        moved = {
            re.sub(r"^pin\[(\d+)\]", lambda m: f"pin[{int(m[1]) + shift}]", key): place
            for key, place in more.where.items()
        }
        return Rules(
            pin=self.pin + tuple(pin for pin in more.pin if pin not in self.pin),
            avoid=tuple(dict.fromkeys(self.avoid + more.avoid)),
            at_most=_joined(self.at_most, more.at_most, min),
            spares=_joined(self.spares, more.spares, max),
            budgets=tuple(dict.fromkeys(self.budgets + more.budgets)),
            where={**moved, **self.where},
        )

    def problem(self, key: str, message: str, hint: str = "") -> Problem:
        """A problem at a rule, with the place in the file it came from."""
        source, line, column = self.where.get(key, ("", 0, 0))
        shown = "" if source.startswith("--") else f"rules.{key}"
        return Problem(message, source, line, column, shown, hint)

    def rank_problems(self, world_size: int) -> Iterator[Problem]:
        """Problems of pins: ranks that the job lacks, ranks pinned twice."""
        pinned: dict[int, int] = {}
        for index, pin in enumerate(self.pin):
            key = f"pin[{index}]"
            if pin.ranks[-1] >= world_size:
                message = f"there is no rank {pin.ranks[-1]}"
                hint = f"the job has ranks 0 to {world_size - 1}"
                yield self.problem(key, message, hint)
            again = next((rank for rank in pin.ranks if rank in pinned), None)
            if again is not None:
                other = self.pin[pinned[again]]
                message = f"rank {again} is pinned twice, also to "
                message += compress(other.hosts)
                yield self.problem(key, message, "name each rank in one pin only")
            pinned.update(dict.fromkeys(pin.ranks, index))

    def to_document(self) -> dict[str, Any]:
        """The rules in the form of a job file; empty ones are left out."""
        pins = [
            {"ranks": ranks_text(pin.ranks), "nodes": compress(pin.hosts)}
            for pin in self.pin
        ]
        avoided = [compress(self.avoid)] if self.avoid else []
        document = entries(self, pin=pins, avoid=avoided)
        return {key: value for key, value in document.items() if value}


def parse_ranks(text: str, highest: int = MAX_RANKS - 1) -> tuple[int, ...]:
    """Ranks of a list such as ``0-7,12``, ascending.

    Raises `ValueError` if it is malformed, or names a rank above ``highest`` or twice.
    """
    ranks: list[int] = []
    if text.count(",") > highest:
        raise ValueError("a rank comes twice")
    for item in text.split(","):
        match = _RANGE.fullmatch(item)
        if match is None:
            raise ValueError(f'"{text[:60]}" is not a list of ranks such as 0-7,12')
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ValueError(f"the range {first}-{last} runs backwards")
        if last > highest:
            raise ValueError(f"rank {last} is above {highest}, the last rank")
        if len(ranks) + last - first > highest:
            raise ValueError("a rank comes twice")
        ranks.extend(range(first, last + 1))
    ranks.sort()
    twice = next((a for a, b in pairwise(ranks) if a == b), None)
    if twice is not None:
        raise ValueError(f"rank {twice} comes twice")
    return tuple(ranks)


def ranks_text(ranks: Iterable[int]) -> str:
    """Ascending ranks as a list that `parse_ranks` reads: ``0-7,12``."""
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def _joined(
    mine: Mapping[str, int], more: Mapping[str, int], choose: Callable[[int, int], int]
) -> dict[str, int]:
    """Both mappings; where both have a key, the stricter value."""
    both = dict(mine)
    for tier, number in more.items():
        both[tier] = choose(both.get(tier, number), number)
    return both


def decode_rules(section: Section, world_size: int) -> Rules:
    """The rules of a job; problems go to the job's document.

    Tiers and hosts are the machine's, and are checked against it later. A
    ``world_size`` of 0 means that it is unknown and ranks cannot be checked.
    """
    where: dict[str, tuple[str, int, int]] = {}
    lists = HostLists(MAX_HOSTS)
    pins: list[Pin] = []
    left = MAX_WORLD_SIZE
    for index, value in enumerate(section.items("pin")):
        _mark(where, f"pin[{index}]", value)
        pins.append(_pin(value.section(), world_size, lists))
        left -= len(pins[-1].ranks)
        if left < 0:
            value.problem(f"more than {MAX_WORLD_SIZE} ranks in all pins together")
            break
    avoid = section.get("avoid")
    if avoid is not None:
        _mark(where, "avoid", avoid)
    rules = Rules(
        pin=tuple(pins),
        avoid=_hosts(avoid, lists),
        at_most=_numbers(section, "at_most", where),
        spares=_numbers(section, "spares", where),
        where=where,
    )
    if world_size and all(pin.ranks and pin.hosts for pin in pins):
        section.document.problems.extend(rules.rank_problems(world_size))
    return rules


def _pin(section: Section, world_size: int, lists: HostLists) -> Pin:
    ranks: tuple[int, ...] = ()
    value = section.get("ranks", required=True)
    if value is not None and value.kind in ("text", "number"):
        highest = (world_size or MAX_WORLD_SIZE) - 1
        ranks = value.made(parse_ranks, str(value.content), highest, default=())
    elif value is not None:
        message = f"expected ranks, got {value.shown()}"
        value.problem(message, "write them as 0-7,12")
    nodes = section.get("nodes", required=True)
    hosts = _hosts(nodes, lists)
    if nodes is not None and not hosts and not section.document.problems:
        nodes.problem("names no node")
    return Pin(ranks, hosts)


def _hosts(value: Value | None, lists: HostLists) -> tuple[str, ...]:
    """Hosts of a host list, or of a list of them, each once."""
    if value is None:
        return ()
    found: dict[str, None] = {}
    for item in value.items() if value.kind == "list" else [value]:
        if text := item.text():
            found.update(
                dict.fromkeys(item.made(lists.expand, text, default=list[str]()))
            )
    return tuple(found)


def _numbers(
    section: Section, key: str, where: dict[str, tuple[str, int, int]]
) -> dict[str, int]:
    """A mapping of tiers to numbers of at least 1."""
    found = {}
    for tier, value in section.section(key).entries():
        _mark(where, f"{key}.{tier}", value)
        found[tier] = value.integer()
    return found


def _mark(where: dict[str, tuple[str, int, int]], key: str, value: Value) -> None:
    where[key] = (value.place.source, value.place.line, value.place.column)
