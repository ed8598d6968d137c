"""Which place or part of a job explains the times that its ranks took in several runs.

Group testing: every suspect slows a known set of ranks in each placement. A node slows
the ranks it holds, a link those of all groups that cross it, a stage or a replica its
own wherever they run. The suspect whose sets fit the times best (least squares, one
suspect at a time) is the one to blame. Placements in which what was together is apart
(`placer.api.vary`) make the sets of any two suspects differ.

Shapes: R ranks, K runs, M rows of times over all runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from placer.placement.plan import Plan


# Nepers by which a suspect must be likelier than the next, and than none.
EVIDENCE = 10.0
# A part of the spread that floats may leave; more than that is noise.
EXACT = 1e-12
AXES = ("tp", "cp", "pp", "dp")


@dataclass(frozen=True, eq=False)
class Run:
    """The times of one placement."""

    plan: Plan
    row_of_rank: IntArray  # (R,): which of the times a rank is part of; -1 for none
    seconds: FloatArray  # the times


@dataclass(frozen=True)
class Suspect:
    """A place or a part, and how well it explains the times."""

    # A tier, ``TIER link``, ``rank``, ``stage``, ``replica`` or an axis' group.
    kind: str
    name: str
    axis: str  # of the groups that a link slows; empty for others
    slower: float  # share by which the ranks concerned take longer than the others
    explained: float  # share of the spread of all times that this explains

    @property
    def is_place(self) -> bool:
        """Whether it is a part of the machine, not of the job."""
        return self.kind not in _PARTS

    def __str__(self) -> str:
        if self.kind == _CELL:
            stage, replica = self.name.split(" of ")
            return f"stage {stage} of replica {replica}"
        seen = f", seen in {self.axis}" if self.axis else ""
        return f"{self.kind} {self.name}{seen}"


@dataclass(frozen=True)
class Verdict:
    """What the times say.

    Attributes
    ----------
    named : Suspect or None
        The one to blame, None when none stands out or several fit alike.
    suspects : tuple of Suspect
        Those that fit best, the best first.
    alike : int
        How many fit exactly as well as the first, itself among them.
    open : tuple of Suspect
        Those that another placement has to tell apart: all alike, or where the first
        does not stand out the best few. None where one is named.
    """

    named: Suspect | None
    suspects: tuple[Suspect, ...]
    alike: int
    open: tuple[Suspect, ...] = ()


_CELL = "stage of a replica"  # named as "2 of 7", stage and replica
_PARTS = ("rank", "stage", "replica", "tp group", _CELL)
MOST_SHOWN = 5


def verdict_of(runs: Sequence[Run]) -> Verdict:
    """The suspect that explains the times of all runs, if one stands out."""
    times = np.concatenate([run.seconds for run in runs])
    mean = float(times.mean())
    centred = times - mean
    spread = float(centred @ centred)
    found: list[Suspect] = []
    if spread > (EXACT * mean) ** 2 * len(times):
        for (kind, name, axis), rows in _rows_of_suspects(runs):
            slow, others = len(rows), len(times) - len(rows)
            if not (slow and others):
                continue
            above = float(centred[rows].sum())  # as far as the others are below
            if above > 0:
                slower = (above / slow + above / others) / (mean - above / others)
                gain = above * above * len(times) / (slow * others * spread)
                found.append(Suspect(kind, name, axis, slower, min(gain, 1.0)))
    found.sort(key=lambda one: -one.explained)
    if not found:
        return Verdict(None, (), 0)
    best = found[0].explained
    alike = sum(one.explained > best - 1e-9 for one in found)
    after = (
        _evidence(len(times), best, found[1].explained) if len(found) > 1 else np.inf
    )
    alone = _evidence(len(times), best, 0.0) - log(len(found))
    is_named = alike == 1 and after > EVIDENCE and alone > EVIDENCE
    shown = tuple(found[:MOST_SHOWN])
    if is_named:
        return Verdict(found[0], shown, alike)
    return Verdict(None, shown, alike, tuple(found[:alike]) if alike > 1 else shown)


def most_alike(plan: Plan, suspects: Sequence[Suspect]) -> tuple[int, int]:
    """The largest number of suspects that slow the same ranks, and pairs that do.

    A run with the placement tells those apart that slow different ranks. Places that
    hold no ranks slow none.
    """
    asked = {(one.kind, one.name, one.axis) for one in suspects}
    slowed = {key: np.sort(ranks) for key, ranks in _ranks_of_suspects(plan)}
    none = np.zeros(0, dtype=np.int64)
    sets = Counter(slowed.get(key, none).tobytes() for key in asked)
    return max(sets.values(), default=0), sum(n * (n - 1) for n in sets.values())


def _evidence(rows: int, better: float, worse: float) -> float:
    """Log of how much likelier the better explanation is, with normal noise."""
    return rows / 2 * log((1 - worse + EXACT) / (1 - better + EXACT))


def _rows_of_suspects(
    runs: Sequence[Run],
) -> Iterator[tuple[tuple[str, str, str], IntArray]]:
    """(kind, name, axis) of each suspect, and the rows of all runs that it slows.

    Of parts of the job that no placement can tell apart, since times belong to several
    ranks each, the largest is the suspect: a stage, not one rank of it.
    """
    gathered: dict[tuple[str, str, str], list[IntArray]] = {}
    offset = 0
    for run in runs:
        is_by_rank = np.array_equal(run.row_of_rank, np.arange(run.plan.world_size))
        for key, ranks in _ranks_of_suspects(run.plan):
            rows = run.row_of_rank[ranks]
            if not is_by_rank:
                rows = np.unique(rows[rows >= 0])
            gathered.setdefault(key, []).append(rows + offset)
        offset += len(run.seconds)
    seen: set[bytes] = set()
    for key, own in gathered.items():
        rows = np.concatenate(own)
        if key[0] in _PARTS:
            if rows.tobytes() in seen:
                continue
            seen.add(rows.tobytes())
        yield key, rows


def _ranks_of_suspects(
    plan: Plan,
) -> Iterator[tuple[tuple[str, str, str], IntArray]]:
    """(kind, name, axis) of each suspect, and the ranks that it slows in a plan."""
    axes = plan.axes
    if axes is None:
        raise ValueError("the plan does not record its axes")
    at = axes.coordinates
    groups = {a: _group_of_rank(at, a) for a in AXES if axes.size(a) > 1}
    members = {a: _members(group, int(group.max()) + 1) for a, group in groups.items()}
    places = {plan.outer_tiers[0]: plan.nodes, **plan.domains}
    for tier, domain_of_node in places.items():
        names, number = np.unique(np.array(domain_of_node), return_inverse=True)
        home = number.ravel()[plan.node_of_rank]
        for index, ranks in enumerate(_members(home, len(names))):
            yield (tier, str(names[index]), ""), ranks
        for axis, group in groups.items():
            crossing = _crossing(home, group)
            for index, own in enumerate(crossing):
                if len(own):
                    slow = np.concatenate([members[axis][g] for g in own.tolist()])
                    yield (f"{tier} link", str(names[index]), axis), slow
    yield from _parts(at, groups)


def _parts(
    at: Mapping[str, IntArray], groups: Mapping[str, IntArray]
) -> Iterator[tuple[tuple[str, str, str], IntArray]]:
    """Parts of the job, each set of ranks once."""
    stages, replicas = int(at["pp"].max()) + 1, int(at["dp"].max()) + 1
    cell = at["dp"] * stages + at["pp"]
    kinds: list[tuple[str, IntArray]] = [("replica", at["dp"]), ("stage", at["pp"])]
    if stages > 1 and replicas > 1:
        kinds.append((_CELL, cell))
    if "tp" in groups:
        kinds.append(("tp group", groups["tp"]))
    kinds.append(("rank", np.arange(len(cell))))
    seen: set[bytes] = set()
    for kind, label in kinds:
        _, first, number = np.unique(label, return_index=True, return_inverse=True)
        key = first[number].tobytes()  # equal for equal sets, however numbered
        if key in seen:
            continue
        seen.add(key)
        for index, ranks in enumerate(_members(label, int(label.max()) + 1)):
            name = str(index)
            if kind == _CELL:
                name = f"{index % stages} of {index // stages}"
            yield (kind, name, ""), ranks


def _group_of_rank(at: Mapping[str, IntArray], axis: str) -> IntArray:
    """Number of each rank's group of an axis; shape (R,)."""
    number = np.zeros_like(at[axis])
    for other in AXES:
        if other != axis:
            number = number * (int(at[other].max()) + 1) + at[other]
    return number


def _members(label: IntArray, count: int) -> list[IntArray]:
    """Ranks of each label."""
    order = np.argsort(label, kind="stable")
    ends = np.cumsum(np.bincount(label, minlength=count))
    return np.split(order, ends[:-1])


def _crossing(home: IntArray, group: IntArray) -> list[IntArray]:
    """Groups with members in each domain and outside it."""
    count, domains = int(group.max()) + 1, int(home.max()) + 1
    pairs = np.unique(home * count + group)
    touched = np.bincount(pairs % count, minlength=count)
    pairs = pairs[touched[pairs % count] > 1]
    ends = np.cumsum(np.bincount(pairs // count, minlength=domains))
    return np.split(pairs % count, ends[:-1])
