#!/bin/bash
#SBATCH --nodes=2
GPUS=8  # of a node
MODE=${1:-dense}
ARGS=(--num-layers 8 --hidden-size 1024 --num-attention-heads 16
  # --swiglu
  "--seq-length 2048" --micro-batch-size 1)
if [[ "$MODE" == "moe" && -n "$EP" ]]; then ARGS+=(--num-experts 8); fi
case $MODE in dense|small) TP=2 ;; *) TP=$((GPUS / 2)) ;; esac
cat <<EOT > ds.json
{"zero_optimization": {"stage": 1}, "train_batch_size": $(( 2 * GPUS ))}
EOT
run() { torchrun --nproc_per_node $GPUS --nnodes ${SLURM_NNODES} "$@"; }
run pretrain_gpt.py ${ARGS[@]} --tensor-model-parallel-size $TP --vocab-size 50257 \
  --moe-layer-freq "([0]*1+[1]*7)" --bf16 | tee log.txt
