"""A whole batch script for Slurm: allocate the plan's nodes, then run one step.

The step takes its host file from the script (``srun --distribution=arbitrary``): line k
is the host of task k. ``SLURM_HOSTFILE`` is set for ``srun`` alone, and taken out of
the tasks' environment (Slurm manual pages ``srun`` and ``sbatch``).

Slurm's ``SLURM_HOSTFILE``: line k names the host of task k (srun manual page).

No comments and no brackets: every version reads plain lines alike. On a node
``SLURM_LOCALID`` counts tasks in that order, and GPUs follow it.

Options with which the next Slurm job gets nodes that suit the plan.

``--segment`` counts nodes of one block of ``topology/block`` (Slurm, ``sbatch`` manual
page): the plan's NVLink domains of several nodes, or else its innermost domains. What
no option says stands there as a comment.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from shlex import quote

from placer.base.errors import EmitError, InputError
from placer.base.hostlist import compress
from placer.documents.files import read_text
from placer.emit.domains import (
    TierDomains,
    guaranteed,
    innermost_shared,
    nvlink_tier,
    quoted,
    tiers_of,
)
from placer.emit.nodes import NodeRanks, nodes_for, nodes_of, require
from placer.emit.shell import HEAD, NEED_COMMAND, SEE_GPU, part_exports, words
from placer.emit.torchrun import PICK_GPUS
from placer.placement.baselines import started_of
from placer.placement.launcher_orders import natural_key
from placer.placement.plan import Plan

# Linux takes 128 KiB in one argument (execve manual page), and the text is one.
_MAX_TASK_BYTES = 120_000

_TASKS = """\
# One task a rank, in the plan's order, on the plan's nodes:
#   sbatch placer.sbatch python train.py --its --arguments
# Inside an allocation of these nodes `bash placer.sbatch python ...` does the same.
# A task gets RANK (its SLURM_PROCID), LOCAL_RANK (the index of its GPU in the node; it
# sees all that the job has there), WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR and
# MASTER_PORT. PLACER_MASTER_ADDR and MASTER_PORT replace address and port of rank 0.
"""

_AGENTS = """\
# One torchrun a node, its node rank that of the plan, on the plan's nodes:
#   sbatch placer.sbatch train.py --its --arguments
# Inside an allocation of these nodes `bash placer.sbatch train.py ...` does the same.
# PLACER_MASTER_ADDR and MASTER_PORT replace the address and port of node rank 0.
"""

_MORE = """\
# PLACER_SRUN_ARGS are more options of srun: --container-image=..., without blanks.
"""

# torchrun tries for ten minutes to reach a host whose name has no address.
_RESOLVE = """\
! command -v getent >/dev/null || getent ahosts "$MASTER_ADDR" >/dev/null ||
  die "$SLURMD_NODENAME finds no address of $MASTER_ADDR, the host of rank 0: \
set PLACER_MASTER_ADDR to a name or address that every node knows"
"""
_SBATCH = "#SBATCH"
# What the plan says itself: how many, on which nodes, in which order.
_OF_THE_PLAN = {
    *("--nodes", "-N", "--ntasks", "-n", "--ntasks-per-node", "--exclusive"),
    *("--nodelist", "-w", "--exclude", "-x", "--distribution", "-m", "--segment"),
    *("--gpus-per-node", "--gpus", "-G", "--gpus-per-task", "--ntasks-per-gpu"),
    *("--switches", "--contiguous", "--nodefile", "-F"),
}


def render(plan: Plan) -> str:
    """A batch script with one task a rank, each an ``env://`` process."""
    nodes = nodes_of(plan)
    task = f"""\
gpu=${{gpus[SLURM_LOCALID]}}
{SEE_GPU}export RANK=$SLURM_PROCID LOCAL_RANK=$gpu CUDA_DEVICE_ORDER=PCI_BUS_ID
export LOCAL_WORLD_SIZE=${{#gpus[@]}} WORLD_SIZE={plan.world_size}
exec "$@"
"""
    return _script(_TASKS + _MORE, plan, nodes, plan.host_of_rank, task)


def render_torchrun(plan: Plan) -> str:
    """A batch script with one task a node, each a torchrun agent."""
    nodes = nodes_for(plan, "sbatch-torchrun")
    pick_gpus = PICK_GPUS if not all(node.gpus_in_order for node in nodes) else ""
    task = f"""\
export PET_NNODES={len(nodes)} PET_NODE_RANK=$SLURM_PROCID
export PET_NPROC_PER_NODE=${{#gpus[@]}} PET_RDZV_BACKEND=static
export PET_MASTER_ADDR=$MASTER_ADDR PET_MASTER_PORT=$MASTER_PORT
unset PET_RDZV_ENDPOINT PET_STANDALONE
{pick_gpus}export CUDA_DEVICE_ORDER=PCI_BUS_ID
{_RESOLVE}exec torchrun "$@"
"""
    hosts = [node.host for node in nodes]
    return _script(_AGENTS + _MORE, plan, nodes, hosts, task)


