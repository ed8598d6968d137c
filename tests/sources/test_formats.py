"""What each format says, worked out by hand from its framework's rules."""

from __future__ import annotations

import pytest

from tests.sources import texts
from tests.sources.reading import MODEL, check, given, problems_of
from tests.texts import table

# ------------------------------------------------------ DeepSpeed, accelerate


@pytest.mark.parametrize(*table("sources/formats.yaml", "stages_of_deepspeed"))
def test_stages_of_deepspeed(job_of, section, sharding, reduce, gather):
    """Stage 0 is the default; traffic overlaps by default at stage 3 only."""
    text = f'{{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {section}}}'
    job = job_of("deepspeed", text, gpus=8, given=MODEL | given("sequence"))
    mode = job.data_parallel
    assert (mode.sharding, mode.overlap_reduce, mode.overlap_gather) == (
        sharding,
        reduce,
        gather,
    )
    assert mode.shard_size == (4 if sharding == "hsdp" else 0)
    assert job.bytes.gradient == 4


def test_what_deepspeed_leaves_to_the_trainer_is_asked_for(job_of):
    """``auto`` is nobody's value; a batch that DeepSpeed refuses is refused."""
    text = texts.DEEPSPEED.replace("96", '"auto"').replace(": 3,", ': "auto",')
    text = text.replace("{", '{"train_micro_batch_size_per_gpu": "auto",', 1)
    rest = MODEL | given("sequence")
    problems = problems_of(job_of, "deepspeed", text, gpus=8, given=rest)
    assert [p.key for p in problems] == ["micro_batch", "micro_batches"]
    assert all("--set job." in p.hint for p in problems)
    text = texts.DEEPSPEED.replace("{", '{"train_micro_batch_size_per_gpu": 5,', 1)
    (problem,) = problems_of(job_of, "deepspeed", text, gpus=8, given=rest)
    assert "96 is not 5 x 3 x 8" in problem.message


def test_sizes_of_accelerate_make_its_processes(job_of):
    """2 replicas x 4 shards x cp 2 are 16 processes, and no others."""
    rest = MODEL | given("sequence", "micro_batch", "micro_batches")
    odd = texts.ACCELERATE.replace("num_processes: 16", "num_processes: 24")
    problems = problems_of(job_of, "accelerate", odd, given=rest)
    assert "use 16 processes, not 24" in str(problems[0])


SWIFT = "NPROC_PER_NODE=8 NNODES=2 swift sft --model m --max_length 4096 "


@pytest.mark.parametrize(*table("sources/formats.yaml", "swift_of_transformers"))
def test_swift_of_transformers(job_of, options, expected):
    """16 GPUs; adapters, checkpoints and a batch of 16 are ms-swift's defaults."""
    job = job_of("swift", SWIFT + options, given=MODEL)
    check(job, {"world_size": 16, "sequence": 4096, **expected})
    assert job.started.name == "swift"
    assert job.started.command[:3] == ("-m", "swift.cli.sft", "--model")


LAUNCH = """\
NODES=2
srun accelerate launch --config_file conf/fsdp.yaml --num_processes $((NODES * 16)) \\
  --machine_rank $R train.py --num_processes 3
"""


def test_accelerate_launch_of_a_script(job_of, tmp_path):
    """Its configuration beside the script; options before the program count more."""
    rest = MODEL | given("sequence", "micro_batch", "micro_batches")
    (problem,) = problems_of(job_of, "accelerate", LAUNCH, given=rest)
    assert (problem.key, problem.line) == ("--config_file", 2)
    assert "fsdp.yaml is not beside it" in problem.message
    (tmp_path / "conf").mkdir()
    text = texts.ACCELERATE.replace("dp_replicate_size: 2", "dp_replicate_size: 4")
    (tmp_path / "conf" / "fsdp.yaml").write_text(text)
    job = job_of("accelerate", LAUNCH, given=rest)
    check(job, {"world_size": 32, "parallelism.cp": 2, "data_parallel.shard_size": 8})
    assert (job.started.name, job.started.line) == ("accelerate", 2)
    assert job.started.command == ("train.py", "--num_processes", "3")
    alone = "accelerate launch --use_fsdp --num_processes 8 --fsdp_version 2 a.py"
    check(
        job_of("accelerate", alone, given=rest),
        {"world_size": 8, "data_parallel.sharding": "zero3"},
    )


