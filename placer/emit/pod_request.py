"""What next pods ask for to get nodes that suit the plan: Kueue, KAI, Grove, Volcano.

One pod a node. Both schedulers name a tier by a label of its nodes: the one that the
tier was read from, else the text marks its place. Kueue refuses the mark, KAI ignores
it.

Sources: Kueue ff69552e, ``apis/kueue/v1beta2/topology_types.go`` and "Topology Aware
Scheduling"; KAI scheduler d5bc503a, ``docs/topology/README.md`` and ``segments.md``.

Grove: a PodCliqueSet whose pods get nodes that suit the plan, one pod a node.

A slice is a replica of a scaling group, packed into one domain. Releases from
v0.1.0-alpha.9 on take a topology name and ``pack.required``. Source: ai-dynamo/grove
fcc3b3bb, ``operator/api/core/v1alpha1``.

Volcano: HyperNodes of the plan's machine, and a job that asks for nodes like it.

Tiers count from 1, the innermost. Sources: Volcano ed72c7c8,
``config/crd/volcano/bases/topology.volcano.sh_hypernodes.yaml`` and
``batch.volcano.sh_jobs.yaml``, "Network Topology Aware Scheduling".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from placer.emit.domains import (
    TierDomains,
    guaranteed,
    innermost_shared,
    nvlink_tier,
    quoted,
    tiers_of,
)
from placer.emit.manifest import (
    HOSTNAME,
    Object,
    Text,
    cluster_of,
    comment,
    documents,
    kube_object,
    object_name,
    require_node_names,
)
from placer.emit.nodes import NodeRanks, nodes_for, nodes_of, require
from placer.placement.launcher_orders import natural_key
from placer.placement.plan import Plan


def usage(what: str, scheduler: str, nodes: Sequence[NodeRanks], to_do: str) -> str:
    """Comment that opens a request: what it is, and what its reader has to do."""
    return comment(
        f"For the next submission: {what} with which {scheduler} gives nodes like the "
        f"plan's to {len(nodes)} pods, one a node of {nodes[0].reach} GPUs. "
        f"{to_do}{' ' * bool(to_do)}The job gets other nodes: place it on those, then "
        "emit its launch files."
    )


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


def comments(plan: Plan, nodes: Sequence[NodeRanks]) -> str:
    """What a plan of an allocation says: the least strict request, its very nodes."""
    lines = [*guaranteed(plan)]
    if plan.request:
        names = json.dumps(sorted((node.host for node in nodes), key=natural_key))
        lines += [
            "# These very nodes, whatever the topology; in the pod template's spec:",
            "#   affinity:",
            "#     nodeAffinity:",
            "#       requiredDuringSchedulingIgnoredDuringExecution:",
            "#         nodeSelectorTerms:",
            "#           - matchExpressions:",
            f"#               - {{key: {HOSTNAME}, operator: In, values: {names}}}",
        ]
    return "".join(f"{line}\n" for line in lines)


_WHAT = "annotations"
_OF_TIER = "Put the label of a tier for <...>."
_LEVELS = "The Topology that the queue uses must have these labels as levels."
_NAMED = "Put the name of the Topology for <...>."
_KUEUE = "kueue.x-k8s.io/podset-"
_KAI = "kai.scheduler/"
# Layers of slices that Kueue takes.
_MAX_LAYERS = 3


def render_kueue(plan: Plan) -> str:
    """Annotations of the pod template for Kueue's Topology Aware Scheduling."""
    nodes = nodes_for(plan, "kueue-request")
    tiers = tiers_of(plan, nodes)
    shared, slices = shared_and_slices(tiers)
    labels = cluster_of(plan).labels
    annotations: Object = {}
    if shared:
        annotations[f"{_KUEUE}required-topology"] = _label(shared, labels)
    elif not slices:
        annotations[f"{_KUEUE}unconstrained-topology"] = Text("true")
    layers = slices[:_MAX_LAYERS]
    if len(layers) == 1:
        annotations[f"{_KUEUE}slice-required-topology"] = _label(layers[0], labels)
        annotations[f"{_KUEUE}slice-size"] = Text(layers[0].slice)
    elif layers:
        # Outermost first.
        items = [
            {"topology": _label(t, labels), "size": t.slice} for t in reversed(layers)
        ]
        lines = ",\n".join(f"  {json.dumps(item)}" for item in items)
        key = f"{_KUEUE}slice-required-topology-constraints"
        annotations[key] = f"[\n{lines}\n]\n"
    said = [tier for tier in (shared, *layers) if tier]
    to_do = (_to_do(said, labels) or _LEVELS) if said else ""
    text = usage(_WHAT, "Kueue", nodes, to_do) + left_open(tiers, [shared, *layers])
    text += comments(plan, nodes)
    return documents(text, [{"podTemplate": _metadata(annotations)}])


