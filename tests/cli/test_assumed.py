"""An answer first: what no file says is assumed aloud, and the plan keeps it."""

from pathlib import Path

import pytest

from tests.commands import data, refusal, run

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


GIVEN = ("-t", "slurm:topology.conf", "-j", "megatron:pretrain.sh")


@pytest.fixture(autouse=True)
def _files(folder):
    (folder / "topology.conf").write_text(TOPOLOGY)
    (folder / "pretrain.sh").write_text(SCRIPT)


def placed(*more):
    return data("place", *GIVEN, "--effort", "quick", "-q", *more)


def keys(plan):
    return [entry["key"] for entry in plan["assumed"]]


def test_one_command_and_no_option():
    """Switches and a script end in a verdict that says what it rests on."""
    found = run("place", *GIVEN)
    first = found.stdout.partition("\n\n")[0].replace("\n  ", " ")
    assert first.startswith(
        "Keep your order: nothing to win\nyour order: torchrun-static (hosts as listed)"
    )
    for words in (
        "assumed: H100 hosts (--gpu NAME)",
        "396 TFLOP/s a GPU, 40 % of the bf16 peak of H100 (--tflops RATE)",
        "model.vocab 128256 (--set job.model.vocab=VALUE)",
        "assumed: uplinks not oversubscribed; at 2:1",
        "(--oversubscription spine=N)",
    ):
        assert words in first


def test_what_is_said_is_not_assumed():
    """Each option takes its entry out of the list; all of them leave none."""
    assert keys(placed()) == [
        "hardware",
        "oversubscription",
        "model.vocab",
        "compute.tflops_per_gpu",
    ]
    options = {
        "hardware": ("--gpu", "h100"),
        "oversubscription": ("--oversubscription", "spine=2"),
        "model.vocab": ("--set", "job.model.vocab=128000"),
        "compute.tflops_per_gpu": ("--tflops", "400"),
    }
    for key, option in options.items():
        assert key not in keys(placed(*option))
    every = placed(*(word for option in options.values() for word in option))
    assert "assumed" not in every
    assert "what_if" not in every


def test_the_plan_keeps_what_was_assumed():
    """Other commands take the plan as it is, and replacing says it again."""
    plan = placed("-o", "plan.json")
    kept = plan["inputs"]["topology"]["assumed"] + plan["inputs"]["job"]["assumed"]
    assert kept == plan["assumed"]
    run("check", "plan.json")
    run("emit", "plan.json", "slurm-hostfile")
    assert "assumed: H100 hosts" in run("score", "plan.json").stdout
    assert data("score", "plan.json")["assumed"] == plan["assumed"]
    run("diff", "plan.json", "plan.json")
    run("diff", "plan.json", "baseline:random", code=1)
    run("check", "plan.json", *GIVEN, "-q")
    Path("small.sh").write_text(SCRIPT.replace("640", "624"))
    again = ("--failed", "h01,h02", "-j", "small.sh", "--set", "SLURM_NNODES=39")
    run("replace", "plan.json", *again, "-q", code=2)  # another job
    found = run("replace", "plan.json", "--failed", "h01", "--shrink", "-q").stdout
    assert "assumed: H100 hosts" in found


@pytest.mark.slow
def test_every_command_says_it():
    """Text and JSON of score, tune, allocate and sweep have what was assumed."""
    Path("small.conf").write_text(
        "SwitchName=a Nodes=h[1-2]\nSwitchName=b Nodes=h[3-4]\n"
        "SwitchName=s Switches=a,b\n"
    )
    Path("small.sh").write_text(SCRIPT.replace("nodes=40", "nodes=4"))
    given = ("-t", "small.conf", "-j", "small.sh", "-q")
    for command in (
        ("score", "--baseline", "sorted-hosts"),
        ("tune", "--tp", "4", "--pp", "4", "--vp", "1", "--micro-batch", "1"),
        ("allocate",),
        ("sweep", "--dp", "2"),
    ):
        text = run(*command, *given).stdout
        assert "assumed: H100 hosts (--gpu NAME)" in text, command
        assert "hardware" in keys(data(*command, *given)), command


def test_what_decides_is_asked_for_at_once():
    """GPUs, sequence and samples are never assumed; nothing else is asked for."""
    left = [
        line
        for line in SCRIPT.splitlines()
        if "SBATCH" not in line and "seq-length" not in line and "batch" not in line
    ]
    Path("open.sh").write_text("\n".join(left) + "\n")
    told = refusal("place", "-t", "topology.conf", "-j", "megatron:open.sh")
    asked = {line.split(": ")[1] for line in told.splitlines() if "open.sh:" in line}
    assert asked == {"parallelism.dp", "sequence", "micro_batch", "micro_batches"}
