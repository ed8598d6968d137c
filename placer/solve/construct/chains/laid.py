"""Chains laid one after another along the tree: cheap, and there whenever units fit.

This is what stitching has to beat, and what completes one that the clock ended.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray
from placer.solve.construct.chains.segments import Fragment

if TYPE_CHECKING:
    from placer.solve.construct.chains.segments import Segment, Stitching


def laid(problem: Stitching) -> list[Segment] | None:
    """Replicas along the tree, each on the units that the one before left over.

    None where that takes more units than there are. Units of two halves are made only
    for those that leaves cannot hold whole, of the nearest halves.
    """
    needed = problem.replicas * problem.length
    leaves = _whole_runs(problem, np.repeat(*_in_order(problem, problem.capacity)))
    twins = leaves
    if len(leaves) < needed and set(problem.multiples) <= {1}:
        pairs = _paired(problem, needed - len(leaves))
        leaves, twins = np.concatenate([[leaves, leaves], pairs], axis=1)
        along = np.argsort(_position(problem)[leaves], kind="stable")
        leaves, twins = leaves[along], twins[along]
    if len(leaves) < needed:
        return None
    units = list(zip(leaves.tolist(), twins.tolist(), strict=True))
    return [
        _segment(units[start : start + problem.length])
        for start in range(0, needed, problem.length)
    ]


def _segment(units: list[tuple[int, int]]) -> Segment:
    """Fragments of a replica whose units lie in these leaves; halves by themselves."""
    fragments: list[Fragment] = []
    for (leaf, twin), same in groupby(units):
        count = len(list(same))
        if leaf == twin:
            fragments.append(Fragment(leaf, count, leaf))
        else:
            fragments += [Fragment(leaf, 1, twin)] * count
    return tuple(fragments)


def _position(problem: Stitching) -> IntArray:
    """Place of each leaf in tree order."""
    return np.argsort(problem.in_tree_order(0))


def _in_order(problem: Stitching, counts: IntArray) -> tuple[IntArray, IntArray]:
    order = problem.in_tree_order(0)
    return order, counts[order]


def _whole_runs(problem: Stitching, leaves: IntArray) -> IntArray:
    """Units in tree order, without those beyond whole multiples of a domain."""
    for level, multiple in enumerate(problem.multiples):
        domain = leaves
        for parent in problem.parents[: level + 1]:
            domain = parent[domain]
        held = np.bincount(domain)
        whole = held // multiple * multiple
        leaves = leaves[_place_in(domain) < whole[domain]]
    return leaves


def _paired(problem: Stitching, count: int) -> IntArray:
    """Leaves of so many pairs of halves, the nearest first; shape (2, pairs)."""
    none = np.zeros((2, 0), dtype=np.int64)
    if problem.spare_halves is None:
        return none
    left = np.repeat(*_in_order(problem, problem.spare_halves))
    domain, pairs = left, none
    for parent in problem.parents:
        domain = parent[domain]
        # Of each domain's halves in order, every second with the one before.
        second = np.flatnonzero(_place_in(domain) % 2)
        second = second[: count - pairs.shape[1]]
        pairs = np.concatenate([pairs, left[[second - 1, second]]], axis=1)
        kept = np.ones(len(left), dtype=bool)
        kept[[second - 1, second]] = False
        left, domain = left[kept], domain[kept]
    return pairs


def _place_in(domain: IntArray) -> IntArray:
    """Place of each entry in its stretch of equal domains."""
    here = np.arange(len(domain))
    begins = np.append(True, np.diff(domain) != 0)[: len(domain)]
    return here - np.maximum.accumulate(np.where(begins, here, 0))
