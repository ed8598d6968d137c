"""Every launcher format by name.

A format is a row of `FORMATS`, a line of `placer.emit.writers` and its function of a
plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from placer.emit import writers
from placer.errors import EmitError, InputError, Problem

if TYPE_CHECKING:
    from placer.placement.plan import Plan


@dataclass(frozen=True)
class Format:
    """One launcher format.

    Attributes
    ----------
    suffix : str
        Usual end of the file's name.
    text : callable or None
        Gives the file's text for a plan; None where it is several files.
    files : callable or None
        Gives name and text of each file for a plan; None where it is one.
    free_ranks : bool
        Whether a node may hold ranks that are not consecutive.
    free_gpus : bool
        Whether a node's k-th rank may run on another GPU than its k-th.
    unequal_nodes : bool
        Whether nodes may need unequal numbers of GPUs, counted from GPU 0.
    unaligned_nodes : bool
        Whether a node's first rank may be no multiple of its number of ranks.
    alone : bool
        Whether it launches the whole map by itself; others help a launcher.
    """

    name: str
    description: str
    suffix: str
    text: Callable[[Plan], str] | None = None
    files: Callable[[Plan], dict[str, str]] | None = None
    free_ranks: bool = True
    free_gpus: bool = True
    unequal_nodes: bool = True
    unaligned_nodes: bool = True
    alone: bool = True

    @property
    def folder(self) -> bool:
        """Whether it is several files."""
        return self.files is not None


FORMATS: dict[str, Format] = {
    row.name: row
    for row in (
        Format(
            name="torchrun",
            description="script a node: static rendezvous in the plan's node order",
            suffix=".sh",
            text=lambda plan: writers.torchrun.render(plan),
            free_ranks=False,
        ),
        Format(
            name="torchrun-wrapper",
            description="script a node: torchrun, then the RANK of its workers",
            suffix=".sh",
            text=lambda plan: writers.torchrun_wrapper.render(plan),
        ),
        Format(
            name="torchrun-map",
            description="node map for torchrun --rdzv-backend=placer",
            suffix=".json",
            text=lambda plan: writers.torchrun_map.render(plan),
            free_ranks=False,
            free_gpus=False,
        ),
        Format(
            name="env",
            description="script a process: RANK, LOCAL_RANK, ... for env://",
            suffix=".sh",
            text=lambda plan: writers.env.render(plan),
        ),
        Format(
            name="sbatch",
            description="batch script: the plan's nodes, one task a rank",
            suffix=".sbatch",
            text=lambda plan: writers.sbatch.render(plan),
        ),
        Format(
            name="sbatch-torchrun",
            description="batch script: the plan's nodes, one torchrun a node",
            suffix=".sbatch",
            text=lambda plan: writers.sbatch.render_torchrun(plan),
            free_ranks=False,
        ),
        Format(
            name="slurm-hostfile",
            description="one host a task in rank order, for srun -m arbitrary",
            suffix=".txt",
            text=lambda plan: writers.slurm_hostfile.render(plan),
            free_gpus=False,
        ),
        Format(
            name="openmpi-seq",
            description="one host a rank, for mpirun --map-by seq",
            suffix=".txt",
            text=lambda plan: writers.openmpi_seq.render(plan),
            free_gpus=False,
        ),
        Format(
            name="openmpi-rankfile",
            description="rank K=HOST slot=S lines for mpirun",
            suffix=".txt",
            text=lambda plan: writers.openmpi_rankfile.render(plan),
            free_gpus=False,
        ),
        Format(
            name="hydra",
            description="machine file and GPU script for mpiexec.hydra",
            suffix="",
            files=lambda plan: writers.hydra.files(plan),
        ),
        Format(
            name="deepspeed",
            description="HOST slots=N lines for deepspeed --hostfile",
            suffix=".txt",
            text=lambda plan: writers.deepspeed.render(plan),
            free_ranks=False,
            free_gpus=False,
            unaligned_nodes=False,
        ),
        Format(
            name="deepspeed-node",
            description="script a node: DeepSpeed's launcher, GPUs in any order",
            suffix=".sh",
            text=lambda plan: writers.deepspeed_node.render(plan),
            free_ranks=False,
        ),
        Format(
            name="jax",
            description="process ids and device order, with a loader in Python",
            suffix="",
            files=lambda plan: writers.jax.files(plan),
        ),
        Format(
            name="kubernetes-job",
            description="indexed Job: pods find their node rank by node name",
            suffix=".yaml",
            text=lambda plan: writers.kubernetes.render_job(plan),
            unequal_nodes=False,
        ),
        Format(
            name="kubernetes-jobset",
            description="JobSet: pods find their node rank by node name",
            suffix=".yaml",
            text=lambda plan: writers.kubernetes.render_jobset(plan),
            unequal_nodes=False,
        ),
        Format(
            name="kubernetes-pinned",
            description="JobSet: every node rank on a node of its own",
            suffix=".yaml",
            text=lambda plan: writers.kubernetes.render_pinned(plan),
        ),
        Format(
            name="kubeflow-trainer",
            description="TrainJob and its runtime: pods find their node rank by name",
            suffix=".yaml",
            text=lambda plan: writers.kubeflow.render(plan),
            unequal_nodes=False,
        ),
        Format(
            name="ray",
            description="placement group of labelled nodes, with a loader in Python",
            suffix="",
            files=lambda plan: writers.ray.files(plan),
        ),
        Format(
            name="gpu-wrapper",
            description="script a process: the GPU of the rank it already has",
            suffix=".sh",
            text=lambda plan: writers.gpu_wrapper.render(plan),
            alone=False,
        ),
        Format(
            name="megatron",
            description="bash array of Megatron-LM flags for the plan's rank order",
            suffix=".sh",
            text=lambda plan: writers.megatron.render(plan),
            alone=False,
        ),
        Format(
            name="torchtitan",
            description="bash array of torchtitan's flags for the plan's rank order",
            suffix=".sh",
            text=lambda plan: writers.torchtitan.render(plan),
            alone=False,
        ),
        Format(
            name="nccl",
            description="report: communicators and the rings NCCL will build",
            suffix=".txt",
            text=lambda plan: writers.nccl.render(plan),
            alone=False,
        ),
        Format(
            name="slurm-request",
            description="#SBATCH lines for a next job with such nodes (--segment)",
            suffix=".sbatch",
            text=lambda plan: writers.slurm_request.render(plan),
            alone=False,
        ),
        Format(
            name="kueue-request",
            description="annotations for next pods on such nodes, for Kueue",
            suffix=".yaml",
            text=lambda plan: writers.pod_request.render_kueue(plan),
            unequal_nodes=False,
            alone=False,
        ),
        Format(
            name="kai-request",
            description="annotations for next pods on such nodes, for KAI scheduler",
            suffix=".yaml",
            text=lambda plan: writers.pod_request.render_kai(plan),
            unequal_nodes=False,
            alone=False,
        ),
        Format(
            name="volcano-request",
            description="HyperNodes, and a next job on such nodes, for Volcano",
            suffix=".yaml",
            text=lambda plan: writers.volcano.render(plan),
            unequal_nodes=False,
            alone=False,
        ),
        Format(
            name="grove-request",
            description="a PodCliqueSet that asks for such nodes, for Grove",
            suffix=".yaml",
            text=lambda plan: writers.grove.render(plan),
            unequal_nodes=False,
            alone=False,
        ),
        Format(
            name="role-map",
            description="hosts and ranks of every instance of each role, as JSON",
            suffix=".json",
            text=lambda plan: writers.role_map.render(plan),
            alone=False,
        ),
        Format(
            name="json",
            description="the rank map as placer/rank-map JSON",
            suffix=".json",
            text=lambda plan: writers.rank_map_json.render(plan),
        ),
        Format(
            name="csv",
            description="the rank map as a table, one rank a line",
            suffix=".csv",
            text=lambda plan: writers.rank_map_csv.render(plan),
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
    write = format_called(name).text
    if write is None:
        message = f'"{name}" is several files: name a folder to write them to'
        raise InputError([Problem(message, hint="-o FOLDER; it is made if need be")])
    return write(plan)


def requests(plan: Plan) -> dict[str, str]:
    """Requests for nodes like the plan's that schedulers can be given, by file name.

    Schedulers that cannot express the plan are left out.
    """
    found = {}
    for name, row in FORMATS.items():
        if name.endswith("-request") and row.text is not None:
            with suppress(EmitError):
                found[name.removesuffix("-request") + row.suffix] = row.text(plan)
    return found


def render_files(plan: Plan, name: str) -> dict[str, str]:
    """Name and text of every file of the folder format called ``name`` for ``plan``.

    Raises
    ------
    EmitError
        If the launcher cannot express the plan, or a host name is not safe to write.
    InputError
        If there is no such format, or it is one file.
    """
    write = format_called(name).files
    if write is None:
        raise InputError([Problem(f'"{name}" is one file')])
    return write(plan)


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
