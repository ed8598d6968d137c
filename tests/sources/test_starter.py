"""The launcher of a script is read with its line, and kept in the job and the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import placer
from placer.formats.jobs.job import read_job
from placer.job.started import STARTERS, Started
from placer.placement.launcher_orders import LAUNCHERS, launcher_called
from placer.placement.started import order_in_use
from tests.texts import table

if TYPE_CHECKING:
    from pathlib import Path

JOB = (
    "pretrain_gpt.py --tensor-model-parallel-size 2 --num-layers 8 --hidden-size 1024 "
    "--num-attention-heads 16 --seq-length 1024 --micro-batch-size 1 "
    "--global-batch-size 16 --vocab-size 32000"
)
AGENT = "--nproc-per-node 2 --nnodes 4"


def started(tmp_path: Path, text: str) -> Started | None:
    """What starts the job of a script, as its job file has it too."""
    script = tmp_path / "train.sh"
    script.write_text(text)
    job = read_job(f"megatron:{script}", gpus=8, tflops=400, note=lambda _: None)
    return job.started


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (f"srun torchrun {AGENT} --rdzv_backend c10d {JOB}", "torchrun-c10d"),
        (f"srun torchrun {AGENT} --rdzv-backend=etcd-v2 {JOB}", "torchrun-c10d"),
        (f"torchrun {AGENT} --node_rank $SLURM_NODEID {JOB}", "torchrun-static"),
        (f"srun python -m torch.distributed.run {AGENT} {JOB}", "torchrun-static"),
        (f"PET_RDZV_BACKEND=c10d; torchrun {AGENT} {JOB}", "torchrun-c10d"),
        (f'srun -l bash -c "torchrun {AGENT} {JOB}"', "torchrun-static"),
        (f"srun --ntasks 8 python -u {JOB}", "slurm"),
        (f'srun --ntasks 8 bash -c "python {JOB}"', "slurm"),
        (f"mpirun -np 8 --hostfile h python {JOB}", "openmpi"),
        (f"mpiexec -n 8 -f hosts python {JOB}", "hydra"),
        (f"/usr/bin/mpiexec.hydra -n 8 python {JOB}", "hydra"),
        (f"deepspeed --hostfile=h --num_gpus 2 {JOB}", "deepspeed"),
        (f"accelerate launch --num_machines 4 {JOB}", "accelerate"),
        (f"srun accelerate launch --rdzv_backend c10d {JOB}", "accelerate-c10d"),
        (f"python -m accelerate.commands.launch {JOB}", "accelerate"),
        (f"ray job submit --address h -- python {JOB}", "ray"),
    ],
)
def test_the_innermost_launcher_is_read_with_its_line(
    tmp_path: Path, command: str, name: str
) -> None:
    """Where its word stands, whatever else the script does before."""
    found = started(tmp_path, f"#!/bin/bash\n#SBATCH --nodes=4\n{command}\n")
    assert found == Started(name, str(tmp_path / "train.sh"), 3)


def test_the_program_is_kept_for_pods(tmp_path: Path) -> None:
    """Its words, what the script exports, its image; nothing that is of one host."""
    lines = [
        "#SBATCH --container-image=docker://reg.io#a/b:1",
        "export NCCL_DEBUG=INFO OPEN=$HOME MASTER_ADDR=here HF_TOKEN=x",
        f"A=1 B=$(date) torchrun {AGENT} {JOB} \\",
        "$MORE --save $S --list 'a b' --wandb-key k",
    ]
    found = started(tmp_path, "\n".join(lines))
    assert found is not None
    end = ("--save", "${S}", "--list", "a b", "--wandb-key", "${WANDB_KEY}")
    assert found.command == (*JOB.split(), *end)
    assert found.environment == {"NCCL_DEBUG": "INFO", "A": "1"}
    assert found.image == "reg.io/a/b:1"


@pytest.mark.parametrize(
    ("command", "image"),
    [
        (
            f"srun --container-image=nvcr.io#n/p:2 torchrun {AGENT} {JOB}",
            "nvcr.io/n/p:2",
        ),
        (f"srun --container-image /a/b.sqsh torchrun {AGENT} {JOB}", ""),
        (f"srun --container-image $IMAGE torchrun {AGENT} {JOB}", ""),
        (f"torchrun {AGENT} {JOB}", ""),
    ],
)
def test_images_are_those_of_a_registry(
    tmp_path: Path, command: str, image: str
) -> None:
    """A file of enroot and a variable are no image for pods."""
    found = started(tmp_path, command)
    assert found is not None
    assert found.image == image


def test_what_only_the_script_knows_is_no_command(tmp_path: Path) -> None:
    """The output of a command and an empty word cannot be said in a manifest."""
    for more in ("--seed $(date +%s)", "--name ''"):
        found = started(tmp_path, f"torchrun {AGENT} {JOB} {more}")
        assert found is not None
        assert found.command == ()


SWIFT = """\
NPROC_PER_NODE=2 NNODES=4 NODE_RANK=$R srun megatron sft --num_layers 8 \\
  --hidden_size 1024 --num_attention_heads 16 --seq_length 1024 --vocab_size 32000 \\
  --ffn_hidden_size 4096 --tensor_model_parallel_size 2 --global_batch_size 16
