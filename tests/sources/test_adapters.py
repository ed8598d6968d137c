"""What other programs' files say of adapters: LoRA and its like."""

from __future__ import annotations

import json

import pytest

from placer.job.adapters import Adapters, trained_parameters
from tests.sources.reading import at, given, problems_of

SHAPE = {
    "model_type": "llama",
    "hidden_size": 512,
    "num_hidden_layers": 8,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "intermediate_size": 1024,
    "vocab_size": 1000,
    "tie_word_embeddings": False,
}
DENSE = json.dumps(SHAPE)
MOE = json.dumps(
    SHAPE
    | {
        "model_type": "qwen3_moe",
        "head_dim": 32,
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 256,
    }
)
# Inputs and outputs of the matrices of a layer.
ATTENTION = 2 * 1024 + 2 * (512 + 128)
FUSED = (512 + 512 + 2 * 128) + 1024
FEED_FORWARD = 3 * (512 + 1024)
FUSED_FEED_FORWARD = (512 + 2 * 1024) + (512 + 1024)

VERL = """python3 -m verl.trainer.main_ppo data.max_prompt_length=512 \\
  data.max_response_length=512 actor_rollout_ref.model.path=/models/own \\
  actor_rollout_ref.actor.ppo_mini_batch_size=64 \\
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 \\
  trainer.n_gpus_per_node=8 trainer.nnodes=2 """
VERL_FSDP = VERL + "actor_rollout_ref.actor.strategy=fsdp "
VERL_MEGATRON = VERL + "actor_rollout_ref.actor.strategy=megatron "
FLAT, OWN = "actor_rollout_ref.model.", "actor_rollout_ref.model.lora."

AXOLOTL = """base_model: some/model
sequence_len: 2048
micro_batch_size: 1
gradient_accumulation_steps: 4
bf16: true
sample_packing: true
dp_shard_size: 8
fsdp_version: 2
fsdp_config: {reshard_after_forward: true}
"""
FACTORY = """model_name_or_path: some/model
stage: sft
cutoff_len: 2048
per_device_train_batch_size: 1
gradient_accumulation_steps: 4
bf16: true
"""
SWIFT = """NPROC_PER_NODE=8 megatron sft --model ./own --global_batch_size 16 \\
  --max_length 2048 """
RL = """policy:
  model_name: some/model
  train_global_batch_size: 64
  train_micro_batch_size: 1
  max_total_sequence_length: 2048
  %s
cluster: {gpus_per_node: 8, num_nodes: 1}
"""
RL_MEGATRON = RL % "megatron_cfg: {enabled: true, peft: {%s}}"
RL_DTENSOR = RL % "dtensor_cfg: {enabled: true, lora_cfg: {%s}}"
NEMO_1 = """trainer: {devices: 8, num_nodes: 1}
model:
  tensor_model_parallel_size: 2
  pipeline_model_parallel_size: 1
  context_parallel_size: 1
  micro_batch_size: 1
  global_batch_size: 32
  encoder_seq_length: 2048
  peft: {%s}
"""
BRIDGE = """model:
  tensor_model_parallel_size: 2
  pipeline_model_parallel_size: 1
  context_parallel_size: 1
  seq_length: 2048
train: {global_batch_size: 32, micro_batch_size: 1}
peft: %s
"""
RECIPE = """from megatron.bridge.recipes.common import _peft_common


def own_peft_config(peft_scheme="lora") -> ConfigContainer:
    cfg = _peft_common()
    %s
    return cfg
"""
TITAN = """[model]
name = "llama3"
flavor = "8B"
converters = ["lora"]
[training]
local_batch_size = 1
seq_len = 2048
"""
SFT = RECIPE.replace("_peft_common", "_sft_common")
LORA = AXOLOTL + "adapter: lora\nlora_r: %s\n"
ON_ALL = LORA % 16 + "lora_target_linear: true\n"
ON_TWO = LORA % 8 + "lora_target_modules: [q_proj, o_proj]\n"
OF_VERL = VERL_FSDP + f"{FLAT}lora_rank=4 {FLAT}target_modules="

ALL_OF_16 = 8 * 16 * (ATTENTION + FEED_FORWARD)
FUSED_16 = 8 * 16 * (FUSED + FUSED_FEED_FORWARD)


def gpus_of(name: str, text: str) -> int | None:
    """GPUs to give beside a file that does not say how many."""
    says = name in ("swift", "verl", "nemo-rl") or "devices" in text
    return None if says or "dp_shard_size" in text else 8


