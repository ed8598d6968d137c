# torchtitan's flags for the rank numbering of the plan, as a bash array:
#   source torchtitan.sh
#   bash torchrun.sh -m torchtitan.train --module llama3 --config llama3_8b \
#     "${TORCHTITAN_ARGS[@]}"
# They place no rank: launch with torchrun of the same plan.
# The plan's sharding is not in it: torchtitan has FSDP over dp for that.
TORCHTITAN_ARGS=(
  --parallelism.data_parallel_replicate_degree 1
  --parallelism.data_parallel_shard_degree 2
  --parallelism.context_parallel_degree 1
  --parallelism.tensor_parallel_degree 2
  --parallelism.pipeline_parallel_degree 2
  --parallelism.expert_parallel_degree 1
)
