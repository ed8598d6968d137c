"""Volcano: HyperNodes of the plan's machine, and a job that asks for nodes like it.

Tiers count from 1, the innermost. Sources: Volcano ed72c7c8,
``config/crd/volcano/bases/topology.volcano.sh_hypernodes.yaml`` and
``batch.volcano.sh_jobs.yaml``, "Network Topology Aware Scheduling".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.emit.domains import nvlink_tier, quoted, tiers_of
from placer.emit.least_strict import comments
from placer.emit.manifest import Text, documents, object_name, require_node_names
from placer.emit.nodes import nodes_of
from placer.emit.pod_request import left_open, require_alike, shared_and_slices, usage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from placer.emit.domains import TierDomains
    from placer.emit.manifest import Object
    from placer.emit.nodes import NodeRanks
    from placer.placement.plan import Plan

_TIERS = """\
# The HyperNodes are those of the plan's nodes, in tiers {tiers}. Leave them
# out where the cluster has its own, and put its numbers for highestTierAllowed.
"""


def render(plan: Plan) -> str:
    """A Volcano Job without a pod template, after the HyperNodes that it speaks of."""
    nodes = nodes_of(plan)
    require_node_names(nodes)
    require_alike(nodes)
    name, tiers = object_name(plan), tiers_of(plan, nodes)
    shared, slices = shared_and_slices(tiers)
    nvlink = nvlink_tier(plan, tiers)
    part = nvlink if nvlink in slices else slices[0] if slices else None
    comment = usage("a Job", "Volcano", nodes, "Put your pod template in.")
    if tiers:
        numbered = (f"{k} {quoted(t.tier)}" for k, t in enumerate(tiers, start=1))
        comment += _TIERS.format(tiers=", ".join(numbered))
    task: Object = {"name": "node", "replicas": len(nodes)}
    if part:
        task["partitionPolicy"] = {
            "totalPartitions": len(nodes) // part.slice,
            "partitionSize": part.slice,
            **_within(tiers, part),
        }
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "schedulerName": "volcano",
            "minAvailable": len(nodes),
            **(_within(tiers, shared) if shared else {}),
            "tasks": [task],
        },
    }
    comment += left_open(tiers, [shared, part]) + comments(plan, nodes)
    return documents(comment, [*_hyper_nodes(name, tiers, nodes), job])


def _within(tiers: Sequence[TierDomains], tier: TierDomains) -> Object:
    """That pods must share a domain of a tier."""
    allowed = tiers.index(tier) + 1
    return {"networkTopology": {"mode": "hard", "highestTierAllowed": allowed}}


def _hyper_nodes(
    job: str, tiers: Sequence[TierDomains], nodes: Sequence[NodeRanks]
) -> Iterator[Object]:
    """A HyperNode for every domain, inner ones first.

    Domains have names of any kind, objects have not: so these are numbered, after the
    name of the job.
    """
    inside: list[tuple[str, str]] = [("Node", Text(node.host)) for node in nodes]
    for number, tier in enumerate(tiers, start=1):
        names = [f"{job}-tier{number}-{k}" for k in range(len(tier.names))]
        members: list[dict[tuple[str, str], None]] = [{} for _ in names]
        for member, domain in zip(inside, tier.domain, strict=True):
            members[domain][member] = None
        for name, own in zip(names, members, strict=True):
            yield {
                "apiVersion": "topology.volcano.sh/v1alpha1",
                "kind": "HyperNode",
                "metadata": {"name": name},
                "spec": {
                    "tier": number,
                    "tierName": Text(tier.tier),
                    "members": [
                        {"type": kind, "selector": {"exactMatch": {"name": member}}}
                        for kind, member in own
                    ],
                },
            }
        inside = [("HyperNode", names[domain]) for domain in tier.domain]
