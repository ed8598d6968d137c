#!/usr/bin/env bash
# torchrun with the plan's ranks, wherever they are. Run the same line on every node:
#   bash torchrun-wrapper.sh python train.py --its --arguments
# It starts torchrun, which runs it again as every worker: that gets the plan's RANK,
# and as LOCAL_RANK the index of its GPU in the node. Options of torchrun go into its
# PET_<OPTION> variables. With agents of your own, give it as the workers' command:
#   torchrun ... --no-python bash torchrun-wrapper.sh python train.py
# The host is PLACER_HOST, else SLURMD_NODENAME, else `uname -n`.
# PLACER_MASTER_ADDR and PET_MASTER_PORT replace the address and port of node rank 0.
set -euo pipefail

die() {
  printf 'placer: %s\n' "$1" >&2
  exit 1
}

find_node() {
  case "$1" in
    (n3) node_rank=0 ranks=(0 1) gpus=(0 1) ;;
    (n1) node_rank=1 ranks=(2 3) gpus=(0 1) ;;
    (n4) node_rank=2 ranks=(4 5) gpus=(0 1) ;;
    (n2) node_rank=3 ranks=(6 7) gpus=(0 1) ;;
    (*) return 1 ;;
  esac
}

find_label() {
  case "$1" in
    (*) return 1 ;;
  esac
}

host=${PLACER_HOST:-${SLURMD_NODENAME:-$(uname -n)}}
find_node "$host" || find_node "${host%%.*}" || find_label "$host" ||
  die "host '$host' is not in the plan"

[ "$#" -gt 0 ] || die "no command to run"
if [ -z "${TORCHELASTIC_RUN_ID-}" ]; then
processes=${#ranks[@]}
task=${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-${SLURM_LOCALID:-0}}}
[ "$task" = 0 ] ||
  die "task $task of $host: torchrun starts the others, run this once a node"
first=n3
export PET_NNODES=4 PET_NODE_RANK=$node_rank PET_NPROC_PER_NODE=$processes
export PET_RDZV_BACKEND=static PET_MASTER_ADDR="${PLACER_MASTER_ADDR:-$first}"
export PET_MASTER_PORT="${PET_MASTER_PORT:-29500}"
unset PET_RDZV_ENDPOINT PET_STANDALONE
export CUDA_DEVICE_ORDER=PCI_BUS_ID
exec torchrun --no-python bash "$0" "$@"
fi
index=${LOCAL_RANK-}
[ -n "$index" ] || die "no local index: set LOCAL_RANK"
[[ $index =~ ^(0|[1-9][0-9]{0,5})$ ]] ||
  die "local index '$index' is not a number below 1000000"
[ "$index" -lt "${#ranks[@]}" ] ||
  die "local index $index on $host, where the plan has ${#ranks[@]} ranks"
[ "${WORLD_SIZE-}" = 8 ] ||
  die "torchrun starts ${WORLD_SIZE-no} ranks, the plan has 8"
[ "${LOCAL_WORLD_SIZE-}" = "${#ranks[@]}" ] ||
  die "$host runs ${LOCAL_WORLD_SIZE-no} ranks, in the plan ${#ranks[@]}"
gpu=${gpus[index]}
if [ -n "${CUDA_VISIBLE_DEVICES-}" ]; then
  IFS=, read -ra given <<< "$CUDA_VISIBLE_DEVICES"
  [ "$gpu" -lt "${#given[@]}" ] ||
    die "GPU $gpu is not in CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES"
fi
export RANK=${ranks[index]} LOCAL_RANK=$gpu CUDA_DEVICE_ORDER=PCI_BUS_ID
exec "$@"
