"""Habits of launchers that explain a wrong map, each claimed only when it explains all.

A habit is a rule that gives a host (or a GPU) for every rank. It is claimed when it
gives what every process reports and nothing known of the launcher speaks against it.
Where several rules give the same, all that remain are named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, cycle, groupby
from typing import TYPE_CHECKING

from placer.launch import habit_list as known
from placer.launch.ranks import HostTable, plan_gpus
from placer.placement.launcher_orders import slurm_key

if TYPE_CHECKING:
    from placer.launch.compare import Seats
    from placer.launch.habit_list import Habit
    from placer.launch.process import Process
    from placer.placement.plan import Plan


_Evidence = Callable[[Sequence["Process"]], bool]


def habits(plan: Plan, seats: Seats, processes: Sequence[Process]) -> tuple[Habit, ...]:
    """The habits that give exactly what the processes report; none when all is right.

    Parameters
    ----------
    plan : Plan
    seats : Seats
        What the plan wants of these processes.
    processes : sequence of Process
    """
    if len(processes) > 1 and all((p.rank, p.world_size) == (0, 1) for p in processes):
        return (known.ALONE,)
    table = HostTable(plan.nodes)
    node_of = [table.find(process.host) for process in processes]
    ranks = [p.rank for p in processes]
    inside = [
        (rank, node)
        for rank, node in zip(ranks, node_of, strict=True)
        if rank is not None and node is not None and rank < len(seats.node)
    ]
    if len(inside) < len(processes):
        return ()
    if any(seats.node[rank] != node for rank, node in inside):
        found = tuple(
            dict.fromkeys(
                habit
                for habit, nodes, allowed in _host_rules(plan, seats, dict(inside))
                if allowed(processes)
                and all(nodes[rank] == node for rank, node in inside)
            )
        )
        by_tree = not found and _slurms_own(processes)
        if by_tree and _in_topology_order(plan, seats, dict(inside)):
            return (known.BY_TOPOLOGY,)
        return found
    return _gpu_habits(seats, processes, [node for _, node in inside])


def _host_rules(
    plan: Plan, seats: Seats, node_of: Mapping[int, int]
) -> Iterator[tuple[Habit, list[int], _Evidence]]:
    """Every habit about hosts: the node it gives each rank, and what must be known.

    ``node_of`` holds the nodes that ranks report.
    """
    order = list(dict.fromkeys(seats.node))
    names = plan.nodes
    counts = Counter(seats.node)
    by_text = sorted(order, key=names.__getitem__)
    by_name = sorted(order, key=lambda node: slurm_key(names[node]))
    yield known.BY_TEXT, _blocks(by_text, counts), _not_slurms_own
    yield known.NODE_ID, _blocks(by_name, counts), _node_rank_is_nodeid
    yield known.NO_HOSTFILE, _blocks(by_name, counts), _slurms_own
    yield known.BY_NAME, _blocks(by_name, counts), _elsewhere
    domains = list(plan.domains.values())[::-1]
    by_label = sorted(by_text, key=lambda node: [row[node] for row in domains])
    if by_label != by_text:
        yield known.BY_LABEL, _blocks(by_label, counts), _not_slurms_own
    for listed in (order, by_name):
        # Open MPI, issues 6298 and 13199: its own host, wherever the file has it.
        own = node_of.get(0, listed[0])
        if own != listed[0]:
            moved = [own, *(node for node in listed if node != own)]
            yield known.OWN_HOST_FIRST, _blocks(moved, counts), _by_mpirun
            if seats.unit == "rank":
                yield known.OWN_HOST_FIRST, _dealt(moved, counts), _by_mpirun
    yield known.CONSECUTIVE, _blocks(order, counts), _always
    yield known.REVERSED, _blocks(order[::-1], counts), _always
    if seats.unit == "rank" and max(counts.values()) > 1:
        yield known.CYCLIC, _dealt(by_name, counts), _always
        if by_name != order:
            yield known.CYCLIC_PLANNED, _dealt(order, counts), _always


def _in_topology_order(plan: Plan, seats: Seats, node_of: Mapping[int, int]) -> bool:
    """Whether hosts are filled in turn, each domain before the next, then by name.

    The order of domains is that of a file the plan does not know, so a domain must have
    two hosts for anything to be claimed.
    """
    order = list(dict.fromkeys(node_of[rank] for rank in sorted(node_of)))
    rest = [node for node in dict.fromkeys(seats.node) if node not in set(order)]
    nodes = _blocks([*order, *rest], Counter(seats.node))
    if any(nodes[rank] != node for rank, node in node_of.items()) or not plan.domains:
        return False
    tiers = [[names[node] for node in order] for names in plan.domains.values()]
    hosts = [plan.nodes[node] for node in order]
    joined = [
        (slurm_key(one), slurm_key(other))
        for domain, following, one, other in zip(
            tiers[0], tiers[0][1:], hosts, hosts[1:], strict=False
        )
        if domain == following
    ]
    whole = all(len(list(groupby(names))) == len(set(names)) for names in tiers)
    return bool(joined) and whole and all(one < other for one, other in joined)


def _gpu_habits(
    seats: Seats, processes: Sequence[Process], node_of: Sequence[int]
) -> tuple[Habit, ...]:
    """Habits that explain the GPUs of processes that are on their hosts."""
    if seats.unit == "node":
        return ()
    there: dict[int, list[Process]] = {}
    for process, node in zip(processes, node_of, strict=True):
        there.setdefault(node, []).append(process)
    ranks: dict[int, list[int]] = {}
    for rank, node in enumerate(seats.node):
        ranks.setdefault(node, []).append(rank)
    used: dict[int, int] = {}
    for node, group in there.items():
        gpus = plan_gpus(group, {seats.gpu[rank] for rank in ranks[node]})
        for process, gpu in zip(group, gpus, strict=True):
            if gpu is None or process.rank is None:
                return ()
            used[process.rank] = gpu
    if all(seats.gpu[rank] == gpu for rank, gpu in used.items()):
        return ()
    own = {node: [seats.gpu[r] for r in ranks[node]] for node in there}
    rules: tuple[tuple[Habit, Callable[[list[int]], Sequence[int]]], ...] = (
        (known.UNPERMUTED, sorted),
        (known.UNPERMUTED, lambda gpus: range(len(gpus))),
        (known.GPUS_REVERSED, lambda gpus: gpus[::-1]),
        (known.ONE_GPU, lambda gpus: [0] * len(gpus)),
    )
    found = (
        habit
        for habit, rule in rules
        if all(
            used.get(rank, gpu) == gpu
            for node in there
            for rank, gpu in zip(ranks[node], rule(own[node]), strict=True)
        )
    )
    return tuple(dict.fromkeys(found))


def _blocks(order: Sequence[int], counts: Mapping[int, int]) -> list[int]:
    """Node of every rank when nodes are filled one after the other."""
    return list(chain.from_iterable([node] * counts[node] for node in order))


def _dealt(order: Sequence[int], counts: Mapping[int, int]) -> list[int]:
    """Node of every rank when nodes get one rank in turn until they are full."""
    left = dict(counts)
    found: list[int] = []
    total = sum(counts.values())
    for node in cycle(order):
        if len(found) == total:
            return found
        if left[node]:
            left[node] -= 1
            found.append(node)
    return found


def _always(_processes: Sequence[Process]) -> bool:
    return True


def _slurms_own(processes: Sequence[Process]) -> bool:
    """Whether ranks are Slurm's own task numbers, which scripts export as RANK too."""
    return all(
        process.launcher == "slurm"
        or (process.launcher == "env" and process.rank == process.slurm_procid)
        for process in processes
    )


def _not_slurms_own(processes: Sequence[Process]) -> bool:
    return not _slurms_own(processes)


def _by_mpirun(processes: Sequence[Process]) -> bool:
    """Whether ranks are Open MPI's own, which scripts export as RANK too."""
    return _elsewhere(processes) and all(
        process.launcher in ("openmpi", "env") for process in processes
    )


def _node_rank_is_nodeid(processes: Sequence[Process]) -> bool:
    """Whether the script may have taken its node rank from SLURM_NODEID."""
    return not _slurms_own(processes) and all(
        process.launcher in ("torchrun", "env")
        and process.slurm_nodeid is not None
        and process.node_rank in (None, process.slurm_nodeid)
        for process in processes
    )


def _elsewhere(processes: Sequence[Process]) -> bool:
    """Whether hosts in order of names need another explanation than Slurm's numbers."""
    return not (_slurms_own(processes) or _node_rank_is_nodeid(processes))
