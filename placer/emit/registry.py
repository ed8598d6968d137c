"""Every launcher format by name; the only place that knows them all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

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
        Module of this package that writes it.
    call : str
        Its function of a plan, which gives the text, or for a folder name and text of
        each file.
    free_ranks : bool
        Whether a node may hold ranks that are not consecutive.
    free_gpus : bool
        Whether a node's k-th rank may run on another GPU than its k-th.
    unequal_nodes : bool
        Whether nodes may need unequal numbers of GPUs, counted from GPU 0.
    unaligned_nodes : bool
        Whether a node's first rank may be no multiple of its number of ranks.
    folder : bool
        Whether it is several files.
    alone : bool
        Whether it launches the whole map by itself; others help a launcher.
    """

    name: str
    description: str
    suffix: str
    module: str
    call: str = "render"
    free_ranks: bool = True
    free_gpus: bool = True
    unequal_nodes: bool = True
    unaligned_nodes: bool = True
    folder: bool = False
    alone: bool = True


FORMATS: dict[str, Format] = {
    row.name: row
    for row in (
        Format(
            name="torchrun",
            description="script a node: static rendezvous in the plan's node order",
            suffix=".sh",
            module="torchrun",
            free_ranks=False,
        ),
        Format(
            name="torchrun-wrapper",
            description="script a node: torchrun, then the RANK of its workers",
            suffix=".sh",
            module="torchrun_wrapper",
        ),
        Format(
            name="torchrun-map",
            description="node map for torchrun --rdzv-backend=placer",
            suffix=".json",
            module="torchrun_map",
            free_ranks=False,
            free_gpus=False,
        ),
        Format(
            name="env",
            description="script a process: RANK, LOCAL_RANK, ... for env://",
            suffix=".sh",
            module="env",
        ),
        Format(
            name="sbatch",
            description="batch script: the plan's nodes, one task a rank",
            suffix=".sbatch",
            module="sbatch",
        ),
        Format(
            name="sbatch-torchrun",
            description="batch script: the plan's nodes, one torchrun a node",
            suffix=".sbatch",
            module="sbatch",
            call="render_torchrun",
            free_ranks=False,
        ),
        Format(
            name="slurm-hostfile",
            description="one host a task in rank order, for srun -m arbitrary",
            suffix=".txt",
            module="slurm_hostfile",
            free_gpus=False,
        ),
        Format(
            name="openmpi-seq",
            description="one host a rank, for mpirun --map-by seq",
            suffix=".txt",
            module="openmpi_seq",
            free_gpus=False,
        ),
        Format(
            name="openmpi-rankfile",
            description="rank K=HOST slot=S lines for mpirun",
            suffix=".txt",
            module="openmpi_rankfile",
            free_gpus=False,
        ),
        Format(
            name="hydra",
            description="machine file and GPU script for mpiexec.hydra",
            suffix="",
            module="hydra",
            call="files",
            folder=True,
        ),
        Format(
            name="deepspeed",
            description="HOST slots=N lines for deepspeed --hostfile",
            suffix=".txt",
            module="deepspeed",
            free_ranks=False,
            free_gpus=False,
            unaligned_nodes=False,
        ),
        Format(
            name="deepspeed-node",
            description="script a node: DeepSpeed's launcher, GPUs in any order",
            suffix=".sh",
            module="deepspeed_node",
            free_ranks=False,
        ),
        Format(
            name="jax",
            description="process ids and device order, with a loader in Python",
            suffix="",
            module="jax",
            call="files",
            folder=True,
        ),
        Format(
            name="kubernetes-job",
            description="indexed Job: pods find their node rank by node name",
            suffix=".yaml",
            module="kubernetes",
            call="render_job",
            unequal_nodes=False,
        ),
        Format(
            name="kubernetes-jobset",
            description="JobSet: pods find their node rank by node name",
            suffix=".yaml",
            module="kubernetes",
            call="render_jobset",
            unequal_nodes=False,
        ),
        Format(
            name="kubernetes-pinned",
            description="JobSet: every node rank on a node of its own",
            suffix=".yaml",
            module="kubernetes",
            call="render_pinned",
        ),
        Format(
            name="gpu-wrapper",
            description="script a process: the GPU of the rank it already has",
            suffix=".sh",
            module="gpu_wrapper",
            alone=False,
        ),
        Format(
            name="megatron",
            description="bash array of Megatron-LM flags for the plan's rank order",
            suffix=".sh",
            module="megatron",
            alone=False,
        ),
        Format(
            name="nccl",
            description="report: communicators and the rings NCCL will build",
            suffix=".txt",
            module="nccl",
            alone=False,
        ),
        Format(
            name="slurm-request",
            description="#SBATCH lines for a next job with such nodes (--segment)",
            suffix=".sbatch",
            module="slurm_request",
            alone=False,
        ),
        Format(
            name="kueue-request",
            description="annotations for next pods on such nodes, for Kueue",
            suffix=".yaml",
            module="pod_request",
            call="render_kueue",
            unequal_nodes=False,
            alone=False,
        ),
        Format(
            name="kai-request",
            description="annotations for next pods on such nodes, for KAI scheduler",
            suffix=".yaml",
            module="pod_request",
            call="render_kai",
            unequal_nodes=False,
            alone=False,
        ),
        Format(
            name="json",
            description="the rank map as placer/rank-map JSON",
            suffix=".json",
            module="rank_map_json",
        ),
        Format(
            name="csv",
            description="the rank map as a table, one rank a line",
            suffix=".csv",
            module="rank_map_csv",
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
        If there is no such format, or it is several files.
    """
    if format_called(name).folder:
        message = f'"{name}" is several files: name a folder to write them to'
        raise InputError([Problem(message, hint="-o FOLDER; it is made if need be")])
    text: str = _call(name)(plan)
    return text


def render_files(plan: Plan, name: str) -> dict[str, str]:
    """Name and text of every file of the folder format called ``name`` for ``plan``.

    Raises
    ------
    EmitError
        If the launcher cannot express the plan, or a host name is not safe to write.
    """
    files: dict[str, str] = _call(name)(plan)
    return files


def format_called(name: str) -> Format:
    """The format called ``name``.

    Raises
    ------
    InputError
        If there is no such format.
    """
    if name in FORMATS:
        return FORMATS[name]
    near = get_close_matches(name, FORMATS, n=1)
    meant = f' (did you mean "{near[0]}"?)' if near else ""
    raise InputError(
        [
            Problem(
                f'unknown format "{name}"{meant}', hint=f"formats: {', '.join(FORMATS)}"
            )
        ]
    )


def formats_for(
    *, free_ranks: bool, free_gpus: bool, unequal_nodes: bool, unaligned_nodes: bool
) -> Iterable[str]:
    """Names of the formats that can launch a plan with these needs."""
    return (
        row.name
        for row in FORMATS.values()
        if row.alone
        and row.free_ranks >= free_ranks
        and row.free_gpus >= free_gpus
        and row.unequal_nodes >= unequal_nodes
        and row.unaligned_nodes >= unaligned_nodes
    )


def _call(name: str) -> Callable[[Plan], Any]:
    row = FORMATS[name]
    call: Callable[[Plan], Any] = getattr(
        import_module(f"placer.emit.{row.module}"), row.call
    )
    return call
