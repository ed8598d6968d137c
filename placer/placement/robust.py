"""Rules about hosts, as the checker reads them: pins, replicas a domain, spares.

And whether copies of checkpoints leave the domain that may fail. The search has code of
its own for these (`solve/problem/rules.py`); here are only the names in the rules, the
job's order string, and where ranks sit (`Seats`).
Shapes: R ranks, N nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from placer.base.arrays import IntArray
from placer.base.errors import InputError
from placer.base.units import counted, format_power
from placer.job.model import Job
from placer.job.rules import Pin
from placer.placement.plan import Plan
from placer.placement.rules import Seats, share
from placer.topology.model import Topology

_AVOIDED = " hosts to avoid are used, "


def misplaced_pins(
    seats: Seats, topology: Topology, pins: Sequence[Pin]
) -> Iterator[str]:
    """A sentence for each pin with ranks on other hosts."""
    for pin in pins:
        there = set(pin.hosts)
        ranks = [rank for rank in pin.ranks if rank < len(seats.node)]
        off = [r for r in ranks if topology.node_names[seats.node[r]] not in there]
        if off:
            host = topology.node_names[seats.node[off[0]]]
            yield (
                f"pinned: {pin}, {share(len(off), len(ranks), 'rank', 'is', 'are')} "
                f"elsewhere: the first is rank {off[0]}, on {host}"
            )


def crowded_domains(
    seats: Seats, topology: Topology, job: Job, at_most: Mapping[str, int]
) -> Iterator[str]:
    """A sentence for each tier with domains that hold too many replicas."""
    tiers = {tier.name: t for t, tier in enumerate(topology.tiers)}
    replica = _replicas(job)
    for tier, limit in at_most.items():
        if tier not in tiers:
            yield f"at most {limit} replicas a {tier}: the topology has no such tier"
            continue
        domain = topology.domain_of_node[tiers[tier]][seats.node]
        pairs = np.unique(domain * job.parallelism.dp + replica)
        held = np.bincount(pairs // job.parallelism.dp)
        over = np.flatnonzero(held > limit)
        if over.size:
            name = topology.domain_names[tiers[tier]][over[0]]
            share_of = share(over.size, int((held > 0).sum()), tier, "holds", "hold")
            yield (
                f"{share_of} ranks of more than {limit} replicas: "
                f"the first is {name}, with {held[over[0]]}"
            )


def missing_spares(
    seats: Seats,
    topology: Topology,
    spares: Mapping[str, int],
    kept: Sequence[str] | None,
) -> Iterator[str]:
    """Sentences on spare nodes that are not there.

    ``kept`` are the nodes a plan says it keeps free; without it, every usable node
    without ranks counts.
    """
    if not spares and kept is None:
        return
    index = {name: node for node, name in enumerate(topology.node_names)}
    used = np.zeros(topology.num_nodes, dtype=bool)
    used[seats.node] = True
    free = ~used
    if kept is not None:
        bad = [name for name in kept if name not in index or used[index[name]]]
        if bad:
            known = bad[0] in index
            why = "holds ranks" if known else "is no usable node of the topology"
            yield f"node {bad[0]} is said to be kept free, but {why}"
        free = np.zeros_like(used)
        free[[index[name] for name in kept if name not in bad]] = True
    tiers = {tier.name: t for t, tier in enumerate(topology.tiers)}
    for tier, least in spares.items():
        if tier not in tiers:
            yield f"{least} spare nodes a {tier}: the topology has no such tier"
            continue
        row = topology.domain_of_node[tiers[tier]]
        spare = np.bincount(row, free)
        touched = np.unique(row[seats.node])
        short = touched[spare[touched] < least]
        if short.size:
            share_of = share(short.size, touched.size, tier, "keeps", "keep")
            name = topology.domain_names[tiers[tier]][short[0]]
            yield (
                f"{share_of} fewer than {counted(least, 'node')} free: "
                f"the first is {name}, with {int(spare[short[0]])}"
            )


def exceeded_budgets(seats: Seats, topology: Topology, job: Job) -> Iterator[str]:
    """A sentence for each budget of the machine that is exceeded, and by how much."""
    replica = _replicas(job)
    for budget in topology.budgets:
        there = [topology.node_names[node] in budget.names for node in seats.node]
        inside = np.array(there)
        used, ran = int(inside.sum()), len({*replica[inside].tolist()})
        over = []
        if budget.gpus is not None and used > budget.gpus:
            over.append(f"{used:,} GPUs hold ranks, {used - budget.gpus:,} too many")
        if budget.watts is not None:
            drawn = used * budget.gpu_watts
            if drawn > budget.watts * (1 + 1e-9):
                much = format_power(drawn - budget.watts)
                over.append(f"{format_power(drawn)} are drawn, {much} too many")
        if budget.replicas is not None and ran > budget.replicas:
            over.append(f"{ran:,} replicas run, {ran - budget.replicas:,} too many")
        if over:
            yield f"budget: {budget}: {', '.join(over)}"


def needless_hosts(
    seats: Seats, other: Seats, topology: Topology, avoid: Sequence[str]
) -> Iterator[str]:
    """A sentence when more hosts to avoid are used than in another placement."""
    used, enough = (_avoided(one, topology, avoid) for one in (seats, other))
    if len(used) > len(enough):
        yield (
            f"{len(used):,} of {len(avoid):,}{_AVOIDED}{len(enough):,} would do: "
            f"the first is {min(used)}"
        )


def uses_needless_hosts(sentence: str) -> bool:
    """Whether a sentence of the checker is on hosts to avoid."""
    return _AVOIDED in sentence


def _avoided(seats: Seats, topology: Topology, avoid: Sequence[str]) -> set[str]:
    """Hosts to avoid that have ranks."""
    return {topology.node_names[node] for node in np.unique(seats.node)} & set(avoid)


def misstated_avoidance(
    seats: Seats, topology: Topology, avoid: Sequence[str], stated: Sequence[str]
) -> Iterator[str]:
    """A sentence when other hosts to avoid are used than a plan says."""
    if not avoid and not stated:
        return
    used = _avoided(seats, topology, avoid)
    if used != set(stated):
        first = min(used ^ set(stated))
        yield (
            f"the plan says that {len(stated)} of {len(avoid)} hosts to avoid are "
            f"used, {len(used)} are: {first} differs"
        )


def _replicas(job: Job) -> IntArray:
    """Data-parallel replica of every rank; shape (R,)."""
    p = job.parallelism
    stride = 1
    for axis in p.order:
        if axis == "dp":
            break
        stride *= {"tp": p.tp, "cp": p.cp, "pp": p.pp}.get(axis, 1)
    replica: IntArray = np.arange(p.tp * p.cp * p.pp * p.dp) // stride % p.dp
    return replica


_COPIES = re.compile(r"([1-9][0-9]{0,6})(?::([1-9][0-9]{0,3}))?")


class Copies(NamedTuple):
    """How far apart the ranks of a clique are, and how many they are.

    nvidia-resiliency-ext keeps each rank's local checkpoint on the ranks of its clique,
    which lie ``replication_jump`` apart
    (``checkpointing/local/replication/group_utils.py``, ``parse_group_sequence``).
    """

    jump: int
    factor: int


def parse_copies(text: str) -> Copies:
    """What ``JUMP`` or ``JUMP:FACTOR`` says."""
    found = _COPIES.fullmatch(text)
    if not found or found[2] == "1":
        message = f'"{text[:40]}" names no copies'
        hint = "write JUMP or JUMP:FACTOR, as 32:2"
        raise InputError(message, key="copies", hint=hint)
    return Copies(int(found[1]), int(found[2] or 2))


def cliques(ranks: int, copies: Copies) -> list[list[int]]:
    """The ranks that keep each other's checkpoints."""
    jump, factor = copies
    if ranks % (jump * factor):
        message = f"{ranks:,} ranks have no cliques of {factor} that lie {jump:,} apart"
        hint = f"{jump} x {factor} must divide the ranks"
        raise InputError(message, key="copies", hint=hint)
    return [
        list(range(block + first, block + jump * factor, jump))
        for block in range(0, ranks, jump * factor)
        for first in range(jump)
    ]


def copy_faults(plan: Plan, copies: Copies) -> list[str]:
    """A sentence where copies share what can fail as one.

    That is the innermost domain above the node of which the plan has several; else the
    node.
    """
    several = [row for row in plan.domains.items() if len({*row[1]}) > 1]
    tier, names = several[0] if several else ("node", plan.nodes)
    where = [names[node] for node in plan.node_of_rank.tolist()]
    shared = _shared(where, copies)
    if not shared:
        return []
    total = len(where) // copies.factor
    jumps = (jump for jump in range(1, total + 1) if total % jump == 0)
    good = (j for j in jumps if not _shared(where, Copies(j, copies.factor)))
    other = next((f"; {jump:,} apart they do not" for jump in good), "")
    ranks = ", ".join(map(str, shared[0][:4]))
    return [
        f"copies {copies.jump:,} apart share a {tier}: {len(shared):,} of {total:,} "
        f"cliques, the first is of ranks {ranks}{other}"
    ]


def _shared(where: Sequence[str], copies: Copies) -> list[list[int]]:
    """The cliques of which two ranks are in one place."""
    groups = cliques(len(where), copies)
    return [group for group in groups if len({where[r] for r in group}) < len(group)]
