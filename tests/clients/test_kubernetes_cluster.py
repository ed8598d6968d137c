"""From the nodes of a cluster and a script to manifests that an API server takes.

Their pods run the plan's script.
"""

import copy
import json
import re
from dataclasses import replace

import pytest
import yaml

from placer.emit import emit
from tests.clients.definitions import pod_templates, require_valid, trained
from tests.clients.needs import module
from tests.commands import run
from tests.emit.readback import CONTIGUOUS, FREE, plan_of, tiered

FORMATS = ("kubernetes-job", "kubernetes-jobset", "kubernetes-pinned")
TRAINER = "kubeflow-trainer"
GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
ARM_TAINT = {"key": "kubernetes.io/arch", "effect": "NoExecute"}
SCRIPT = """\
#!/bin/bash
#SBATCH --nodes=16
#SBATCH --container-image=nvcr.io#nvidia/pytorch:25.09-py3
export CUDA_DEVICE_MAX_CONNECTIONS=1
export WANDB_API_KEY=abc
MODEL=(--num-layers 80 --hidden-size 8192 --num-attention-heads 64 --vocab-size 128256
    --seq-length 8192 --micro-batch-size 1 --global-batch-size 256
    --tensor-model-parallel-size 8 --pipeline-model-parallel-size 4)
srun torchrun --nnodes 16 --nproc-per-node 4 --rdzv-backend c10d \\
    pretrain_gpt.py "${MODEL[@]}" --save $CHECKPOINTS --note '$(hi)'
"""


def tray(number):
    """A GB200 tray, as the GPU operator, topograph and a shared NIC plugin have it."""
    rack, name = number // 8, f"r{number // 8}t{number % 8}"
    labels = {
        "kubernetes.io/hostname": name,
        "nvidia.com/gpu.product": "NVIDIA-GB200",
        "nvidia.com/gpu.clique": f"5000000{rack}-0000-4000-8000-000000000000.1",
        "fabric.topograph.run/tier-0": f"leaf-{rack // 2}",
    }
    allocatable = {"nvidia.com/gpu": "4", "rdma/ib": "4", "rdma/shared_a": "1k"}
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": [GPU_TAINT, ARM_TAINT]},
        "status": {"allocatable": allocatable},
    }


