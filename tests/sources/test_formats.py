"""What each format says, worked out by hand from its framework's rules."""

from __future__ import annotations

import json

import pytest

from placer.errors import InputError
from placer.job.models import attention_parameters
from placer.sources.job import Options, open_job
from tests.sources import texts

REST = {
    "model.layers": 8,
    "model.hidden": 512,
    "model.heads": 16,
    "model.ffn": 1024,
    "model.vocab": 1000,
    "sequence": 1024,
    "micro_batch": 1,
    "micro_batches": 1,
}


@pytest.fixture
def job_of(tmp_path):
    """The job of a text of a format, with what else a job needs."""

    def read(name, text, *, gpus=None, select=None, given=None, join=""):
        path = tmp_path / "source"
        path.write_text(text)
        specs = [f"{name}:{path}"]
        if join:
            shape = tmp_path / "config.json"
            shape.write_text(join)
            specs.append(f"hf:{shape}")
        settings = {key: str(value) for key, value in (given or {}).items()}
        options = Options(gpus=gpus, tflops=400, settings=settings, select=select)
        return open_job(specs, options).job()

    return read


def problems_of(read, *arguments, **options):
    with pytest.raises(InputError) as caught:
        read(*arguments, **options)
    return caught.value.problems


def at(job, key):
    """The value of a job under the key path of its file."""
    value = job
    for name in key.split("."):
        value = getattr(value, name)
    return "-".join(value) if name == "order" else value


def check(job, expected):
    """The job has these values, by the key paths of its file."""
    assert {key: at(job, key) for key in expected} == expected


def given(*keys):
    """Settings that give these keys their value of `REST`."""
    return {f"job.{key}": REST[key] for key in keys}


MODEL = given("model.layers", "model.hidden", "model.heads", "model.ffn", "model.vocab")


# ---------------------------------------------------------------- Hugging Face


def test_config_of_a_mixture(job_of):
    """Every second layer has experts, but layer 3; heads are wider than the model."""
    job = job_of(
        "hf",
        texts.HF,
        gpus=1,
        given=given("sequence", "micro_batch", "micro_batches"),
    )
    check(
        job,
        {
            "model.layers": 8,
            "model.kv_heads": 4,
            "model.head_dim": 64,
            "model.experts": 8,
            "model.top_k": 2,
            "model.expert_ffn": 256,
            "model.moe_layers": 3,
            "model.dense_first": False,
            "model.gated": True,
            "model.tied_embeddings": True,
        },
    )
    assert attention_parameters(job.model) == 2 * 512 * (16 + 4) * 64


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (
            {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4},
            {"ffn": 256, "kv_heads": 4, "gated": False, "tied_embeddings": True},
        ),
        (
            {"model_type": "falcon", "hidden_size": 64, "num_hidden_layers": 2}
            | {"num_attention_heads": 4, "multi_query": True},
            {"ffn": 256, "kv_heads": 1, "gated": False},
        ),
        (
            {"model_type": "gemma", "hidden_size": 64, "num_hidden_layers": 2}
            | {"num_attention_heads": 4, "intermediate_size": 128},
            {"head_dim": 256, "tied_embeddings": True, "gated": True},
        ),
        (
            {"model_type": "deepseek_v3", "hidden_size": 64, "num_hidden_layers": 6}
            | {"num_attention_heads": 4, "intermediate_size": 128}
            | {"n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 2}
            | {"moe_intermediate_size": 32, "first_k_dense_replace": 2, "ep_size": 4}
            | {"q_lora_rank": None, "kv_lora_rank": 16, "qk_nope_head_dim": 8}
            | {"qk_rope_head_dim": 4, "v_head_dim": 8},
            {
                "moe_layers": 4,
                "shared_experts": 1,
                "expert_ffn": 32,
                "q_lora_rank": 0,
                "kv_lora_rank": 16,
                "qk_head_dim": 8,
                "rope_head_dim": 4,
                "v_head_dim": 8,
                "dense_first": True,
            },
        ),
        (
            {
                "model_type": "llama4",
                "text_config": {
                    "model_type": "llama4_text",
                    "hidden_size": 64,
                    "num_hidden_layers": 6,
                    "num_attention_heads": 4,
                    "head_dim": 16,
                    "intermediate_size": 32,
                    "intermediate_size_mlp": 128,
                    "num_local_experts": 4,
                    "num_experts_per_tok": 1,
                    "interleave_moe_layer_step": 2,
                },
            },
            {"ffn": 128, "expert_ffn": 32, "moe_layers": 3, "shared_experts": 1},
        ),
    ],
    ids=["gpt2", "falcon", "gemma", "deepseek", "llama4"],
)
def test_types_have_their_own_keys(job_of, config, expected):
    """Names of keys, and what their absence means, are those of the model's class."""
    rest = given("sequence", "micro_batch", "micro_batches", "model.vocab")
    job = job_of("hf", json.dumps(config), gpus=1, given=rest)
    check(job, {f"model.{key}": value for key, value in expected.items()})


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"model_type": "lama"}, 'did you mean "llama"'),
        ({"model_type": "jamba"}, "not all attention"),
        ({"model_type": "deci", "block_configs": [{}]}, "layers of this model differ"),
        ({"hidden_size": 64}, '"model_type" is missing'),
    ],
)
def test_models_that_are_no_plain_transformers_are_refused(job_of, config, words):
    """An unknown type is not taken for a known one."""
    (problem,) = problems_of(job_of, "hf", json.dumps(config), gpus=1)
    assert words in str(problem)


