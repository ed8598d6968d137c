"""Habits of launchers that explain a wrong map, each claimed only when it explains all.

A habit is a rule that gives a host (or a GPU) for every rank. It is claimed when it
gives what every process reports and nothing known of the launcher speaks against it.
Where several rules give the same, all that remain are named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, cycle, groupby

from placer.launch.compare import Seats
from placer.launch.process import Process
from placer.launch.ranks import HostTable, plan_gpus
from placer.placement.launcher_orders import slurm_key
from placer.placement.plan import Plan


@dataclass(frozen=True)
class Habit:
    """What a launcher did instead of the plan, and what to do about it."""

    name: str
    text: str
    hint: str


BY_TEXT = Habit(
    "text-order",
    "hosts are numbered by their names sorted as text, as torchrun's c10d rendezvous "
    "and `sort` do",
    "take the order of the hosts from the plan; torchrun needs static rendezvous for "
    "that: placer emit PLAN torchrun",
)
NODE_ID = Habit(
    "slurm-nodeid",
    "the node rank is SLURM_NODEID, which counts hosts by name",
    "look the host up in the plan (placer emit PLAN torchrun), or use SLURM_PROCID",
)
BY_NAME = Habit(
    "name-order",
    "hosts are numbered by their names with digits as numbers, as scontrol lists them",
    "take the order of the hosts from the plan",
)
NO_HOSTFILE = Habit(
    "slurm-block",
    "Slurm dealt blocks of tasks to hosts by name: it did not use the host file",
    "set SLURM_HOSTFILE for the step and give it -m arbitrary",
)
CYCLIC = Habit(
    "cyclic",
    "ranks are dealt to the hosts by name in turn, one by one (cyclic distribution)",
    "set SLURM_HOSTFILE for the step and give it -m arbitrary",
)
CYCLIC_PLANNED = Habit(
    "cyclic-planned",
    "ranks are dealt to the plan's hosts in turn, one by one (mapping by node)",
    "map ranks by the plan: --map-by seq, a rankfile, or slots of a host file",
)
BY_LABEL = Habit(
    "label-order",
    "hosts are numbered by their domains' names sorted as text, tier by tier, as "
    "Kueue's topology-aware scheduling does",
    "let the pod look its host up in the plan: placer emit PLAN kubernetes-job",
)
BY_TOPOLOGY = Habit(
    "slurm-topology",
    "Slurm dealt blocks of tasks to hosts in topology order, one domain after the "
    "other: it did not use the host file",
    "set SLURM_HOSTFILE for the step and give it -m arbitrary",
)
CONSECUTIVE = Habit(
    "consecutive",
    "hosts are in the plan's order, but each has consecutive ranks: the launcher "
    "numbers ranks host by host",
    "give RANK from the plan: placer emit PLAN env",
)
OWN_HOST_FIRST = Habit(
    "own-host-first",
    "mpirun put the host it was started on first, then the others in the order of the "
    "host file",
    "start mpirun on the plan's first host, or map ranks by the plan: placer emit PLAN "
    "openmpi-seq, with --map-by seq",
)
REVERSED = Habit(
    "reversed", "the plan's hosts are in reverse order", "do not reverse the host list"
)
UNPERMUTED = Habit(
    "gpus-by-local-rank",
    "hosts are right, but local rank k uses GPU k: CUDA_VISIBLE_DEVICES is not in the "
    "plan's order",
    "let the plan set it: placer emit PLAN torchrun, or env",
)
GPUS_REVERSED = Habit(
    "gpus-reversed",
    "hosts are right, but their GPUs are in reverse order",
    "list CUDA_VISIBLE_DEVICES in the plan's order",
)
ONE_GPU = Habit(
    "one-gpu",
    "all processes of a host use its first GPU: the local rank they see is 0 for all, "
    "as MPICH's MPI_LOCALRANKID is when a host's lines are apart",
    "pick the GPU from the global rank: placer emit PLAN env with PLACER_LOCAL_INDEX",
)
ALONE = Habit(
    "no-world",
    "every process is rank 0 of 1: they were started apart and know nothing of "
    "each other",
    "start them with one launcher, or check that it passes its environment on",
)


def habits(plan: Plan, seats: Seats, processes: Sequence[Process]) -> tuple[Habit, ...]:
    """The habits that give exactly what the processes report; none when all is right.

    ``seats``: what the plan wants of these processes.
    """
    if len(processes) > 1 and all((p.rank, p.world_size) == (0, 1) for p in processes):
        return (ALONE,)
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
                for habit, nodes in _host_rules(plan, seats, processes, dict(inside))
                if all(nodes[rank] == node for rank, node in inside)
            )
        )
        by_tree = not found and _slurms_own(processes)
        if by_tree and _in_topology_order(plan, seats, dict(inside)):
            return (BY_TOPOLOGY,)
        return found
    return _gpu_habits(seats, processes, [node for _, node in inside])


def _host_rules(
    plan: Plan, seats: Seats, processes: Sequence[Process], node_of: Mapping[int, int]
) -> Iterator[tuple[Habit, list[int]]]:
    """Every habit about hosts that nothing speaks against: the node it gives each rank.

    ``node_of`` holds the nodes that ranks report.
    """
    slurms_own, is_nodeid = _slurms_own(processes), _node_rank_is_nodeid(processes)
    # Hosts in order of names need another explanation than Slurm's numbers.
    elsewhere = not (slurms_own or is_nodeid)
    # Ranks are Open MPI's own, which scripts export as RANK too.
    by_mpirun = elsewhere and {p.launcher for p in processes} <= {"openmpi", "env"}
    order = list(dict.fromkeys(seats.node))
    names = plan.nodes
    counts = Counter(seats.node)
    by_text = sorted(order, key=names.__getitem__)
    by_name = sorted(order, key=lambda node: slurm_key(names[node]))
    if not slurms_own:
        yield BY_TEXT, _blocks(by_text, counts)
    if is_nodeid:
        yield NODE_ID, _blocks(by_name, counts)
    elif slurms_own:
        yield NO_HOSTFILE, _blocks(by_name, counts)
    else:
        yield BY_NAME, _blocks(by_name, counts)
    domains = list(plan.domains.values())[::-1]
    by_label = sorted(by_text, key=lambda node: [row[node] for row in domains])
    if by_label != by_text and not slurms_own:
        yield BY_LABEL, _blocks(by_label, counts)
    for listed in (order, by_name) if by_mpirun else ():
        # Open MPI, issues 6298 and 13199: its own host, wherever the file has it.
        own = node_of.get(0, listed[0])
        if own != listed[0]:
            moved = [own, *(node for node in listed if node != own)]
            yield OWN_HOST_FIRST, _blocks(moved, counts)
            if seats.unit == "rank":
                yield OWN_HOST_FIRST, _dealt(moved, counts)
    yield CONSECUTIVE, _blocks(order, counts)
    yield REVERSED, _blocks(order[::-1], counts)
    if seats.unit == "rank" and max(counts.values()) > 1:
        yield CYCLIC, _dealt(by_name, counts)
        if by_name != order:
            yield CYCLIC_PLANNED, _dealt(order, counts)


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
        (UNPERMUTED, sorted),
        (UNPERMUTED, lambda gpus: range(len(gpus))),
        (GPUS_REVERSED, lambda gpus: gpus[::-1]),
        (ONE_GPU, lambda gpus: [0] * len(gpus)),
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


def _slurms_own(processes: Sequence[Process]) -> bool:
    """Whether ranks are Slurm's own task numbers, which scripts export as RANK too."""
    return all(
        process.launcher == "slurm"
        or (process.launcher == "env" and process.rank == process.slurm_procid)
        for process in processes
    )


def _node_rank_is_nodeid(processes: Sequence[Process]) -> bool:
    """Whether the script may have taken its node rank from SLURM_NODEID."""
    return not _slurms_own(processes) and all(
        process.launcher in ("torchrun", "env")
        and process.slurm_nodeid is not None
        and process.node_rank in (None, process.slurm_nodeid)
        for process in processes
    )