@pytest.mark.parametrize(
    ("name", "text", "rank", "parameters"),
    [
        ("verl", VERL_FSDP + f"{FLAT}lora_rank=16", 16, ALL_OF_16),
        (
            "verl",
            VERL_FSDP + f"{FLAT}lora_rank=16 {FLAT}target_modules=all-linear",
            16,
            ALL_OF_16,
        ),
        (
            "verl",
            OF_VERL + "\"['q_proj','v_proj']\"",
            4,
            8 * 4 * (1024 + 640),
        ),
        ("verl", VERL_MEGATRON + f"+{OWN}rank=16", 16, FUSED_16),
        (
            "verl",
            VERL_MEGATRON + f"{OWN}rank=4 {OWN}target_modules='[linear_qkv]'",
            4,
            8 * 4 * 1280,
        ),
        (
            "axolotl",
            ON_ALL,
            16,
            ALL_OF_16,
        ),
        (
            "axolotl",
            ON_TWO,
            8,
            8 * 8 * 2048,
        ),
        (
            "axolotl",
            AXOLOTL + "adapter: lora\nlora_r: 8\nlora_target_modules: [q_proj]\n"
            "lora_modules_to_save: [embed_tokens, lm_head]\n",
            8,
            8 * 8 * 1024 + 2 * 1000 * 512,
        ),
        ("axolotl", FACTORY, 8, ALL_OF_16 // 2),
        (
            "axolotl",
            FACTORY + "lora_rank: 4\nlora_target: q_proj,v_proj\n",
            4,
            8 * 4 * (1024 + 640),
        ),
        ("swift", SWIFT + "--tuner_type lora", 8, FUSED_16 // 2),
        ("swift", SWIFT + "--train_type lora --lora_rank 16", 16, FUSED_16),
        (
            "swift",
            SWIFT
            + "--tuner_type lora --lora_rank 4 --target_modules linear_qkv linear_proj",
            4,
            8 * 4 * FUSED,
        ),
        (
            "nemo-rl",
            RL_MEGATRON % ("enabled: true, dim: 16, target_modules: []"),
            16,
            FUSED_16,
        ),
        (
            "nemo-rl",
            RL_DTENSOR % ("enabled: true, dim: 16, match_all_linear: true"),
            16,
            ALL_OF_16,
        ),
        (
            "nemo",
            NEMO_1 % ("peft_scheme: lora, lora_tuning: {adapter_dim: 4}"),
            4,
            8 * 4 * 1280,
        ),
        (
            "nemo",
            NEMO_1
            % (
                "peft_scheme: lora, "
                "lora_tuning: {adapter_dim: 4, target_modules: [attention]}"
            ),
            4,
            8 * 4 * FUSED,
        ),
        ("nemo", BRIDGE % ("{dim: 16}"), 16, FUSED_16),
        (
            "nemo",
            BRIDGE % ("{_target_: megatron.bridge.peft.lora.LoRA}"),
            32,
            2 * FUSED_16,
        ),
        ("nemo", RECIPE % ("pass"), 32, 2 * FUSED_16),
        (
            "nemo",
            RECIPE % ('cfg.peft = LoRA(dim=4, target_modules=["linear_proj"])'),
            4,
            8 * 4 * 1024,
        ),
        (
            "nemo",
            RECIPE % ("cfg.peft = default_peft_config(peft_scheme, dim=16)"),
            16,
            FUSED_16,
        ),
    ],
)
def test_what_is_trained(job_of, name, text, rank, parameters) -> None:
    """Rank and parameters are those of the modules that the file names."""
    gpus = gpus_of(name, text)
    job = job_of(name, text, gpus=gpus, join=DENSE)
    assert job.adapters.rank == rank
    assert trained_parameters(job.model, job.adapters) == parameters


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("verl", VERL_FSDP),
        ("verl", VERL_FSDP + f"{FLAT}lora_rank=0"),
        ("axolotl", AXOLOTL),
        ("axolotl", FACTORY + "finetuning_type: full\n"),
        ("swift", SWIFT + "--tuner_type full"),
        ("nemo-rl", RL_MEGATRON % ("enabled: false, dim: 16")),
        ("nemo-rl", RL_DTENSOR % ("enabled: false, dim: 16")),
        ("nemo", NEMO_1 % ("peft_scheme: null")),
        ("nemo", BRIDGE % ("null")),
        (
            "nemo",
            SFT % "cfg.peft = None",
        ),
    ],
)
def test_full_training(job_of, name, text) -> None:
    """A file that turns adapters off, or has none, trains the model."""
    assert job_of(name, text, gpus=gpus_of(name, text), join=DENSE).adapters is None


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "verl",
            VERL_FSDP + f"{FLAT}lora_rank=8 {FLAT}target_modules=[own_proj]",
            "adapters that are on own_proj cannot be counted",
        ),
        (
            "verl",
            VERL_FSDP + f"{FLAT}lora_rank=8 {FLAT}exclude_modules=[q_proj]",
            "adapters that leave modules out cannot be counted",
        ),
        (
            "axolotl",
            AXOLOTL + "adapter: lora\nlora_target_linear: true\n",
            "adapters that have no rank here cannot be counted",
        ),
        (
            "axolotl",
            AXOLOTL + "adapter: lora\nlora_r: 8\n",
            "adapters that name no lora_target_modules cannot be counted",
        ),
        (
            "axolotl",
            FACTORY + "finetuning_type: freeze\n",
            "adapters that are of kind freeze cannot be counted",
        ),
        (
            "swift",
            SWIFT + "--tuner_type lora --target_regex 'layers.0'",
            "adapters that are on modules of a target_regex cannot be counted",
        ),
        (
            "nemo-rl",
            RL_MEGATRON % ("enabled: true, dim: 8, exclude_modules: [linear_qkv]"),
            "adapters that leave modules out cannot be counted",
        ),
        (
            "torchtitan",
            TITAN,
            "adapters that a converter adds cannot be counted",
        ),
        (
            "nemo",
            NEMO_1 % ("peft_scheme: ptuning"),
            "adapters that are of kind ptuning cannot be counted",
        ),
        (
            "nemo",
            BRIDGE % ('{dim: 8, target_modules: ["*.layers.0.*.linear_qkv"]}'),
            "adapters that are on *.layers.0.*.linear_qkv cannot be counted",
        ),
    ],
)
def test_what_cannot_be_counted_is_asked_for(job_of, name, text, message) -> None:
    """It is never taken for full training: the parameters settle it."""
    gpus = gpus_of(name, text)
    problems = problems_of(job_of, name, text, gpus=gpus, join=DENSE)
    assert [problem.message for problem in problems] == [message]
    assert problems[0].hint == "--set job.adapters.parameters=N"
    settings = {"job.adapters.parameters": "84k"}
    job = job_of(name, text, gpus=gpus, join=DENSE, given=settings)
    assert job.adapters.parameters == 84_000