def _script(
    usage: str,
    plan: Plan,
    nodes: Sequence[NodeRanks],
    host_of_task: Sequence[str],
    task: str,
) -> str:
    """The batch script that runs the shell text ``task`` on the host of every task."""
    hosts = "\n".join(host_of_task)
    return f"""\
#!/usr/bin/env bash
{usage}{_request(plan, nodes, len(host_of_task))}
{HEAD}
{NEED_COMMAND}[ -n "${{SLURM_JOB_ID-}}" ] ||
  die "not in a Slurm job: submit this with sbatch"

# What every task runs.
task=$(cat <<'(end of task)'
{_task(nodes, task)}(end of task)
)

hosts=$(mktemp)
trap 'rm -f "$hosts"' EXIT
cat > "$hosts" <<'(end of hosts)'
{hosts}
(end of hosts)

first={quote(nodes[0].host)}
export MASTER_ADDR="${{PLACER_MASTER_ADDR:-$first}}"
export MASTER_PORT="${{MASTER_PORT:-29500}}"
export JAX_COORDINATOR_ADDRESS=$MASTER_ADDR:$MASTER_PORT
{part_exports(plan)}unset SLURM_NTASKS_PER_NODE
# Slurm 24.11 refuses --nodes beside a host file: the file says how many.
SLURM_HOSTFILE=$hosts srun ${{PLACER_SRUN_ARGS-}} --ntasks={len(host_of_task)} \\
  --distribution=arbitrary bash -c "$task" placer "$@"
"""


def _request(plan: Plan, nodes: Sequence[NodeRanks], tasks: int) -> str:
    """The ``#SBATCH`` lines; what one request cannot say stands there as a comment."""
    counts = sorted({max(node.gpus) + 1 for node in nodes})
    lines = [
        *kept_lines(plan),
        f"#SBATCH --nodes={len(nodes)}",
        f"#SBATCH --ntasks={tasks}",
        "#SBATCH --exclusive",
        f"#SBATCH --nodelist={compress(node.host for node in nodes)}",
    ]
    if len(counts) == 1:
        lines.append(f"#SBATCH --gpus-per-node={counts[0]}")
    else:
        lines += [
            f"# Nodes need {counts[0]} to {counts[-1]} GPUs, and --gpus-per-node is",
            "# one number for all: ask for GPUs as your cluster wants it.",
        ]
    return "\n".join(lines) + "\n"


def _task(nodes: Sequence[NodeRanks], task: str) -> str:
    """Shell text of one task: the GPUs of its node, then ``task``."""
    gpus_of_host = {node.host: node.gpus for node in nodes}
    usual = Counter(gpus_of_host.values()).most_common(1)[0][0]
    others = {host: gpus for host, gpus in gpus_of_host.items() if gpus != usual}
    arms = "".join(
        f"  ({quote(host)}) gpus={words(gpus)} ;;\n" for host, gpus in others.items()
    )
    choice = f'case "$SLURMD_NODENAME" in\n{arms}esac\n' if others else ""
    text = f"{HEAD}unset SLURM_HOSTFILE\ngpus={words(usual)}\n{choice}{task}"
    if len(text) > _MAX_TASK_BYTES:
        raise EmitError(
            f"{len(others)} nodes use their GPUs in an order of their own, more than "
            "fits into the command of a task; use slurm-hostfile or torchrun-wrapper"
        )
    return text


def kept_lines(plan: Plan) -> list[str]:
    """The script's own lines but those that the plan says; a comment if it is lost."""
    started = started_of(plan)
    if started is None:
        return []
    name = PurePath(started.source).name
    try:
        text = read_text(started.source)
    except InputError:
        shown = "".join(c if c.isprintable() else "?" for c in name)
        return [f"# {shown} is not here: its #SBATCH lines are not kept."]
    kept = [_kept(line.rstrip()) for line in text.split("\n")]
    return [line for line in kept if line]


def _kept(line: str) -> str:
    """A line with the options that the plan leaves to it; empty without any."""
    if not (line.startswith(_SBATCH) and line.isprintable()):
        return ""
    options = re.split(r"\s+(?=--?[A-Za-z])", line)[1:]
    left = [option for option in options if not _of_the_plan(option)]
    return " ".join([_SBATCH, *left]) if left else ""


