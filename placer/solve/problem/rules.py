"""A job's rules on one machine, and whether a placement keeps them.

For use inside the search: the independent checker (`placement.check`) judges every
result again with its own code. Shapes: N nodes, R ranks, G GPUs.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from placer.base.arrays import BoolArray, IntArray
from placer.base.hostlist import compress
from placer.job.even import axis_of, is_even, part_size
from placer.job.model import Job
from placer.solve.problem.colocation import groups_of
from placer.topology.machine import Domains, Machine


def obeys(topology: Machine, job: Job, gpu_of_rank: IntArray) -> bool:
    """Whether required groups lie as they must and the launcher can start them."""
    return next(violated(topology, job, gpu_of_rank), None) is None


def violated(topology: Machine, job: Job, gpu_of_rank: IntArray) -> Iterator[str]:
    """Requirements that a placement breaks, as ``tp=rack``, and ``node-contiguous``."""
    for axis, tier in job.require.items():
        domain = topology.domain_of_gpu[topology.tier_index(tier)][gpu_of_rank]
        for members in groups_of(job, axis_of(axis)):
            inside = domain[members]
            kept = lie_evenly if is_even(axis) else lie_together
            if not kept(inside, part_size(axis)):
                yield f"{axis}={tier}"
                break
    if job.launcher != "free" and not _node_contiguous(topology, gpu_of_rank):
        yield job.launcher


def lie_together(domain: IntArray, size: int) -> bool:
    """Whether groups, or their parts of ``size`` members, lie in one domain each.

    ``domain``: shape (groups, members).
    """
    parts = domain.reshape(-1, size) if size else domain
    return bool((parts == parts[:, :1]).all())


def lie_evenly(domain: IntArray, _size: int = 0) -> bool:
    """Whether each group lies in equal consecutive parts, one in each of its domains.

    ``domain``: shape (groups, members).
    """
    width = domain.shape[1]
    number = 1 + (np.diff(domain, axis=1) != 0).sum(axis=1)
    ordered = np.sort(domain, axis=1)
    distinct = 1 + (np.diff(ordered, axis=1) != 0).sum(axis=1)
    if (number != distinct).any() or (width % number).any():
        return False
    begins = np.arange(1, width) % (width // number)[:, None] == 0
    return bool((begins == (np.diff(domain, axis=1) != 0)).all())


def _node_contiguous(topology: Machine, gpu_of_rank: IntArray) -> bool:
    """Whether every host holds consecutive ranks on ascending GPUs.

    GPUs ascend island by island, or as the launcher counts them, on each host.
    """
    host = topology.host_of_node[topology.node_of_gpu[gpu_of_rank]]
    changes = host[1:] != host[:-1]
    runs = int(changes.sum()) + 1
    if runs != np.count_nonzero(np.bincount(host)):
        return False
    descends = (gpu_of_rank[1:] < gpu_of_rank[:-1]) & ~changes
    if topology.gpu_index is None or not descends.any():
        return not descends.any()
    index = topology.gpu_index[gpu_of_rank]
    other = (index[1:] < index[:-1]) & ~changes
    return not np.intersect1d(host[1:][descends], host[1:][other]).size


def box_of(topology: Domains, hosts: Container[str]) -> IntArray:
    """0 for the nodes of some hosts, -1 for others; shape (N,).

    Hosts that the machine lacks are left out, since a part of a machine may lack them.
    """
    is_named = np.array([name in hosts for name in topology.host_names], dtype=bool)
    return np.where(is_named[topology.host_of_node], 0, -1)


@dataclass(frozen=True, eq=False)
class Count:
    """At most so many different replicas, ranks or hosts in each box of nodes."""

    by_rank: bool  # whether ranks have what is counted, not nodes
    number: IntArray  # (R,), or (N,) of hosts: what each of them has
    box: IntArray  # (N,): box of each node, -1 for none
    most: IntArray  # (boxes,)

    @property
    def is_of_replicas(self) -> bool:
        """Whether several ranks have what is counted."""
        return self.by_rank and bool(self.number.max() + 1 < len(self.number))

    def excess(self, node_of_rank: IntArray) -> IntArray:
        """How many too many each box has; shape (boxes,)."""
        box = self.box[node_of_rank]
        number = self.number if self.by_rank else self.number[node_of_rank]
        width = int(self.number.max()) + 1
        pairs = np.unique((box * width + number)[box >= 0])
        there = np.bincount(pairs // width, minlength=len(self.most))
        excess: IntArray = np.maximum(there - self.most, 0)
        return excess


@dataclass(frozen=True, eq=False)
class Limits:
    """The rules of a job in the indices of a machine."""

    topology: Machine
    job: Job
    # Hosts to avoid that may be used; None for any number.
    most_avoided: int | None = None

    @cached_property
    def nodes_of_rank(self) -> dict[int, frozenset[int]]:
        """Nodes that each pinned rank may be on."""
        found = dict[int, frozenset[int]]()
        for pin in self.job.rules.pin:
            nodes = np.flatnonzero(box_of(self.topology, {*pin.hosts}) == 0)
            found |= dict.fromkeys(pin.ranks, frozenset(nodes.tolist()))
        return found

    @cached_property
    def avoided(self) -> BoolArray:
        """Whether a node is to be avoided; shape (N,)."""
        return np.asarray(box_of(self.topology, {*self.job.rules.avoid}) == 0)

    @cached_property
    def counts(self) -> list[Count]:
        """What every rule but pins says, in one form."""
        machine, axes, rules = self.topology, self.job.parallelism, self.job.rules
        rank, replica = np.arange(self.job.world_size), axes.coordinates["dp"]
        host, found = machine.host_of_node, []
        for tier, most in sorted(rules.at_most.items()):
            row = machine.domain_of_node[machine.tier_index(tier)]
            found.append(Count(True, replica, row, np.full(row.max() + 1, most)))
        for budget in rules.budgets:
            box = box_of(machine, budget.names)
            for tokens, number in (
                (rank, budget.most_gpus),
                (replica, budget.replicas),
            ):
                if number is not None:
                    found.append(Count(True, tokens, box, np.array([number])))
        for tier, number in sorted(rules.spares.items()):
            row = machine.domain_of_host(machine.tier_index(tier))
            most_used = np.maximum(np.bincount(row) - number, 0)
            found.append(Count(False, host, row[host], most_used))
        if self.most_avoided is not None:
            found.append(self.avoided_count)
        return found

    @property
    def avoided_count(self) -> Count:
        """Hosts to avoid that have ranks."""
        most = self.job.world_size if self.most_avoided is None else self.most_avoided
        box = np.where(self.avoided, 0, -1)
        return Count(False, self.topology.host_of_node, box, np.array([most]))

    @property
    def marks(self) -> IntArray:
        """A number for each node; equal ones where rules say the same; shape (N,)."""
        nodes = np.arange(self.topology.num_nodes)
        pins = [np.isin(nodes, [*own]) for own in {*self.nodes_of_rank.values()}]
        says = [count.box < 0 for count in (*self.counts, self.avoided_count)]
        _, found = np.unique(np.array([*says, *pins]), axis=1, return_inverse=True)
        return np.asarray(found, dtype=np.int64).ravel()

    @cached_property
    def closed(self) -> BoolArray:
        """Whether a node may hold no rank at all; shape (N,)."""
        found = np.zeros(self.topology.num_nodes, dtype=bool)
        for count in self.counts:
            found |= (count.box >= 0) & (count.most[count.box] == 0)
        return found

    def host_names(self, nodes: Iterable[int]) -> str:
        """The hosts of some nodes as a host list."""
        hosts = {int(self.topology.host_of_node[node]) for node in nodes}
        return compress(self.topology.host_names[host] for host in sorted(hosts))

    def hold(self, node_of_rank: IntArray) -> bool:
        """Whether pinned ranks are on their hosts, and what is counted is within."""
        pins = self.nodes_of_rank.items()
        are_pinned = all(int(node_of_rank[rank]) in hosts for rank, hosts in pins)
        return are_pinned and not any(
            count.excess(node_of_rank).any() for count in self.counts
        )

    def avoided_used(self, node_of_rank: IntArray) -> int:
        """How many of the hosts to avoid have ranks."""
        nodes = np.unique(node_of_rank)
        return len(np.unique(self.topology.host_of_node[nodes[self.avoided[nodes]]]))
