#!/usr/bin/env bash
# torchrun with the plan's node ranks. Run the same line once on every node:
#   bash torchrun.sh train.py --its --arguments
# The host is PLACER_HOST, else SLURMD_NODENAME, else `uname -n`.
# PLACER_MASTER_ADDR and PET_MASTER_PORT replace the address and port of node rank 0.
set -euo pipefail

die() {
  printf 'placer: %s\n' "$1" >&2
  exit 1
}

find_node() {
  case "$1" in
    (n3) node_rank=0 processes=2 ;;
    (n1) node_rank=1 processes=2 ;;
    (n4) node_rank=2 processes=2 ;;
    (n2) node_rank=3 processes=2 ;;
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
  die "task $task of $host: torchrun starts the others, run this once a node"
first=n3
export PET_NNODES=4 PET_NODE_RANK=$node_rank PET_NPROC_PER_NODE=$processes
export PET_RDZV_BACKEND=static PET_MASTER_ADDR="${PLACER_MASTER_ADDR:-$first}"
export PET_MASTER_PORT="${PET_MASTER_PORT:-29500}"
unset PET_RDZV_ENDPOINT PET_STANDALONE
export CUDA_DEVICE_ORDER=PCI_BUS_ID
exec torchrun "$@"
