"""A plan made before: its ranks on the machine as it is now, or some of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from placer.base.arrays import BoolArray, IntArray, grouped
from placer.base.errors import InfeasibleError, InputError, Problem, refuse
from placer.base.naming import named
from placer.job.axes import Parallelism, unlike_sizes
from placer.job.model import Job
from placer.job.resize import resized
from placer.placement.inputs import Inputs
from placer.placement.plan import Plan
from placer.topology.islands import inner_tiers, island_on
from placer.topology.machine import Machine
from placer.topology.model import Topology
from placer.topology.suggest import Suggester


def inputs_left(
    inputs: Inputs, plan: Plan, failed: Sequence[str], added: Sequence[str] | None
) -> Inputs:
    """The inputs without what failed: the same allocation, and what was added to it.

    ``inputs``: of the plan. ``plan``: one that keeps no inputs does not tell its
    allocation: it is taken for the whole machine, or with ``added`` for the plan's
    nodes and its spares. ``failed``: hosts of the topology or of the plan. ``added``:
    hosts to use beside those of the allocation. Raises `InfeasibleError` if no host is
    left.
    """
    topology, more = inputs.topology, added or ()
    refuse(_host_problems(topology, plan, failed, more))
    there = {*topology.node_names}
    hosts = inputs.hosts
    if not plan.inputs and added is not None:
        hosts = tuple(allocated(inputs, plan, is_told=True))
    if hosts is not None:
        # In launch order, newcomers last; what the machine lost is no host of it.
        hosts = tuple(name for name in dict.fromkeys([*hosts, *more]) if name in there)
    gone = dict.fromkeys([*inputs.exclude, *failed])
    exclude = tuple(name for name in gone if name in there and name not in more)
    if not {*(there if hosts is None else hosts)} - {*exclude}:
        ranks = inputs.job.parallelism.world_size
        text = f"every host has failed: the job needs {ranks:,} GPUs, none is left"
        raise InfeasibleError(text, hints=[f"add hosts: {named('added')}"])
    return replace(inputs, hosts=hosts, exclude=exclude, use_spares=True)


def allocated(inputs: Inputs, plan: Plan, *, is_told: bool) -> Iterator[str]:
    """The hosts that the job had; ``is_told``: what it had is those of the plan.

    That counts of a plan without inputs alone.
    """
    every = inputs.topology.node_names
    if not plan.inputs and is_told:
        wanted = {*plan.nodes, *plan.rules.get("spare_nodes", ())}
    else:
        wanted = {*(every if inputs.hosts is None else inputs.hosts)}
        wanted -= {*inputs.exclude}
    yield from (name for name in every if name in wanted)


def machine_left(left: Inputs, plan: Plan, failed: Sequence[str]) -> Topology:
    """The machine that is left, and why each node that is not in it is not."""
    topology, machine = left.topology, left.machine
    known = {*topology.node_names, *topology.unavailable}
    out = {name: "not in the topology" for name in plan.nodes if name not in known}
    out |= dict.fromkeys(failed, "failed")
    return replace(machine, unavailable={**machine.unavailable, **out})


def _host_problems(
    topology: Topology, plan: Plan, failed: Sequence[str], added: Sequence[str]
) -> Iterator[Problem]:
    """Problems of hosts that are unknown, or not what they are said to be."""
    known, suggester = set(topology.node_names), Suggester(topology.node_names)
    elsewhere = {*topology.unavailable, *plan.nodes}
    for key, hosts in (("failed", failed), ("added", added)):
        for host in dict.fromkeys(hosts):
            if host not in known and host not in elsewhere:
                message = f'the topology has no host "{host}"'
                yield Problem(message, key=key, hint=suggester.hint(host))
    for host in dict.fromkeys(added):
        if host in topology.unavailable:
            why = topology.unavailable[host]
            yield Problem(f'host "{host}" is unavailable: {why}', key="added")
        elif host in failed:
            message = f'host "{host}" is said to have failed and to be added'
            yield Problem(message, key="added")


# Ranks correspond by these coordinates. dp comes last, so that its size may change and
# each replica is a run of numbers.
_CORRESPOND = ("tp", "cp", "pp", "dp")


class LostHost(NamedTuple):
    """A host of the previous plan that cannot be used, or not as it was."""

    ranks: IntArray  # (any,): the ranks it held, ascending
    # Of the host on the machine as it is; -1 where that has none of its name.
    number: int


@dataclass(frozen=True, eq=False)
class Previous:
    """The seats of a previous plan."""

    # (R,): global GPU index of every rank; -1 for a rank without a seat any more.
    gpu_of_rank: IntArray
    # (T, R): domain of every rank at each tier of the machine by island, numbered as
    # there. Those that are gone have numbers of their own, beyond; -1 for new ranks.
    domain: IntArray
    lost: tuple[LostHost, ...]  # by their first ranks
    is_new: BoolArray  # (R,): ranks that the previous plan did not have

    @property
    def is_lost(self) -> BoolArray:
        """Whether each rank had a seat that is gone; shape (R,)."""
        return (self.gpu_of_rank < 0) & ~self.is_new

    def kept(self, gpu_of_rank: IntArray) -> int:
        """How many ranks a placement leaves where they were."""
        return int(np.count_nonzero(self.gpu_of_rank == gpu_of_rank))

    def moved(self, gpu_of_rank: IntArray) -> int:
        """How many ranks a placement puts elsewhere."""
        return len(gpu_of_rank) - self.kept(gpu_of_rank) - int(self.is_new.sum())

    def summary(self, gpu_of_rank: IntArray) -> dict[str, int]:
        """Ranks that a placement leaves where they were, moves, and adds."""
        return {
            "kept": self.kept(gpu_of_rank),
            "moved": self.moved(gpu_of_rank),
            "new": int(self.is_new.sum()),
        }


class PreviousPlan(NamedTuple):
    """A plan made before, and the machine as it is now."""

    plan: Plan
    topology: Topology

    @property
    def order(self) -> str | None:
        """The order of its ranks, as ``tp-cp-ep-pp-dp``; None where it is not told."""
        order: str | None = self.plan.job.get("order")
        return order

    def seats(self, job: Job) -> Previous:
        """The seats for the ranks of ``job`` that do the same work.

        Ranks correspond by their coordinates, so order and data parallel size may have
        changed; those of a plan that does not record its axes correspond by number.
        """
        plan, topology = self
        old_rank = _old_rank(plan, job)
        is_new = old_rank < 0
        index = {name: i for i, name in enumerate(topology.node_names)}
        host = np.array([index.get(name, -1) for name in plan.nodes], dtype=np.int64)
        entry, gpu = plan.node_of_rank[old_rank], plan.gpu_of_rank[old_rank]
        here = host[entry]
        unfit = ~is_new & ((here < 0) | (gpu >= topology.gpus_of_node[here]))
        gone = ~is_new & np.isin(entry, np.unique(entry[unfit]))
        stays = ~(is_new | gone)
        seats = np.full(len(gpu), -1, dtype=np.int64)
        seats[stays] = topology.gpu_at(here[stays], gpu[stays])
        seen = topology.by_island
        domain = np.full((len(seen.tiers), len(gpu)), -1, dtype=np.int64)
        domain[:, stays] = seen.domain_of_gpu[:, seats[stays]]
        inside = seen.node_tier
        domain[:inside, gone] = _islands_gone(self, seen, entry[gone], gpu[gone])
        domain[inside:, gone] = _hosts_gone(self, host)[:, entry[gone]]
        lost = [
            LostHost(ranks, int(here[ranks[0]]))
            for ranks in grouped(np.flatnonzero(gone), entry[gone])
        ]
        lost.sort(key=lambda one: int(one.ranks[0]))
        return Previous(seats, domain, tuple(lost), is_new)


def _hosts_gone(previous: PreviousPlan, host: IntArray) -> IntArray:
    """Domain of each host of the plan, were it gone, at each tier; shape (T, hosts).

    ``host`` ((hosts,)): of the machine as it is, -1 for one that it lacks.
    """
    plan, topology = previous
    rows = [topology.num_nodes + np.arange(len(host))]
    for t, tier in enumerate(topology.tiers[1:-1], start=1):
        number = {name: d for d, name in enumerate(topology.domain_names[t])}
        named = [
            number.setdefault(name, len(number))
            for name in plan.domains.get(tier.name, plan.nodes)
        ]
        rows.append(np.where(host >= 0, topology.domain_of_node[t][host], named))
    rows.append(np.zeros(len(host), dtype=np.int64))
    return np.array(rows)[: len(topology.tiers)]


def _islands_gone(
    previous: PreviousPlan, seen: Machine, entry: IntArray, gpu: IntArray
) -> IntArray:
    """Domain of GPUs of gone hosts at each tier below the host; shape (K, GPUs).

    ``seen``: the machine by island. ``entry`` and ``gpu`` ((GPUs,)): entry of the
    plan's hosts, and what a launcher called the GPU there.
    """
    plan, topology = previous
    islands, listed = topology.islands, topology.listed
    if islands is None:
        return np.zeros((0, len(gpu)), dtype=np.int64)
    island = np.empty(len(gpu), dtype=np.int64)
    for one in np.unique(entry).tolist():
        own = entry == one
        island[own] = island_on(islands, listed, plan.nodes[one], gpu[own])
    return np.array(
        [
            len(names) + entry * len(islands.groups) + island // count
            for names, (_, count) in zip(
                seen.domain_names, inner_tiers(islands.sizes), strict=False
            )
        ]
    )


def _old_rank(plan: Plan, job: Job) -> IntArray:
    """Rank of the plan that does the work of each rank; -1 where there is none."""
    old, new = plan.axes, job.parallelism
    if old is None:
        if plan.world_size != job.world_size:
            raise _of_another_job(
                f"{plan.world_size:,} ranks against {job.world_size:,}"
            )
        return np.arange(job.world_size)
    if unlike := unlike_sizes(old, new):
        raise _of_another_job(", ".join(unlike))
    size = max(old.world_size, new.world_size)
    return _rank_of_work(old, size)[new.numbers_in(_CORRESPOND)]


def _rank_of_work(axes: Parallelism, size: int) -> IntArray:
    """Rank that does each work, replica after replica; -1 where none does."""
    found = np.full(size, -1, dtype=np.int64)
    found[axes.numbers_in(_CORRESPOND)] = np.arange(axes.world_size)
    return found


def _of_another_job(why: str) -> InputError:
    message = f"the previous plan is of another job: {why}"
    return InputError(message, key="previous")


def smaller_jobs(job: Job, most_ranks: int) -> Iterator[Job]:
    """The job with ever fewer replicas, of at most ``most_ranks`` ranks each time.

    Sizes that the job cannot have, since experts do not divide them, are left out.
    """
    axes = job.parallelism
    replica = axes.world_size // axes.dp
    for dp in range(min(axes.dp - 1, most_ranks // replica), 0, -1):
        try:
            smaller = resized(job, dp=dp)
        except InputError:
            continue
        # Rules and requirements that were added by options are kept.
        yield replace(
            smaller,
            require=job.require,
            rules=job.rules,
            parallelism=replace(smaller.parallelism, order=axes.order),
        )


def replicas_of_block(axes: Parallelism, smaller: Parallelism) -> int:
    """Consecutive replicas that share no expert group with others; 1 without experts.

    The smallest number that divides both data parallel sizes and that the expert axes
    divide.
    """
    experts = axes.etp * axes.ep
    return next(
        count
        for count in range(1, axes.dp + 1)
        if axes.dp % count == 0
        and smaller.dp % count == 0
        and (axes.tp * axes.cp * count) % experts == 0
    )


def ranks_of_replicas(
    old: Parallelism, new: Parallelism, kept: Sequence[int]
) -> IntArray:
    """The old rank whose work each new one does, shape (new ranks,).

    Replica ``kept[i]`` becomes replica ``i``.
    """
    replica = np.asarray(kept, dtype=np.int64)[new.coordinates["dp"]]
    size = new.world_size // new.dp
    work = new.numbers_in(_CORRESPOND) % size + replica * size
    ranks: IntArray = _rank_of_work(old, old.world_size)[work]
    return ranks


def without_replicas(plan: Plan, job: Job, kept: Sequence[int]) -> Plan:
    """The plan with only the replicas ``kept``, as a plan for the smaller ``job``.

    Replica ``kept[i]`` becomes replica ``i``; ranks are numbered by the job's order.
    Score and bound stay those of the whole plan.
    """
    old = plan.axes
    if old is None:
        raise InputError("the plan does not record its axes")
    new = job.parallelism
    ranks = ranks_of_replicas(old, new, kept)
    about = {**plan.job, "parallelism": {**plan.job["parallelism"], "dp": new.dp}}
    return replace(
        plan,
        job=about,
        node_of_rank=plan.node_of_rank[ranks],
        gpu_of_rank=plan.gpu_of_rank[ranks],
    )
