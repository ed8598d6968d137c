"""What NCCL makes of the plan: communicators, their order and rings; text for people.

NCCL reads no rank map. It numbers the systems of a communicator (a node, or a clique of
nodes that share NVLink) by their first rank, and its rings pass through them in that
order; inside a system the hardware decides (NCCL 5067397c, ``src/init.cc``,
``src/graph/connect.cc``, ``src/mnnvl.cc``). PyTorch sorts the ranks of a group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from placer.emit.domains import TierDomains, nvlink_tier, quoted, tiers_of
from placer.emit.nodes import axes_of, nodes_of
from placer.placement.plan import Plan

_SHOWN = 8

_HEAD = """\
What NCCL makes of this plan
============================
NCCL reads no rank map: the order is that of the ranks in each communicator, sorted by
global rank. It numbers systems (here: {system}) by their first
rank there, and each of its rings passes through them in that order, once.
Communicators of one shape are listed once, with the first of them.
"""

_TAIL = """
Settings
--------
No NCCL_* variable holds this order, and none is needed.
NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=INIT,GRAPH: rank 0 of every communicator prints its
  rings, "Channel 00/16 : 0 1 2 ...", numbered by position in the communicator.
NCCL_TOPO_FILE: describes the inside of one node, where the machine hides it. No ranks.
"""
_MULTI_NODE = """\
NCCL_MNNVL_ENABLE: 2 by default, cliques of nodes where they work. 1 stops where they do
  not, 0 makes every node a system of its own: then the rings above do not hold.
