# Megatron-LM's flags for the rank numbering of the plan, as a bash array:
#   source megatron.sh
#   bash torchrun.sh pretrain_gpt.py "${MEGATRON_ARGS[@]}" --its --arguments
# They place no rank: launch with torchrun of the same plan.
# A plan holds no model, sharding or groups of the job's own: give their flags yourself.
# Data parallel size: 2.
MEGATRON_ARGS=(
  --tensor-model-parallel-size 2
  --pipeline-model-parallel-size 2
  --context-parallel-size 1
  --expert-model-parallel-size 1
  --expert-tensor-parallel-size 2
  --use-tp-pp-dp-mapping
)
