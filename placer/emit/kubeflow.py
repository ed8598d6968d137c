"""Kubeflow Trainer: a TrainJob whose pods find their node rank by their node's name.

Pods of one TrainJob are alike and on any node, so they need the network of their nodes
to reach node rank 0. A TrainJob cannot ask for that; its runtime can.

Source: Kubeflow Trainer 2.3 (``kubeflow-trainer-api``), "Runtime Guide".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.emit.container import Containers
from placer.emit.kubernetes import compute_domains, config_map, pod_by_name
from placer.emit.manifest import Object, documents, object_name
from placer.emit.nodes import nodes_of, require_equal_nodes

if TYPE_CHECKING:
    from placer.placement.plan import Plan

_WHAT = "torchrun with the plan's node ranks, one pod a node, for Kubeflow Trainer."
_BY_NAME = """\
# A pod finds its node rank by the name of its node, so the scheduler may start pods in
# any order. Pods use the network of their nodes, and node names must resolve there.
"""
_API = "trainer.kubeflow.org/v1alpha1"
# The one that the Trainer takes for the training pods, and their container's name.
_NODE = "node"


def render(plan: Plan) -> str:
    """A TrainJob, its TrainingRuntime and the ConfigMap with the launch script."""
    nodes = nodes_of(plan)
    require_equal_nodes(nodes, "kubeflow-trainer")
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
    runtime = _object("TrainingRuntime", name) | {
        "spec": {
            "mlPolicy": {"numNodes": len(nodes)},
            "template": {"spec": {"replicatedJobs": jobs}},
        }
    }
    job = _object("TrainJob", name) | {
        "spec": {
            "runtimeRef": {"kind": "TrainingRuntime", "name": name},
            "trainer": trainer,
        }
    }
    own = [config_map(plan, nodes), *compute_domains(plan, nodes)]
    return documents(
        Containers(plan).about(_WHAT, nodes) + _BY_NAME, [*own, runtime, job]
    )


def _object(kind: str, name: str) -> Object:
    return {"apiVersion": _API, "kind": kind, "metadata": {"name": name}}
