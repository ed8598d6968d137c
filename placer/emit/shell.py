"""Shell text of emitted scripts: find this host in the plan, or stop; become a rank.

The script first sets ``ranks`` and ``gpus``, bash arrays with an entry for each rank of
the node, and ``node_rank``. The variables set here are those of PyTorch,
``torch.distributed`` documentation, "Environment variable initialization".

``env`` is for ``env://``: every process learns its rank from its host and local index.

``gpu-wrapper`` gives a rank that a host file or rankfile has put on its node its GPU.
With Hydra (MPICH, Intel MPI) that is a machine file: a line ``HOST:N`` takes the next N
ranks. ``MPI_LOCALRANKID`` is 0 for every process of a host whose lines are apart, so
that programs cannot pick a GPU by it; the script picks it by the global rank.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby
from shlex import quote

from placer.emit.nodes import NodeRanks, nodes_of
from placer.placement.parts import part_environment
from placer.placement.plan import Plan

HEAD = """\
set -euo pipefail

die() {
  printf 'placer: %s\\n' "$1" >&2
  exit 1
}
"""

# HOSTNAME is no substitute for `uname -n`: batch systems pass the submitting host's on.
_LOOKUP = """\
host=${PLACER_HOST:-${SLURMD_NODENAME:-$(uname -n)}}
find_node "$host" || find_node "${host%%.*}" || find_label "$host" ||
  die "host '$host' is not in the plan"
"""


def script(
    usage: str,
    nodes: Sequence[NodeRanks],
    assignments: Callable[[int, NodeRanks], str],
    body: str,
) -> str:
    """A bash script that runs ``body`` after the assignments of the node it is on.

    The host is ``PLACER_HOST``, else ``SLURMD_NODENAME``, else ``uname -n``. It matches
    a node's whole name, or a name without a domain by its own first label, or the first
    label of one name only. A host outside the plan ends the script with status 1.

    ``usage``: comment lines that open the script. ``nodes``: by node rank.
    ``assignments``: node rank and node -> shell assignments. ``body``: shell text; may
    use ``die``.
    """
    by_name = {
        node.host: assignments(node_rank, node) for node_rank, node in enumerate(nodes)
    }
    by_label = {
        label: f"find_node {quote(host)}"
        for label, host in _labels(list(by_name)).items()
    }
    parts = (
        f"#!/usr/bin/env bash\n{usage}{HEAD}",
        _function("find_node", by_name),
        _function("find_label", by_label),
        _LOOKUP,
        body,
    )
    return "\n".join(parts)


def words(numbers: Sequence[int]) -> str:
    """A bash array literal of ``numbers``."""
    return f"({' '.join(map(str, numbers))})"


def _function(name: str, command_of_host: dict[str, str]) -> str:
    """A bash function that runs the command of host ``$1``, or fails.

    The parenthesis before a pattern lets a host be called ``esac``.
    """
    arms = "".join(
        f"    ({quote(host)}) {command} ;;\n"
        for host, command in command_of_host.items()
    )
    return f'{name}() {{\n  case "$1" in\n{arms}    (*) return 1 ;;\n  esac\n}}\n'


def _labels(hosts: Sequence[str]) -> dict[str, str]:
    """First label -> host, for dotted names whose first label is theirs alone."""
    label_of_host = {host: host.split(".", 1)[0] for host in hosts}
    uses = Counter(label_of_host.values())
    return {
        label: host
        for host, label in label_of_host.items()
        if label != host and uses[label] == 1
    }


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
SET_RANK = f"""\
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
{SET_RANK}export NODE_RANK=$node_rank GROUP_RANK=$node_rank
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


def ranks_by_gpu(node_rank: int, node: NodeRanks) -> str:
    """Shell assignments of a node: entry k is the k-th GPU that the plan uses there."""
    by_gpu = sorted(zip(node.gpus, node.ranks, strict=True))
    ranks = words([rank for _, rank in by_gpu])
    gpus = words([gpu for gpu, _ in by_gpu])
    return f"node_rank={node_rank} ranks={ranks} gpus={gpus}"


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


def render_env(plan: Plan) -> str:
    """A bash script that gives one process its rank, then becomes its command."""
    nodes = nodes_of(plan)
    index = NEED_COMMAND + _INDEX + local_index("PLACER_LOCAL_INDEX")
    body = index + part_exports(plan) + become_rank(nodes)
    return script(_USAGE, nodes, ranks_by_gpu, body)


_USAGE_OF_GPU = """\
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

_INDEX_OF_RANK = """\
index=
for k in "${!ranks[@]}"; do
  [ "${ranks[k]}" != "$rank" ] || index=$k
done
[ -n "$index" ] ||
  die "rank $rank runs on $host, where the plan has ranks ${ranks[*]}"
"""


def render_gpu(plan: Plan) -> str:
    """A bash script that gives one rank its GPU, then becomes its command."""
    nodes = nodes_of(plan)
    known = _RANK + number("rank", "rank", "no rank: set PLACER_RANK")
    body = (
        NEED_COMMAND + known + _INDEX_OF_RANK + part_exports(plan) + become_rank(nodes)
    )
    return script(_USAGE_OF_GPU, nodes, ranks_by_gpu, body)


def hydra_files(plan: Plan) -> dict[str, str]:
    """Hydra's machine file and the script that gives every rank its GPU."""
    wrapper = render_gpu(plan)
    runs = groupby(plan.host_of_rank)
    lines = [f"{host}:{len(list(ranks))}\n" for host, ranks in runs]
    return {"machines.txt": "".join(lines), "gpu-wrapper.sh": wrapper}
