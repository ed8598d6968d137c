"""A program on runs of ranks, where every node holds one.

What a run costs depends on its node, its length and the *place* where it begins in
blocks of B ranks that repeat. With r ranks from ``a`` on, the next one begins at ``(a +
r) mod B``. A program counts runs by the sort of their node, place and length:

``least sum of costs``,  ``as many runs lead to a place as begin there``,
``sum of lengths = ranks``,  ``no more runs than nodes of each sort``

It leaves out that runs must follow each other, so none costs less. Shapes: S sorts of
nodes, B places, L ranks of the longest run.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from placer.arrays import FloatArray, IntArray
from placer.solve.count.model import Program, Term


class RunColumn(NamedTuple):
    """What a column of the program counts."""

    sort: int
    begin: int
    length: int


def run_program(
    cost: FloatArray, nodes: IntArray, ranks: int
) -> tuple[Program, list[RunColumn]]:
    """The program, and what its columns count.

    Parameters
    ----------
    cost : ndarray, shape (S, B, L)
        Of runs from 1 rank on; inf where there is none.
    nodes : ndarray, shape (S,)
        Of each sort.
    ranks : int
        Of the job.
    """
    program, columns = Program(), list[RunColumn]()
    through: dict[int, list[Term]] = defaultdict(list)
    held = []
    for sort, number in enumerate(nodes.tolist()):
        of_sort = []
        for begin, less in np.argwhere(np.isfinite(cost[sort])).tolist():
            column = program.column(number, float(cost[sort, begin, less]))
            columns.append(RunColumn(sort, begin, less + 1))
            of_sort.append(Term(column))
            held.append(Term(column, less + 1))
            through[begin].append(Term(column, -1))
            through[(begin + less + 1) % cost.shape[1]].append(Term(column))
        program.row(of_sort, most=number)
    for terms in through.values():
        program.row(terms, 0, 0)
    program.row(held, ranks, ranks)
    return program, columns


def consecutive(label: IntArray) -> int:
    """Consecutive ranks of each set; 1 where sets are others, or not alike.

    Parameters
    ----------
    label : ndarray, shape (R,)
        Set of each rank.
    """
    world, number = len(label), np.unique(label, return_inverse=True)[1]
    size = world // (int(number.max()) + 1)
    is_run = world % size == 0 and (number == np.arange(world) // size).all()
    return size if is_run else 1