def _of_the_plan(option: str) -> bool:
    name = re.split(r"[=\s]", option, maxsplit=1)[0]
    asks_for_gpus = re.match(r"--gres[=\s]\S*gpu", option) is not None
    short = not name.startswith("--")
    return asks_for_gpus or (name[:2] if short else name) in _OF_THE_PLAN


def render_hostfile(plan: Plan) -> str:
    """The host of every rank, one a line, in rank order."""
    nodes_for(plan, "slurm-hostfile")
    return "".join(f"{host}\n" for host in plan.host_of_rank)


def render_nodes(plan: Plan) -> str:
    """The plan's hosts, one a line, for one task a node that starts its ranks."""
    nodes = nodes_of(plan)
    require(nodes, "one task a node", ("consecutive", "gpus_in_order"))
    return "".join(f"{node.host}\n" for node in nodes)


_USAGE_OF_REQUEST = """\
# For the next submission: options that ask for nodes like the plan's, at the top of a
# batch script, or for salloc. The job gets other nodes; place it on those, inside it:
#   placer place -t TOPOLOGY -j JOB --hosts "$SLURM_JOB_NODELIST" -o plan.json
"""


def render_request(plan: Plan) -> str:
    """``#SBATCH`` lines, and comments on what they leave open."""
    nodes = nodes_of(plan)
    tiers = tiers_of(plan, nodes)
    block = nvlink_tier(plan, tiers) or (tiers[0] if tiers else None)
    lines = [*_size(nodes), *_segment(block), *_others(tiers, block)]
    if (shared := innermost_shared(tiers)) and shared is tiers[0]:
        lines.append("# With topology/tree instead: --switches=1")
    # Slurm gives no order to a list of nodes.
    hosts = sorted((node.host for node in nodes), key=natural_key)
    lines += guaranteed(plan)
    asked = block.slice if block else 1
    size = int(plan.request.get("slice", asked))
    if size != asked and 1 < size <= len(nodes):
        lines.append(f"##SBATCH --segment={size}")
    lines += [
        "# These very nodes, whatever the topology:",
        f"##SBATCH --nodelist={compress(hosts)}",
    ]
    if others := plan.request.get("others"):
        lines += [
            "# Or none of the free nodes that are left to other jobs:",
            f"##SBATCH --exclude={others}",
        ]
    return _USAGE_OF_REQUEST + "".join(f"{line}\n" for line in lines)


def _size(nodes: Sequence[NodeRanks]) -> Iterator[str]:
    """How many nodes, tasks and GPUs."""
    yield f"#SBATCH --nodes={len(nodes)}"
    tasks = {len(node.ranks) for node in nodes}
    if len(tasks) == 1:
        yield f"#SBATCH --ntasks-per-node={tasks.pop()}"
    else:
        yield f"#SBATCH --ntasks={sum(len(node.ranks) for node in nodes)}"
        yield (
            f"# Not said: nodes hold {min(tasks)} to {max(tasks)} ranks each; srun "
            "needs a host file for that."
        )
    gpus = {node.reach for node in nodes}
    if len(gpus) > 1:
        yield f"# Too many for some: nodes need {min(gpus)} to {max(gpus)} GPUs."
    yield f"#SBATCH --gpus-per-node={max(gpus)}"
    yield "#SBATCH --exclusive"


def _segment(block: TierDomains | None) -> Iterator[str]:
    """How many nodes must share a block."""
    if block is None:
        yield "# No --segment: the plan names no tier between node and cluster."
        return
    name = quoted(block.tier)
    if not block.even:
        yield f"# Not said: {block.described}."
    if block.slice == 1:
        yield f"# No --segment: no two nodes must share a domain of {name}."
        return
    if not block.even:
        yield f"# But each {block.slice} in the order of node ranks share one. So, for"
    yield f"# topology/block whose blocks are the plan's domains of {name}:"
    yield f"#SBATCH --segment={block.slice}"


def _others(tiers: Sequence[TierDomains], block: TierDomains | None) -> Iterator[str]:
    """The tiers that ``--segment`` does not speak of."""
    shared = innermost_shared(tiers)
    segments = block is not None and block.slice > 1 and len(block.names) > 1
    for tier in tiers:
        if len(tier.names) == 1 and tier is not block:
            yield f"# Not said: all nodes share one domain of {quoted(tier.tier)}."
            if tier is shared and segments:
                yield "# Slurm 25.11 can, if its domains are blocks of the next level:"
                yield "##SBATCH --consolidate-segments"
        elif tier is not block and max(tier.counts) > 1:
            yield f"# Not said: {tier.described}."