"""


@dataclass(frozen=True)
class _Machine:
    """Where ranks are, as NCCL will find out."""

    node_of_rank: list[int]  # by node rank
    hosts: list[str]
    system: Sequence[int]  # NVLink system of every node
    system_names: Sequence[str]  # of every system
    # Name and domain of every node, innermost first; the nodes themselves and the whole
    # machine included.
    tiers: list[tuple[str, Sequence[int]]]

    def tier_between(self, node: int, other: int) -> int:
        """The lowest tier of which one domain holds both nodes."""
        return next(
            tier
            for tier, (_, domain) in enumerate(self.tiers)
            if domain[node] == domain[other]
        )


@dataclass(frozen=True)
class _Kind:
    """The communicators of one axis."""

    name: str
    groups: tuple[tuple[int, ...], ...]  # ranks of each
    # Whether ranks send to their neighbours instead of round a ring.
    is_pipeline: bool = False
    closed: bool = True  # whether the last sends to the first


@dataclass(frozen=True)
class _Communicator:
    """Some ranks as NCCL orders them."""

    ranks: tuple[int, ...]
    systems: dict[int, int]  # members in each system, by first appearance
    # Tier of the hop from each system to the next, and back to the first; of a pipeline
    # from each rank to the next.
    hops: tuple[int, ...]

    @property
    def shape(self) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
        """What communicators of one shape have in common."""
        members = tuple(sorted(self.systems.values()))
        return members, tuple(sorted(Counter(self.hops).items()))


def render(plan: Plan) -> str:
    """A report of every kind of communicator of the job."""
    machine, system = _machine(plan)
    parts = [_HEAD.format(system=system)]
    name_of: dict[tuple[tuple[int, ...], ...], str] = {}
    for kind in _kinds(plan):
        known = name_of.setdefault(kind.groups, kind.name)
        if known != kind.name and not kind.is_pipeline:
            parts.append(f"\n{kind.name}: the groups of {known}\n")
        else:
            parts.append("\n" + _section(machine, kind))
    if not plan.job.get("parallelism"):
        parts.append("\nThe plan gives no sizes of axes: their groups are not here.\n")
    multi_node = len(machine.system_names) < len(machine.hosts)
    return "".join(parts) + _TAIL + (_MULTI_NODE if multi_node else "")


def _machine(plan: Plan) -> tuple[_Machine, str]:
    """The machine, and what its systems are."""
    nodes = nodes_of(plan)
    tiers = tiers_of(plan, nodes)
    names = plan.outer_tiers or ["node", *plan.domains, "cluster"]
    node_of_rank = [0] * plan.world_size
    for node_rank, node in enumerate(nodes):
        for rank in node.ranks:
            node_of_rank[rank] = node_rank
    hosts = [node.host for node in nodes]
    of_node: Sequence[int] = range(len(nodes))
    named = [(quoted(tier.tier), tier.domain) for tier in tiers]
    cluster = (quoted(names[-1]), [0] * len(nodes))
    levels = [(quoted(names[0]), of_node), *named, cluster]
    system, system_names, what = _systems(plan, tiers, hosts)
    return _Machine(node_of_rank, hosts, system, system_names, levels), what


def _systems(
    plan: Plan, tiers: Sequence[TierDomains], hosts: Sequence[str]
) -> tuple[Sequence[int], Sequence[str], str]:
    """NVLink system of every node, the names of systems, and what they are."""
    clique = nvlink_tier(plan, tiers)
    if clique:
        what = f"NVLink domains of {quoted(clique.tier)}"
        return clique.domain, [quoted(name) for name in clique.names], what
    if 1 < plan.topology.get("scale_up", 1) == len(plan.topology.get("tiers", ())):
        return [0] * len(hosts), ["all"], "the whole machine, one NVLink domain"
    if plan.topology.get("scale_up", 1) > 1:
        return range(len(hosts)), hosts, "nodes, as the plan names no NVLink domains"
    return range(len(hosts)), hosts, "nodes"


def _kinds(plan: Plan) -> Iterator[_Kind]:
    """All ranks, then the axes with groups of more than one rank."""
    yield _Kind("world", (tuple(range(plan.world_size)),))
    if not plan.job.get("parallelism"):
        return
    axes = axes_of(plan, "nccl")
    of_experts = ("ep", "etp", "edp") if axes.divides_experts else ()
    for axis in ("tp", "cp", "dp", "dp_cp", *of_experts, "pp"):
        groups = tuple(map(tuple, axes.ranks_of_group[axis].tolist()))
        if len(groups[0]) > 1:
            yield _Kind(axis, groups, axis == "pp", axis != "pp" or axes.vp > 1)


def _section(machine: _Machine, kind: _Kind) -> str:
    """The communicators of one axis, a paragraph a shape, the most frequent first."""
    by_shape: dict[object, list[_Communicator]] = {}
    for ranks in kind.groups:
        found = _communicator(machine, ranks, kind)
        by_shape.setdefault(found.shape, []).append(found)
    text = f"{kind.name}: {len(kind.groups)} of {len(kind.groups[0])} ranks"
    text += ", sent from stage to stage, no ring\n" if kind.is_pipeline else "\n"
    for alike in sorted(by_shape.values(), key=len, reverse=True):
        text += "".join(_lines(machine, alike, kind))
    return text


def _communicator(
    machine: _Machine, ranks: tuple[int, ...], kind: _Kind
) -> _Communicator:
    nodes = [machine.node_of_rank[rank] for rank in ranks]
    first_node: dict[int, int] = {}
    for node in nodes:
        first_node.setdefault(machine.system[node], node)
    members = Counter(machine.system[node] for node in nodes)
    stops = nodes if kind.is_pipeline else list(first_node.values())
    following = stops[1:] + stops[:1] * kind.closed
    hops = tuple(map(machine.tier_between, stops, following))
    return _Communicator(
        ranks,
        {system: members[system] for system in first_node},
        hops if len(stops) > 1 else (),
    )


def _lines(
    machine: _Machine, alike: Sequence[_Communicator], kind: _Kind
) -> Iterator[str]:
    """A representative of communicators of one shape."""
    one = alike[0]
    nodes = list(dict.fromkeys(machine.node_of_rank[rank] for rank in one.ranks))
    hosts = [machine.hosts[node] for node in nodes]
    systems = [machine.system_names[system] for system in one.systems]
    members = sorted(set(one.systems.values()))
    held = f"{members[0]}" if len(members) == 1 else f"{members[0]} to {members[-1]}"
    yield f"  {len(alike)} like this:\n"
    yield f"    ranks    {_listed([str(rank) for rank in one.ranks], ' ')}\n"
    yield f"    nodes    {_listed(hosts, ' ')}\n"
    if len(systems) < len(nodes):
        yield f"    cliques  {_listed(systems, ' ')}\n"
    of = "one system" if len(systems) == 1 else f"each of {len(systems)} systems"
    yield f"    members  {held} in {of}\n"
    tiers = sorted(Counter(one.hops).items())
    hops = ", ".join(f"{count} in {machine.tiers[tier][0]}" for tier, count in tiers)
    if kind.is_pipeline:
        yield f"    hops     {hops}\n"
    elif len(systems) == 1:
        yield "    rings    inside one system, as its hardware wants\n"
    else:
        yield f"    rings    {_listed(systems, ' > ')}, and back\n"
        yield f"    hops     {hops}\n"


def _listed(words: Sequence[str], separator: str) -> str:
    """The words, or the first and last of many and their number."""
    if len(words) <= _SHOWN + 2:
        return separator.join(words)
    shown = [*words[:_SHOWN], "...", words[-1]]
    return f"{separator.join(shown)}  ({len(words)})"
