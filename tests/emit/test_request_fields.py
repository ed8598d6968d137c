"""Requests have only fields and annotations that the schedulers know.

An API server drops fields that a definition lacks in silence, and no scheduler says
that it does not know an annotation. So the names that requests use are written down
here, each list from the file beside it.
"""

from typing import Any

import yaml
from hypothesis import given, settings

from placer.emit import emit
from placer.placement.plan import Plan
from tests.emit.tiered import tiered_plans

HEAD = {"apiVersion": str, "kind": str, "metadata": {"name": str}}
# https://github.com/volcano-sh/volcano/blob/ed72c7c8/config/crd/volcano/bases/
# batch.volcano.sh_jobs.yaml and topology.volcano.sh_hypernodes.yaml
WITHIN = {"mode": str, "highestTierAllowed": int, "highestTierName": str}
PARTITIONS = {
    "totalPartitions": int,
    "partitionSize": int,
    "minPartitions": int,
    "networkTopology": WITHIN,
}
TASK = {"name": str, "replicas": int, "minAvailable": int, "template": dict}
JOB = {
    "schedulerName": str,
    "minAvailable": int,
    "queue": str,
    "networkTopology": WITHIN,
    "tasks": [{**TASK, "partitionPolicy": PARTITIONS}],
}
MEMBER = {"type": str, "selector": {"exactMatch": {"name": str}}}
HYPER_NODE = {"tier": int, "tierName": str, "members": [MEMBER]}
# https://github.com/ai-dynamo/grove/blob/fcc3b3bb/operator/api/core/v1alpha1/crds/
# grove.io_podcliquesets.yaml
PACKED = {"topologyName": str, "pack": {"required": str, "preferred": str}}
CLIQUE = {"roleName": str, "replicas": int, "minAvailable": int, "podSpec": dict}
GROUP = {"name": str, "cliqueNames": [str], "replicas": int, "minAvailable": int}
CLIQUE_SET = {
    "replicas": int,
    "template": {
        "topologyConstraint": PACKED,
        "cliques": [{"name": str, "spec": CLIQUE, "topologyConstraint": PACKED}],
        "podCliqueScalingGroups": [{**GROUP, "topologyConstraint": PACKED}],
    },
}
KINDS: dict[tuple[str, str], Any] = {
    ("batch.volcano.sh/v1alpha1", "Job"): JOB,
    ("topology.volcano.sh/v1alpha1", "HyperNode"): HYPER_NODE,
    ("grove.io/v1alpha1", "PodCliqueSet"): CLIQUE_SET,
}
ANNOTATIONS = {
    # https://github.com/kubernetes-sigs/kueue/blob/ff69552e/apis/kueue/v1beta2/
    # topology_types.go
    "kueue-request": {
        "kueue.x-k8s.io/podset-required-topology",
        "kueue.x-k8s.io/podset-unconstrained-topology",
        "kueue.x-k8s.io/podset-slice-required-topology",
        "kueue.x-k8s.io/podset-slice-size",
        "kueue.x-k8s.io/podset-slice-required-topology-constraints",
    },
    # https://github.com/kai-scheduler/KAI-Scheduler/blob/d5bc503a/pkg/podgrouper/
    # podgrouper/plugins/constants/constants.go
    "kai-request": {
        "kai.scheduler/topology",
        "kai.scheduler/topology-required-placement",
        "kai.scheduler/segment-size",
        "kai.scheduler/segment-topology-required-placement",
    },
}


def strangers(known: Any, value: Any, at: str = "") -> list[str]:
    """Paths of what has no place in a definition, or is of another type."""
    if isinstance(known, dict) and isinstance(value, dict):
        return [
            path
            for key, inside in value.items()
            for path in (
                strangers(known[key], inside, f"{at}.{key}")
                if key in known
                else [f"{at}.{key}"]
            )
        ]
    if isinstance(known, list) and isinstance(value, list):
        return [path for v in value for path in strangers(known[0], v, f"{at}[]")]
    return [] if isinstance(known, type) and type(value) is known else [at]


def test_a_stranger_is_found() -> None:
    """A misspelt field and a text for a number are, deep inside."""
    task = {"name": "node", "partitionPolicy": {"partitionSizes": 2}}
    assert strangers(JOB, {"tasks": [task]}) == [
        ".tasks[].partitionPolicy.partitionSizes"
    ]
    assert strangers(JOB, {"minAvailable": "2"}) == [".minAvailable"]


@settings(max_examples=40)
@given(tiered_plans())
def test_fields_of_objects(plan: Plan) -> None:
    """Volcano's and Grove's objects have no field that their definitions lack."""
    for format in ("volcano-request", "grove-request"):
        for item in yaml.safe_load_all(emit(plan, format)):
            spec = KINDS[item["apiVersion"], item["kind"]]
            assert strangers({**HEAD, "spec": spec}, item) == []
            if item["kind"] == "HyperNode":
                assert item["spec"]["members"]


@settings(max_examples=40)
@given(tiered_plans())
def test_keys_of_annotations(plan: Plan) -> None:
    """Kueue and KAI know every annotation, all of them are texts."""
    for format, known in ANNOTATIONS.items():
        for part in yaml.safe_load(emit(plan, format)).values():
            found = part["metadata"]["annotations"]
            assert set(found) <= known
            assert all(isinstance(value, str) for value in found.values())


@settings(max_examples=40)
@given(tiered_plans())
def test_grove_keeps_its_webhook(plan: Plan) -> None:
    """Slices are all of the pods and one gang; one topology; no set narrower than one.

    https://github.com/ai-dynamo/grove/blob/fcc3b3bb/operator/internal/webhook/admission/
    pcs/validation
    """
    (item,) = yaml.safe_load_all(emit(plan, "grove-request"))
    template = item["spec"]["template"]
    (clique,) = template["cliques"]
    groups = template.get("podCliqueScalingGroups", [])
    count = clique["spec"]["replicas"]
    for group in groups:
        assert group["cliqueNames"] == [clique["name"]]
        assert group["minAvailable"] == group["replicas"]
        count *= group["replicas"]
    assert count == len(plan.nodes)
    packed = [
        row["topologyConstraint"]
        for row in (template, *groups)
        if "topologyConstraint" in row
    ]
    assert len({row["topologyName"] for row in packed}) <= 1
    tiers = [row["pack"]["required"].split()[-1].rstrip(">") for row in packed]
    order = list(plan.topology["tiers"])
    assert tiers == sorted(set(tiers), key=order.index, reverse=True)