def render_kai(plan: Plan) -> str:
    """Annotations of the workload and of its pod template for the KAI scheduler."""
    nodes = nodes_for(plan, "kai-request")
    tiers = tiers_of(plan, nodes)
    shared, slices = shared_and_slices(tiers)
    labels = cluster_of(plan).labels
    workload: Object = {f"{_KAI}topology": Text("<name of the Topology>")}
    if shared:
        workload[f"{_KAI}topology-required-placement"] = _label(shared, labels)
    objects: Object = {"workload": _metadata(workload)}
    nvlink = nvlink_tier(plan, tiers)
    segment = nvlink if nvlink in slices else slices[0] if slices else None
    to_do = _to_do([shared, segment], labels) or _NAMED
    text = usage(_WHAT, "the KAI scheduler", nodes, to_do)
    if segment:
        text += _SEGMENTS
        objects["podTemplate"] = _metadata(
            {
                f"{_KAI}segment-size": Text(segment.slice),
                f"{_KAI}segment-topology-required-placement": _label(segment, labels),
            }
        )
    text += left_open(tiers, [shared, segment]) + comments(plan, nodes)
    return documents(text, [objects])


_SEGMENTS = """\
# It cuts segments from the Worker pods of a PyTorchJob, by their index, and from a
# LeaderWorkerSet; for other workloads write a PodGroup with subgroups. A PyTorchJob's
# Master is in no segment: leave it out, and have a Worker for every node.
"""


def _label(tier: TierDomains, labels: Mapping[str, str]) -> Text:
    return Text(labels.get(tier.tier) or f"<label of {quoted(tier.tier)}>")


def _to_do(said: Sequence[TierDomains | None], labels: Mapping[str, str]) -> str:
    known = all(tier.tier in labels for tier in said if tier)
    return "" if known else _OF_TIER


def _metadata(annotations: Object) -> Object:
    return {"metadata": {"annotations": annotations}}


_TO_DO = (
    "Put your pod template in as podSpec, and for <...> names of your "
    "ClusterTopologyBinding."
)


def render_grove(plan: Plan) -> str:
    """A PodCliqueSet without a pod template."""
    nodes = nodes_for(plan, "grove-request")
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
    spec = {"replicas": 1, "template": template}
    item = kube_object("grove.io/v1alpha1", "PodCliqueSet", object_name(plan), spec)
    said = usage("a PodCliqueSet", "Grove", nodes, _TO_DO)
    said += left_open(tiers, [shared, part])
    return documents(said + comments(plan, nodes), [item])


def _packed(tier: TierDomains) -> Object:
    """That pods must share a domain of a tier."""
    return {
        "topologyName": Text("<name of the ClusterTopologyBinding>"),
        "pack": {"required": Text(f"<domain of {quoted(tier.tier)}>")},
    }


_TIERS = """\
# The HyperNodes are those of the plan's nodes, in tiers {tiers}. Leave them
# out where the cluster has its own, and put its numbers for highestTierAllowed.
"""


def render_volcano(plan: Plan) -> str:
    """A Volcano Job without a pod template, after the HyperNodes that it speaks of."""
    nodes = nodes_of(plan)
    require_node_names(nodes)
    require(nodes, "volcano-request", {"equal"})
    name, tiers = object_name(plan), tiers_of(plan, nodes)
    shared, slices = shared_and_slices(tiers)
    nvlink = nvlink_tier(plan, tiers)
    part = nvlink if nvlink in slices else slices[0] if slices else None
    text = usage("a Job", "Volcano", nodes, "Put your pod template in.")
    if tiers:
        numbered = (f"{k} {quoted(t.tier)}" for k, t in enumerate(tiers, start=1))
        text += _TIERS.format(tiers=", ".join(numbered))
    task: Object = {"name": "node", "replicas": len(nodes)}
    if part:
        task["partitionPolicy"] = {
            "totalPartitions": len(nodes) // part.slice,
            "partitionSize": part.slice,
            **_within(tiers, part),
        }
    spec = {
        "schedulerName": "volcano",
        "minAvailable": len(nodes),
        **(_within(tiers, shared) if shared else {}),
        "tasks": [task],
    }
    job = kube_object("batch.volcano.sh/v1alpha1", "Job", name, spec)
    text += left_open(tiers, [shared, part]) + comments(plan, nodes)
    return documents(text, [*_hyper_nodes(name, tiers, nodes), job])


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
            spec = {
                "tier": number,
                "tierName": Text(tier.tier),
                "members": [
                    {"type": kind, "selector": {"exactMatch": {"name": member}}}
                    for kind, member in own
                ],
            }
            yield kube_object("topology.volcano.sh/v1alpha1", "HyperNode", name, spec)
        inside = [("HyperNode", names[domain]) for domain in tier.domain]
