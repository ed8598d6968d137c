"""The GPU of a rank that a host file or rankfile has put on its node.

With Hydra (MPICH, Intel MPI) that is a machine file: a line ``HOST:N`` takes the next N
ranks. ``MPI_LOCALRANKID`` is 0 for every process of a host whose lines are apart, so
that programs cannot pick a GPU by it; the script picks it by the global rank.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from placer.emit.nodes import nodes_of
from placer.emit.process import (
    NEED_COMMAND,
    become_rank,
    number,
    part_exports,
    ranks_by_gpu,
)
from placer.emit.shell import script

if TYPE_CHECKING:
    from placer.placement.plan import Plan

_USAGE = """\
# The plan's GPU for a process that already has its rank, from srun or mpirun:
#   mpirun ... bash gpu-wrapper.sh python train.py --its --arguments
# The rank is PLACER_RANK, else OMPI_COMM_WORLD_RANK, PMI_RANK or SLURM_PROCID; a rank
# that is on another host than in the plan stops. LOCAL_RANK is the GPU's index in the
# node. The host is PLACER_HOST, else SLURMD_NODENAME, else `uname -n`.
# PLACER_MASTER_ADDR and MASTER_PORT replace the address and port of rank 0.
"""

# mpirun's own rank comes first: inside a Slurm job its children also inherit the
# SLURM_PROCID of the daemon that started them.
_RANK = """\
rank=${PLACER_RANK:-${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${SLURM_PROCID-}}}}
"""

_INDEX = """\
index=
for k in "${!ranks[@]}"; do
  [ "${ranks[k]}" != "$rank" ] || index=$k
done
[ -n "$index" ] ||
  die "rank $rank runs on $host, where the plan has ranks ${ranks[*]}"
"""


def render(plan: Plan) -> str:
    """A bash script that gives one rank its GPU, then becomes its command."""
    nodes = nodes_of(plan)
    known = _RANK + number("rank", "rank", "no rank: set PLACER_RANK")
    body = NEED_COMMAND + known + _INDEX + part_exports(plan) + become_rank(nodes)
    return script(_USAGE, nodes, ranks_by_gpu, body)


def files(plan: Plan) -> dict[str, str]:
    """Hydra's machine file and the script that gives every rank its GPU."""
    wrapper = render(plan)
    runs = groupby(plan.host_of_rank)
    lines = [f"{host}:{len(list(ranks))}\n" for host, ranks in runs]
    return {"machines.txt": "".join(lines), "gpu-wrapper.sh": wrapper}
