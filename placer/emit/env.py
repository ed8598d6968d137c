"""``env://`` processes: every process learns its rank from its host and local index.

Source of the variables: PyTorch, ``torch.distributed`` documentation, "Environment
variable initialization".
"""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from placer.emit.nodes import NodeRanks, nodes_of
from placer.emit.shell import script, words

if TYPE_CHECKING:
    from placer.placement.plan import Plan

_USAGE = """\
# The plan's RANK and GPU for one process. Run it once for every rank of every node:
#   bash env.sh python train.py --its --arguments
# The host is PLACER_HOST, else SLURMD_NODENAME, else `uname -n`. The local index is
# PLACER_LOCAL_INDEX, else OMPI_COMM_WORLD_LOCAL_RANK, else SLURM_LOCALID; index k means
# the k-th GPU the plan uses on the node. LOCAL_RANK is that GPU's index in the node, so
# torch.cuda.set_device(LOCAL_RANK) is right when the process sees all GPUs of its node.
# PLACER_MASTER_ADDR and MASTER_PORT replace the address and port of rank 0.
"""

# mpirun's own index comes first: inside a Slurm job its children also inherit the
# SLURM_LOCALID of the daemon that started them, the same for all.
_BODY = """\
[ "$#" -gt 0 ] || die "no command to run"
index=${PLACER_LOCAL_INDEX:-${OMPI_COMM_WORLD_LOCAL_RANK:-${SLURM_LOCALID-}}}
case "$index" in
  ('') die "no local index: set PLACER_LOCAL_INDEX" ;;
  (0 | [1-9] | [1-9][0-9] | [1-9][0-9][0-9]) ;;
  (*) die "local index '$index' is not a number from 0 to 999" ;;
esac
[ "$index" -lt "${#ranks[@]}" ] ||
  die "local index $index on $host, where the plan has ${#ranks[@]} ranks"
gpu=${gpus[index]}
if [ -n "${CUDA_VISIBLE_DEVICES-}" ]; then
  IFS=, read -ra given <<< "$CUDA_VISIBLE_DEVICES"
  [ "$gpu" -lt "${#given[@]}" ] ||
    die "GPU $gpu is not in CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES"
fi
export RANK=${ranks[index]} LOCAL_RANK=$gpu NODE_RANK=$node_rank GROUP_RANK=$node_rank
export LOCAL_WORLD_SIZE=${#ranks[@]} CUDA_DEVICE_ORDER=PCI_BUS_ID
"""


def render(plan: Plan) -> str:
    """A bash script that gives one process its rank, then becomes its command.

    Raises
    ------
    EmitError
        If a name is no host name, or two ranks share a GPU.
    """
    nodes = nodes_of(plan)
    rendezvous = f"""\
first={quote(nodes[0].host)}
export WORLD_SIZE={plan.world_size} MASTER_ADDR="${{PLACER_MASTER_ADDR:-$first}}"
export MASTER_PORT="${{MASTER_PORT:-29500}}"
exec "$@"
"""
    return script(_USAGE, nodes, _assignments, _BODY + rendezvous)


def _assignments(node_rank: int, node: NodeRanks) -> str:
    by_gpu = sorted(zip(node.gpus, node.ranks, strict=True))
    ranks = words([rank for _, rank in by_gpu])
    gpus = words([gpu for gpu, _ in by_gpu])
    return f"node_rank={node_rank} ranks={ranks} gpus={gpus}"
