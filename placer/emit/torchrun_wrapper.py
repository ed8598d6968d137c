"""torchrun for free maps: agents as usual, workers whose ``RANK`` is replaced.

torchrun numbers workers node by node. The script starts the node's agent and, as the
workers' own command, gives each the plan's rank before its program starts. Rank 0 may
be anywhere, because the agents keep the store (``TORCHELASTIC_USE_AGENT_STORE``;
PyTorch, ``torch/distributed/elastic/agent/server/local_elastic_agent.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.emit.nodes import nodes_of
from placer.emit.process import (
    NEED_COMMAND,
    become_worker,
    local_index,
    part_exports,
    ranks_by_gpu,
)
from placer.emit.shell import script
from placer.emit.torchrun import static_rendezvous

if TYPE_CHECKING:
    from placer.placement.plan import Plan

_USAGE = """\
# torchrun with the plan's ranks, wherever they are. Run the same line on every node:
#   bash torchrun-wrapper.sh python train.py --its --arguments
# It starts torchrun, which runs it again as every worker: that gets the plan's RANK,
# and as LOCAL_RANK the index of its GPU in the node. Options of torchrun go into its
# PET_<OPTION> variables. With agents of your own, give it as the workers' command:
#   torchrun ... --no-python bash torchrun-wrapper.sh python train.py
# The host is PLACER_HOST, else SLURMD_NODENAME, else `uname -n`.
# PLACER_MASTER_ADDR and PET_MASTER_PORT replace the address and port of node rank 0.
"""


def render(plan: Plan) -> str:
    """A bash script that is torchrun's agent on a node, then each of its workers."""
    nodes = nodes_of(plan)
    body = f"""\
{NEED_COMMAND}if [ -z "${{TORCHELASTIC_RUN_ID-}}" ]; then
processes=${{#ranks[@]}}
{static_rendezvous(nodes)}export CUDA_DEVICE_ORDER=PCI_BUS_ID
{part_exports(plan)}exec torchrun --no-python bash "$0" "$@"
fi
index=${{LOCAL_RANK-}}
{local_index("LOCAL_RANK")}\
[ "${{WORLD_SIZE-}}" = {plan.world_size} ] ||
  die "torchrun starts ${{WORLD_SIZE-no}} ranks, the plan has {plan.world_size}"
[ "${{LOCAL_WORLD_SIZE-}}" = "${{#ranks[@]}}" ] ||
  die "$host runs ${{LOCAL_WORLD_SIZE-no}} ranks, in the plan ${{#ranks[@]}}"
{become_worker()}"""
    return script(_USAGE, nodes, ranks_by_gpu, body)