def test_two_commands_from_the_nodes_to_a_job(tmp_path, monkeypatch):
    """16 trays and a script of Slurm: files in, and what the definitions take out."""
    monkeypatch.chdir(tmp_path)
    control = {
        "kind": "Node",
        "metadata": {"name": "control"},
        "spec": {"taints": [{"key": "control-plane", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": "8"}},
    }
    items = [control, *map(tray, range(16))]
    (tmp_path / "nodes.json").write_text(json.dumps({"kind": "List", "items": items}))
    (tmp_path / "pretrain.sh").write_text(SCRIPT)
    for command in (
        "place -t nodes.json -j pretrain.sh --effort quick -o plan.json",
        "emit plan.json kubernetes-jobset -o jobset.yaml",
    ):
        done = run(*command.split())
        if command.startswith("place"):
            assert "placer emit plan.json kubernetes-jobset" in done.stdout
    text = (tmp_path / "jobset.yaml").read_text()
    assert "Put a value for <CHECKPOINTS>, then: kubectl apply" in " ".join(
        text.replace("\n# ", " ").split()
    )
    assert "abc" not in text
    found = list(yaml.safe_load_all(text))
    for one in found:
        require_valid(one)
    jobset = found[-1]
    (job,) = jobset["spec"]["replicatedJobs"]
    spec = job["template"]["spec"]
    assert spec["completions"] == 16
    (template,) = pod_templates(jobset)
    pod = template["spec"]
    assert pod["tolerations"] == [
        {"operator": "Equal", **GPU_TAINT},
        {"operator": "Exists", **ARM_TAINT},
    ]
    (container,) = pod["containers"]
    assert container["image"] == "nvcr.io/nvidia/pytorch:25.09-py3"
    command = container["command"]
    assert command[:3] == ["bash", "/placer/launch.sh", "pretrain_gpt.py"]
    assert command[-4:] == ["--save", "$(CHECKPOINTS)", "--note", "$$(hi)"]
    assert container["env"][1:] == [
        {"name": "CUDA_DEVICE_MAX_CONNECTIONS", "value": "1"},
        {"name": "CHECKPOINTS", "value": "<CHECKPOINTS>"},
    ]
    assert container["resources"]["limits"] == {
        "nvidia.com/gpu": 4,
        "rdma/ib": 4,
        "rdma/shared_a": 1,
    }
    assert container["securityContext"] == {"capabilities": {"add": ["IPC_LOCK"]}}
    request = run("emit", "plan.json", "kueue-request").stdout
    assert "nvidia.com/gpu.clique" in request
    assert "<label" not in request


def on_cluster(seats, cluster, **started):
    """A plan of a machine whose cluster is known, and of a script."""
    topology = {"tiers": [{"name": "node"}, {"name": "rack"}], "kubernetes": cluster}
    launcher = {"name": "torchrun-static", "source": "a.sh", "line": 1, **started}
    job = {"launcher": launcher} if started else {}
    return replace(plan_of(seats), inputs={"topology": topology, "job": job})


def pods_of(plan, format):
    """The specifications of all pods, each valid as one of a Job."""
    *_, last = found = list(yaml.safe_load_all(emit(plan, format)))
    workload = trained(found[-2], last) if format == TRAINER else last
    pods = [template["spec"] for template in pod_templates(workload)]
    for pod in pods:
        template = {"metadata": {}, "spec": {"template": {"spec": pod}}}
        require_valid({"apiVersion": "batch/v1", "kind": "Job", **template})
    return pods


@pytest.mark.parametrize("format", [*FORMATS, TRAINER])
def test_pods_ask_for_what_their_nodes_have(format):
    """No taint of other nodes is tolerated, and nothing asked for that one lacks."""
    cluster = {
        "gpu": "amd.com/gpu",
        "taints": [
            {"key": "all", "effect": "NoSchedule"},
            {"key": "some", "value": "no", "effect": "NoExecute", "hosts": "n[1,9]"},
            {"key": "other", "effect": "NoSchedule", "hosts": "n9"},
        ],
        "resources": [
            {"name": "rdma/a", "count": 8, "hosts": "n[1-4]"},
            {"name": "rdma/a", "count": 2, "hosts": "n9"},
            {"name": "vpc.amazonaws.com/efa", "count": 32},
            {"name": "rdma/few", "count": 8, "hosts": "n1"},
        ],
    }
    plan = on_cluster(CONTIGUOUS, cluster)
    pods = pods_of(plan, format)
    pinned = format == "kubernetes-pinned"
    assert len(pods) == (4 if pinned else 1)
    for pod in pods:
        on_n1 = not pinned or pod["nodeSelector"]["kubernetes.io/hostname"] == "n1"
        keys = [row["key"] for row in pod["tolerations"]]
        assert keys == ["all", *["some"] * on_n1]
        limits = pod["containers"][0]["resources"]["limits"]
        assert limits == {
            "amd.com/gpu": 2,
            "rdma/a": 8,
            "vpc.amazonaws.com/efa": 32,
            **({"rdma/few": 8} if pinned and on_n1 else {}),
        }
    said = " ".join(emit(plan, format).replace("\n# ", " ").split())
    assert "Not asked for, as some nodes lack it: rdma/few" in said


@pytest.mark.parametrize("format", [*FORMATS, TRAINER])
def test_pods_run_the_command_of_the_script(format):
    """A module, texts that look like numbers, and Python where ranks need a wrapper."""
    started = {
        "command": ["-m", "torchtitan.train", "--x=${X}", "${Y}", "1e3"],
        "environment": {"Y": "no"},
        "image": "here:1",
    }
    for seats in (CONTIGUOUS, FREE):
        for pod in pods_of(on_cluster(seats, {}, **started), format):
            (container,) = pod["containers"]
            assert container["image"] == "here:1"
            python = [] if seats is CONTIGUOUS else ["python"]
            own = ["-m", "torchtitan.train", "--x=$(X)", "$(Y)", "1e3"]
            assert container["command"][2:] == [*python, *own]
            told = {row["name"]: row.get("value") for row in container["env"]}
            assert (told["X"], told["Y"]) == ("<X>", "no")
            assert "securityContext" not in container
            assert "tolerations" not in pod


def test_without_a_script_marks_stand_for_it():
    """The comment names what to put in, and what is there already is not named."""
    text = emit(plan_of(CONTIGUOUS), FORMATS[0])
    assert "Put your image for IMAGE and your\n# program for train.py, then:" in text
    text = emit(on_cluster(CONTIGUOUS, {}, command=["a.py"]), FORMATS[0])
    assert "Put your image for IMAGE, then:" in text
    text = emit(on_cluster(CONTIGUOUS, {}, command=["a.py"], image="i"), FORMATS[0])
    assert "Use: kubectl apply" in text
    assert "take its rank" not in text
    srun = on_cluster(CONTIGUOUS, {}, command=["a.py"], name="slurm")
    said = " ".join(emit(srun, FORMATS[0]).replace("\n# ", " ").split())
    assert "The program must take its rank from RANK" in said


@pytest.mark.parametrize(
    ("format", "seats"),
    [*zip((*FORMATS, TRAINER), [CONTIGUOUS, FREE] * 2, strict=True)],
)
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
        mount, _ = container["volumeMounts"]
        volume, _ = pod["spec"]["volumes"]
        assert volume["configMap"]["name"] == found[0]["metadata"]["name"]
        assert volume["name"] == mount["name"]
        assert container["command"][:2] == ["bash", f"{mount['mountPath']}/launch.sh"]
        host = pod["spec"].get("nodeSelector", {}).get("kubernetes.io/hostname")
        own = {"fieldRef": {"fieldPath": "spec.nodeName"}}
        told = {"value": host} if host else {"valueFrom": own}
        assert {"name": "PLACER_HOST", **told} in container["env"]
    for one in found:
        require_valid(one)
    if format == TRAINER:
        (replicated,) = trained(*found[1:])["spec"]["replicatedJobs"]
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {}}
        require_valid(job | {"spec": replicated["template"]["spec"]})


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
