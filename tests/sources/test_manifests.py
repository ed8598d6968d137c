"""Manifests of pods are read as the script that their command is."""

import re
from textwrap import indent

import pytest

from placer.base.errors import InputError
from placer.formats.jobs.job import read_job
from placer.job.started import Started
from tests.texts import data, table

OPTIONS = (
    "--tensor-model-parallel-size=2 --num-layers=8 --hidden-size=1024 "
    "--num-attention-heads=16 --seq-length=1024 --micro-batch-size=1 "
    "--global-batch-size=16 --vocab-size=32000"
)
POD = data("jobs/pod.yaml")
LISTED = """\
    command: [torchrun]
    args:
    - --nnodes=$(NODES)
    # so many GPUs a node
    - --nproc-per-node=2
    - --node-rank=$(JOB_COMPLETION_INDEX)
    - pretrain_gpt.py
"""
SHELL = data("jobs/pod-shell.txt")
KINDS = {
    "Job": ("batch/v1", "spec:\n  template:\n", 4),
    "JobSet": (
        "jobset.x-k8s.io/v1alpha2",
        "spec:\n  replicatedJobs:\n  - template:\n      spec:\n        template:\n",
        10,
    ),
    "PyTorchJob": (
        "kubeflow.org/v1",
        "spec:\n  pytorchReplicaSpecs:\n    Master:\n      template:\n",
        8,
    ),
}


def manifest(kind, command):
    """Another object first, then one of the kind with a pod inside."""
    version, above, depth = KINDS[kind]
    return (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n---\n"
        f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: gpt}}\n{above}"
        + indent(POD + command, " " * depth)
    )


def read(tmp_path, text, gpus=None):
    path = tmp_path / "job.yaml"
    path.write_text(text)
    return read_job(str(path), gpus=gpus, tflops=400, note=lambda _: None)


def listed(*words):
    return "".join(f"    - {word}\n" for word in words)


AGENT = ("--nnodes=4", "--nproc-per-node=2", "pretrain_gpt.py", *OPTIONS.split())
WAYS = {
    # Options over many lines, variables of the container.
    "listed": (
        *(LISTED + listed(*OPTIONS.split(), "--save=$(CKPT)"), "command: [torchrun]"),
        ("pretrain_gpt.py", *OPTIONS.split(), "--save=${CKPT}"),
    ),
    # The lines of a script in a block are those of the manifest.
    "block": (
        *(SHELL.replace("OPTIONS", OPTIONS), "torchrun --nnodes"),
        ("pretrain_gpt.py", "--save", "${CKPT}", *OPTIONS.split()),
    ),
    # The order of keys says nothing.
    "arguments first": (
        *(f"    args:\n{listed(*AGENT)}    command: [torchrun]\n", "command: [torch"),
        AGENT[2:],
    ),
    # Pods that are a process each are the cluster's, too.
    "no agent": (
        *(f"    command: [python]\n    args:\n{listed(*AGENT[2:])}", "command: [pyt"),
        AGENT[2:],
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_pods_run(tmp_path, kind, way):
    """The command of a container, and the line on which it begins."""
    command, start, program = WAYS[way]
    text = manifest(kind, command)
    job = read(tmp_path, text, gpus=8 if way == "no agent" else None)
    line = text[: text.index(start)].count("\n") + 1
    assert job.started == Started("kubernetes", str(tmp_path / "job.yaml"), line)
    assert (job.world_size, job.parallelism.size("tp")) == (8, 2)
    assert job.started is not None
    assert job.started.image == "nvcr.io/x/y:1"
    assert job.started.command == program
    assert job.started.environment == {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}


def test_a_manifest_in_a_script_is_the_script_s(tmp_path):
    """A here document for kubectl makes no manifest of the script around it."""
    text = f"cat <<E\n{manifest('Job', LISTED)}E\ntorchrun pretrain_gpt.py {OPTIONS}\n"
    path = tmp_path / "train.sh"
    path.write_text(text)
    job = read_job(str(path), gpus=8, tflops=400, note=lambda _: None)
    line = text.count("\n")
    assert job.started == Started("torchrun-static", str(path), line)


@pytest.mark.parametrize(*table("sources/manifests.yaml", "odd_commands_are_told"))
def test_odd_commands_are_told(tmp_path, command, told):
    """With a place, or as a script that trains nothing."""
    path = tmp_path / "job.yaml"
    # A document above it counts.
    above = "apiVersion: v1\nkind: Secret\n---\napiVersion: v1\nkind: Pod\nspec:"
    path.write_text(POD.replace("spec:", above) + command)
    with pytest.raises(InputError, match=re.escape(told)):
        read_job(f"megatron:{path}", gpus=8, tflops=400, note=lambda _: None)
