"""What the labels of Kubernetes nodes mean, and which of them nobody reads.

Labels of the NVIDIA GPU operator (``nvidia.com/gpu.clique``: cluster UUID and clique of
the NVLink fabric), of topograph (docs, "Node labels and annotations", new and older
keys), and of the node controllers of clouds: AWS (EC2 User Guide, "How Amazon EC2
topology works": layer 1 is the top, and some instance types have a fourth), Google
("View VM topology"), Oracle (OKE), CoreWeave ("InfiniBand labels"; the numbers of leaf
groups and superpods count within the level above) and Nebius (soperator, docs on
topology: tier 0 is the rack's NVLink domain, the others are switches).

Any other label has the meaning that the user, or the order of levels in a ``Topology``
object of Kueue or KAI, gives it. In such an object a value counts within the values of
the levels above (Kueue, "Topology Aware Scheduling").
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from placer.formats.machines.findings import Level, are_ids
from placer.formats.machines.switches import aws_levels, switch_levels

HOSTNAME = "kubernetes.io/hostname"
NEW_TOPOGRAPH = "accelerator.topograph.run/"
OLD_TOPOGRAPH = "network.topology.nvidia.com/"
TOPOGRAPH_TIER = re.compile(r"fabric\.topograph\.run/tier-([0-9]|1[01])")
_AWS_LAYER = re.compile(r"topology\.k8s\.aws/network-node-layer-([1-8])")
_NEBIUS = "topology.nebius.com/"
_NEBIUS_TIER = re.compile(r"topology\.nebius\.com/tier-([1-9]|1[01])")
_OCI = "oci.oraclecloud.com/"
_GCE = "cloud.google.com/gce-topology-"
_COREWEAVE = ("backend.coreweave.cloud/", "ib.coreweave.cloud/")

# Words of keys that say where a node stands, and of those that say something else.
_LIKE_TOPOLOGY = re.compile(
    r"(?:^|[^a-z0-9])(?:topology|racks?|leaf|leafgroup|spine|core-switch|switch|block"
    r"|subblock|superpod|pod-?id|su|scalable-?unit|fabric|nvl[a-z0-9]*|clique|island"
    r"|rail|tier|domain|row|network-?node|gpu-cluster-id)(?:$|[^a-z])"
)
_OTHERWISE = re.compile(
    r"zone|region|hostname|fault-domain|failure-domain|(?:^|[./_-])csi(?:$|[./_-])"
)


@dataclass(frozen=True)
class LabelLevel:
    """A level that a label gives."""

    keys: tuple[str, ...]  # the label's keys, of which the first that a node has counts
    level: Level
    # Whether a value counts within the domains of the level ``level.inside``: the same
    # one in two of these is two domains.
    within: bool = False


@dataclass(frozen=True)
class LabelRules:
    """What is said of labels besides their usual meaning."""

    # Tier of a key; empty to leave the label out.
    tiers: Mapping[str, str] = field(default_factory=dict)
    # Keys of ``Topology`` objects, innermost first.
    orders: tuple[tuple[str, ...], ...] = ()
    # Names that mean NVLink between nodes: those of the hardware's scale-up tiers.
    nvlink_tiers: frozenset[str] = frozenset()


def label_levels(present: set[str], rules: LabelRules) -> list[LabelLevel]:
    """The levels of the labels that nodes have, innermost first within a family."""
    own = set(rules.tiers)
    known = [row for row in _known(present) if own.isdisjoint(row.keys)]
    taken = {key for row in known for key in row.keys}
    found = [row for row in known if not present.isdisjoint(row.keys)]
    name_of = {key: row.level.name for row in known for key in row.keys}
    name_of |= {key: tier for key, tier in rules.tiers.items() if tier}
    for order in rules.orders:
        keys = [key for key in order if key in present and key != HOSTNAME]
        keys = [key for key in keys if rules.tiers.get(key) != ""]
        names = [name_of.get(key) or _tier_name(key) for key in keys]
        # The outermost is inside none.
        for key, name, above in zip(keys, names, [*names, ""][1:], strict=True):
            if key not in taken:
                taken.add(key)
                level = replace(_named(name, rules), inside=above)
                found.append(LabelLevel((key,), level, bool(above)))
    for key, tier in rules.tiers.items():
        if tier and key in present and key not in taken:
            found.append(LabelLevel((key,), _named(tier, rules)))
    return found


def unused_labels(
    labels: Sequence[Mapping[str, str]],
    levels: Sequence[LabelLevel],
    rules: LabelRules,
) -> list[str]:
    """Keys that look like topology and are not read, sorted.

    One that has another value on every node groups none, and does not count.
    """
    used = {key for row in levels for key in row.keys} | set(rules.tiers)
    keys = {key for given in labels for key in given} - used
    unused = []
    for key in sorted(filter(is_like_topology, keys)):
        values = [given[key] for given in labels if key in given]
        if len(values) == 1 or len(set(values)) < len(values):
            unused.append(key)
    return unused


def label_of_names(
    column: Sequence[str], labels: Sequence[Mapping[str, str]], keys: Sequence[str]
) -> str:
    """The first of ``keys`` that names domains whose own names are ids; else nothing.

    Its values are shorter, and go with the domains one to one.

    ``column``: domain of each node, empty where it has none. ``labels``: of the same
    nodes.
    """
    domains = set(filter(None, column))
    if not are_ids(list(domains)):
        return ""
    for key in keys:
        pairs = {
            (domain, given.get(key, ""))
            for domain, given in zip(column, labels, strict=True)
            if domain or key in given
        }
        values = {value for _, value in pairs}
        is_one_to_one = len(pairs) == len(domains) == len(values)
        if is_one_to_one and all(values) and not are_ids(list(values)):
            return key
    return ""


def is_like_topology(key: str) -> bool:
    """Whether a label's key says where in the network a node stands."""
    lower = key.lower()
    return bool(_LIKE_TOPOLOGY.search(lower)) and not _OTHERWISE.search(lower)


