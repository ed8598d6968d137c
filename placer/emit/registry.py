"""Every launcher format by name.

A format is a row of `FORMATS` and a function of a plan, whose module loads when the
format is first written.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

from placer.base.errors import EmitError, InputError, Problem
from placer.base.naming import named

if TYPE_CHECKING:
    from placer.placement.plan import Plan


@dataclass(frozen=True)
class Format:
    """One launcher format."""

    name: str
    description: str
    suffix: str  # usual end of the file's name
    # Module and function of a plan. That gives the file's text, or, called ``files``,
    # name and text of each of several files.
    writer: str
    free_ranks: bool = True  # whether a node may hold ranks that are not consecutive
    # Whether a node's k-th rank may run on another GPU than its k-th.
    free_gpus: bool = True
    # Whether nodes may need unequal numbers of GPUs, counted from GPU 0.
    unequal_nodes: bool = True
    # Whether a node's first rank may be no multiple of its number of ranks.
    unaligned_nodes: bool = True
    # Whether it launches the whole map by itself; others help a launcher.
    alone: bool = True

    @property
    def folder(self) -> bool:
        """Whether it is several files."""
        return self.writer.endswith(".files")

    def written(self, plan: Plan) -> Any:
        """What its writer gives for a plan."""
        module, function = self.writer.split(".")
        return getattr(import_module(f"placer.emit.{module}"), function)(plan)


FORMATS: dict[str, Format] = {
    row.name: row
    for row in (
        Format(
            name="torchrun",
            description="script a node: static rendezvous in the plan's node order",
            suffix=".sh",
            writer="torchrun.render",
            free_ranks=False,
        ),
        Format(
            name="torchrun-wrapper",
            description="script a node: torchrun, then the RANK of its workers",
            suffix=".sh",
            writer="torchrun_wrapper.render",
        ),
        Format(
            name="torchrun-map",
            description="node map for torchrun --rdzv-backend=placer",
            suffix=".json",
            writer="torchrun.render_map",
            free_ranks=False,
            free_gpus=False,
        ),
        Format(
            name="env",
            description="script a process: RANK, LOCAL_RANK, ... for env://",
            suffix=".sh",
            writer="env.render",
        ),
        Format(
            name="sbatch",
            description="batch script: the plan's nodes, one task a rank",
            suffix=".sbatch",
            writer="sbatch.render",
        ),
        Format(
            name="sbatch-torchrun",
            description="batch script: the plan's nodes, one torchrun a node",
            suffix=".sbatch",
            writer="sbatch.render_torchrun",
            free_ranks=False,
        ),
        Format(
            name="slurm-hostfile",
            description="one host a task in rank order, for srun -m arbitrary",
            suffix=".txt",
            writer="slurm_hostfile.render",
            free_gpus=False,
        ),
        Format(
            name="openmpi-seq",
            description="one host a rank, for mpirun --map-by seq",
            suffix=".txt",
            writer="openmpi.render_seq",
            free_gpus=False,
        ),
        Format(
            name="openmpi-rankfile",
            description="rank K=HOST slot=S lines for mpirun",
            suffix=".txt",
            writer="openmpi.render_rankfile",
            free_gpus=False,
        ),
        Format(
            name="hydra",
            description="machine file and GPU script for mpiexec.hydra",
            suffix="",
            writer="gpu_wrapper.files",
        ),
        Format(
            name="deepspeed",
            description="HOST slots=N lines for deepspeed --hostfile",
            suffix=".txt",
            writer="deepspeed.render",
            free_ranks=False,
            free_gpus=False,
            unaligned_nodes=False,
        ),
        Format(
            name="deepspeed-node",
            description="script a node: DeepSpeed's launcher, GPUs in any order",
            suffix=".sh",
            writer="deepspeed.render_node",
            free_ranks=False,
        ),
        Format(
            name="jax",
            description="process ids and device order, with a loader in Python",
            suffix="",
            writer="jax.files",
        ),
        Format(
            name="kubernetes-job",
            description="indexed Job: pods find their node rank by node name",
            suffix=".yaml",
            writer="kubernetes.render_job",
            unequal_nodes=False,
        ),
        Format(
            name="kubernetes-jobset",
            description="JobSet: pods find their node rank by node name",
            suffix=".yaml",
            writer="kubernetes.render_jobset",
            unequal_nodes=False,
        ),
        Format(
            name="kubernetes-pinned",
            description="JobSet: every node rank on a node of its own",
            suffix=".yaml",
            writer="kubernetes.render_pinned",
        ),
        Format(
            name="kubeflow-trainer",
            description="TrainJob and its runtime: pods find their node rank by name",
            suffix=".yaml",
            writer="kubeflow.render",
            unequal_nodes=False,
        ),
        Format(
            name="ray",
            description="placement group of labelled nodes, with a loader in Python",
            suffix="",
            writer="ray.files",
        ),
        Format(
            name="gpu-wrapper",
            description="script a process: the GPU of the rank it already has",
            suffix=".sh",
            writer="gpu_wrapper.render",
            alone=False,
        ),
        Format(
            name="megatron",
            description="bash array of Megatron-LM flags for the plan's rank order",
            suffix=".sh",
            writer="megatron.render",
            alone=False,
        ),
        Format(
            name="torchtitan",
            description="bash array of torchtitan's flags for the plan's rank order",
            suffix=".sh",
            writer="torchtitan.render",
            alone=False,
        ),
        Format(
            name="dlrover",
            description="groups of nodes for DLRover's --enable-topology-rerank",
            suffix=".json",
            writer="dlrover.render",
            free_ranks=False,
            free_gpus=False,
            alone=False,
        ),
        Format(
            name="nccl",
            description="report: communicators and the rings NCCL will build",
            suffix=".txt",
            writer="nccl.render",
            alone=False,
        ),
        Format(
            name="slurm-request",
            description="#SBATCH lines for a next job with such nodes (--segment)",
            suffix=".sbatch",
            writer="slurm_request.render",
            alone=False,
        ),
        Format(
            name="kueue-request",
            description="annotations for next pods on such nodes, for Kueue",
            suffix=".yaml",
            writer="pod_request.render_kueue",
            unequal_nodes=False,
            alone=False,
        ),
        Format(
            name="kai-request",
            description="annotations for next pods on such nodes, for KAI scheduler",
            suffix=".yaml",
            writer="pod_request.render_kai",
            unequal_nodes=False,
            alone=False,
        ),
        Format(
            name="volcano-request",
            description="HyperNodes, and a next job on such nodes, for Volcano",
            suffix=".yaml",
            writer="volcano.render",
            unequal_nodes=False,
            alone=False,
        ),
        Format(
            name="grove-request",
            description="a PodCliqueSet that asks for such nodes, for Grove",
            suffix=".yaml",
            writer="grove.render",
            unequal_nodes=False,
            alone=False,
        ),
        Format(
            name="role-map",
            description="hosts and ranks of every instance of each role, as JSON",
            suffix=".json",
            writer="rank_map.render_roles",
            alone=False,
        ),
        Format(
            name="patch",
            description="unified diff of the script that the job was read from",
            suffix=".patch",
            writer="patch.render",
            alone=False,
        ),
        Format(
            name="json",
            description="the rank map as placer/rank-map JSON",
            suffix=".json",
            writer="rank_map.render_json",
        ),
        Format(
            name="csv",
            description="the rank map as a table, one rank a line",
            suffix=".csv",
            writer="rank_map.render_csv",
        ),
    )
}


def render(plan: Plan, name: str) -> str:
    """Text of the launcher file called ``name`` for ``plan``.

    Raises `EmitError` if the launcher cannot express the plan, or a host name is not
    safe to write.
    """
    row = format_called(name)
    if row.folder:
        message = f'"{name}" is several files: name a folder to write them to'
        hint = f"{named('path', 'FOLDER')}; it is made if need be"
        raise InputError([Problem(message, hint=hint)])
    text: str = row.written(plan)
    return text


def requests(plan: Plan, job: str) -> dict[str, str]:
    """Requests for nodes like the plan's that schedulers can be given, by file name.

    They call the plan's job ``job``. Schedulers that cannot express the plan are left
    out.
    """
    found = {}
    plan = replace(plan, job={**plan.job, "name": job})
    for name, row in FORMATS.items():
        if name.endswith("-request"):
            with suppress(EmitError):
                found[name.removesuffix("-request") + row.suffix] = row.written(plan)
    return found


def render_files(plan: Plan, name: str) -> dict[str, str]:
    """Name and text of every file of the folder format called ``name`` for ``plan``.

    Raises `EmitError` if the launcher cannot express the plan, or a host name is not
    safe to write.
    """
    row = format_called(name)
    if not row.folder:
        raise InputError([Problem(f'"{name}" is one file')])
    files: dict[str, str] = row.written(plan)
    return files


def format_called(name: str) -> Format:
    """The format called ``name``."""
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