"""
VERL = """\
ray start --head
ray job submit --address x -- \\
  python3 -m verl.trainer.main_ppo actor_rollout_ref.actor.strategy=fsdp \\
  trainer.nnodes=4 trainer.n_gpus_per_node=2 data.train_batch_size=64 \\
  actor_rollout_ref.actor.ppo_mini_batch_size=64 \\
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 data.max_prompt_length=512 \\
  data.max_response_length=512
"""
SHAPE = """\
{"model_type": "llama", "num_hidden_layers": 8, "hidden_size": 1024,
 "vocab_size": 32000, "num_attention_heads": 16, "num_key_value_heads": 16,
 "intermediate_size": 4096, "architectures": ["LlamaForCausalLM"]}
"""


@pytest.mark.parametrize(
    ("text", "name", "line"), [(SWIFT, "swift", 1), (VERL, "verl", 3)]
)
def test_frameworks_that_start_themselves(
    tmp_path: Path, text: str, name: str, line: int
) -> None:
    """ms-swift and veRL are the launcher; the order of veRL is that of addresses."""
    (tmp_path / "run.sh").write_text(text)
    (tmp_path / "config.json").write_text(SHAPE)
    sources = [f"{tmp_path}/run.sh", f"{tmp_path}/config.json"]
    job = read_job(sources, tflops=400, note=lambda _: None)
    assert job.started == Started(name, f"{tmp_path}/run.sh", line)
    module = ("-m", "swift.cli._megatron.sft", "--num_layers")
    assert job.started.command[:3] == (module if name == "swift" else ())
    plan = placer.place("node:4 gpu:2", job, time_limit=5).plan
    assert plan.verdict["against"] == name
    assert order_in_use(job) == ("sorted-hosts" if name == "verl" else "given-order")


def test_without_a_launcher_none_is_named(tmp_path: Path) -> None:
    """A program that is called by itself, and arguments alone."""
    assert started(tmp_path, f"python {JOB}") is None
    assert started(tmp_path, JOB.removeprefix("pretrain_gpt.py ")) is None


def test_a_plan_keeps_it_and_the_digest_does_not_depend_on_it(tmp_path: Path) -> None:
    """A line more above the launcher is no other job."""
    digests = set()
    for lines in (1, 5):
        script = tmp_path / "train.sh"
        script.write_text("\n" * lines + f"srun torchrun {AGENT} {JOB}")
        job = read_job(f"megatron:{script}", gpus=8, tflops=400, note=lambda _: None)
        plan = placer.place("node:4 gpu:2", job, time_limit=5).plan
        kept = plan.inputs["job"]["launcher"]
        assert (kept["name"], kept["line"]) == ("torchrun-static", lines + 1)
        digests.add(plan.job["sha256"])
    assert len(digests) == 1


def test_every_launcher_that_is_read_can_be_predicted() -> None:
    """Names are those of `placer score --list`, but for those that promise no order."""
    assert {*STARTERS} - {*LAUNCHERS} == {"ray", "kubernetes"}
    for name in ("ray", "kubernetes"):
        with pytest.raises(placer.InputError, match=f"{name}: "):
            launcher_called(name)


@pytest.mark.parametrize(
    *table("sources/starter.yaml", "a_launcher_is_whole_or_refused")
)
def test_a_launcher_is_whole_or_refused(tmp_path: Path, section: str, key: str) -> None:
    """A name that is known, a script and a line."""
    path = tmp_path / "job.yaml"
    path.write_text(
        "{format: placer/job, version: 1, name: j, parallelism: {dp: 2}, "
        f"weights: {{dp: 1}}, launcher: {section}}}"
    )
    with pytest.raises(placer.InputError) as caught:
        read_job(str(path))
    assert key.split(".")[0] in str(caught.value)
    assert "launcher" in str(caught.value)
