"""Captured files of other programs, where PLACER_SAMPLES names their folder.

Each expected job is worked out by hand from the file and its framework's rules.
"""

from __future__ import annotations

import pytest

from placer.base.errors import InputError
from placer.formats.jobs.job import Options, open_job
from placer.job.models import attention_parameters

QWEN = "hf/qwen3-0.6b.config.json"
MOE = "hf/qwen3-30b-a3b.config.json"
BATCH = {"job.sequence": "4096", "job.micro_batch": "1", "job.micro_batches": "4"}


@pytest.fixture
def job_of(samples):
    """The job of some files of the folder."""

    def read(*names, gpus=None, select=None, given=None):
        options = Options(gpus=gpus, tflops=400, settings=given or {}, select=select)
        return open_job([str(samples / "jobs" / n) for n in names], options).job()

    return read


def check(job, **expected):
    """Values of a job by the names of its keys, dots as underscores of two."""
    found = {}
    for key in expected:
        value = job
        for name in key.split("__"):
            value = getattr(value, name)
        found[key] = value
    assert found == expected


@pytest.mark.parametrize(
    ("name", "shape", "parameters"),
    [
        (
            "qwen3-30b-a3b",
            {"layers": 48, "hidden": 2048, "heads": 32, "kv_heads": 4, "vocab": 151936}
            | {"experts": 128, "top_k": 8, "expert_ffn": 768, "moe_layers": 48}
            | {"gated": True, "tied_embeddings": False, "head_dim": 128},
            18_874_368,
        ),
        (
            "qwen3-0.6b",
            {"layers": 28, "hidden": 1024, "ffn": 3072, "heads": 16, "kv_heads": 8}
            | {"vocab": 151936, "gated": True, "tied_embeddings": True},
            6_291_456,
        ),
        (
            "gpt-oss-120b",
            {"layers": 36, "hidden": 2880, "ffn": 2880, "heads": 64, "kv_heads": 8}
            | {"experts": 128, "top_k": 4, "expert_ffn": 2880, "moe_layers": 36}
            | {"gated": True, "tied_embeddings": False, "vocab": 201088},
            26_542_080,
        ),
        (
            "mixtral-8x7b",
            {"layers": 32, "hidden": 4096, "ffn": 14336, "heads": 32, "kv_heads": 8}
            | {"experts": 8, "top_k": 2, "expert_ffn": 14336, "moe_layers": 32}
            | {"head_dim": 0, "gated": True, "tied_embeddings": False, "vocab": 32000},
            2 * 4096**2 + 2 * 4096 * 1024,
        ),
    ],
)
def test_shapes(job_of, name, shape, parameters):
    """The shape of each config.json, and one layer's attention."""
    model = job_of(f"hf/{name}.config.json", gpus=1, given=BATCH).model
    assert {key: getattr(model, key) for key in shape} == shape
    assert attention_parameters(model) == parameters


def test_torchtitan_405b(job_of):
    """128 GPUs, tp 8: 16 shards of one micro-batch of two, gathered in fp8."""
    check(
        job_of("torchtitan/llama3_405b.toml", gpus=128),
        parallelism__tp=8,
        parallelism__dp=16,
        model__layers=126,
        model__ffn=53248,
        sequence=8192,
        micro_batch=2,
        micro_batches=1,
        bytes__gradient=4,
        bytes__parameter_gather=1,
        data_parallel__sharding="zero3",
        overlap__tp=True,
    )


def test_torchtitan_671b(job_of):
    """A schedule without stages says nothing; nor float8 without its converter."""
    check(
        job_of("torchtitan/deepseek_v3_671b.toml", gpus=256),
        parallelism__pp=1,
        parallelism__vp=1,
        parallelism__ep=1,
        parallelism__dp=256,
        micro_batch=4,
        sequence=4096,
        bytes__parameter_gather=2,
        stages__embedding=0,
        data_parallel__sharding="zero3",
        model__moe_layers=58,
        model__kv_lora_rank=512,
    )


def test_torchtitan_qwen3(job_of):
    """8 GPUs, all of them shards."""
    check(
        job_of("torchtitan/qwen3_32b.toml", gpus=8),
        parallelism__dp=8,
        micro_batch=2,
        model__head_dim=128,
        data_parallel__sharding="zero3",
    )


