"""Manifests of pods are read as the script that their command is."""

from __future__ import annotations

from textwrap import indent
from typing import TYPE_CHECKING

import pytest

from placer.base.errors import InputError
from placer.formats.jobs.job import read_job
from placer.job.started import Started
from tests.texts import table

if TYPE_CHECKING:
    from pathlib import Path

    from placer.job.model import Job

OPTIONS = (
    "--tensor-model-parallel-size=2 --num-layers=8 --hidden-size=1024 "
    "--num-attention-heads=16 --seq-length=1024 --micro-batch-size=1 "
    "--global-batch-size=16 --vocab-size=32000"
)
POD = """\
spec:
  containers:
  - name: main
    image: nvcr.io/x/y:1
    env:
    - {name: CUDA_DEVICE_MAX_CONNECTIONS, value: "1"}
    - {name: NODES, value: "4"}
    - name: MASTER_ADDR
      value: gpt-0.gpt
"""
LISTED = """\
    command: [torchrun]
    args:
    - --nnodes=$(NODES)
    # so many GPUs a node
    - --nproc-per-node=2
    - --node-rank=$(JOB_COMPLETION_INDEX)
    - pretrain_gpt.py
"""
SHELL = """\
    command:
    - bash
    - -c
    - |
      set -e
      cd /work
      torchrun --nnodes=$(NODES) --nproc-per-node=2 \\
        pretrain_gpt.py --save $CKPT OPTIONS
"""
KINDS = {
    "Job": ("batch/v1", "spec:\n  template:\n", 4),
    "JobSet": (
        "jobset.x-k8s.io/v1alpha2",
        "spec:\n  replicatedJobs:\n  - name: w\n    template:\n      spec:\n"
        "        template:\n",
        10,
    ),
    "PyTorchJob": (
        "kubeflow.org/v1",
        "spec:\n  pytorchReplicaSpecs:\n    Master:\n      replicas: 1\n"
        "      template:\n",
        8,
    ),
}


def manifest(kind: str, command: str) -> str:
    """Another object first, then one of the kind with a pod inside."""
    version, above, depth = KINDS[kind]
    return (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n---\n"
        f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: gpt}}\n{above}"
        + indent(POD + command, " " * depth)
    )


def read(tmp_path: Path, text: str) -> Job:
    path = tmp_path / "job.yaml"
    path.write_text(text)
    return read_job(str(path), tflops=400, note=lambda _: None)


@pytest.mark.parametrize("kind", KINDS)
def test_a_list_of_words(tmp_path: Path, kind: str) -> None:
    """Options over many lines, variables of the container, and where it begins."""
    words = "".join(f"    - {word}\n" for word in OPTIONS.split())
    text = manifest(kind, LISTED + words + "    - --save=$(CKPT)\n")
    job = read(tmp_path, text)
    line = text[: text.index("command: [torchrun]")].count("\n") + 1
    assert job.started == Started("kubernetes", str(tmp_path / "job.yaml"), line)
    assert (job.world_size, job.parallelism.size("tp")) == (8, 2)
    assert job.started is not None
    assert job.started.image == "nvcr.io/x/y:1"
    assert job.started.command == (
        "pretrain_gpt.py",
        *OPTIONS.split(),
        "--save=${CKPT}",
    )
    kept = {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}
    assert job.started.environment == kept


@pytest.mark.parametrize("kind", KINDS)
def test_a_script_in_a_block(tmp_path: Path, kind: str) -> None:
    """Its lines are those of the manifest."""
    text = manifest(kind, SHELL.replace("OPTIONS", OPTIONS))
    job = read(tmp_path, text)
    line = text[: text.index("torchrun")].count("\n") + 1
    assert job.started == Started("kubernetes", str(tmp_path / "job.yaml"), line)
    assert job.world_size == 8
    assert job.started is not None
    assert job.started.command[:3] == ("pretrain_gpt.py", "--save", "${CKPT}")


def test_arguments_may_stand_first(tmp_path: Path) -> None:
    """The order of keys in a manifest says nothing."""
    words = ["--nnodes=4", "--nproc-per-node=2", "pretrain_gpt.py", *OPTIONS.split()]
    listed = "".join(f"    - {word}\n" for word in words)
    text = manifest("Job", f"    args:\n{listed}    command: [torchrun]\n")
    job = read(tmp_path, text)
    assert job.world_size == 8
    assert job.started is not None
    assert job.started.line == text.count("\n")


def test_a_manifest_in_a_script_is_the_script_s(tmp_path: Path) -> None:
    """A here document for kubectl makes no manifest of the script around it."""
    text = f"cat <<E\n{manifest('Job', LISTED)}E\ntorchrun pretrain_gpt.py {OPTIONS}\n"
    path = tmp_path / "train.sh"
    path.write_text(text)
    job = read_job(str(path), gpus=8, tflops=400, note=lambda _: None)
    line = text.count("\n")
    assert job.started == Started("torchrun-static", str(path), line)


@pytest.mark.parametrize(*table("sources/manifests.yaml", "odd_commands_are_told"))
def test_odd_commands_are_told(tmp_path: Path, command: str, told: str) -> None:
    """With a place, or as a script that trains nothing."""
    path = tmp_path / "job.yaml"
    path.write_text(POD.replace("spec:", "apiVersion: v1\nkind: Pod\nspec:") + command)
    with pytest.raises(InputError) as caught:
        read_job(f"megatron:{path}", gpus=8, tflops=400, note=lambda _: None)
    assert told in str(caught.value)


def test_a_program_without_an_agent(tmp_path: Path) -> None:
    """Pods that are a process each are the cluster's, too."""
    words = "".join(f"    - {word}\n" for word in ("pretrain_gpt.py", *OPTIONS.split()))
    path = tmp_path / "job.yaml"
    path.write_text(manifest("Job", f"    command: [python]\n    args:\n{words}"))
    job = read_job(str(path), gpus=8, tflops=400, note=lambda _: None)
    assert job.started is not None
    assert job.started.name == "kubernetes"
    assert job.started.command == ("pretrain_gpt.py", *OPTIONS.split())