# ----------------------------------------------------------------- torchtitan


def test_torchtitan(job_of):
    """64 GPUs: dp 8 = 64 / (2 x 2 x 2), two replicas of 4 x cp 2 shards.

    With pipeline stages a micro-batch is one sequence, parameters stay, and each rank
    has two chunks of (32 + 1 + 1) / 4 layers; ffn is 14,336.
    """
    job = job_of("torchtitan", texts.TORCHTITAN, gpus=64)
    check(
        job,
        {
            "parallelism.dp": 8,
            "parallelism.vp": 2,
            "parallelism.order": "tp-cp-ep-dp-pp",
            "model.ffn": 14336,
            "model.vocab": 128256,
            "sequence": 4096,
            "micro_batch": 1,
            "micro_batches": 8,
            "stages.embedding": 1,
            "stages.loss": 1,
            "data_parallel.sharding": "hsdp",
            "data_parallel.shard_size": 8,
            "data_parallel.keep_parameters": True,
            "context_parallel.communication": "all_gather",
            "bytes.gradient": 4,
            "bytes.parameter_gather": 2,
            "tensor_parallel.sequence": True,
            "overlap.tp": False,
            "memory.recompute": "full",
        },
    )


@pytest.mark.parametrize(
    ("text", "sharding", "size"),
    [
        (
            "data_parallel_shard_degree = 1\ndata_parallel_replicate_degree = 4",
            "ddp",
            0,
        ),
        ("data_parallel_shard_degree = 4", "zero3", 0),
        ("data_parallel_replicate_degree = 2", "hsdp", 2),
    ],
)
def test_replicas_and_shards(job_of, text, sharding, size):
    """Replicas alone, shards alone, both; without a key the rest shards."""
    text = f"[training]\nseq_len = 8\n[parallelism]\n{text}\n"
    job = job_of("torchtitan", text, gpus=4, given=MODEL)
    assert job.data_parallel.sharding == sharding
    assert job.data_parallel.shard_size == size
    assert not job.data_parallel.keep_parameters


def test_chunks_of_so_many_layers(job_of):
    """(30 + 1 + 1) / 4 layers are 8 stages, two on each of four ranks."""
    text = texts.TORCHTITAN.replace(
        "pipeline_parallel_degree = 2", "pipeline_parallel_degree = 4"
    )
    text += "[parallelism.x]\n"
    text = text.replace(
        '"Interleaved1F1B"', '"Interleaved1F1B"\npipeline_parallel_layers_per_stage = 4'
    )
    job = job_of("torchtitan", text, gpus=64, given={"job.model.layers": 30})
    assert job.parallelism.vp == 2
    problems = problems_of(
        job_of, "torchtitan", text, gpus=64, given={"job.model.layers": 31}
    )
    assert "9 stages" in str(problems[0])


def test_functions_of_a_registry(job_of):
    """Functions that call others and then assign are followed, and never run."""
    one = job_of(
        "torchtitan", texts.TORCHTITAN_PYTHON, gpus=8, select="deepseek_v3_16b"
    )
    check(
        one,
        {
            "parallelism.ep": 4,
            "parallelism.etp": 1,
            "parallelism.dp": 8,
            "model.hidden": 2048,
            "model.moe_layers": 26,
            "micro_batch": 2,
            "micro_batches": 1,
            "memory.recompute": "full",
        },
    )
    name = "deepseek_v3_16b_tp"
    other = job_of("torchtitan", texts.TORCHTITAN_PYTHON, gpus=16, select=name)
    check(
        other,
        {
            "parallelism.tp": 4,
            "parallelism.cp": 2,
            "parallelism.ep": 1,
            "parallelism.dp": 2,
            "micro_batches": 16,
        },
    )


