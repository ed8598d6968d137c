"""What lets pods of several nodes share NVLink: a ComputeDomain and its channel.

Without a channel of the domain the GPUs of a pod reach only those of their own node
over NVLink, and nothing says so. The domain takes care of every clique among its nodes
by itself (kubernetes-sigs and NVIDIA DRA driver for GPUs,
``crds/resource.nvidia.com_computedomains.yaml`` and
``cmd/compute-domain-daemon/computedomain.go``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.emit.domains import nvlink_tier, tiers_of
from placer.emit.manifest import Object, object_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placer.emit.nodes import NodeRanks
    from placer.placement.plan import Plan

_CHANNEL = "nvlink-channel"


def compute_domains(plan: Plan, nodes: Sequence[NodeRanks]) -> list[Object]:
    """The ComputeDomain of a plan whose NVLink joins nodes; none for others."""
    if not _joins_nodes(plan, nodes):
        return []
    name = object_name(plan)
    # Newer drivers take the number for the status alone, older ones wait for it.
    spec = {
        "numNodes": len(nodes),
        "channel": {"resourceClaimTemplate": {"name": _template(plan)}},
    }
    return [
        {
            "apiVersion": "resource.nvidia.com/v1beta1",
            "kind": "ComputeDomain",
            "metadata": {"name": name},
            "spec": spec,
        }
    ]


def claim_channel(plan: Plan, nodes: Sequence[NodeRanks], pod: Object) -> None:
    """Let a pod's one container have a channel of the plan's ComputeDomain."""
    if _joins_nodes(plan, nodes):
        claim = {"name": _CHANNEL, "resourceClaimTemplateName": _template(plan)}
        pod["resourceClaims"] = [claim]
        (container,) = pod["containers"]
        container["resources"]["claims"] = [{"name": _CHANNEL}]


def _joins_nodes(plan: Plan, nodes: Sequence[NodeRanks]) -> bool:
    tier = nvlink_tier(plan, tiers_of(plan, nodes))
    return tier is not None and max(tier.counts) > 1


def _template(plan: Plan) -> str:
    return f"{object_name(plan)}-channel"
