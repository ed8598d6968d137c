"""One small text of each format, written for the tests."""

_CONFIG = "actor_rollout_ref.actor.megatron.override_transformer_config"

HF = """{
  "model_type": "qwen3_moe", "hidden_size": 512, "num_hidden_layers": 8,
  "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 64,
  "intermediate_size": 1024, "vocab_size": 1000, "num_experts": 8,
  "num_experts_per_tok": 2, "moe_intermediate_size": 256, "decoder_sparse_step": 2,
  "mlp_only_layers": [3], "sliding_window": 128, "tie_word_embeddings": true
}
"""
SHAPE = """{
  "model_type": "llama", "hidden_size": 512, "num_hidden_layers": 8,
  "num_attention_heads": 16, "num_key_value_heads": 4,
  "intermediate_size": 1024, "vocab_size": 1000
}
"""
TORCHTITAN = """[model]
name = "llama3"
flavor = "8B"
converters = ["float8"]
[training]
local_batch_size = 4
global_batch_size = 64
seq_len = 4_096
[parallelism]
data_parallel_replicate_degree = 2
data_parallel_shard_degree = -1
tensor_parallel_degree = 2
context_parallel_degree = 2
pipeline_parallel_degree = 2
pipeline_parallel_schedule = "Interleaved1F1B"
[compile]
enable = true
[activation_checkpoint]
mode = "full"
"""
TORCHTITAN_PYTHON = """from . import model_registry

SIZE = 2 * 4096


def deepseek_v3_16b(steps: int = 10) -> Trainer.Config:
    spec = model_registry("16B", attn_backend="flex")
    return Trainer.Config(
        model_spec=spec,
        training=TrainingConfig(
            num_tokens_per_microbatch_per_dp_rank=SIZE,
            max_context_length=4096,
            steps=steps,
        ),
        parallelism=ParallelismConfig(expert_parallel_degree=4),
        activation_checkpoint=FullAC.Config(),
    )


def deepseek_v3_16b_tp() -> Trainer.Config:
    config = deepseek_v3_16b()
    config.parallelism = ParallelismConfig(tensor_parallel_degree=4)
    config.training.num_tokens_per_train_step = 64 * 4096
    widen(config)
    return config


def widen(config):
    config.parallelism.context_parallel_degree = 2
"""
DEEPSPEED = """{
  "train_batch_size": 96, "gradient_accumulation_steps": 3, "bf16": {"enabled": true},
  "zero_optimization": {"stage": 2, "reduce_bucket_size": 5e7, "overlap_comm": true}
}
"""
ACCELERATE = """distributed_type: FSDP
mixed_precision: bf16
num_machines: 2
num_processes: 16
fsdp_config:
  fsdp_version: 2
  fsdp_reshard_after_forward: false
parallelism_config:
  parallelism_config_cp_size: 2
  parallelism_config_dp_replicate_size: 2
  parallelism_config_dp_shard_size: 4
"""
AXOLOTL = """base_model: some/model
dp_shard_size: 4
expert_parallel_size: 2
context_parallel_size: 2
sequence_len: 2048
micro_batch_size: 2
gradient_accumulation_steps: 8
bf16: auto
adapter: lora
lora_r: 16
lora_target_linear: true
fsdp_version: 2
fsdp_config:
  reshard_after_forward: true
"""
NEMO = """model:
  tensor_model_parallel_size: 2
  pipeline_model_parallel_size: 2
  virtual_pipeline_model_parallel_size: 2
  context_parallel_size: 1
  seq_length: 4096
train:
  global_batch_size: 64
  micro_batch_size: 2
mixed_precision: bf16_mixed
ddp:
  use_distributed_optimizer: true
comm_overlap:
  tp_comm_overlap: true
"""
NEMO_ONE = """trainer:
  num_nodes: 4
  devices: 8
  precision: bf16
model:
  mcore_gpt: true
  micro_batch_size: 1
  global_batch_size: 64
  tensor_model_parallel_size: 2
  pipeline_model_parallel_size: 2
  encoder_seq_length: 4096
  num_layers: 32
  hidden_size: 4096
  ffn_hidden_size: ${multiply:4, ${.hidden_size}}
  num_attention_heads: 32
  num_query_groups: 8
  activation: fast-swiglu
  activations_checkpoint_granularity: full
  ub_tp_comm_overlap: true
  sequence_parallel: true
  fp8: true
  fp8_params: ${.fp8}
  optim:
    name: mcore_distributed_optim
    overlap_grad_sync: true
    bucket: ${..hidden_size}
"""
NEMO_RL = """policy:
  train_global_batch_size: 128
  train_micro_batch_size: 2
  max_total_sequence_length: 2048
  megatron_cfg:
    enabled: true
    tensor_model_parallel_size: 2
    sequence_parallel: true
    distributed_data_parallel_config:
      grad_reduce_in_fp32: false
      use_distributed_optimizer: true
  sequence_packing:
    train_mb_tokens: ${mul:${policy.max_total_sequence_length}, 2}
cluster:
  gpus_per_node: 8
  num_nodes: 2
"""
MAXTEXT = """base_emb_dim: 512
base_num_decoder_layers: 8
base_num_query_heads: 16
base_num_kv_heads: 4
base_mlp_dim: 1024
vocab_size: 1000
mlp_activations: ["silu", "linear"]
per_device_batch_size: 2
max_target_length: 2048
ici_tensor_parallelism: 4
dcn_data_parallelism: 2
"""
NANOTRON = """parallelism:
  dp: 4
  pp: 2
  tp: 2
  tp_mode: ALL_REDUCE
model:
  make_vocab_size_divisible_by: 64
  model_config:
    is_llama_config: true
    hidden_size: 512
    num_hidden_layers: 8
    num_attention_heads: 16
    intermediate_size: 1024
    vocab_size: 1000
optimizer:
  zero_stage: 1
  accumulate_grad_in_fp32: true
tokens:
  micro_batch_size: 2
  batch_accumulation_per_replica: 16
  sequence_length: 1024
"""
NEOX = """{
  # comments, words of Python and trailing commas
  "pipe-parallel-size": 2, "model-parallel-size": 2,
  "num-layers": 8, "hidden-size": 512, "num-attention-heads": 16, "seq-length": 1024,
  "no-weight-tying": True, "tokenizer_type": "GPT2BPETokenizer",
  "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8,
  "zero_optimization": {"stage": 1, "overlap_comm": True},
  "fp16": {"enabled": true},
}
"""
VERL = f"""#!/bin/bash
TP=${{TP:-2}}
python3 -m verl.trainer.main_ppo --config-name='ppo_megatron_trainer.yaml' \\
    data.max_prompt_length=1024 data.max_response_length=$((1024 * 3)) \\
    actor_rollout_ref.actor.ppo_mini_batch_size=64 \\
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 \\
    actor_rollout_ref.rollout.n=4 \\
    actor_rollout_ref.rollout.tensor_model_parallel_size=8 \\
    actor_rollout_ref.actor.megatron.tensor_model_parallel_size=${{TP}} \\
    +{_CONFIG}.moe_token_dispatcher_type="flex" \\
    trainer.nnodes=2 trainer.n_gpus_per_node=8
"""

