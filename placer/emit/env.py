"""``env://`` processes: every process learns its rank from its host and local index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.emit.nodes import nodes_of
from placer.emit.process import (
    NEED_COMMAND,
    become_rank,
    local_index,
    part_exports,
    ranks_by_gpu,
)
from placer.emit.shell import script

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
_INDEX = """\
index=${PLACER_LOCAL_INDEX:-${OMPI_COMM_WORLD_LOCAL_RANK:-${SLURM_LOCALID-}}}
"""


def render(plan: Plan) -> str:
    """A bash script that gives one process its rank, then becomes its command."""
    nodes = nodes_of(plan)
    index = NEED_COMMAND + _INDEX + local_index("PLACER_LOCAL_INDEX")
    body = index + part_exports(plan) + become_rank(nodes)
    return script(_USAGE, nodes, ranks_by_gpu, body)
