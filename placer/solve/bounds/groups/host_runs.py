"""Groups that leave their host with a small part, where hosts have islands.

A host holds one run of consecutive ranks, each of its islands a part of it. A placement
is a walk along the groups, host by host. A *state* says how many ranks of a group lie
behind, and whether some part of it so far is small. As many hosts lead to a state as
away from it (a circulation), which an integer program counts. See docs/method.md,
"Which groups leave their host".
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from placer.solve.count.engine import Limits, solve
from placer.solve.count.model import Program, Term

if TYPE_CHECKING:
    from collections.abc import Iterator

    from placer.topology.machine import Machine

MOST_ISLANDS, MOST_COLUMNS = 4, 20_000  # of a host, and of the program
ROUNDING = 1e-6

Host = tuple[int, ...]  # GPUs of its islands, in turn


class State(NamedTuple):
    """Ranks of a group on the hosts so far, and whether a part of them is small."""

    behind: int
    is_small: bool


class Held(NamedTuple):
    """What a host holds: ranks, and groups that end there and left with a small part.

    Attributes
    ----------
    after : State
    """

    ranks: int
    ended: int
    after: State


def hosts_of(topology: Machine) -> tuple[tuple[Host, int], ...]:
    """Islands of each host, nodes being islands, and how many hosts are alike."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    for host, gpus in zip(
        topology.host_of_node.tolist(), topology.gpus_of_node.tolist(), strict=True
    ):
        found[host].append(gpus)
    return tuple(sorted(Counter(tuple(one) for one in found.values()).items()))


@lru_cache(maxsize=256)
def fewest_leaving(
    hosts: tuple[tuple[Host, int], ...], size: int, part: int, ranks: int, work: float
) -> int:
    """Groups on several hosts that have a part of fewer ranks than this, at the least.

    Parameters
    ----------
    hosts : tuple of pairs
        GPUs of the islands of a host, and how many hosts are alike.
    size, part, ranks : int
        Ranks of a group, of a part, and in all.
    work : float
        Of the program, in CP-SAT's deterministic seconds.
    """
    if max(len(islands) for islands, _ in hosts) > MOST_ISLANDS:
        return 0
    program = Program()
    through: defaultdict[State, list[Term]] = defaultdict(list)
    held_ranks: list[Term] = []
    for islands, number in hosts:
        used: list[Term] = []
        for behind in range(size):
            for is_small in (False, True)[: behind + 1]:
                before = State(behind, is_small)
                for held in sorted({*_held(before, islands, size, part)}):
                    column = program.column(number, held.ended)
                    through[before].append(Term(column, -1))
                    through[held.after].append(Term(column))
                    held_ranks.append(Term(column, held.ranks))
                    used.append(Term(column))
        program.row(used, most=number)
    if len(program.most) > MOST_COLUMNS:
        return 0
    for terms in through.values():
        program.row(terms, 0, 0)
    program.row(held_ranks, ranks, ranks)
    answer = solve(program, Limits(work))
    if answer.is_proved and answer.counts is None:  # for others to say
        return 0
    return max(0, ceil(answer.bound - ROUNDING))


def _held(before: State, islands: Host, size: int, part: int) -> Iterator[Held]:
    """All that a host may hold from a state on, its islands one after the other."""
    # Ranks, groups that ended, the state, and whether its group began elsewhere.
    ways = {(0, 0, before, before.behind > 0)}
    for room in islands:
        ways = {
            _with_part(way, held, size, part)
            for way in ways
            for held in range(room + 1)
        }
    yield from (Held(ranks, ended, after) for ranks, ended, after, _ in ways if ranks)


def _with_part(
    way: tuple[int, int, State, bool], held: int, size: int, part: int
) -> tuple[int, int, State, bool]:
    """What a host holds with so many ranks on the next island."""
    ranks, ended, (behind, is_small), is_apart = way
    ranks += held
    while held:
        here = min(held, size - behind)
        behind, held, is_small = behind + here, held - here, is_small or here < part
        if behind == size:
            ended += is_small and is_apart
            behind, is_small, is_apart = 0, False, False
    return ranks, ended, State(behind, is_small), is_apart
