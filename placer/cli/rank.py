"""``placer rank``: this process's rank by the plan, for scripts that launch it."""

from __future__ import annotations

import os
import shlex

from placer.cli.grouped import command
from placer.cli.options import option


@command('eval "$(placer rank)"')
@option(
    "--plan",
    "PLAN",
    "The plan. Default: the one that placer launch made, PLACER_PLAN.",
    envvar="PLACER_PLAN",
)
def rank(plan: str | None) -> None:
    """Print this process's ranks as shell assignments.

    RANK, NODE_RANK, LOCAL_RANK, WORLD_SIZE and MASTER_ADDR, with an export, as the plan
    has them for this host. Where nothing says which process of the host this is,
    RANK and LOCAL_RANK are those of the first there.
    """
    from placer.base.errors import InputError, Problem
    from placer.documents.files.writing import write_text
    from placer.launch.process import local_index, this_process
    from placer.launch.ranks import node_rank_of_this_process, node_ranks
    from placer.placement.plan_file import read_plan

    if not plan:
        hint = "give --plan, or run this in a step of placer launch"
        raise InputError(
            [Problem("nothing says which plan: PLACER_PLAN is not set", hint=hint)]
        )
    read = read_plan(plan)
    node_rank = node_rank_of_this_process(read)
    node = node_ranks(read)[node_rank]
    ranks = [r for r, own in enumerate(read.node_of_rank.tolist()) if own == node]
    local = local_index(os.environ, this_process()) or 0
    if local >= len(ranks):
        message = f"process {local} of a host with {len(ranks)} ranks"
        raise InputError([Problem(message, hint="start one for each rank of the plan")])
    values = {
        "RANK": ranks[local],
        "NODE_RANK": node_rank,
        "LOCAL_RANK": local,
        "WORLD_SIZE": read.world_size,
        "MASTER_ADDR": os.environ.get("PLACER_MASTER_ADDR") or read.host_of_rank[0],
    }
    lines = [f"export {name}={shlex.quote(str(it))}\n" for name, it in values.items()]
    write_text("-", "".join(lines))
