"""Options with which the next Slurm job gets nodes that suit the plan.

``--segment`` counts nodes of one block of ``topology/block`` (Slurm, ``sbatch`` manual
page): the plan's NVLink domains of several nodes, or else its innermost domains. What
no option says stands there as a comment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.base.hostlist import compress
from placer.emit.domains import innermost_shared, nvlink_tier, quoted, tiers_of
from placer.emit.least_strict import least_segment, not_the_others
from placer.emit.nodes import nodes_of
from placer.placement.launcher_orders import natural_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from placer.emit.domains import TierDomains
    from placer.emit.nodes import NodeRanks
    from placer.placement.plan import Plan

_USAGE = """\
# For the next submission: options that ask for nodes like the plan's, at the top of a
# batch script, or for salloc. The job gets other nodes; place it on those, inside it:
#   placer place -t TOPOLOGY -j JOB --hosts "$SLURM_JOB_NODELIST" -o plan.json
"""


def render(plan: Plan) -> str:
    """``#SBATCH`` lines, and comments on what they leave open."""
    nodes = nodes_of(plan)
    tiers = tiers_of(plan, nodes)
    block = nvlink_tier(plan, tiers) or (tiers[0] if tiers else None)
    lines = [*_size(nodes), *_segment(block), *_others(tiers, block)]
    if (shared := innermost_shared(tiers)) and shared is tiers[0]:
        lines.append("# With topology/tree instead: --switches=1")
    # Slurm gives no order to a list of nodes.
    hosts = sorted((node.host for node in nodes), key=natural_key)
    lines += [
        *least_segment(plan, len(nodes), block.slice if block else 1),
        "# These very nodes, whatever the topology:",
        f"##SBATCH --nodelist={compress(hosts)}",
        *not_the_others(plan),
    ]
    return _USAGE + "".join(f"{line}\n" for line in lines)


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
