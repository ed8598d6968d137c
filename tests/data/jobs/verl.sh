#!/bin/bash
TP=${TP:-2}
python3 -m verl.trainer.main_ppo --config-name='ppo_megatron_trainer.yaml' \
    data.max_prompt_length=1024 data.max_response_length=$((1024 * 3)) \
    actor_rollout_ref.actor.ppo_mini_batch_size=64 \
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 \
    actor_rollout_ref.rollout.n=4 \
    actor_rollout_ref.rollout.tensor_model_parallel_size=8 \
    actor_rollout_ref.actor.megatron.tensor_model_parallel_size=${TP} \
    +actor_rollout_ref.actor.megatron.override_transformer_config.moe_token_dispatcher_type="flex" \
    trainer.nnodes=2 trainer.n_gpus_per_node=8
