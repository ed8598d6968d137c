"""Annotations with which the next pods get nodes that suit the plan: Kueue and KAI.

One pod a node. Both schedulers name a tier by a label of its nodes, which a plan does
not hold: the text marks its place. Kueue refuses the mark, KAI ignores it.

Sources: Kueue ff69552e, ``apis/kueue/v1beta2/topology_types.go`` and "Topology Aware
Scheduling"; KAI scheduler d5bc503a, ``docs/topology/README.md`` and ``segments.md``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from placer.emit.domains import nvlink_tier, quoted, tiers_of
from placer.emit.least_strict import comments
from placer.emit.manifest import Text, documents
from placer.emit.nodes import nodes_of
from placer.emit.pods import left_open, require_alike, shared_and_slices, usage

if TYPE_CHECKING:
    from placer.emit.domains import TierDomains
    from placer.emit.manifest import Object
    from placer.placement.plan import Plan

_WHAT, _TO_DO = "annotations", "Put the label of a tier for <...>."
_KUEUE = "kueue.x-k8s.io/podset-"
_KAI = "kai.scheduler/"
# Layers of slices that Kueue takes.
_MAX_LAYERS = 3


def render_kueue(plan: Plan) -> str:
    """Annotations of the pod template for Kueue's Topology Aware Scheduling.

    Raises
    ------
    EmitError
        If nodes need unequal numbers of GPUs, a name is no host name, or two ranks
        share a GPU.
    """
    nodes = nodes_of(plan)
    require_alike(nodes)
    tiers = tiers_of(plan, nodes)
    shared, slices = shared_and_slices(tiers)
    annotations: Object = {}
    if shared:
        annotations[f"{_KUEUE}required-topology"] = _label(shared)
    elif not slices:
        annotations[f"{_KUEUE}unconstrained-topology"] = Text("true")
    layers = slices[:_MAX_LAYERS]
    if len(layers) == 1:
        annotations[f"{_KUEUE}slice-required-topology"] = _label(layers[0])
        annotations[f"{_KUEUE}slice-size"] = Text(layers[0].slice)
    elif layers:
        # Outermost first.
        items = [{"topology": _label(t), "size": t.slice} for t in reversed(layers)]
        lines = ",\n".join(f"  {json.dumps(item)}" for item in items)
        key = f"{_KUEUE}slice-required-topology-constraints"
        annotations[key] = f"[\n{lines}\n]\n"
    comment = usage(_WHAT, "Kueue", nodes, _TO_DO) + left_open(tiers, [shared, *layers])
    comment += comments(plan, nodes)
    return documents(comment, [{"podTemplate": _metadata(annotations)}])


def render_kai(plan: Plan) -> str:
    """Annotations of the workload and of its pod template for the KAI scheduler.

    Raises
    ------
    EmitError
        As `render_kueue`.
    """
    nodes = nodes_of(plan)
    require_alike(nodes)
    tiers = tiers_of(plan, nodes)
    shared, slices = shared_and_slices(tiers)
    workload: Object = {f"{_KAI}topology": Text("<name of the Topology>")}
    if shared:
        workload[f"{_KAI}topology-required-placement"] = _label(shared)
    objects: Object = {"workload": _metadata(workload)}
    comment = usage(_WHAT, "the KAI scheduler", nodes, _TO_DO)
    nvlink = nvlink_tier(plan, tiers)
    segment = nvlink if nvlink in slices else slices[0] if slices else None
    if segment:
        comment += _SEGMENTS
        objects["podTemplate"] = _metadata(
            {
                f"{_KAI}segment-size": Text(segment.slice),
                f"{_KAI}segment-topology-required-placement": _label(segment),
            }
        )
    comment += left_open(tiers, [shared, segment]) + comments(plan, nodes)
    return documents(comment, [objects])


_SEGMENTS = """\
# It cuts segments from the Worker pods of a PyTorchJob, by their index, and from a
# LeaderWorkerSet; for other workloads write a PodGroup with subgroups. A PyTorchJob's
# Master is in no segment: leave it out, and have a Worker for every node.
"""


def _label(tier: TierDomains) -> Text:
    return Text(f"<label of {quoted(tier.tier)}>")


def _metadata(annotations: Object) -> Object:
    return {"metadata": {"annotations": annotations}}
