"""Hydra (MPICH, Intel MPI): a machine file, and the GPU of every rank.

A line ``HOST:N`` takes the next N ranks. ``MPI_LOCALRANKID`` is 0 for every process of
a host whose lines are apart, so that programs cannot pick a GPU by it; the script
beside the machine file picks it by the global rank.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from placer.emit import gpu_wrapper

if TYPE_CHECKING:
    from placer.placement.plan import Plan


def files(plan: Plan) -> dict[str, str]:
    """The machine file and the script that gives every rank its GPU.

    Raises
    ------
    EmitError
        If a name is no host name, or two ranks share a GPU.
    """
    script = gpu_wrapper.render(plan)
    runs = groupby(plan.host_of_rank)
    lines = [f"{host}:{len(list(ranks))}\n" for host, ranks in runs]
    return {"machines.txt": "".join(lines), "gpu-wrapper.sh": script}
