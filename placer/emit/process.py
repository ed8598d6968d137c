"""Shell text of the scripts that turn one process into one rank.

The script first sets ``ranks`` and ``gpus``, bash arrays with an entry for each rank of
the node, and ``node_rank``. The variables set here are those of PyTorch,
``torch.distributed`` documentation, "Environment variable initialization".
"""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from placer.emit.shell import words
from placer.placement.parts import part_environment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placer.emit.nodes import NodeRanks
    from placer.placement.plan import Plan

NEED_COMMAND = """\
[ "$#" -gt 0 ] || die "no command to run"
"""

# Stops where the process does not see GPU "gpu" of the node.
SEE_GPU = """\
if [ -n "${CUDA_VISIBLE_DEVICES-}" ]; then
  IFS=, read -ra given <<< "$CUDA_VISIBLE_DEVICES"
  [ "$gpu" -lt "${#given[@]}" ] ||
    die "GPU $gpu is not in CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES"
fi
"""

# Sets the rank; "index" says which entry of the arrays this process is.
_SET_RANK = f"""\
gpu=${{gpus[index]}}
{SEE_GPU}export RANK=${{ranks[index]}} LOCAL_RANK=$gpu CUDA_DEVICE_ORDER=PCI_BUS_ID
"""


def number(variable: str, words: str, unset: str) -> str:
    """Shell text that stops unless ``$variable`` is a whole number below a million.

    ``words``: what the number is, in messages. ``unset``: message when it is empty.
    """
    return f"""\
[ -n "${variable}" ] || die "{unset}"
[[ ${variable} =~ ^(0|[1-9][0-9]{{0,5}})$ ]] ||
  die "{words} '${variable}' is not a number below 1000000"
"""


def local_index(variable: str) -> str:
    """Shell text that stops unless ``index`` is the index of one of the node's ranks.

    ``variable``: what to set where there is no index.
    """
    return number("index", "local index", f"no local index: set {variable}") + (
        '[ "$index" -lt "${#ranks[@]}" ] ||\n'
        '  die "local index $index on $host, where the plan has ${#ranks[@]} ranks"\n'
    )


def become_rank(nodes: Sequence[NodeRanks]) -> str:
    """Shell text that becomes the command as rank number ``index`` of the node."""
    world_size = sum(len(node.ranks) for node in nodes)
    return f"""\
{_SET_RANK}export NODE_RANK=$node_rank GROUP_RANK=$node_rank
export LOCAL_WORLD_SIZE=${{#ranks[@]}} WORLD_SIZE={world_size}
first={quote(nodes[0].host)}
export MASTER_ADDR="${{PLACER_MASTER_ADDR:-$first}}"
export MASTER_PORT="${{MASTER_PORT:-29500}}"
exec "$@"
"""


def part_exports(plan: Plan) -> str:
    """Shell text that tells back ends for experts of NVLink domains; empty without."""
    found = part_environment(plan)
    words = " ".join(f"{name}={value}" for name, value in found.items())
    return f"export {words}\n" if found else ""


def become_worker() -> str:
    """Shell text that becomes the command as a torchrun worker of another rank.

    The address is left alone: the agents keep the store, wherever rank 0 is.
    """
    return _SET_RANK + 'exec "$@"\n'


def ranks_by_gpu(node_rank: int, node: NodeRanks) -> str:
    """Shell assignments of a node: entry k is the k-th GPU that the plan uses there."""
    by_gpu = sorted(zip(node.gpus, node.ranks, strict=True))
    ranks = words([rank for _, rank in by_gpu])
    gpus = words([gpu for gpu, _ in by_gpu])
    return f"node_rank={node_rank} ranks={ranks} gpus={gpus}"
