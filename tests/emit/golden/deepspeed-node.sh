#!/usr/bin/env bash
# DeepSpeed's launcher with the plan's node ranks and GPUs. Run it once on every node:
#   bash deepspeed.sh train.py --its --arguments
# The host is PLACER_HOST, else SLURMD_NODENAME, else `uname -n`. The launcher sets
# CUDA_VISIBLE_DEVICES itself: the job must have whole nodes.
# PLACER_MASTER_ADDR and MASTER_PORT replace the address and port of node rank 0.
set -euo pipefail

die() {
  printf 'placer: %s\n' "$1" >&2
  exit 1
}

find_node() {
  case "$1" in
    (n3) node_rank=0 ;;
    (n1) node_rank=1 ;;
    (n4) node_rank=2 ;;
    (n2) node_rank=3 ;;
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

task=${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-${SLURM_LOCALID:-0}}}
[ "$task" = 0 ] ||
  die "task $task of $host: DeepSpeed starts the others, run this once a node"
first=n3
export CUDA_DEVICE_ORDER=PCI_BUS_ID
exec python -u -m deepspeed.launcher.launch --node_rank="$node_rank" \
  --master_addr="${PLACER_MASTER_ADDR:-$first}" \
  --master_port="${MASTER_PORT:-29500}" \
  --world_info=eyJuMyI6WzAsMV0sIm4xIjpbMCwxXSwibjQiOlswLDFdLCJuMiI6WzAsMV19 "$@"
