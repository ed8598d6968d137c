#!/usr/bin/env bash
# The plan's GPU for a process that already has its rank, from srun or mpirun:
#   mpirun ... bash gpu-wrapper.sh python train.py --its --arguments
# The rank is PLACER_RANK, else OMPI_COMM_WORLD_RANK, PMI_RANK or SLURM_PROCID; a rank
# that is on another host than in the plan stops. LOCAL_RANK is the GPU's index in the
# node. The host is PLACER_HOST, else SLURMD_NODENAME, else `uname -n`.
# PLACER_MASTER_ADDR and MASTER_PORT replace the address and port of rank 0.
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
rank=${PLACER_RANK:-${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${SLURM_PROCID-}}}}
[ -n "$rank" ] || die "no rank: set PLACER_RANK"
[[ $rank =~ ^(0|[1-9][0-9]{0,5})$ ]] ||
  die "rank '$rank' is not a number below 1000000"
index=
for k in "${!ranks[@]}"; do
  [ "${ranks[k]}" != "$rank" ] || index=$k
done
[ -n "$index" ] ||
  die "rank $rank runs on $host, where the plan has ranks ${ranks[*]}"
gpu=${gpus[index]}
if [ -n "${CUDA_VISIBLE_DEVICES-}" ]; then
  IFS=, read -ra given <<< "$CUDA_VISIBLE_DEVICES"
  [ "$gpu" -lt "${#given[@]}" ] ||
    die "GPU $gpu is not in CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES"
fi
export RANK=${ranks[index]} LOCAL_RANK=$gpu CUDA_DEVICE_ORDER=PCI_BUS_ID
export NODE_RANK=$node_rank GROUP_RANK=$node_rank
export LOCAL_WORLD_SIZE=${#ranks[@]} WORLD_SIZE=8
first=n3
export MASTER_ADDR="${PLACER_MASTER_ADDR:-$first}"
export MASTER_PORT="${MASTER_PORT:-29500}"
exec "$@"