def _named(name: str, rules: LabelRules) -> Level:
    return Level(name, None if name in rules.nvlink_tiers else False)


def _tier_name(key: str) -> str:
    """Name of a tier after its label: ``rack`` of ``example.com/topology-rack``."""
    last = key.rpartition("/")[2]
    return last.removeprefix("topology-") or last


def _known(present: set[str]) -> list[LabelLevel]:
    """Levels of all known labels, with as many switches as there are labels for."""
    gce = LabelLevel((_GCE + "block",), Level("block"))
    return [
        _row("nvidia.com/gpu.clique", "clique", True),
        _row(NEW_TOPOGRAPH + "sub-domain", "sub-domain", None, "domain"),
        _row(NEW_TOPOGRAPH + "domain", "domain", None),
        _row(OLD_TOPOGRAPH + "accelerator", "domain", None),
        _row("topology.k8s.aws/ultraserver-id", "ultraserver", True),
        _row(_OCI + "host.gpu_memory_fabric_id", "memory-fabric", True),
        _row("ds.coreweave.com/nvlink.domain", "nvlink-domain", True),
        _row(_NEBIUS + "tier-0", "nvl-domain", None),
        _row(_GCE + "subblock", "subblock", None, "block"),
        _row(OLD_TOPOGRAPH + "leaf", "leaf", False, "spine"),
        _row(OLD_TOPOGRAPH + "spine", "spine", False, "core"),
        _row(OLD_TOPOGRAPH + "core", "core"),
        gce,
        *_aws_layers(present),
        _row(_OCI + "host.rack_id", "rack", None),
        _row(_OCI + "rdma.local_block_id", "local-block", False, "network-block"),
        _row(_OCI + "rdma.network_block_id", "network-block", False, "island"),
        _row(_OCI + "rdma.hpc_island_id", "island"),
        *_coreweave(),
        *_switches(present, TOPOGRAPH_TIER, "fabric.topograph.run/tier-", 0),
        *_switches(present, _NEBIUS_TIER, _NEBIUS + "tier-", 1),
        _row(_NEBIUS + "gpu-cluster-id", "gpu-cluster"),
    ]


def _row(
    key: str, name: str, scale_up: bool | None = False, inside: str = ""
) -> LabelLevel:
    return LabelLevel((key,), Level(name, scale_up, inside=inside))


def _coreweave() -> list[LabelLevel]:
    names = ("leafgroup", "superpod", "fabric")
    return [
        LabelLevel(
            tuple(start + name for start in _COREWEAVE),
            Level(name, inside=above),
            within=bool(above),
        )
        for name, above in zip(names, (*names[1:], ""), strict=True)
    ]


def _aws_layers(present: set[str]) -> list[LabelLevel]:
    """The layers of network nodes, the bottom one first."""
    levels = aws_levels(max(0, _highest(present, _AWS_LAYER)))
    start = "topology.k8s.aws/network-node-layer-"
    keys = (f"{start}{layer}" for layer in range(len(levels), 0, -1))
    return [LabelLevel((key,), level) for key, level in zip(keys, levels, strict=True)]


def _switches(
    present: set[str], pattern: re.Pattern[str], start: str, first: int
) -> list[LabelLevel]:
    """Switches numbered from the closest."""
    count = _highest(present, pattern) + 1 - first
    levels = switch_levels(max(0, count))
    return [
        LabelLevel((f"{start}{number}",), level)
        for number, level in enumerate(levels, start=first)
    ]


def _highest(present: set[str], pattern: re.Pattern[str]) -> int:
    """The highest number of the keys that match; -1 without one."""
    matches = (pattern.fullmatch(key) for key in present)
    return max((int(match[1]) for match in matches if match), default=-1)
