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
from placer.base.budget import HostBudget
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


@dataclass(frozen=True, eq=False)
class Cap:
    """What the nodes of a budget may hold."""

    inside: BoolArray  # (N,): whether a node counts
    # ranks and replicas: the most of them; None for any number.
    ranks: int | None
    replicas: int | None

    @classmethod
    def of(cls, budget: HostBudget, topology: Domains) -> Cap:
        """A budget in the machine's indices."""
        named = [name in budget.names for name in topology.host_names]
        inside = np.array(named, dtype=bool)[topology.host_of_node]
        return cls(inside, budget.most_gpus, budget.replicas)

    def room(self, replica_size: int) -> tuple[IntArray, IntArray]:
        """Box of each node, -1 for none, and the most ranks in it; (N,) and (1,)."""
        replicas = self.replicas and self.replicas * replica_size
        most = min(most for most in (self.ranks, replicas) if most is not None)
        return np.where(self.inside, 0, -1), np.array([most])


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
    """The rules in the machine's indices."""

    topology: Machine
    job: Job
    nodes_of_rank: dict[int, frozenset[int]]  # nodes that each pinned rank may be on
    avoided: BoolArray  # (N,): whether a node is to be avoided
    # at_most and spares: tier index and number, innermost tier first.
    at_most: tuple[tuple[int, int], ...]
    spares: tuple[tuple[int, int], ...]
    budgets: tuple[Cap, ...] = ()
    # Hosts to avoid that may be used; None for any number.
    most_avoided: int | None = None

    @classmethod
    def of(cls, topology: Machine, job: Job) -> Limits:
        """The rules of ``job`` on ``topology``, which has every host they name.

        Hosts to pin to that the machine lacks are left out, since a part of a machine
        may lack them.
        """
        rules = job.rules
        names = topology.host_names
        host_of_node = topology.host_of_node

        def nodes_of(hosts: Container[str]) -> frozenset[int]:
            wanted = [names[host] in hosts for host in host_of_node.tolist()]
            return frozenset(np.flatnonzero(wanted).tolist())

        avoided = np.zeros(topology.num_nodes, dtype=bool)
        avoided[[*nodes_of({*rules.avoid})]] = True
        hosts = {
            rank: nodes
            for pin in rules.pin
            for nodes in [nodes_of({*pin.hosts})]
            for rank in pin.ranks
        }

        def by_tier(numbers: dict[str, int]) -> tuple[tuple[int, int], ...]:
            return tuple(
                sorted((topology.tier_index(t), n) for t, n in numbers.items())
            )

        at_most, spares = by_tier(dict(rules.at_most)), by_tier(dict(rules.spares))
        budgets = tuple(Cap.of(budget, topology) for budget in rules.budgets)
        return cls(topology, job, hosts, avoided, at_most, spares, budgets)

    @property
    def marks(self) -> IntArray:
        """A number for each node; equal ones where rules say the same; shape (N,)."""
        nodes = np.arange(self.topology.num_nodes)
        pins = [np.isin(nodes, [*own]) for own in set(self.nodes_of_rank.values())]
        says = [self.avoided, *(cap.inside for cap in self.budgets), *pins]
        _, found = np.unique(np.array(says), axis=1, return_inverse=True)
        return np.asarray(found, dtype=np.int64).ravel()

    @property
    def replica_size(self) -> int:
        """Ranks of a data-parallel replica."""
        return self.job.world_size // self.job.parallelism.dp

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

    @cached_property
    def counts(self) -> list[Count]:
        """What every rule but pins says, in one form."""
        machine, axes = self.topology, self.job.parallelism
        rank, replica = np.arange(self.job.world_size), axes.coordinates["dp"]
        host = machine.host_of_node
        found = []
        for tier, most in self.at_most:
            row = machine.domain_of_node[tier]
            found.append(Count(True, replica, row, np.full(row.max() + 1, most)))
        for cap in self.budgets:
            box = np.where(cap.inside, 0, -1)
            for tokens, number in ((rank, cap.ranks), (replica, cap.replicas)):
                if number is not None:
                    found.append(Count(True, tokens, box, np.array([number])))
        for tier, number in self.spares:
            row = machine.domain_of_host(tier)
            most_used = np.maximum(np.bincount(row) - number, 0)
            found.append(Count(False, host, row[host], most_used))
        if self.most_avoided is not None:
            found.append(self.avoided_count)
        return found

    @cached_property
    def closed(self) -> BoolArray:
        """Whether a node may hold no rank at all; shape (N,)."""
        found = np.zeros(self.topology.num_nodes, dtype=bool)
        for count in self.counts:
            found |= (count.box >= 0) & (count.most[count.box] == 0)
        return found

    @property
    def avoided_count(self) -> Count:
        """Hosts to avoid that have ranks."""
        most = self.job.world_size if self.most_avoided is None else self.most_avoided
        box = np.where(self.avoided, 0, -1)
        return Count(False, self.topology.host_of_node, box, np.array([most]))

    def avoided_used(self, node_of_rank: IntArray) -> int:
        """How many of the hosts to avoid have ranks."""
        nodes = np.unique(node_of_rank)
        return len(np.unique(self.topology.host_of_node[nodes[self.avoided[nodes]]]))