def test_several_functions_are_asked_for(job_of):
    """Which of them is meant is not guessed."""
    (problem,) = problems_of(job_of, "torchtitan", texts.TORCHTITAN_PYTHON, gpus=8)
    assert "--select" in problem.hint
    assert "deepseek_v3_16b_tp" in problem.hint
    (problem,) = problems_of(
        job_of, "torchtitan", texts.TORCHTITAN_PYTHON, gpus=8, select="deepseek_v3_16"
    )
    assert "did you mean" in problem.hint


def test_python_is_never_run(job_of, tmp_path):
    """Code of a registry has no effect."""
    touched = tmp_path / "touched"
    code = f"open({str(touched)!r}, 'w').write('x')\n" + texts.TORCHTITAN_PYTHON
    job_of("torchtitan", code, gpus=8, select="deepseek_v3_16b")
    assert not touched.exists()


# ------------------------------------------------------ DeepSpeed, accelerate


def test_deepspeed(job_of):
    """Two of three batch keys give the third: 96 / (3 x 8 replicas) = 4."""
    rest = MODEL | given("sequence")
    job = job_of("deepspeed", texts.DEEPSPEED, gpus=8, given=rest)
    check(
        job,
        {
            "micro_batch": 4,
            "micro_batches": 3,
            "data_parallel.sharding": "zero2",
            "data_parallel.overlap_reduce": True,
            "data_parallel.overlap_gather": False,
            "data_parallel.bucket_parameters": 50_000_000,
            "bytes.gradient": 2,
        },
    )


@pytest.mark.parametrize(
    ("section", "sharding", "reduce", "gather"),
    [
        ("{}", "ddp", False, False),
        ('{"stage": 1}', "zero1", False, False),
        ('{"stage": 3}', "zero3", True, True),
        ('{"stage": 3, "overlap_comm": false}', "zero3", False, False),
        ('{"stage": 3, "mics_shard_size": 4}', "hsdp", True, True),
    ],
)
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


def test_accelerate(job_of):
    """2 replicas x 4 shards x cp 2 are 16 processes; shards span context ranks."""
    rest = MODEL | given("sequence", "micro_batch", "micro_batches")
    check(
        job_of("accelerate", texts.ACCELERATE, given=rest),
        {
            "parallelism.dp": 8,
            "parallelism.cp": 2,
            "data_parallel.sharding": "hsdp",
            "data_parallel.shard_size": 8,
            "data_parallel.keep_parameters": True,
            "context_parallel.communication": "all_gather",
            "bytes.gradient": 2,
        },
    )
    odd = texts.ACCELERATE.replace("num_processes: 16", "num_processes: 24")
    problems = problems_of(job_of, "accelerate", odd, given=rest)
    assert "use 16 processes, not 24" in str(problems[0])


@pytest.mark.parametrize(
    ("strategy", "sharding", "size"),
    [
        ("FULL_SHARD", "zero3", 0),
        ("SHARD_GRAD_OP", "zero2", 0),
        ("NO_SHARD", "ddp", 0),
        ("HYBRID_SHARD", "hsdp", 8),
        ("1", "zero3", 0),
    ],
)
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


def test_axolotl(job_of):
    """Expert ranks multiply: dense parameters are sharded over 4 x 2, and cp 2."""
    job = job_of("axolotl", texts.AXOLOTL, join=texts.HF)
    check(
        job,
        {
            "parallelism.dp": 8,
            "parallelism.ep": 2,
            "parallelism.etp": 1,
            "parallelism.cp": 2,
            "data_parallel.sharding": "zero3",
            "sequence": 2048,
            "micro_batch": 2,
            "micro_batches": 8,
            "bytes.gradient": 2,
        },
    )


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


def test_bridge(job_of):
    """64 sequences over dp 4, two at a time; gradients in fp32 with bf16."""
    job = job_of("nemo", texts.NEMO, gpus=16, given=MODEL)
    check(
        job,
        {
            "parallelism.dp": 4,
            "parallelism.vp": 2,
            "micro_batches": 8,
            "bytes.gradient": 4,
            "data_parallel.sharding": "zero1",
            "data_parallel.bucket_parameters": 128 * 1024**2,
            "overlap.tp": True,
            "overlap.pp": True,
        },
    )


