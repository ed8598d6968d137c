"""Manifests: what every pod asks for, and what no manifest may say."""

from typing import Any

import pytest
import yaml

from placer.base.errors import EmitError
from placer.emit import emit
from placer.emit.manifest import object_name
from tests.emit.readback import FREE, Seat, plan_of
from tests.emit.stubs import pod_templates

FORMATS = ("kubernetes-job", "kubernetes-jobset", "kubernetes-pinned")


def parsed(seats: list[Seat], format: str) -> list[Any]:
    return list(yaml.safe_load_all(emit(plan_of(seats), format)))


def test_a_job_by_hand() -> None:
    """Two nodes of two GPUs: two indexed pods, one a node, no other node."""
    _, job = parsed([("b", 0), ("b", 1), ("a", 0), ("a", 1)], "kubernetes-job")
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
    spec = job["spec"]
    assert (spec["completions"], spec["parallelism"]) == (2, 2)
    assert spec["completionMode"] == "Indexed"
    pod = spec["template"]["spec"]
    assert pod["hostNetwork"] is True
    (container,) = pod["containers"]
    assert container["command"] == ["bash", "/placer/launch.sh", "train.py"]
    assert container["resources"] == {"limits": {"nvidia.com/gpu": 2}}
    field = {"valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    assert container["env"] == [{"name": "PLACER_HOST", **field}]
    rule = "requiredDuringSchedulingIgnoredDuringExecution"
    (term,) = pod["affinity"]["nodeAffinity"][rule]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [
        {"key": "kubernetes.io/hostname", "operator": "In", "values": ["b", "a"]}
    ]
    (apart,) = pod["affinity"]["podAntiAffinity"][rule]
    assert apart["topologyKey"] == "kubernetes.io/hostname"
    labels = spec["template"]["metadata"]["labels"]
    assert apart["labelSelector"]["matchLabels"].items() <= labels.items()


def test_pinned_pods_by_hand() -> None:
    """Node rank k has Job ``node-k`` on its own node, with that node's GPU count."""
    _, jobset = parsed([("b", 0), ("a", 0), ("a", 1)], "kubernetes-pinned")
    jobs = jobset["spec"]["replicatedJobs"]
    name = object_name(plan_of([("b", 0)]))
    assert [job["name"] for job in jobs] == ["node-0", "node-1"]
    pods = [template["spec"] for template in pod_templates(jobset)]
    assert [pod["nodeSelector"]["kubernetes.io/hostname"] for pod in pods] == ["b", "a"]
    limits = [pod["containers"][0]["resources"]["limits"] for pod in pods]
    assert [limit["nvidia.com/gpu"] for limit in limits] == [1, 2]
    for pod in pods:
        # JobSet calls pods SET-JOB-REPLICA-INDEX, in a subdomain called SET.
        address = {"name": "PLACER_MASTER_ADDR", "value": f"{name}-node-0-0-0.{name}"}
        assert address in pod["containers"][0]["env"]
    assert jobset["metadata"]["name"] == name


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("host", ["no", "1e3", "0x10", "007", "null", "127.0.0.1"])
def test_names_stay_texts(format: str, host: str) -> None:
    """A node called like a number or a truth value is quoted wherever it stands."""
    text = emit(plan_of([(host, 0), ("other", 0)]), format)
    manifest = text[text.rindex("\n---\n") :]
    assert manifest.count(f'"{host}"') == (2 if format == "kubernetes-pinned" else 1)
    assert "&id" not in manifest


@pytest.mark.parametrize("format", FORMATS)
def test_free_maps_start_the_wrapper(format: str) -> None:
    """Ranks anywhere need the wrapper, which takes a whole command."""
    config_map, workload = parsed(FREE, format)
    assert "TORCHELASTIC_RUN_ID" in config_map["data"]["launch.sh"]
    for template in pod_templates(workload):
        command = template["spec"]["containers"][0]["command"]
        assert command[2:] == ["python", "train.py"]


def test_alike_pods_cannot_ask_for_unequal_nodes() -> None:
    """Nodes that need other numbers of GPUs are refused, with what can do it."""
    seats = [("a", 0), ("b", 0), ("b", 1)]
    for format in FORMATS[:2]:
        with pytest.raises(EmitError, match=r"need 1 to 2 GPUs; .*kubernetes-pinned"):
            emit(plan_of(seats), format)
    assert parsed(seats, "kubernetes-pinned")


@pytest.mark.slow
def test_size_limits() -> None:
    """An object larger than the server takes is refused, with what fits."""
    seats = [(f"node-{k:05}.cluster.example", 0) for k in range(4000)]
    with pytest.raises(EmitError, match="4000 pinned nodes make an object of"):
        emit(plan_of(seats), "kubernetes-pinned")
    assert emit(plan_of(seats), "kubernetes-jobset")
    many = [(f"{'x' * 40}{k:05}", 0) for k in range(16000)]
    with pytest.raises(EmitError, match="a ConfigMap holds 1,048,576"):
        emit(plan_of(many), "kubernetes-job")
