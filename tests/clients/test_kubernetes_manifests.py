"""Manifests are what an API server takes, and their pods find the plan's ranks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from placer.emit import emit
from tests.clients.definitions import (
    pod_templates,
    require_valid,
    trained,
)
from tests.clients.needs import module
from tests.clients.processes import (
    REPORT,
    environment,
    reported_seats,
    run,
    verdict,
)
from tests.emit.readback import CONTIGUOUS, FREE, plan_of
from tests.emit.tiered import tiered
from tests.injob.stand_ins import program
from tests.marks import slow

if TYPE_CHECKING:
    from pathlib import Path

FORMATS = ("kubernetes-job", "kubernetes-jobset", "kubernetes-pinned")
TRAINER = "kubeflow-trainer"
SWAPPED = [("gpu-3", 1), ("gpu-3", 0), ("gpu-1", 0), ("gpu-1", 1)]
FEW = [("gpu-3", 0), ("gpu-1", 1), ("gpu-1", 0), ("gpu-3", 1)]

# torchrun's numbering, as its documentation has it: node rank times processes a node.
AGENT = """\
#!/bin/bash
[ "$1" != --no-python ] || shift
export TORCHELASTIC_RUN_ID=x GROUP_RANK=$PET_NODE_RANK
export LOCAL_WORLD_SIZE=$PET_NPROC_PER_NODE
export WORLD_SIZE=$((PET_NNODES * PET_NPROC_PER_NODE))
for ((k = 0; k < PET_NPROC_PER_NODE; k++)); do
  LOCAL_RANK=$k RANK=$((PET_NODE_RANK * PET_NPROC_PER_NODE + k)) "$@" || exit
done
"""


@pytest.mark.parametrize("seats", [CONTIGUOUS, FREE], ids=["nodes", "free"])
@pytest.mark.parametrize("format", [*FORMATS, TRAINER])
def test_a_server_takes_them(format, seats):
    """Objects have only fields of their kinds, of the right types, as have the pods."""
    found = list(yaml.safe_load_all(emit(plan_of(seats), format)))
    for one in found:
        require_valid(one)
    if format == TRAINER:
        require_valid(job_of(*trained(*found[1:])["spec"]["replicatedJobs"]))


def job_of(replicated):
    """The Job that a server makes of one of a JobSet."""
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {}}
    return job | {"spec": replicated["template"]["spec"]}


@pytest.mark.parametrize("format", [*FORMATS, TRAINER])
def test_trays_of_a_rack_share_a_compute_domain(format):
    """Every pod claims a channel of it; where NVLink ends in the node there is none."""
    joined = tiered(["a", "a", "b"], gpus=2, scale_up=2)
    found = list(yaml.safe_load_all(emit(joined, format)))
    (domain,) = (one for one in found if one["kind"] == "ComputeDomain")
    require_valid(domain)
    assert domain["spec"]["numNodes"] == 3
    template = domain["spec"]["channel"]["resourceClaimTemplate"]["name"]
    if format == TRAINER:
        each = found[-1]["spec"]["trainer"]["resourcesPerNode"]
        assert each["claims"] == [{"name": "nvlink-channel"}]
        assert f"resourceClaimTemplateName: {template}\n" in emit(joined, format)
    else:
        for pod in pod_templates(found[-1]):
            (claim,) = pod["spec"]["resourceClaims"]
            assert claim["resourceClaimTemplateName"] == template
            (container,) = pod["spec"]["containers"]
            assert container["resources"]["claims"] == [{"name": claim["name"]}]
    if found[-1]["kind"] == "Job":
        require_valid(found[-1])
    for lone in (
        tiered(["a", "a", "b"], gpus=2, scale_up=1),
        tiered(["a", "b"], gpus=2, scale_up=2),
    ):
        assert "ComputeDomain" not in emit(lone, format)
        assert "resourceClaims" not in emit(lone, format)


def test_kueue_annotations():
    """On a JobSet's pods they are valid, and a Topology of their labels is, too.

    The mark where a label has to be put is none that a Topology takes.
    """
    racks, blocks = [f"r{k // 2}" for k in range(8)], [f"b{k // 4}" for k in range(8)]
    plan = tiered(racks, blocks, gpus=2)
    text = emit(plan, "kueue-request")
    marks = sorted({*re.findall("<label of [a-z]+>", text)})
    assert len(marks) == 2
    for mark in marks:
        label = f"example.com/{mark[10:-1]}"
        text = text.replace(mark, label)
        require_valid(topology(label))
        with pytest.raises(module("jsonschema").ValidationError):
            require_valid(topology(mark))
    annotations = yaml.safe_load(text)["podTemplate"]["metadata"]["annotations"]
    _, jobset = yaml.safe_load_all(emit(plan, "kubernetes-jobset"))
    (job,) = jobset["spec"]["replicatedJobs"]
    spec = job["template"]["spec"]
    spec["template"]["metadata"]["annotations"] = annotations
    require_valid(jobset)


def topology(label):
    """Kueue's Topology with a level of this node label."""
    levels = [{"nodeLabel": label}, {"nodeLabel": "kubernetes.io/hostname"}]
    head = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Topology"}
    return {**head, "metadata": {"name": "t"}, "spec": {"levels": levels}}


