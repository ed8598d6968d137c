"""Every launcher format by name; the only place that knows them all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING

from placer.errors import InputError, Problem

if TYPE_CHECKING:
    from placer.placement.plan import Plan


@dataclass(frozen=True)
class Format:
    """One launcher format.

    Attributes
    ----------
    suffix : str
        Usual end of the file's name.
    module : str
        Module of this package whose ``render(plan)`` gives the text.
    free_ranks : bool
        Whether a node may hold ranks that are not consecutive.
    free_gpus : bool
        Whether a node's k-th rank may run on another GPU than its k-th.
    """

    name: str
    description: str
    suffix: str
    module: str
    free_ranks: bool
    free_gpus: bool


FORMATS: dict[str, Format] = {
    row.name: row
    for row in (
        Format(
            name="torchrun",
            description="script a node: static rendezvous in the plan's node order",
            suffix=".sh",
            module="torchrun",
            free_ranks=False,
            free_gpus=True,
        ),
        Format(
            name="env",
            description="script a process: RANK, LOCAL_RANK, ... for env://",
            suffix=".sh",
            module="env",
            free_ranks=True,
            free_gpus=True,
        ),
        Format(
            name="slurm-hostfile",
            description="one host a task in rank order, for srun -m arbitrary",
            suffix=".txt",
            module="slurm_hostfile",
            free_ranks=True,
            free_gpus=False,
        ),
        Format(
            name="openmpi-rankfile",
            description="rank K=HOST slot=S lines for mpirun",
            suffix=".txt",
            module="openmpi_rankfile",
            free_ranks=True,
            free_gpus=False,
        ),
        Format(
            name="json",
            description="the rank map as placer/rank-map JSON",
            suffix=".json",
            module="rank_map_json",
            free_ranks=True,
            free_gpus=True,
        ),
        Format(
            name="csv",
            description="the rank map as a table, one rank a line",
            suffix=".csv",
            module="rank_map_csv",
            free_ranks=True,
            free_gpus=True,
        ),
    )
}


def render(plan: Plan, name: str) -> str:
    """Text of the launcher file called ``name`` for ``plan``.

    Raises
    ------
    EmitError
        If the launcher cannot express the plan, or a host name is not safe to write.
    InputError
        If there is no such format.
    """
    if name not in FORMATS:
        near = get_close_matches(name, FORMATS, n=1)
        meant = f' (did you mean "{near[0]}"?)' if near else ""
        raise InputError(
            [
                Problem(
                    f'unknown format "{name}"{meant}',
                    hint=f"formats: {', '.join(FORMATS)}",
                )
            ]
        )
    text: str = import_module(f"placer.emit.{FORMATS[name].module}").render(plan)
    return text


def formats_for(*, free_ranks: bool, free_gpus: bool) -> Iterable[str]:
    """Names of the formats that can express a plan with these needs."""
    return (
        row.name
        for row in FORMATS.values()
        if row.free_ranks >= free_ranks and row.free_gpus >= free_gpus
    )
