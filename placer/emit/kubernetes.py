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
    IMAGE,
    PROGRAM,
    Object,
    Text,
    cluster_of,
    comment,
    documents,
    kube_object,
    object_name,
    program_of,
    require_node_names,
)
from placer.emit.nodes import NodeRanks, nodes_for, nodes_of
from placer.placement.plan import Plan

# etcd's limit of a request; a ConfigMap holds 1 MiB (Kubernetes documentation,
# "ConfigMaps").
_MAX_CONFIG_MAP = 1024 * 1024
_MAX_OBJECT = 1536 * 1024
# A device plugin that shares NICs counts the pods that may have them, hundreds; one
# that hands them out counts NICs (Mellanox/k8s-rdma-shared-dev-plugin, rdmaHcaMax).
_SHARED, _MOST_NICS = "rdma/", 16
_CHANNEL = "nvlink-channel"

_WHAT = "torchrun with the plan's node ranks, one pod a node."
_BY_NAME = """\
# A pod finds its node rank by the name of its node, so the scheduler may start pods in
# any order. Pods use the network of their nodes, and node names must resolve there.
"""
_PINNED = """\
# Every node rank has a node of its own, by its label kubernetes.io/hostname.
"""


class _Pods:
    """The pods of a plan, one a node, and what they need beside them."""

    def __init__(self, plan: Plan, nodes: Sequence[NodeRanks]) -> None:
        self.plan, self.nodes, self.name = plan, nodes, object_name(plan)
        self._program, self._cluster = program_of(plan), cluster_of(plan)
        self._consecutive = all(node.consecutive for node in nodes)
        tier = nvlink_tier(plan, tiers_of(plan, nodes))
        self._joined_by_nvlink = tier is not None and max(tier.counts) > 1

    def manifest(self, remark: str, *objects: Object, what: str = _WHAT) -> str:
        """Objects after the ConfigMap and the ComputeDomain that they need."""
        own = [self._config_map(), *self._compute_domains()]
        return documents(self._about(what) + remark, [*own, *objects])

    def by_name(self) -> Object:
        """Template of pods that may start on the plan's nodes in any order.

        Each is told its node's name, and in the network of the node.
        """
        hosts = [Text(node.host) for node in self.nodes]
        is_one = {"key": HOSTNAME, "operator": "In", "values": hosts}
        labels = {"placer.plan": self.name}
        apart = {"labelSelector": {"matchLabels": labels}, "topologyKey": HOSTNAME}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [is_one]}]}
        host = {"valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
        pod = self._pod(self.nodes, host) | {
            "hostNetwork": True,
            "dnsPolicy": "ClusterFirstWithHostNet",
            "affinity": {
                "nodeAffinity": _required(terms),
                "podAntiAffinity": _required([apart]),
            },
        }
        return {"metadata": {"labels": labels}, "spec": self._with_channel(pod)}

    def pinned(self, node: NodeRanks) -> Object:
        """Template of the pod of one node."""
        pod = self._pod([node], {"value": Text(node.host)})
        # The first pod of the first Job, by the names that a JobSet gives its pods.
        first = f"{self.name}-node-0-0-0.{self.name}"
        address = {"name": "PLACER_MASTER_ADDR", "value": first}
        pod["containers"][0]["env"].append(address)
        pod["nodeSelector"] = {HOSTNAME: Text(node.host)}
        return {"spec": self._with_channel(pod)}

    def _pod(self, nodes: Sequence[NodeRanks], host: Object) -> Object:
        """A pod that runs the launch script, told the name of its node."""
        hosts = [node.host for node in nodes]
        return {
            "restartPolicy": "Never",
            **self._tolerations(hosts),
            "containers": [self._container(nodes[0].reach, hosts, host)],
            "volumes": [
                {"name": "plan", "configMap": {"name": self.name}},
                # A container's own has 64 MiB, too few for NCCL and data loaders.
                {"name": "shm", "emptyDir": {"medium": "Memory"}},
            ],
        }

    def _container(self, gpus: int, hosts: Sequence[str], host: Object) -> Object:
        """The one of a pod that has GPUs up to some of any of the hosts."""
        program = self._program
        python = [] if self._consecutive else ["python"]
        offered, _ = self._cluster.resources_of(hosts)
        network = {
            name: 1 if name.startswith(_SHARED) and count > _MOST_NICS else count
            for name, count in offered.items()
        }
        # What RDMA registers must stay in memory.
        lock = {"securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}}
        return {
            "name": "train",
            "image": program.image,
            "command": ["bash", "/placer/launch.sh", *python, *program.command],
            "env": [{"name": "PLACER_HOST", **host}, *program.environment],
            "resources": {"limits": {self._cluster.gpu: gpus, **network}},
            **(lock if network else {}),
            "volumeMounts": [
                {"name": "plan", "mountPath": "/placer"},
                {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108
            ],
        }

    def _tolerations(self, hosts: Sequence[str]) -> Object:
        """The key ``tolerations`` of pods there; empty where no host has a taint."""
        found = []
        for taint in self._cluster.taints_of(hosts):
            value = {"operator": "Equal", "value": Text(taint.value)}
            said = value if taint.value else {"operator": "Exists"}
            found.append({"key": Text(taint.key), **said, "effect": taint.effect})
        return {"tolerations": found} if found else {}

    def _with_channel(self, pod: Object) -> Object:
        """A pod whose one container has a channel of the plan's ComputeDomain."""
        if self._joined_by_nvlink:
            template = f"{self.name}-channel"
            claim = {"name": _CHANNEL, "resourceClaimTemplateName": template}
            pod["resourceClaims"] = [claim]
            (container,) = pod["containers"]
            container["resources"]["claims"] = [{"name": _CHANNEL}]
        return pod

    def _compute_domains(self) -> list[Object]:
        """The ComputeDomain of a plan whose NVLink joins nodes; none for others."""
        if not self._joined_by_nvlink:
            return []
        # Newer drivers take the number for the status alone, older ones wait for it.
        spec = {
            "numNodes": len(self.nodes),
            "channel": {"resourceClaimTemplate": {"name": f"{self.name}-channel"}},
        }
        api = "resource.nvidia.com/v1beta1"
        return [kube_object(api, "ComputeDomain", self.name, spec)]

    def _config_map(self) -> Object:
        """The ConfigMap that holds the launch script."""
        require_node_names(self.nodes)
        render = torchrun.render if self._consecutive else torchrun.render_wrapper
        text = render(self.plan)
        if len(text) > _MAX_CONFIG_MAP:
            raise EmitError(
                f"the launch script has {len(text):,} bytes, a ConfigMap holds "
                f"{_MAX_CONFIG_MAP:,}; put the torchrun-wrapper script into the image"
            )
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": self.name},
            "data": {"launch.sh": text},
        }

    def _about(self, what: str) -> str:
        """Comment that opens a manifest: what it is, and what has to be put in."""
        program = self._program
        to_do = [f"your image for {IMAGE}"] * (program.image == IMAGE)
        to_do += ["your program for train.py"] * (program.command == PROGRAM)
        to_do += [f"a value for <{name}>" for name in program.asked]
        text = f"{what} Put {' and '.join(to_do)}, then" if to_do else f"{what} Use"
        text += ": kubectl apply -f FILE"
        if program.needs_rank:
            text += ". The program must take its rank from RANK, as torchrun sets it"
        _, some = self._cluster.resources_of(node.host for node in self.nodes)
        if some:
            text += f". Not asked for, as some nodes lack it: {', '.join(some)}"
        return comment(text)


def render_job(plan: Plan) -> str:
    """An indexed Job and its ConfigMap."""
    pods = _Pods(plan, nodes_for(plan, "kubernetes-job"))
    spec = _indexed(len(pods.nodes), pods.by_name())
    return pods.manifest(_BY_NAME, kube_object("batch/v1", "Job", pods.name, spec))


def render_jobset(plan: Plan) -> str:
    """A JobSet of one indexed Job, and its ConfigMap."""
    pods = _Pods(plan, nodes_for(plan, "kubernetes-jobset"))
    job = _replicated("node", _indexed(len(pods.nodes), pods.by_name()))
    return pods.manifest(_BY_NAME, _jobset(pods.name, {"replicatedJobs": [job]}))


def render_pinned(plan: Plan) -> str:
    """A JobSet, one Job for each node rank, pinned to its node, and its ConfigMap."""
    pods = _Pods(plan, nodes_of(plan))
    jobs = [
        _replicated(f"node-{node_rank}", _indexed(1, pods.pinned(node)))
        for node_rank, node in enumerate(pods.nodes)
    ]
    network = {"enableDNSHostnames": True}
    jobset = _jobset(pods.name, {"network": network, "replicatedJobs": jobs})
    text = documents("", [jobset])
    if len(text) > _MAX_OBJECT:
        raise EmitError(
            f"{len(jobs)} pinned nodes make an object of {len(text):,} bytes, the "
            f"most is {_MAX_OBJECT:,}; kubernetes-jobset needs no pinning"
        )
    return f"{pods.manifest(_PINNED)}---\n{text}"


def _jobset(name: str, spec: Object) -> Object:
    return kube_object("jobset.x-k8s.io/v1alpha2", "JobSet", name, spec)


def _replicated(name: str, spec: Object) -> Object:
    return {"name": name, "replicas": 1, "template": {"spec": spec}}


def _indexed(pods: int, template: Object) -> Object:
    return {
        "completions": pods,
        "parallelism": pods,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "template": template,
    }


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
    pods = _Pods(plan, nodes_for(plan, "kubeflow-trainer"))
    count, template = len(pods.nodes), pods.by_name()
    container = template["spec"]["containers"][0]
    trainer = {
        "image": container.pop("image"),
        "command": container.pop("command"),
        "numNodes": count,
        "env": container.pop("env"),
        "resourcesPerNode": container.pop("resources"),
    }
    # Until the TrainJob's comes in its place, a container must have an image.
    container |= {"name": _NODE, "image": trainer["image"]}
    step = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    job = {
        "metadata": {"labels": step},
        "spec": {"backoffLimit": 0, "template": template},
    }
    jobs = [{"name": _NODE, "replicas": 1, "template": job}]
    runtime = {
        "mlPolicy": {"numNodes": count},
        "template": {"spec": {"replicatedJobs": jobs}},
    }
    ref = {"kind": "TrainingRuntime", "name": pods.name}
    return pods.manifest(
        _BY_NAME,
        kube_object(_API, "TrainingRuntime", pods.name, runtime),
        kube_object(
            _API, "TrainJob", pods.name, {"runtimeRef": ref, "trainer": trainer}
        ),
        what=_FOR_TRAINER,
    )
