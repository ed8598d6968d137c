"""DeepSpeed: its host file, and its launcher on one node, with GPUs in any order.

The host file says ``HOST slots=N``, ranks numbered host by host. A host may stand there
once, and its slots are GPUs 0 to N-1 in order (DeepSpeed edaa7221,
``deepspeed/launcher/runner.py``, ``_parse_hostfile``). The launcher needs no ssh: it
takes the whole map as ``--world_info``, a base64 of JSON, and gives a rank all GPUs of
its node in the order listed there, and ``LOCAL_RANK = rank % number of its ranks``
(``deepspeed/launcher/launch.py``). With a host file that is the place on the node only
where the node's first rank is a multiple of N.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from shlex import quote

from placer.base.errors import EmitError
from placer.emit.nodes import NodeRanks, nodes_for
from placer.emit.shell import part_exports, script
from placer.emit.torchrun import once_a_node
from placer.placement.plan import Plan

# Linux takes 128 KiB in one argument (execve manual page), and the map is one.
_MAX_ARGUMENT = 128 * 1024 - 100

_USAGE = """\
# DeepSpeed's launcher with the plan's node ranks and GPUs. Run it once on every node:
#   bash deepspeed.sh train.py --its --arguments
# The host is PLACER_HOST, else SLURMD_NODENAME, else `uname -n`. The launcher sets
# CUDA_VISIBLE_DEVICES itself: the job must have whole nodes.
# PLACER_MASTER_ADDR and MASTER_PORT replace the address and port of node rank 0.
"""


def render(plan: Plan) -> str:
    """One line a host, in the plan's node order."""
    nodes = nodes_for(plan, "deepspeed")
    return "".join(f"{node.host} slots={len(node.ranks)}\n" for node in nodes)


def render_node(plan: Plan) -> str:
    """A bash script that becomes DeepSpeed's launcher with this host's node rank."""
    nodes = nodes_for(plan, "deepspeed-node")
    info = {node.host: _devices(node) for node in nodes}
    text = json.dumps(info, separators=(",", ":")).encode()
    encoded = urlsafe_b64encode(text).decode()
    if len(encoded) > _MAX_ARGUMENT:
        raise EmitError(
            f"the map of {len(nodes)} nodes is longer than an argument may be; "
            "use torchrun"
        )
    body = f"""\
{once_a_node("DeepSpeed")}first={quote(nodes[0].host)}
export CUDA_DEVICE_ORDER=PCI_BUS_ID
{part_exports(plan)}\
exec python -u -m deepspeed.launcher.launch --node_rank="$node_rank" \\
  --master_addr="${{PLACER_MASTER_ADDR:-$first}}" \\
  --master_port="${{MASTER_PORT:-29500}}" \\
  --world_info={encoded} "$@"
"""
    return script(_USAGE, nodes, lambda rank, _: f"node_rank={rank}", body)


def _devices(node: NodeRanks) -> list[int]:
    """GPUs of a node so that the one of each rank stands at its ``LOCAL_RANK``."""
    count = len(node.ranks)
    by_local_rank = {
        rank % count: gpu for rank, gpu in zip(node.ranks, node.gpus, strict=True)
    }
    return [by_local_rank[local_rank] for local_rank in range(count)]
