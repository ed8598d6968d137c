"""A folder to work in, the job that a test module calls ``JOB``, and a real script."""

import pytest

SWITCHES = "".join(
    f"SwitchName=leaf{i} Nodes=h[{10 * i + 1:02d}-{10 * i + 10:02d}]\n"
    for i in range(4)
)
TOPOLOGY = SWITCHES + "SwitchName=spine Switches=leaf[0-3]\n"
SCRIPT = """#!/bin/bash
#SBATCH --nodes=40
#SBATCH --gpus-per-node=8
GPUS=8
ARGS=(
  --tensor-model-parallel-size 4
  --pipeline-model-parallel-size 4
  --num-layers 48
  --hidden-size 6144
  --ffn-hidden-size 16384
  --num-attention-heads 48
  --swiglu
  --seq-length 4096
  --max-position-embeddings 4096
  --micro-batch-size 1
  --global-batch-size 640
  --tokenizer-type HuggingFaceTokenizer
  --tokenizer-model /data/own
  --bf16
  --use-distributed-optimizer
)
srun torchrun --nproc_per_node $GPUS --nnodes $SLURM_NNODES pretrain_gpt.py ${ARGS[@]}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def job(tmp_path, request):
    path = tmp_path / "job.yaml"
    path.write_text(request.module.JOB)
    return str(path)


@pytest.fixture
def trained(folder):
    """A folder with the switches of 40 hosts, and a script of Megatron for them."""
    (folder / "topology.conf").write_text(TOPOLOGY)
    (folder / "pretrain.sh").write_text(SCRIPT)
    return folder