@pytest.mark.parametrize("name", ["deepseek_v3_671b", "deepseek_v3_671b_float8"])
def test_torchtitan_functions(job_of, name):
    """ep 2 and 4 sequences of 4,096; one function calls the other."""
    check(
        job_of("torchtitan/deepseek_v3_config_registry.py", gpus=64, select=name),
        parallelism__ep=2,
        parallelism__etp=1,
        parallelism__dp=64,
        micro_batch=4,
        micro_batches=1,
        sequence=4096,
        bytes__parameter_gather=2,
    )


def test_deepspeed_zero2(job_of):
    """Stage 2, 8 x 3; overlap_comm is false where it is missing."""
    name = "deepspeed/ds_config_func_bs8_zero2_gas3.json"
    check(
        job_of(name, QWEN, gpus=16, given={"job.sequence": "1024"}),
        parallelism__dp=16,
        micro_batch=8,
        micro_batches=3,
        data_parallel__sharding="zero2",
        data_parallel__overlap_reduce=False,
        data_parallel__bucket_parameters=7_000_000,
        bytes__gradient=2,
    )


def test_deepspeed_auto(job_of):
    """Batches are the trainer's; bucket auto is the square of the width."""
    name = "deepspeed/ds_z3_config.json"
    with pytest.raises(InputError) as caught:
        job_of(name, QWEN, gpus=16, given={"job.sequence": "1024"})
    assert [p.key for p in caught.value.problems] == ["micro_batch", "micro_batches"]
    check(
        job_of(name, QWEN, gpus=16, given=BATCH),
        data_parallel__sharding="zero3",
        data_parallel__overlap_gather=False,
        data_parallel__bucket_parameters=1024**2,
    )


@pytest.mark.parametrize(
    ("name", "dp", "cp", "tp", "sharding", "shard_size"),
    [
        ("tp_hsdp", 4, 1, 2, "hsdp", 2),
        ("cp", 1, 8, 1, "zero3", 0),
        ("fsdp_config_multiple_nodes", 16, 1, 1, "zero3", 0),
        ("trl-zero3", 8, 1, 1, "zero3", 0),
    ],
)
def test_accelerate(job_of, name, dp, cp, tp, sharding, shard_size):
    """Sizes of the mesh, and who shards over whom."""
    check(
        job_of(f"accelerate/{name}.yaml", QWEN, given=BATCH),
        parallelism__dp=dp,
        parallelism__cp=cp,
        parallelism__tp=tp,
        data_parallel__sharding=sharding,
        data_parallel__shard_size=shard_size,
        data_parallel__keep_parameters=False,
        bytes__gradient=2,
    )


def test_axolotl(job_of):
    """4 shards x 2 replicas x tp 2; and experts of 2 x 2 shards."""
    check(
        job_of("axolotl/llama-3_1-8b-hsdp-tp.yaml", QWEN),
        parallelism__tp=2,
        parallelism__dp=8,
        parallelism__cp=1,
        data_parallel__sharding="hsdp",
        data_parallel__shard_size=4,
        sequence=2048,
        micro_batch=1,
        micro_batches=1,
    )
    check(
        job_of("axolotl/qwen3_30ba3b_ep_fsdp_fft_4gpu.yaml", MOE),
        parallelism__ep=2,
        parallelism__dp=4,
        parallelism__edp=2,
        data_parallel__sharding="zero3",
        memory__recompute="full",
    )


def test_bridge(job_of):
    """What the override says, the rest from the shape."""
    check(
        job_of("megatron-bridge/llama32_1b_pretrain.yaml", QWEN, gpus=8),
        parallelism__dp=8,
        sequence=4096,
        micro_batch=1,
        micro_batches=1,
        bytes__gradient=4,
        data_parallel__sharding="zero1",
    )
    with pytest.raises(InputError) as caught:
        job_of("megatron-bridge/llama32_1b_pretrain.yaml", gpus=8)
    assert "model.layers" in [p.key for p in caught.value.problems]


