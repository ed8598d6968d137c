"""From the nodes of a cluster and a script to manifests that an API server takes."""

import json
from dataclasses import replace

import pytest
import yaml

from placer.emit import emit
from tests.clients.definitions import pod_templates, require_valid, trained
from tests.clients.test_kubernetes_manifests import FORMATS, TRAINER
from tests.commands import run
from tests.emit.readback import CONTIGUOUS, FREE, plan_of

GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
ARM_TAINT = {"key": "kubernetes.io/arch", "effect": "NoExecute"}
SCRIPT = """\
#!/bin/bash
#SBATCH --nodes=72
#SBATCH --container-image=nvcr.io#nvidia/pytorch:25.09-py3
export CUDA_DEVICE_MAX_CONNECTIONS=1
export WANDB_API_KEY=abc
MODEL=(--num-layers 80 --hidden-size 8192 --num-attention-heads 64 --vocab-size 128256
    --seq-length 8192 --micro-batch-size 1 --global-batch-size 1152
    --tensor-model-parallel-size 8 --pipeline-model-parallel-size 4)
srun torchrun --nnodes 72 --nproc-per-node 4 --rdzv-backend c10d \\
    pretrain_gpt.py "${MODEL[@]}" --save $CHECKPOINTS --note '$(hi)'
"""


def tray(number):
    """A GB200 tray, as the GPU operator, topograph and a shared NIC plugin have it."""
    rack, name = number // 18, f"r{number // 18}t{number % 18:02}"
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
    """72 trays and a script of Slurm: files in, and what the definitions take out."""
    monkeypatch.chdir(tmp_path)
    control = {
        "kind": "Node",
        "metadata": {"name": "control"},
        "spec": {"taints": [{"key": "control-plane", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": "8"}},
    }
    items = [control, *map(tray, range(72))]
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
    assert spec["completions"] == 72
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