def test_all_questions_at_once(job_of) -> None:
    """Adapters in doubt are asked for beside a shape that is missing."""
    text = AXOLOTL + "adapter: ia3\n"
    keys = {problem.key for problem in problems_of(job_of, "axolotl", text)}
    assert {"adapters.parameters", "model.layers"} <= keys


def test_qlora_keeps_weights_in_four_bits(job_of) -> None:
    """They are gathered so, and take about a quarter of the memory."""
    text = AXOLOTL + "adapter: qlora\nlora_r: 16\nlora_target_linear: true\n"
    job = job_of("axolotl", text, join=DENSE)
    assert job.memory.parameter_bytes == job.bytes.parameter_gather == 0.516
    assert job.bytes.gradient == 2


@pytest.mark.parametrize(("kind", "width"), [("", 4), ("bfloat16", 2)])
def test_verl_loads_its_actor_in_fp32(job_of, kind, width) -> None:
    """The weights that stay have the type that the actor is loaded in."""
    key = "actor_rollout_ref.actor.fsdp_config.model_dtype"
    text = VERL_FSDP + f"{FLAT}lora_rank=16" + (f" {key}={kind}" if kind else "")
    assert at(job_of("verl", text, join=DENSE), "memory.parameter_bytes") == width


@pytest.mark.parametrize(
    ("name", "text", "experts", "parameters"),
    [
        # Query, key, value and output; gate, up and down of eight experts.
        (
            "axolotl",
            ON_ALL,
            True,
            8 * 16 * (ATTENTION + 8 * 3 * (512 + 256)),
        ),
        (
            "axolotl",
            ON_TWO,
            False,
            8 * 8 * 2048,
        ),
        (
            "swift",
            SWIFT + "--tuner_type lora --lora_rank 16",
            True,
            8 * 16 * (FUSED + 8 * (512 + 512 + 512 + 256)),
        ),
        # The experts of each of two expert ranks share an adapter.
        (
            "nemo-rl",
            RL_MEGATRON.replace("{e", "{expert_model_parallel_size: 2, e")
            % "enabled: true, dim: 16",
            False,
            8 * 16 * (FUSED + 2 * (512 + 512 + 512 + 256)),
        ),
    ],
)
def test_experts(job_of, name, text, experts, parameters) -> None:
    """Each routed expert has adapters, or those of a rank share one, or none has."""
    job = job_of(name, text, join=MOE)
    assert job.adapters.experts is experts
    assert trained_parameters(job.model, job.adapters) == parameters


def test_mlperf_trains_attention_of_llama_2(job_of) -> None:
    """Rank 16 on query, key, value and output of 80 layers: 44.6 M."""
    text = (
        "export DGXNNODES=1 DGXNGPU=8 MINIBS=1 TP=4 PP=1 CP=1 MBS=1 SP=1\n"
        "export LORA_A2A=1\n"
    )
    job = job_of("mlperf", text)
    assert job.adapters == Adapters(rank=16, parameters=44_564_480)
    assert (job.model.layers, job.model.hidden, job.sequence) == (80, 8192, 8192)
    assert job_of("mlperf", text + "export LORA_DIM=8\n").adapters.rank == 8


def test_given_keys_stand_before_the_file(job_of) -> None:
    """What an option says of adapters counts more than what a file says."""
    text = VERL_FSDP + f"{FLAT}lora_rank=16"
    keys = {"job.adapters.rank": "4", "job.adapters.parameters": "1M"}
    job = job_of("verl", text, join=DENSE, given=keys | given())
    assert job.adapters == Adapters(rank=4, parameters=1_000_000)