TEXTS = {
    "hf": HF,
    "torchtitan": TORCHTITAN,
    "deepspeed": DEEPSPEED,
    "accelerate": ACCELERATE,
    "axolotl": AXOLOTL,
    "nemo": NEMO,
    "nemo-rl": NEMO_RL,
    "maxtext": MAXTEXT,
    "nanotron": NANOTRON,
    "neox": NEOX,
    "verl": VERL,
}

BRIDGE_PYTHON = """from megatron.bridge import AutoBridge
from megatron.bridge.recipes.common import _pretrain_common

LONG: int = 8192
MORE = {"seq_length": 2 * LONG, "context_parallel_size": 2}


def toy_70b_pretrain_64gpu_h100_bf16_config() -> ConfigContainer:
    cfg = _pretrain_common()
    cfg.model = AutoBridge.from_hf_pretrained("toy/toy-70b").get_model_config()
    cfg.dataset.seq_length = LONG
    cfg.model.seq_length = LONG
    cfg.model.tensor_model_parallel_size = 4
    cfg.model.pipeline_model_parallel_size = 4
    cfg.model.virtual_pipeline_model_parallel_size = 2
    cfg.model.pipeline_model_parallel_layout = None
    cfg.model.sequence_parallel = True
    cfg.train.global_batch_size = 128
    cfg.comm_overlap = CommOverlapConfig(tp_comm_overlap=True)
    cfg.mixed_precision = MixedPrecisionConfig(grad_reduce_in_fp32=False)
    cfg.logger.log_interval = 1
    cfg.env_vars = {**COMMON, "A": "1"}
    return cfg


def toy_70b_pretrain_64gpu_h100_bf16_16k_config() -> ConfigContainer:
    cfg = toy_70b_pretrain_64gpu_h100_bf16_config()
    _widen(cfg.model, **MORE)
    cfg.dataset.seq_length = 2 * LONG
    cfg.train.micro_batch_size = 1
    return cfg


def _widen(model, seq_length, *, context_parallel_size=1):
    model.seq_length = seq_length
    model.context_parallel_size = context_parallel_size
"""