def test_sizes_of_a_recipe_are_asked_for(job_of):
    """What an override of a recipe does not say is not 1."""
    text = texts.NEMO.replace("  tensor_model_parallel_size: 2\n", "")
    problems = problems_of(job_of, "nemo", text, gpus=16, given=MODEL)
    assert [p.key for p in problems] == ["parallelism.tp"]
    assert problems[0].hint == "--set job.parallelism.tp=N"


def test_nemo_rl(job_of, tmp_path):
    """A child's values stand over those of the file that it is based on."""
    rest = MODEL
    expected = {
        "parallelism.tp": 2,
        "parallelism.dp": 8,
        "sequence": 2048,
        "micro_batches": 8,
        "bytes.gradient": 2,
        "data_parallel.sharding": "zero1",
        "tensor_parallel.sequence": True,
    }
    check(job_of("nemo-rl", texts.NEMO_RL, given=rest), expected)
    (tmp_path / "parent.yaml").write_text(texts.NEMO_RL)
    child = (
        "defaults: parent.yaml\npolicy:\n  megatron_cfg:\n"
        "    tensor_model_parallel_size: 1\n    pipeline_model_parallel_size: 4\n"
    )
    check(
        job_of("nemo-rl", child, given=rest),
        expected
        | {
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


def test_maxtext(job_of):
    """A batch is of a GPU, so a replica of four has 8; data ranks replicate."""
    check(
        job_of("maxtext", texts.MAXTEXT, gpus=32),
        {
            "parallelism.tp": 4,
            "parallelism.dp": 8,
            "micro_batch": 8,
            "micro_batches": 1,
            "data_parallel.sharding": "hsdp",
            "data_parallel.shard_size": 4,
            "model.gated": True,
            "model.tied_embeddings": False,
        },
    )
    between = texts.MAXTEXT + "ici_pipeline_parallelism: 2\n"
    problems = problems_of(job_of, "maxtext", between, gpus=32)
    assert "no order of a job" in problems[0].message


def test_nanotron(job_of):
    """All sizes are said; two halves of an all-reduce only where the mode says so."""
    check(
        job_of("nanotron", texts.NANOTRON),
        {
            "parallelism.dp": 4,
            "parallelism.pp": 2,
            "micro_batch": 2,
            "micro_batches": 16,
            "model.vocab_multiple": 64,
            "bytes.gradient": 4,
            "data_parallel.sharding": "zero1",
            "tensor_parallel.sequence": False,
        },
    )
    text = texts.NANOTRON.replace("  tp: 2\n", "  tp: 2\n  expert_parallel_size: 2\n")
    problems = problems_of(job_of, "nanotron", text)
    assert "outermost" in problems[0].message


def test_neox(job_of):
    """Keys with hyphens, Python's words; ffn 4h; a vocabulary padded to 128 x tp."""
    check(
        job_of("neox", texts.NEOX, gpus=16),
        {
            "parallelism.dp": 4,
            "parallelism.pp": 2,
            "parallelism.tp": 2,
            "model.ffn": 2048,
            "model.kv_heads": 16,
            "model.gated": False,
            "model.tied_embeddings": False,
            "model.vocab": 50257,
            "model.vocab_multiple": 128,
            "micro_batch": 4,
            "micro_batches": 8,
            "bytes.gradient": 2,
            "data_parallel.sharding": "zero1",
            "data_parallel.overlap_reduce": True,
            "tensor_parallel.sequence": False,
        },
    )
    text = texts.NEOX.replace("GPT2BPETokenizer", "HFTokenizer")
    (problem,) = problems_of(job_of, "neox", text, gpus=16)
    assert problem.key == "model.vocab"
    assert "--set job.model.vocab=N" in problem.hint


def test_verl(job_of):
    """A step is 64 prompts with 4 responses; the rollout's sizes are not read."""
    expected = {
        "parallelism.tp": 2,
        "parallelism.dp": 8,
        "sequence": 4096,
        "micro_batch": 2,
        "micro_batches": 16,
        "bytes.gradient": 4,
        "data_parallel.sharding": "zero1",
        "data_parallel.overlap_reduce": False,
        "tensor_parallel.sequence": True,
        "expert_parallel.dispatch": "deduplicated",
    }
    check(job_of("verl", texts.VERL, given=MODEL), expected)
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
