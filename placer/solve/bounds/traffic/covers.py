"""Whether all ranks can be in fast company at once, and in which.

What a scale-up domain holds is fast company (`company.py`), and so is each part of it
that sends nothing to the others. All connected ones for a T are the columns of a
program: each rank is in one of those taken, and they fit in domains. Where it has no
solution no placement takes T. Where there are too many to list, companies of some ranks
near each other may do: each of those is in one, any other rank in one at the most. See
docs/method.md, "Company for all at once".
"""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.solve.count.engine import Limits, solve
from placer.solve.count.model import Program, Term

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from placer.arrays import IntArray
    from placer.solve.bounds.traffic.company import Companies
    from placer.solve.run.budget import Budget

# Times, at the least, that share the work.
SHARES = 4
# Ways to fill a domain with companies that are told apart, at most.
FILLINGS = 1000


class Cover(NamedTuple):
    """What is known about a time.

    Attributes
    ----------
    later_s : float or None, s
        No placement takes less; None where the time may do.
    sets : list of frozenset of int
        Every rank in one of them, all fast; empty where none were found.
    """

    later_s: float | None = None
    sets: Sequence[frozenset[int]] = ()


def cover(
    companies: Companies,
    capacities: IntArray,
    seconds: float,
    work: float,
    budget: Budget,
) -> Cover:
    """Company for all ranks, as fast as that, or a proof that there is none.

    Parameters
    ----------
    companies : Companies
    capacities : ndarray, ranks
        Of the scale-up domains.
    seconds : float
    work : float
        Of the program, CP-SAT's deterministic seconds.
    budget : Budget
        When it ends, nothing is known.
    """
    trees = companies.trees(seconds, SHARES)
    found: list[frozenset[int]] = []
    times, done = Counter[int](), dict[int, None]()
    for rank in companies.side_by_side():
        if budget.is_over():
            return Cover()
        own = list(trees.around(rank, done))
        if trees.is_cut:
            break
        found += own
        times.update(chain.from_iterable(own))
        done[rank] = None
        if not times[rank]:
            return Cover(trees.next_s)
    ranks = len(companies.alone)
    program = _program(found, done, capacities, ranks)
    answer = solve(program, Limits(work, budget.seconds_left))
    if answer.counts is None:
        return Cover(trees.next_s if answer.is_proved else None)
    if len(done) < ranks:
        return Cover()
    return Cover(None, [one for one, n in zip(found, answer.counts, strict=False) if n])


def _program(
    found: Sequence[frozenset[int]],
    done: dict[int, None],
    capacities: IntArray,
    ranks: int,
) -> Program:
    """Companies in which the ranks done are, each in one; columns as they are found."""
    program = Program()
    of_rank: dict[int, list[Term]] = {rank: [] for rank in range(ranks)}
    of_size: dict[int, list[Term]] = {}
    for one in found:
        term = Term(program.column(1))
        of_size.setdefault(len(one), []).append(term)
        for rank in one:
            of_rank[rank].append(term)
    for rank, terms in of_rank.items():
        if terms:
            program.row(terms, 1 if rank in done else 0, 1)
    if len(done) == ranks:
        total = (
            term._replace(times=size)
            for size, terms in of_size.items()
            for term in terms
        )
        program.row(total, ranks, ranks)
        _fit(program, of_size, capacities)
    return program


def _fit(
    program: Program, of_size: dict[int, list[Term]], capacities: IntArray
) -> None:
    """Rows that ask for domains with room for all companies taken."""
    held: dict[int, list[Term]] = {size: [] for size in of_size}
    rooms, counts = np.unique(capacities, return_counts=True)
    for room, count in zip(rooms.tolist(), counts.tolist(), strict=True):
        domains: list[Term] = []
        for filling in _fillings(room, sorted(of_size, reverse=True)):
            if len(domains) == FILLINGS:
                return
            domains.append(Term(program.column(count)))
            for size, times in Counter(filling).items():
                held[size].append(domains[-1]._replace(times=times))
        if domains:
            program.row(domains, 0, count)
    for size, terms in of_size.items():
        taken = (term._replace(times=-term.times) for term in terms)
        program.row(chain(held[size], taken), 0)


def _fillings(room: int, sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All ways to fill some room, to which none of the sizes could be added."""
    fits = [size for size in sizes if size <= room]
    if not fits:
        yield ()
    for at, size in enumerate(fits):
        for rest in _fillings(room - size, fits[at:]):
            yield (size, *rest)
