"""Annotations with which the next pods get nodes that suit the plan: Kueue and KAI.

One pod a node. Both schedulers name a tier by a label of its nodes, which a plan does
not hold: the text marks its place. Kueue refuses the mark, KAI ignores it.

Sources: Kueue ff69552e, ``apis/kueue/v1beta2/topology_types.go`` and "Topology Aware
Scheduling"; KAI scheduler d5bc503a, ``docs/topology/README.md`` and ``segments.md``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from placer.emit.domains import innermost_shared, nvlink_tier, quoted, tiers_of
from placer.emit.least_strict import comments
from placer.emit.manifest import Text, documents
from placer.emit.nodes import nodes_of
from placer.errors import EmitError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placer.emit.domains import TierDomains
    from placer.emit.manifest import Object
    from placer.emit.nodes import NodeRanks
    from placer.placement.plan import Plan

_USAGE = """\
# For the next submission: annotations with which {scheduler} gives nodes like the
# plan's to {pods} pods, one a node of {gpus} GPUs. Put the label of a tier for <...>.
# The job gets other nodes: place it on those, then emit its launch files.
"""

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
    comment = usage("Kueue", nodes) + left_open(tiers, [shared, *layers])
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
    comment = usage("the KAI scheduler", nodes)
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
# It cuts segments from the Worker pods of a PyTorchJob and from a LeaderWorkerSet; for
# other workloads write a PodGroup with subgroups.
"""


def shared_and_slices(
    tiers: Sequence[TierDomains],
) -> tuple[TierDomains | None, list[TierDomains]]:
    """The tier on which all nodes are together, and those below to cut slices by.

    A tier that asks for no more than the one inside it is left out, and one whose
    slices do not hold whole slices of that (Kueue refuses it).
    """
    shared = innermost_shared(tiers)
    slices: list[TierDomains] = []
    inner = 1
    for tier in tiers[: tiers.index(shared)] if shared else tiers:
        if tier.slice > inner and tier.slice % inner == 0:
            slices.append(tier)
            inner = tier.slice
    return shared, slices


def left_open(tiers: Sequence[TierDomains], said: Sequence[TierDomains | None]) -> str:
    """Comments on what the annotations do not say of the domains."""
    if not tiers:
        return "# Not said: the plan names no tier between node and cluster.\n"
    text = ""
    inner = 1
    for tier in tiers:
        least, most = min(tier.counts), max(tier.counts)
        if len(tier.names) == 1:
            break
        if least < most or (tier not in said and most > inner):
            text += f"# Not said: {tier.described}"
            text += f"; each {tier.slice} stay together.\n" if tier in said else ".\n"
        inner = most
    return text


def require_alike(nodes: Sequence[NodeRanks]) -> None:
    """Nothing, when every node must have as many GPUs as the others.

    Raises
    ------
    EmitError
        With the counts.
    """
    counts = {node.reach for node in nodes}
    if len(counts) > 1:
        raise EmitError(
            f"pods of one request are alike, but nodes need {min(counts)} to "
            f"{max(counts)} GPUs; no annotation says that"
        )


def usage(scheduler: str, nodes: Sequence[NodeRanks]) -> str:
    """Comment that opens a request."""
    gpus = nodes[0].reach
    return _USAGE.format(scheduler=scheduler, pods=len(nodes), gpus=gpus)


def _label(tier: TierDomains) -> Text:
    return Text(f"<label of {quoted(tier.tier)}>")


def _metadata(annotations: Object) -> Object:
    return {"metadata": {"annotations": annotations}}
