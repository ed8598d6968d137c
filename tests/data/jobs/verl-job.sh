ray start --head
ray job submit --address x -- \
  python3 -m verl.trainer.main_ppo actor_rollout_ref.actor.strategy=fsdp \
  trainer.nnodes=4 trainer.n_gpus_per_node=2 data.train_batch_size=64 \
  actor_rollout_ref.actor.ppo_mini_batch_size=64 \
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 data.max_prompt_length=512 \
  data.max_response_length=512
