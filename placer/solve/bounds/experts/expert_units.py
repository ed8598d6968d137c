"""Expert groups of a job with all that must stay together with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import IntArray, row_of_number
from placer.solve.problem.colocation import join

if TYPE_CHECKING:
    from placer.job.model import Job


class Units(NamedTuple):
    """Expert groups with all that is tied to them.

    Attributes
    ----------
    pieces : int
        Of each unit.
    ranks : int
        Of a piece.
    members : int
        That a piece has of each expert group of its unit.
    replicas, together : int
        Replicas, and how many of them a unit makes wait; sets of replicas that wait for
        the same units count once.
    alike : int
        Units of a stage that such a replica waits for.
    """

    number: int
    pieces: int
    ranks: int
    members: int
    replicas: int
    together: int
    alike: int


def units_of(job: Job, label: IntArray) -> Units | None:
    """Units where the ranks of each set lie in one domain; None where they differ.

    Where sets differ, single ranks may lie anywhere, which bounds them as well.
    """
    return _alike(job, label) or _alike(job, np.arange(job.world_size))


def _alike(job: Job, label: IntArray) -> Units | None:
    """Units that are all alike in every way that counts, None if they are not."""
    axes = job.parallelism
    members = axes.ranks_of_group["ep"]
    group = row_of_number(members)
    stage = axes.coordinates["pp"]
    place = axes.coordinates["dp"] * axes.pp + stage
    piece = np.unique(label, return_inverse=True)[1]
    unit = np.unique(join(label, members), return_inverse=True)[1]
    facts = (
        np.bincount(piece),
        np.bincount(unit),
        _shared(piece, group),
        _shared(unit, piece, ends=True),
        _shared(unit, group, ends=True),
        _shared(piece, group, ends=True),
        _shared(unit, place, ends=True),
        _shared(place, unit, ends=True),
    )
    ranks, size, each, _, groups, touched, together, waits = (
        int(fact[0]) for fact in facts
    )
    is_alike = all((fact == fact[0]).all() for fact in facts) and groups == touched
    one_stage = (_shared(unit, stage, ends=True) == 1).all()
    if not (is_alike and one_stage):
        return None
    number, replicas = job.world_size // size, axes.dp
    of_unit = np.argsort(unit, kind="stable").reshape(number, size)
    cohorts = len(np.unique(join(axes.coordinates["dp"], of_unit)))
    if number == cohorts * axes.pp * waits:
        replicas, together = cohorts, 1
    return Units(number, size // ranks, ranks, each, replicas, together, waits)


def _shared(one: IntArray, other: IntArray, *, ends: bool = False) -> IntArray:
    """Ranks that sets of either kind share, or how many others each of one kind meets.

    Only pairs that share a rank count.
    """
    pairs, ranks = np.unique(one * (other.max() + 1) + other, return_counts=True)
    return np.bincount(pairs // (other.max() + 1)) if ends else ranks