@pytest.mark.parametrize(*table("sources/formats.yaml", "strategies_of_the_first_fsdp"))
def test_strategies_of_the_first_fsdp(job_of, strategy, sharding, size):
    """A hybrid shard is a node."""
    text = (
        "distributed_type: FSDP\nnum_machines: 2\nnum_processes: 16\n"
        f"fsdp_config:\n  fsdp_sharding_strategy: {strategy}\n"
    )
    rest = MODEL | given("sequence", "micro_batch", "micro_batches")
    mode = job_of("accelerate", text, given=rest).data_parallel
    assert (mode.sharding, mode.shard_size) == (sharding, size)


def test_a_deepspeed_file_beside_accelerates(job_of, tmp_path):
    """``deepspeed_config_file`` is read where it lies beside the file."""
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 2}}')
    text = (
        "distributed_type: DEEPSPEED\nnum_processes: 8\n"
        "deepspeed_config:\n  deepspeed_config_file: conf/ds.json\n"
    )
    rest = MODEL | given("sequence", "micro_batch")
    job = job_of("accelerate", text, given=rest)
    assert job.data_parallel.sharding == "zero2"


# ------------------------------------------------------------- the others


def test_axolotl_over_deepspeed(job_of, tmp_path):
    """The JSON it names says the sharding; what it leaves to the trainer is here."""
    (tmp_path / "zero2.json").write_text(
        '{"gradient_accumulation_steps": "auto", "train_batch_size": "auto", '
        '"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}}'
    )
    text = (
        "base_model: some/model\ndeepspeed: deepspeed_configs/zero2.json\n"
        "sequence_len: 1024\nmicro_batch_size: 2\ngradient_accumulation_steps: 4\n"
        "bf16: true\ngradient_checkpointing: true\n"
    )
    job = job_of("axolotl", text, gpus=8, join=texts.SHAPE)
    check(
        job,
        {
            "data_parallel.sharding": "zero2",
            "micro_batch": 2,
            "micro_batches": 4,
            "memory.recompute": "full",
        },
    )
    problems = problems_of(job_of, "axolotl", text, gpus=8)
    assert "the shape of some/model is not in the file" in str(problems[0])


def test_sizes_of_a_recipe_are_asked_for(job_of):
    """What an override of a recipe does not say is not 1."""
    text = texts.NEMO.replace("  tensor_model_parallel_size: 2\n", "")
    problems = problems_of(job_of, "nemo", text, gpus=16, given=MODEL)
    assert [p.key for p in problems] == ["parallelism.tp"]
    recipe = "join the recipe, -j nemo:RECIPE.py"
    assert problems[0].hint == f"{recipe}, or --set job.parallelism.tp=N"


def test_nemo_rl(job_of, tmp_path):
    """A child's values stand over those of the file that it is based on."""
    rest = MODEL
    (tmp_path / "parent.yaml").write_text(texts.NEMO_RL)
    child = (
        "defaults: parent.yaml\npolicy:\n  megatron_cfg:\n"
        "    tensor_model_parallel_size: 1\n    pipeline_model_parallel_size: 4\n"
    )
    check(
        job_of("nemo-rl", child, given=rest),
        {
            "sequence": 2048,
            "data_parallel.sharding": "zero1",
            "parallelism.tp": 1,
            "parallelism.pp": 4,
            "parallelism.dp": 4,
            "micro_batches": 16,
            "tensor_parallel.sequence": False,
            "overlap.pp": False,
        },
    )
    (problem,) = problems_of(job_of, "nemo-rl", "defaults: none.yaml\n", given=rest)
    assert "none.yaml is not beside it" in problem.message


def test_anchors_and_merge_keys(job_of):
    """YAML of other programs may repeat itself; what stands beside a merge counts."""
    text = texts.NANOTRON.replace("optimizer:\n", "optimizer: &o\n", 1)
    text = text.replace(
        "parallelism:\n  dp: 4\n",
        "base: &b\n  dp: 8\n  pp: 2\nparallelism:\n  <<: *b\n  dp: 4\n",
    )
    job = job_of("nanotron", text.replace("  pp: 2\n  tp: 2", "  tp: 2"))
    check(job, {"parallelism.dp": 4, "parallelism.pp": 2, "parallelism.tp": 2})