@dataclass(frozen=True)
class Kubelet:
    """Starts the container of a pod as the kubelet of a node would."""

    folder: Path  # the mounted ConfigMap, a ``torchrun`` and ``train.py`` on the PATH
    config_map: Any

    def start(self, pod, node, index):
        """What the container prints on this node, as pod number ``index``."""
        (container,) = pod["spec"]["containers"]
        mount, memory = container["volumeMounts"]
        volume, shared = pod["spec"]["volumes"]
        assert volume["name"] == mount["name"]
        assert memory == {"name": shared["name"], "mountPath": "/dev/shm"}
        assert shared["emptyDir"] == {"medium": "Memory"}
        assert volume["configMap"]["name"] == self.config_map["metadata"]["name"]
        for name, text in self.config_map["data"].items():
            (self.folder / name).write_text(text)
        (self.folder / "torchrun").write_text(AGENT)
        (self.folder / "torchrun").chmod(0o755)
        program(self.folder, "train.py", f"exec {' '.join(REPORT)}")
        program(self.folder, "python", 'exec "$@"')
        given = {row["name"]: value_of(row, node) for row in container["env"]}
        surroundings = environment(**given, JOB_COMPLETION_INDEX=str(index))
        surroundings["PATH"] = f"{self.folder}:{surroundings['PATH']}"
        inside = mount["mountPath"] + "/"
        command = [
            word.replace(inside, f"{self.folder}/") for word in container["command"]
        ]
        return run(command, surroundings)


def value_of(row, node):
    """The value of an environment variable on a node."""
    if "value" in row:
        return str(row["value"])
    assert row["valueFrom"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}
    return node


def pods_and_nodes(workload, nodes):
    """Every pod, on its own node or on one of ``nodes`` in their order."""
    templates = list(pod_templates(workload))
    if workload["kind"] == "JobSet" and len(templates) == len(nodes):
        label = "kubernetes.io/hostname"
        return [(pod, pod["spec"]["nodeSelector"][label]) for pod in templates]
    return [(templates[0], node) for node in nodes]


@pytest.mark.parametrize("seats", [SWAPPED, FEW], ids=["swapped", "free"])
@pytest.mark.parametrize("format", [FORMATS[0], TRAINER, *slow(FORMATS[1:])])
def test_pods_find_their_ranks(tmp_path, format, seats):
    """Pods on nodes in any order report the plan's rank and GPU; verify agrees."""
    config_map, *rest = yaml.safe_load_all(emit(plan_of(seats), format))
    workload = trained(*rest) if format == TRAINER else rest[0]
    kubelet = Kubelet(tmp_path, config_map)
    output = ""
    for index, (pod, node) in enumerate(pods_and_nodes(workload, ["gpu-1", "gpu-3"])):
        done = kubelet.start(pod, node, index)
        assert done.status == 0, done.error
        output += done.output
    assert reported_seats(output) == seats
    assert verdict(tmp_path, seats, output)["ok"]
