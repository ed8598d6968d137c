"""How many consecutive ranks nodes hold, and what then fits together.

Sets of several sizes are packed into the tree by exact programs on counts. Sets with
the same make-up (size, and the same sets of inner tiers inside) are equal, so the
program only counts how many of each kind every domain holds. Where boxes of nodes may
hold only so many ranks, nodes of the same boxes are equal.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placer.base.arrays import IntArray
from placer.job.model import Job
from placer.solve.count import EngineLimits, Program, Term, solve
from placer.solve.problem.colocation import Colocation, colocation_of
from placer.solve.tree.domains import node_capacity, whole_sets
from placer.topology.machine import Machine


def launch_blocks(topology: Machine, job: Job) -> list[int]:
    """Ranks a node may hold, best first: the block sizes a launch may use.

    A free launch places single ranks. A node-contiguous one gives every node the same
    number of consecutive ranks (torchrun's ``--nproc-per-node``): any divisor of the
    world for which enough nodes are large enough. Blocks that cut no tp group come
    first, then large ones.
    """
    if job.launcher == "free":
        return [1]
    gpus = topology.gpus_of_node
    tp = job.parallelism.tp
    found = [
        block
        for block in range(int(gpus.max()), 0, -1)
        if job.world_size % block == 0
        and int((gpus >= block).sum()) * block >= job.world_size
    ]
    return sorted(found, key=lambda block: bool(block % tp and tp % block))


def forced_block(topology: Machine, job: Job) -> int:
    """Consecutive ranks that every node must hold, 0 when nodes may differ.

    With GPUs to spare a node-contiguous launch may also give nodes different numbers.
    1 for a free launch: any rank may go anywhere.
    """
    if job.launcher == "free":
        return 1
    gpus = topology.gpus_of_node
    is_full = job.world_size == topology.num_gpus and bool((gpus == gpus[0]).all())
    if topology.node_tier and not counts_by_island(topology):
        return 0  # ranks of a host may also follow the launcher's count
    return int(gpus[0]) if is_full else 0


def fits(topology: Machine, colocation: Colocation) -> bool:
    """Whether the sets can be packed into the domains."""
    capacity = node_capacity(topology, colocation.block)
    sizes = colocation.uniform_sizes()
    if sizes is None:
        return pack(topology, colocation, capacity) is not None
    takes = whole_sets(topology, capacity, sizes)
    return bool(takes[-1].sum() >= colocation.label.shape[1])


def feasible_colocations(topology: Machine, job: Job) -> list[Colocation]:
    """The sets of every launch block that can be packed, best first; may be empty."""
    found = []
    for block in launch_blocks(topology, job):
        colocation = colocation_of(topology, job, block)
        if fits(topology, colocation):
            found.append(colocation)
    return found


def counts_by_island(topology: Machine) -> bool:
    """Whether a launcher counts the GPUs of every host island by island."""
    if not topology.node_tier or topology.gpu_index is None:
        return True
    order = topology.gpu_index
    host = topology.host_of_gpu
    return bool(((np.diff(order) > 0) | (np.diff(host) != 0)).all())


def launched(topology: Machine, job: Job, node_of_rank: IntArray) -> IntArray:
    """GPU of every rank where its launcher can start them so; shape (R,).

    In a launch by nodes hosts count GPUs island by island, or as the launcher does
    where only that ascends.
    """
    gpu_of_rank = topology.gpus_on(node_of_rank)
    if job.launcher == "free" or counts_by_island(topology):
        return gpu_of_rank
    host_of_rank = topology.host_of_node[node_of_rank]
    for host in np.unique(host_of_rank).tolist():
        ranks = np.flatnonzero(host_of_rank == host)
        if (np.diff(gpu_of_rank[ranks]) > 0).all():
            continue
        last = -1
        for rank in ranks.tolist():
            gpus = topology.gpus_of(node_of_rank[[rank]])
            later = gpus[topology.index_of_gpu[gpus] > last]
            if not later.size:
                break
            gpu_of_rank[rank] = later[np.argmin(topology.index_of_gpu[later])]
            last = int(topology.index_of_gpu[gpu_of_rank[rank]])
    return gpu_of_rank


def run_tiers(topology: Machine) -> set[int]:
    """Tiers whose domains hold one run of ranks each in a launch by nodes.

    Hosts do, and their islands where they are counted in turn.
    """
    islands = {0} if counts_by_island(topology) else set()
    return {topology.node_tier} | islands


def islands_are_alike(topology: Machine) -> bool:
    """Whether the islands of each host have as many GPUs as one another."""
    host = topology.host_of_node
    return not (np.diff(topology.gpus_of_node)[np.diff(host) == 0]).any()


@dataclass(frozen=True, order=True)
class SetKind:
    """A sort of set: its ranks, and how many sets of each inner kind it has."""

    size: int
    inside: tuple[tuple[SetKind, int], ...] = ()

    def count(self, kind: SetKind) -> int:
        """Sets of ``kind`` inside."""
        return dict(self.inside).get(kind, 0)


def pack(
    topology: Machine, colocation: Colocation, capacity_of_node: IntArray
) -> IntArray | None:
    """Node of every rank with every set in one domain of its tier, or None.

    None also when no packing is found with the work of an engine.
    """
    packing = Packing(topology, colocation)
    for node, room in enumerate(capacity_of_node.tolist()):
        packing.program.row(packing.ranks_on(node), most=room)
    packing.nest()
    counts = solve(packing.program, EngineLimits()).counts
    return None if counts is None else packing.deal(counts)


class Packing:
    """Columns: how many sets of each kind every domain of each tier holds.

    Rows that give every set a domain are there from the start; what nodes have room for
    is left to say.

    ``kinds`` and ``distinct``: of every set of each tier, and those that occur.
    ``columns``: of each tier: (domain, kind) -> column.
    """

    def __init__(self, topology: Machine, colocation: Colocation) -> None:
        self.topology, self.program = topology, Program()
        self.inside = [_inside(colocation, t) for t in range(1, len(colocation.label))]
        self.kinds = _kinds(colocation, self.inside)
        self.distinct = [sorted(set(kinds)) for kinds in self.kinds]
        self.node_set_of_rank = colocation.label[0]
        self.columns: list[dict[tuple[int, SetKind], int]] = []
        for row, kinds in zip(topology.domain_of_node, self.kinds, strict=True):
            number = Counter(kinds)
            domains = range(int(row.max()) + 1)
            columns = {
                (domain, kind): self.program.column(most=count)
                for domain in domains
                for kind, count in number.items()
            }
            self.columns.append(columns)
            for kind, count in number.items():
                everywhere = [Term(columns[domain, kind]) for domain in domains]
                self.program.row(everywhere, least=count, most=count)

    def ranks_on(self, node: int) -> list[Term]:
        """Terms that add up to the ranks on a node."""
        columns = self.columns[0]
        return [Term(columns[node, kind], kind.size) for kind in self.distinct[0]]

    def nest(self) -> None:
        """The sets inside a domain's sets are the sets inside its children."""
        for t in range(1, len(self.columns)):
            parent = self.topology.domain_around[t - 1]
            inner, outer = self.distinct[t - 1], self.distinct[t]
            for domain in range(int(parent.max()) + 1):
                children = np.flatnonzero(parent == domain).tolist()
                for kind in inner:
                    there = [
                        Term(self.columns[t - 1][child, kind]) for child in children
                    ]
                    wanted = [
                        Term(self.columns[t][domain, whole], -whole.count(kind))
                        for whole in outer
                    ]
                    self.program.row([*there, *wanted], least=0, most=0)

    def deal(self, counts: list[int]) -> IntArray:
        """Node of every rank: sets go to named domains from the outermost tier in."""
        home = [0] * len(self.kinds[-1])
        for t in range(len(self.columns) - 1, 0, -1):
            parent = self.topology.domain_around[t - 1].tolist()
            places: defaultdict[tuple[int, SetKind], list[int]] = defaultdict(list)
            for (domain, kind), column in reversed(self.columns[t - 1].items()):
                places[parent[domain], kind].extend([domain] * counts[column])
            below = [0] * len(self.kinds[t - 1])
            for number, inside in enumerate(self.inside[t - 1]):
                for child in inside:
                    below[child] = places[home[number], self.kinds[t - 1][child]].pop()
            home = below
        node_of_set: IntArray = np.array(home, dtype=np.int64)
        node_of_rank: IntArray = node_of_set[self.node_set_of_rank]
        return node_of_rank


def _inside(colocation: Colocation, tier: int) -> list[list[int]]:
    """Sets of the tier below inside each set of ``tier``."""
    _, first = np.unique(colocation.label[tier - 1], return_index=True)
    inside: list[list[int]] = [[] for _ in range(int(colocation.label[tier].max()) + 1)]
    for child, rank in enumerate(first):
        inside[int(colocation.label[tier][rank])].append(child)
    return inside


def _kinds(
    colocation: Colocation, inside: list[list[list[int]]]
) -> list[list[SetKind]]:
    """SetKind of every set of each tier."""
    kinds = [[SetKind(int(size)) for size in colocation.sizes(0)]]
    for sets in inside:
        below = kinds[-1]
        kinds.append(
            [
                SetKind(
                    sum(below[child].size for child in children),
                    tuple(sorted(Counter(below[child] for child in children).items())),
                )
                for children in sets
            ]
        )
    return kinds


def ranks_within(
    rooms: Sequence[tuple[IntArray, IntArray]], gpus_of_node: IntArray
) -> tuple[int, bool]:
    """Ranks that GPUs have room for, and whether so many really have.

    ``rooms``: box of each node, -1 for none, and the most ranks of each box; one pair
    at least. ``gpus_of_node``: shape (N,).
    """
    sorts, sort_of_node = np.unique(
        np.array([box for box, _ in rooms]), axis=1, return_inverse=True
    )
    room = np.bincount(sort_of_node.ravel(), gpus_of_node)
    program = Program()
    columns = [program.column(most=float(most), price=-1) for most in room]
    for (_, most), box in zip(rooms, sorts, strict=True):
        inside: dict[int, list[Term]] = {}
        for column, own in zip(columns, box.tolist(), strict=True):
            inside.setdefault(own, []).append(Term(column))
        for own, terms in inside.items():
            if own >= 0:
                program.row(terms, most=int(most[own]))
    answer = solve(program, EngineLimits(work=1.0))
    return round(-answer.bound), answer.is_proved
