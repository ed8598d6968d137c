"""Kubernetes: torchrun on every node, node ranks looked up by the node's name.

A ConfigMap holds the launch script of the plan; a pod learns its node from
``spec.nodeName`` and finds its node rank there, wherever the scheduler put it. Only the
set of nodes must be the plan's. The variant with pinned pods gives every node rank a
node of its own.

Kubeflow Trainer: a TrainJob whose pods find their node rank by their node's name.

Pods of one TrainJob are alike and on any node, so they need the network of their nodes
to reach node rank 0. A TrainJob cannot ask for that; its runtime can.

Source: Kubeflow Trainer 2.3 (``kubeflow-trainer-api``), "Runtime Guide".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from placer.base.errors import EmitError
from placer.emit import torchrun
from placer.emit.domains import nvlink_tier, tiers_of
from placer.emit.manifest import (
    HOSTNAME,
    Containers,
    Object,
    Text,
    documents,
    kube_object,
    object_name,
    require_node_names,
)
from placer.emit.nodes import NodeRanks, nodes_for, nodes_of
from placer.placement.plan import Plan

_CHANNEL = "nvlink-channel"


def compute_domains(plan: Plan, nodes: Sequence[NodeRanks]) -> list[Object]:
    """The ComputeDomain of a plan whose NVLink joins nodes; none for others."""
    if not _joins_nodes(plan, nodes):
        return []
    # Newer drivers take the number for the status alone, older ones wait for it.
    spec = {
        "numNodes": len(nodes),
        "channel": {"resourceClaimTemplate": {"name": _template(plan)}},
    }
    return [
        kube_object(
            "resource.nvidia.com/v1beta1", "ComputeDomain", object_name(plan), spec
        )
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


# etcd's limit of a request; a ConfigMap holds 1 MiB (Kubernetes documentation,
# "ConfigMaps").
_MAX_CONFIG_MAP = 1024 * 1024
_MAX_OBJECT = 1536 * 1024

_WHAT = "torchrun with the plan's node ranks, one pod a node."
_BY_NAME = """\
# A pod finds its node rank by the name of its node, so the scheduler may start pods in
# any order. Pods use the network of their nodes, and node names must resolve there.
"""
_PINNED = """\
# Every node rank has a node of its own, by its label kubernetes.io/hostname.
"""


def render_job(plan: Plan) -> str:
    """An indexed Job and its ConfigMap."""
    nodes = nodes_for(plan, "kubernetes-job")
    spec = _job_spec(plan, nodes)
    return _manifest(
        plan, nodes, _BY_NAME, kube_object("batch/v1", "Job", object_name(plan), spec)
    )


def render_jobset(plan: Plan) -> str:
    """A JobSet of one indexed Job, and its ConfigMap."""
    nodes = nodes_for(plan, "kubernetes-jobset")
    spec = _job_spec(plan, nodes)
    jobs = [{"name": "node", "replicas": 1, "template": {"spec": spec}}]
    return _manifest(plan, nodes, _BY_NAME, _jobset(plan, {"replicatedJobs": jobs}))


def render_pinned(plan: Plan) -> str:
    """A JobSet, one Job for each node rank, pinned to its node, and its ConfigMap."""
    nodes = nodes_of(plan)
    name, containers, alike = object_name(plan), Containers(plan), _consecutive(nodes)
    jobs = [
        _pinned_job(containers, name, k, node, alike) for k, node in enumerate(nodes)
    ]
    for job in jobs:
        claim_channel(plan, nodes, job["template"]["spec"]["template"]["spec"])
    network = {"enableDNSHostnames": True}
    jobset = _jobset(plan, {"network": network, "replicatedJobs": jobs})
    text = documents("", [jobset])
    if len(text) > _MAX_OBJECT:
        raise EmitError(
            f"{len(nodes)} pinned nodes make an object of {len(text):,} bytes, the "
            f"most is {_MAX_OBJECT:,}; kubernetes-jobset needs no pinning"
        )
    return f"{_manifest(plan, nodes, _PINNED)}---\n{text}"


def _manifest(
    plan: Plan,
    nodes: Sequence[NodeRanks],
    remark: str,
    *objects: Object,
    what: str = _WHAT,
) -> str:
    """Objects after the ConfigMap and the ComputeDomain that they need."""
    own = [config_map(plan, nodes), *compute_domains(plan, nodes)]
    return documents(Containers(plan).about(what, nodes) + remark, [*own, *objects])


def config_map(plan: Plan, nodes: Sequence[NodeRanks]) -> Object:
    """The ConfigMap that holds the launch script."""
    require_node_names(nodes)
    own = _consecutive(nodes)
    text = (torchrun.render if own else torchrun.render_wrapper)(plan)
    if len(text) > _MAX_CONFIG_MAP:
        raise EmitError(
            f"the launch script has {len(text):,} bytes, a ConfigMap holds "
            f"{_MAX_CONFIG_MAP:,}; put the torchrun-wrapper script into the image"
        )
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": object_name(plan)},
        "data": {"launch.sh": text},
    }


def pod_by_name(plan: Plan, nodes: Sequence[NodeRanks]) -> tuple[Object, Object]:
    """Labels and specification of pods that may start on the plan's nodes in any order.

    One pod a node, told the node's name, in the network of the node.
    """
    hosts = [Text(node.host) for node in nodes]
    is_one = {"key": HOSTNAME, "operator": "In", "values": hosts}
    name = object_name(plan)
    labels = {"placer.plan": name}
    own_pods = {"matchLabels": labels}
    host = {"valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    pod = _pod(Containers(plan), nodes, _consecutive(nodes), name, host) | {
        "hostNetwork": True,
        "dnsPolicy": "ClusterFirstWithHostNet",
        "affinity": {
            "nodeAffinity": _required({"nodeSelectorTerms": [_terms(is_one)]}),
            "podAntiAffinity": _required(
                [{"labelSelector": own_pods, "topologyKey": HOSTNAME}]
            ),
        },
    }
    claim_channel(plan, nodes, pod)
    return labels, pod


def _job_spec(plan: Plan, nodes: Sequence[NodeRanks]) -> Object:
    """One pod a node, on the nodes of the plan, in any order."""
    labels, pod = pod_by_name(plan, nodes)
    return _indexed(len(nodes), {"metadata": {"labels": labels}, "spec": pod})


def _pinned_job(
    containers: Containers, name: str, node_rank: int, node: NodeRanks, alike: bool
) -> Object:
    pod = _pod(containers, [node], alike, name, {"value": Text(node.host)})
    # The first pod of the first Job, by the names that a JobSet gives its pods.
    address = {"name": "PLACER_MASTER_ADDR", "value": f"{name}-node-0-0-0.{name}"}
    pod["containers"][0]["env"].append(address)
    pod["nodeSelector"] = {HOSTNAME: Text(node.host)}
    spec = _indexed(1, {"spec": pod})
    return {"name": f"node-{node_rank}", "replicas": 1, "template": {"spec": spec}}


def _jobset(plan: Plan, spec: Object) -> Object:
    return kube_object("jobset.x-k8s.io/v1alpha2", "JobSet", object_name(plan), spec)


def _indexed(pods: int, template: Object) -> Object:
    return {
        "completions": pods,
        "parallelism": pods,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "template": template,
    }


def _pod(
    containers: Containers,
    nodes: Sequence[NodeRanks],
    consecutive: bool,
    name: str,
    host: Object,
) -> Object:
    """A pod that runs the launch script, told the name of its node."""
    hosts = [node.host for node in nodes]
    container = containers.container(nodes[0].reach, consecutive, hosts)
    container["env"].insert(0, {"name": "PLACER_HOST", **host})
    container["volumeMounts"] = [
        {"name": "plan", "mountPath": "/placer"},
        {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108
    ]
    return {
        "restartPolicy": "Never",
        **containers.tolerations(hosts),
        "containers": [container],
        "volumes": [
            {"name": "plan", "configMap": {"name": name}},
            # A container's own has 64 MiB, too few for NCCL and data loaders.
            {"name": "shm", "emptyDir": {"medium": "Memory"}},
        ],
    }


def _consecutive(nodes: Sequence[NodeRanks]) -> bool:
    return all(node.consecutive for node in nodes)


def _terms(expression: Object) -> Object:
    return {"matchExpressions": [expression]}


def _required(what: Any) -> Object:
    return {"requiredDuringSchedulingIgnoredDuringExecution": what}


_FOR_TRAINER = (
    "torchrun with the plan's node ranks, one pod a node, for Kubeflow Trainer."
)
_API = "trainer.kubeflow.org/v1alpha1"
# The one that the Trainer takes for the training pods, and their container's name.
_NODE = "node"


def render_kubeflow(plan: Plan) -> str:
    """A TrainJob, its TrainingRuntime and the ConfigMap with the launch script."""
    nodes = nodes_for(plan, "kubeflow-trainer")
    name = object_name(plan)
    labels, pod = pod_by_name(plan, nodes)
    container = pod["containers"][0]
    trainer = {
        "image": container.pop("image"),
        "command": container.pop("command"),
        "numNodes": len(nodes),
        "env": container.pop("env"),
        "resourcesPerNode": container.pop("resources"),
    }
    # Until the TrainJob's comes in its place, a container must have an image.
    container |= {"name": _NODE, "image": trainer["image"]}
    step = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    template = {
        "metadata": {"labels": step},
        "spec": {
            "backoffLimit": 0,
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
    jobs = [{"name": _NODE, "replicas": 1, "template": template}]
    runtime = {
        "mlPolicy": {"numNodes": len(nodes)},
        "template": {"spec": {"replicatedJobs": jobs}},
    }
    job = {
        "runtimeRef": {"kind": "TrainingRuntime", "name": name},
        "trainer": trainer,
    }
    return _manifest(
        plan,
        nodes,
        _BY_NAME,
        kube_object(_API, "TrainingRuntime", name, runtime),
        kube_object(_API, "TrainJob", name, job),
        what=_FOR_TRAINER,
    )
