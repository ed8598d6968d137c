"""What one source says about a machine, whatever its format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from placer.base.errors import Problem
from placer.base.hostlist import HostLists
from placer.base.units import counted
from placer.documents import Value
from placer.topology.affinity import Affinity

if TYPE_CHECKING:
    from placer.formats.machines.islands import Parts, Pcie
    from placer.topology.kubernetes import Resource, Taint

MAX_NODES = 1 << 17
_ID = 32  # characters of a UUID without its hyphens


@dataclass(frozen=True)
class Level:
    """A way to group nodes: by leaf switch, by NVLink domain, by cloud block."""

    name: str  # name of the tier that it may become; also how messages call it
    # Whether nodes of one domain talk over NVLink; None when the source cannot tell and
    # the kind of node decides.
    scale_up: bool | None = False
    # Whether it only serves a scheduler's planning. It gives way to levels that
    # describe switches.
    planned: bool = False
    # B/s: measured from one GPU to those of other domains of the level below, one way.
    bandwidth: float | None = None
    # Name of the source's level that has each of its domains whole, by definition;
    # empty where nothing of the kind is promised.
    inside: str = ""
    # Whether nothing joins its domains, so that a job lies in one of them.
    apart: bool = False
    key: str = ""  # the label of Kubernetes nodes that gives it; empty where none does


@dataclass(slots=True)
class NodeFacts:
    """One node."""

    # Its domain at each level of the findings, empty where the source gives none.
    domains: tuple[str, ...]
    gpus: int | None = None  # its GPUs, None where the source does not count them
    unavailable: str = ""  # why it must not be used; empty when it may


@dataclass
class Findings:
    """Everything one source says."""

    source: str  # how messages call the source
    levels: tuple[Level, ...] = ()  # innermost first, as far as the source orders them
    # By the source's name for the node, in its order.
    nodes: dict[str, NodeFacts] = field(default_factory=dict)
    # Other names of nodes, such as instance ids, and the host name of each.
    aliases: dict[str, str] = field(default_factory=dict)
    format: str = ""  # name of its format; set by who chose the reader
    # Lines and entries that were not understood, with place and reason.
    ignored: list[Problem] = field(default_factory=list)
    # What it does not say in so many words and is taken for true.
    assumed: list[str] = field(default_factory=list)
    # How many of a kind of thing (``label``) it has that no level is made of.
    unused: dict[str, int] = field(default_factory=dict)
    # Keys of node labels, innermost first, for sources that give an order of them.
    label_orders: tuple[tuple[str, ...], ...] = ()
    notes: list[str] = field(default_factory=list)  # what a user should know
    # Whether the GPUs of a node, or of each of its islands, talk over NVLink; None when
    # the source cannot tell.
    nvlink: bool | None = None
    # GPUs of each island of a node as a launcher counts them; none where NVLink joins
    # all of them, or the source does not tell.
    islands: Parts = ()
    # What leads from island to island, where the source tells it.
    pcie: Pcie | None = None
    # NUMA nodes and NICs of the GPUs of a node.
    affinity: Affinity = field(default_factory=Affinity)
    # B/s: measured from one GPU to the others of its node, one way.
    node_bandwidth: float | None = None
    # Name of the GPUs of most nodes, as the source writes it; empty where it does not.
    gpu: str = ""
    gpu_resource: str = ""  # what pods call the GPUs; empty where no pods run
    # taints and resources: the nodes that have a taint, or so many of a resource.
    taints: dict[Taint, list[str]] = field(default_factory=dict)
    resources: dict[Resource, list[str]] = field(default_factory=dict)
    # Whether names of its domains mean the same in every file of its levels, so that
    # several files, such as one a host, are one source.
    partial: bool = False
    # Whether its nodes may be the numbers of tasks, which only names translate.
    numbers: bool = False
    # The findings once the host names of ids and the nodes that other sources list are
    # known, for a source that depends on them; the nodes here do not count then.
    join: Callable[[Mapping[str, str], Sequence[str]], Findings] | None = None

    def add_node(self, value: Value, name: str, domains: tuple[str, ...]) -> NodeFacts:
        """Facts of the node called ``name`` that ``value`` describes, added here.

        A name that comes twice is a problem, no name none: that was one before. Whether
        it is a host name is seen later: another source may say which host it stands
        for.
        """
        facts = NodeFacts(domains)
        if name in self.nodes:
            value.problem(f'"{name}" is listed twice')
        elif len(self.nodes) >= MAX_NODES:
            value.problem(f"more than {MAX_NODES} nodes")
            value.document.fail_if_problems()
        elif name:
            self.nodes[name] = facts
        return facts

    def remarks(self) -> Iterator[str]:
        """Notes, and what was ignored with the first few places."""
        yield from (f"{self.source}: {note}" for note in self.notes)
        if self.ignored:
            shown = "".join(f"\n  {problem}" for problem in self.ignored[:5])
            more = len(self.ignored) - 5
            rest = f"\n  and {more} more" if more > 0 else ""
            count = len(self.ignored)
            yield f"{self.source}: {count} not understood and left out:{shown}{rest}"


def hosts_of(value: Value | None, lists: HostLists) -> list[str]:
    """The names of a host list; none where it is empty or, with a problem, bad."""
    if value is None or (isinstance(value.content, str) and not value.content.strip()):
        return []
    try:
        return lists.expand(value.name(longest=1_000_000))
    except ValueError as error:
        value.problem(str(error))
        return []


def are_ids(names: Sequence[str]) -> bool:
    """Whether domains are called by ids, such as UUIDs, that nobody would say."""
    return max(map(len, names), default=0) >= _ID


def usual(names: Iterable[str]) -> str:
    """What most are called; empty where none is called anything."""
    found = Counter(filter(None, names)).most_common(1)
    return found[0][0] if found else ""


def some(names: list[str], most: int = 3, between: str = ", ") -> str:
    """The first names, and how many more there are."""
    more = len(names) - most
    return between.join(names[:most]) + (f" and {more} more" if more > 0 else "")


def same_everywhere(findings: Findings, gpus: int) -> Findings:
    """The findings, which give every listed node ``gpus`` GPUs."""

    def join(_: Mapping[str, str], hosts: Sequence[str]) -> Findings:
        nodes = {host: NodeFacts((), gpus) for host in hosts}
        return replace(findings, nodes=nodes)

    return replace(findings, join=join)


def kinds_of_hosts(words: Mapping[str, str]) -> list[str]:
    """A note for each kind of host, given each host's description."""
    hosts: dict[str, list[str]] = {}
    for host, kind in words.items():
        hosts.setdefault(kind, []).append(host)
    if len(hosts) == 1:
        return [f"every host: {kind}" for kind in hosts]
    return [
        f"{counted(len(names), 'host')} ({some(names)}): {k}"
        for k, names in hosts.items()
    ]
