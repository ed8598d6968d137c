"""Objects against the definitions of their kinds, as an API server would take them.

JSON schemas let keys pass that they do not name, and a server drops those in silence:
``replicatedJobz`` would make a JobSet of no jobs. So schemas are closed to them.
"""

import copy
import os
from functools import cache
from pathlib import Path

import pytest
import yaml

from tests.clients.needs import module
from tests.texts import LOADER

# What the definition of a ComputeDomain says of its spec: NVIDIA DRA driver for GPUs
# 5a0112cb, crds/resource.nvidia.com_computedomains.yaml, v1beta1.
NAMED = {"type": "object", "properties": {"name": {"type": "string"}}}
CHANNEL = {
    "type": "object",
    "required": ["resourceClaimTemplate"],
    "properties": {
        "allocationMode": {"enum": ["All", "Single"]},
        "resourceClaimTemplate": {**NAMED, "required": ["name"]},
    },
}
COMPUTE_DOMAIN = {
    "type": "object",
    "required": ["channel", "numNodes"],
    "properties": {"channel": CHANNEL, "numNodes": {"type": "integer"}},
}
SERVED = {
    "JobSet": ("jobset.x-k8s.io_jobsets.yaml", "v1alpha2"),
    "Topology": ("kueue.x-k8s.io_topologies.yaml", "v1beta2"),
}


def require_valid(manifest):
    """Nothing, when an API server takes the object and keeps all of its fields."""
    kind = manifest["kind"]
    if kind in SERVED:
        module("jsonschema").validate(manifest, schema_of(kind))
    elif kind == "ComputeDomain":
        assert manifest["apiVersion"] == "resource.nvidia.com/v1beta1"
        module("jsonschema").validate(manifest["spec"], closed(COMPUTE_DOMAIN))
    elif kind in ("TrainJob", "TrainingRuntime", "ClusterTrainingRuntime"):
        models = module("kubeflow_trainer_api.models")
        model = getattr(models, f"TrainerV1alpha1{kind}")
        # Fields that it does not know are lost.
        assert model.from_dict(copy.deepcopy(manifest)).to_dict() == manifest
    else:
        client = module("kubernetes_validate")
        client.validate(manifest, client.latest_version(), strict=True)
    for job in manifest.get("spec", {}).get("replicatedJobs", ()):
        require_valid({"apiVersion": "batch/v1", "kind": "Job", **job["template"]})
    if kind == "JobSet":
        metadata = manifest.get("metadata", {})
        require_valid({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})


@cache
def schema_of(kind):
    """The served schema of a kind, of the definitions among the captured files."""
    folder = os.environ.get("PLACER_SAMPLES")
    if not folder:
        pytest.skip("PLACER_SAMPLES does not name a folder")
    name, version = SERVED[kind]
    text = (Path(folder) / "kubernetes" / name).read_text()
    definition = yaml.load(text, Loader=LOADER)
    (schema,) = (
        row["schema"]["openAPIV3Schema"]
        for row in definition["spec"]["versions"]
        if row["name"] == version and row["served"]
    )
    return closed(schema)


def closed(schema):
    """The schema without room for keys that it does not name.

    What ``x-kubernetes-preserve-unknown-fields`` lets through stays free.
    """
    if isinstance(schema, list):
        return [*map(closed, schema)]
    if not isinstance(schema, dict):
        return schema
    found = {key: closed(inside) for key, inside in schema.items()}
    free = {"additionalProperties", "x-kubernetes-preserve-unknown-fields"}
    if isinstance(schema.get("properties"), dict) and not free & schema.keys():
        found["additionalProperties"] = False
    return found


def trained(runtime, job):
    """The JobSet of a TrainJob: its runtime's, with the container's own in place."""
    reference = job["spec"]["runtimeRef"]
    assert reference == {"kind": runtime["kind"], "name": runtime["metadata"]["name"]}
    spec = runtime["spec"]["template"]["spec"]
    (node,) = spec["replicatedJobs"]
    assert node["name"] == "node"
    assert node["template"]["metadata"]["labels"] == {
        "trainer.kubeflow.org/trainjob-ancestor-step": "trainer"
    }
    trainer = job["spec"]["trainer"]
    assert trainer["numNodes"] == runtime["spec"]["mlPolicy"]["numNodes"]
    (container,) = node["template"]["spec"]["template"]["spec"]["containers"]
    assert container["name"] == "node"
    container |= {key: trainer[key] for key in ("image", "command", "env")}
    container["resources"] = trainer["resourcesPerNode"]
    return {"kind": "JobSet", "spec": spec}


def pod_templates(workload):
    """Pod templates of a Job or JobSet, by node rank when there are several."""
    if workload["kind"] == "Job":
        yield workload["spec"]["template"]
    else:
        for job in workload["spec"]["replicatedJobs"]:
            assert job["replicas"] == 1
            yield job["template"]["spec"]["template"]
