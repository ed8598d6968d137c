"""Manifests are what an API server takes, and their pods run the plan's script."""

import copy
import re

import pytest
import yaml

from placer.emit import emit
from tests.clients.definitions import (
    pod_templates,
    require_valid,
    trained,
)
from tests.clients.needs import module
from tests.emit.readback import CONTIGUOUS, FREE, plan_of
from tests.emit.tiered import tiered

FORMATS = ("kubernetes-job", "kubernetes-jobset", "kubernetes-pinned")
TRAINER = "kubeflow-trainer"


@pytest.mark.parametrize("seats", [CONTIGUOUS, FREE], ids=["nodes", "free"])
@pytest.mark.parametrize("format", [*FORMATS, TRAINER])
def test_a_server_takes_them(format, seats):
    """Objects have only fields of their kinds, of the right types, as have the pods.

    Pods run what torchrun is emitted, on the node that they are told, whose name it is.
    """
    found = list(yaml.safe_load_all(emit(plan_of(seats), format)))
    script = "torchrun" if seats is CONTIGUOUS else "torchrun-wrapper"
    assert found[0]["data"] == {"launch.sh": emit(plan_of(seats), script)}
    workload = trained(*copy.deepcopy(found[1:])) if format == TRAINER else found[1]
    for pod in pod_templates(workload):
        (container,) = pod["spec"]["containers"]
        mount, memory = container["volumeMounts"]
        volume, shared = pod["spec"]["volumes"]
        assert volume["configMap"]["name"] == found[0]["metadata"]["name"]
        assert volume["name"] == mount["name"]
        assert container["command"][:2] == ["bash", f"{mount['mountPath']}/launch.sh"]
        assert memory == {"name": shared["name"], "mountPath": "/dev/shm"}
        assert shared["emptyDir"] == {"medium": "Memory"}
        host = pod["spec"].get("nodeSelector", {}).get("kubernetes.io/hostname")
        own = {"fieldRef": {"fieldPath": "spec.nodeName"}}
        told = {"value": host} if host else {"valueFrom": own}
        assert {"name": "PLACER_HOST", **told} in container["env"]
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
