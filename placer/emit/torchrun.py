"""torchrun with static rendezvous: the plan's node order as node ranks.

Every option is set through torchrun's ``PET_<OPTION>`` environment. The c10d backend is
not used: it numbers nodes itself, by sorting their addresses as strings (PyTorch,
``torch/distributed/elastic/rendezvous/dynamic_rendezvous.py``).

The wrapper is for free maps: agents as usual, workers whose ``RANK`` is replaced.
torchrun numbers workers node by node. The script starts the node's agent and, as the
workers' own command, gives each the plan's rank before its program starts. Rank 0 may
be anywhere, because the agents keep the store (``TORCHELASTIC_USE_AGENT_STORE``;
PyTorch, ``torch/distributed/elastic/agent/server/local_elastic_agent.py``).

DLRover: the map by which its master reorders the nodes of a rendezvous.

``--enable-topology-rerank`` reads JSON of addresses and groups, and the strategy
``ep_dp_pp`` numbers nodes by the text of their group, in a group by their own rank
(intelligent-machine-learning/dlrover, ``master/elastic_training/topology_rerank.py``).
So a group for each node, called by its node rank, makes the plan's order.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from shlex import quote

from placer.emit.nodes import NodeRanks, nodes_for, nodes_of
from placer.emit.shell import (
    NEED_COMMAND,
    SET_RANK,
    local_index,
    part_exports,
    ranks_by_gpu,
    script,
    words,
)
from placer.placement.plan import Plan

_USAGE = """\
# torchrun with the plan's node ranks. Run the same line once on every node:
#   bash torchrun.sh train.py --its --arguments
# The host is PLACER_HOST, else SLURMD_NODENAME, else `uname -n`.
# PLACER_MASTER_ADDR and PET_MASTER_PORT replace the address and port of node rank 0.
"""

# The plan's GPU k is the k-th device this node was given, whoever gave it.
PICK_GPUS = """\
given=()
if [ -n "${CUDA_VISIBLE_DEVICES-}" ]; then
  IFS=, read -ra given <<< "$CUDA_VISIBLE_DEVICES"
fi
devices=
for gpu in "${gpus[@]}"; do
  device=$gpu
  if [ -n "${CUDA_VISIBLE_DEVICES-}" ]; then
    device=${given[gpu]-}
  fi
  [ -n "$device" ] ||
    die "GPU $gpu is not in CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES"
  devices+=${devices:+,}$device
done
export CUDA_VISIBLE_DEVICES=$devices
"""


def render(plan: Plan) -> str:
    """A bash script that starts torchrun with this host's node rank."""
    nodes = nodes_for(plan, "torchrun")
    pick_gpus = not all(node.gpus_in_order for node in nodes)

    def assignments(node_rank: int, node: NodeRanks) -> str:
        gpus = f" gpus={words(node.gpus)}" if pick_gpus else ""
        return f"node_rank={node_rank} processes={len(node.ranks)}{gpus}"

    end = 'export CUDA_DEVICE_ORDER=PCI_BUS_ID\nexec torchrun "$@"\n'
    body = (
        static_rendezvous(nodes) + (PICK_GPUS if pick_gpus else "") + part_exports(plan)
    )
    body += end
    return script(_USAGE, nodes, assignments, body)


def render_map(plan: Plan) -> str:
    """A ``placer/node-map`` for torchrun's backend ``placer``, by node rank."""
    nodes = nodes_for(plan, "torchrun-map")
    lines = ",\n".join(
        "  " + json.dumps({"host": node.host, "processes": len(node.ranks)})
        for node in nodes
    )
    return f'{{"format": "placer/node-map", "version": 1,\n "nodes": [\n{lines}\n]}}\n'


def static_rendezvous(nodes: Sequence[NodeRanks]) -> str:
    """Shell text that makes torchrun node ``$node_rank`` of ``$processes`` workers."""
    return f"""\
{once_a_node("torchrun")}first={quote(nodes[0].host)}
export PET_NNODES={len(nodes)} PET_NODE_RANK=$node_rank PET_NPROC_PER_NODE=$processes
export PET_RDZV_BACKEND=static PET_MASTER_ADDR="${{PLACER_MASTER_ADDR:-$first}}"
export PET_MASTER_PORT="${{PET_MASTER_PORT:-29500}}"
unset PET_RDZV_ENDPOINT PET_STANDALONE
"""


def once_a_node(launcher: str) -> str:
    """Shell text that stops in all but the first process of a host.

    Two agents of one node rank would both run, each with the node's ranks: torchrun
    says nothing. It stops where whatever starts the script counts its processes.
    """
    return f"""\
task=${{OMPI_COMM_WORLD_LOCAL_RANK:-${{MPI_LOCALRANKID:-${{SLURM_LOCALID:-0}}}}}}
[ "$task" = 0 ] ||
  die "task $task of $host: {launcher} starts the others, run this once a node"
"""


_USAGE_OF_WRAPPER = """\
# torchrun with the plan's ranks, wherever they are. Run the same line on every node:
#   bash torchrun-wrapper.sh python train.py --its --arguments
# It starts torchrun, which runs it again as every worker: that gets the plan's RANK,
# and as LOCAL_RANK the index of its GPU in the node. Options of torchrun go into its
# PET_<OPTION> variables. With agents of your own, give it as the workers' command:
#   torchrun ... --no-python bash torchrun-wrapper.sh python train.py
# The host is PLACER_HOST, else SLURMD_NODENAME, else `uname -n`.
# PLACER_MASTER_ADDR and PET_MASTER_PORT replace the address and port of node rank 0.
"""


def render_wrapper(plan: Plan) -> str:
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
{SET_RANK}exec "$@"
"""
    return script(_USAGE_OF_WRAPPER, nodes, ranks_by_gpu, body)


def render_dlrover(plan: Plan) -> str:
    """Host -> its node rank, with as many digits for each."""
    nodes = nodes_for(plan, "dlrover")
    width = len(str(len(nodes) - 1))
    groups = {node.host: f"{rank:0{width}}" for rank, node in enumerate(nodes)}
    return json.dumps(groups, indent=1) + "\n"