def test_shards_of_maxtext(job_of):
    """Shards of four are said, so that the data ranks are what is left."""
    text = texts.MAXTEXT.replace("dcn_data_parallelism: 2", "ici_fsdp_parallelism: 4")
    job = job_of("maxtext", text, gpus=64)
    check(job, {"parallelism.dp": 16, "data_parallel.sharding": "hsdp"})
    assert job.data_parallel.shard_size == 4
    plain = "attention_type: 'global'\nq_lora_rank: 0\nkv_lora_rank: 512\n"
    check(
        job_of("maxtext", texts.MAXTEXT + plain, gpus=32),
        {"model.kv_lora_rank": 0, "model.q_lora_rank": 0},
    )
    between = texts.MAXTEXT + "ici_pipeline_parallelism: 2\n"
    problems = problems_of(job_of, "maxtext", between, gpus=32)
    assert "no order of a job" in problems[0].message


def test_experts_of_nanotron_are_outermost(job_of):
    """No order of a job has them so: it is refused."""
    text = texts.NANOTRON.replace("  tp: 2\n", "  tp: 2\n  expert_parallel_size: 2\n")
    problems = problems_of(job_of, "nanotron", text)
    assert "outermost" in problems[0].message


def test_a_vocabulary_of_neox_is_asked_for(job_of):
    """Where only the tokenizer's files know it."""
    text = texts.NEOX.replace("GPT2BPETokenizer", "HFTokenizer")
    (problem,) = problems_of(job_of, "neox", text, gpus=16)
    assert problem.key == "model.vocab"
    assert "--set job.model.vocab=N" in problem.hint


def test_variables_of_verl(job_of):
    """A variable of its script can be set; micro-batches by tokens are asked for."""
    one = job_of("verl", texts.VERL, given=MODEL | {"TP": 4})
    check(one, {"parallelism.tp": 4, "parallelism.dp": 4, "micro_batches": 32})
    dynamic = texts.VERL.replace(
        "trainer.nnodes=2",
        "actor_rollout_ref.actor.use_dynamic_bsz=True trainer.nnodes=2",
    )
    problems = problems_of(job_of, "verl", dynamic, given=MODEL)
    assert [p.key for p in problems] == ["micro_batch", "micro_batches"]


# ------------------------------------------------------------- all of them


@pytest.mark.parametrize("name", ["torchtitan", "nemo-rl", "neox"])
def test_a_setting_counts_more_than_the_file(job_of, name):
    """A key of the job that is given stands before what any format says."""
    rest = MODEL | given("sequence", "micro_batch") | {"job.micro_batches": 7}
    job = job_of(name, texts.TEXTS[name], gpus=32, given=rest)
    assert job.micro_batches == 7


def test_a_key_of_a_configuration_can_be_set(job_of):
    """``--set`` with a key of the file is as if the file said it."""
    key = "parallelism.tensor_parallel_degree"
    job = job_of("torchtitan", texts.TORCHTITAN, gpus=64, given={key: 4})
    assert (job.parallelism.tp, job.parallelism.dp) == (4, 4)


def test_contradictions_of_formats_name_both_places(job_of):
    """The same key, read in two files with two values."""
    (problem, *_) = problems_of(
        job_of, "nanotron", texts.NANOTRON.replace("512", "256"), join=texts.SHAPE
    )
    assert "512 here, 256 in source:10" in problem.message
    assert problem.source.endswith("config.json")


def test_a_wrong_value_is_told_with_its_place(job_of):
    """All of them at once, each with line, column and key."""
    text = texts.NANOTRON.replace("dp: 4", "dp: four").replace("pp: 2", "pp: 0")
    problems = problems_of(job_of, "nanotron", text)
    found = {(p.line, p.column, p.key) for p in problems}
    assert {(2, 7, "parallelism.dp"), (3, 7, "parallelism.pp")} <= found