def test_nemo_rl(job_of):
    """Grandchildren of one file: 64 GPUs, vLLM's tensor parallelism is not a job's."""
    check(
        job_of("nemo-rl/grpo_math_70B_megatron.yaml", QWEN),
        parallelism__tp=4,
        parallelism__pp=4,
        parallelism__dp=4,
        sequence=4096,
        micro_batch=1,
        micro_batches=128,
        bytes__gradient=2,
        overlap__pp=False,
        data_parallel__sharding="zero1",
        data_parallel__overlap_reduce=True,
        expert_parallel__dispatch="flat",
    )
    check(
        job_of("nemo-rl/grpo_math_qwen30ba3b_megatron.yaml", MOE),
        parallelism__tp=2,
        parallelism__ep=8,
        parallelism__etp=1,
        parallelism__dp=32,
        parallelism__edp=8,
        micro_batches=16,
        tensor_parallel__sequence=True,
    )
    # The root has both backends and enables FSDP2, on one GPU.
    check(
        job_of("nemo-rl/grpo_math_1B.yaml", QWEN),
        parallelism__dp=1,
        sequence=512,
        micro_batch=4,
        micro_batches=128,
        data_parallel__sharding="zero3",
    )


def test_nanotron(job_of):
    """dp 4 x tp 2, no ZeRO, sums in fp32; 3 sequences at once."""
    check(
        job_of("nanotron/config_tiny_llama.yaml"),
        parallelism__dp=4,
        parallelism__tp=2,
        model__layers=28,
        model__kv_heads=2,
        model__tied_embeddings=True,
        micro_batch=3,
        micro_batches=1,
        sequence=4096,
        bytes__gradient=4,
        data_parallel__sharding="ddp",
        tensor_parallel__sequence=True,
    )


def test_neox(job_of):
    """96 GPUs: dp 12; MHA, ffn 24,576, untied, not gated; the vocabulary is asked."""
    with pytest.raises(InputError) as caught:
        job_of("gpt-neox/20B.yml", gpus=96)
    assert [p.key for p in caught.value.problems] == ["model.vocab"]
    check(
        job_of("gpt-neox/20B.yml", gpus=96, given={"job.model.vocab": "50277"}),
        parallelism__pp=4,
        parallelism__tp=2,
        parallelism__dp=12,
        model__ffn=24576,
        model__kv_heads=64,
        model__gated=False,
        model__tied_embeddings=False,
        micro_batch=4,
        micro_batches=32,
        data_parallel__sharding="zero1",
        data_parallel__bucket_parameters=1_260_000_000,
        bytes__gradient=2,
    )


def test_maxtext(job_of):
    """Sizes are base.yml's: all GPUs are shards; the model lies beside the file."""
    check(
        job_of("maxtext/llama3_70b.yml", gpus=64),
        parallelism__dp=64,
        model__layers=80,
        model__ffn=28672,
        model__kv_heads=8,
        micro_batch=4,
        sequence=8192,
        data_parallel__sharding="zero3",
    )
    check(
        job_of("maxtext/models/mixtral-8x7b.yml", gpus=8, given=BATCH),
        model__experts=8,
        model__top_k=2,
        model__expert_ffn=14336,
        model__moe_layers=32,
    )


def test_verl(job_of):
    """32 GPUs, tp 4 x pp 8, etp 1; (94 + 2) / 8 layers; micro-batches are asked for."""
    name = "verl/run_qwen3-235b_megatron_96gb.sh"
    layers = {"job.model.layers": "94", "job.model.moe_layers": "94"}
    with pytest.raises(InputError) as caught:
        job_of(name, MOE, given=layers)
    assert [p.key for p in caught.value.problems] == ["micro_batch", "micro_batches"]
    given = {k: v for k, v in BATCH.items() if k != "job.sequence"}
    check(
        job_of(name, MOE, given=given | layers),
        parallelism__tp=4,
        parallelism__pp=8,
        parallelism__ep=4,
        parallelism__etp=1,
        parallelism__dp=1,
        sequence=2 * 1024 + 8 * 1204,
        stages__embedding=1,
        stages__loss=1,
        bytes__gradient=4,
        data_parallel__overlap_reduce=False,
        expert_parallel__dispatch="deduplicated",
    )
