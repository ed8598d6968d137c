"""Grove: a PodCliqueSet whose pods get nodes that suit the plan, one pod a node.

A slice is a replica of a scaling group, packed into one domain. Releases from
v0.1.0-alpha.9 on take a topology name and ``pack.required``. Source: ai-dynamo/grove
fcc3b3bb, ``operator/api/core/v1alpha1``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.emit.domains import quoted, tiers_of
from placer.emit.least_strict import comments
from placer.emit.manifest import Text, documents, object_name
from placer.emit.nodes import nodes_of
from placer.emit.pod_request import left_open, require_alike, shared_and_slices, usage

if TYPE_CHECKING:
    from placer.emit.domains import TierDomains
    from placer.emit.manifest import Object
    from placer.placement.plan import Plan

_TO_DO = (
    "Put your pod template in as podSpec, and for <...> names of your "
    "ClusterTopologyBinding."
)


def render(plan: Plan) -> str:
    """A PodCliqueSet without a pod template."""
    nodes = nodes_of(plan)
    require_alike(nodes)
    tiers = tiers_of(plan, nodes)
    shared, slices = shared_and_slices(tiers)
    part = slices[-1] if slices else None
    size = part.slice if part else len(nodes)
    template: Object = {}
    if shared:
        template["topologyConstraint"] = _packed(shared)
    template["cliques"] = [
        {"name": "node", "spec": {"roleName": "node", "replicas": size}}
    ]
    if part:
        template["podCliqueScalingGroups"] = [
            {
                "name": "slice",
                "cliqueNames": ["node"],
                "replicas": len(nodes) // size,
                "minAvailable": len(nodes) // size,
                "topologyConstraint": _packed(part),
            }
        ]
    item = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": object_name(plan)},
        "spec": {"replicas": 1, "template": template},
    }
    comment = usage("a PodCliqueSet", "Grove", nodes, _TO_DO)
    comment += left_open(tiers, [shared, part])
    return documents(comment + comments(plan, nodes), [item])


def _packed(tier: TierDomains) -> Object:
    """That pods must share a domain of a tier."""
    return {
        "topologyName": Text("<name of the ClusterTopologyBinding>"),
        "pack": {"required": Text(f"<domain of {quoted(tier.tier)}>")},
    }
