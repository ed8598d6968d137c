"""Every launcher format by name.

A format is a row of `FORMATS` and a function of a plan, whose module loads when the
format is first written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

from placer.base.errors import EmitError, InputError
from placer.base.naming import named

if TYPE_CHECKING:
    from placer.placement.plan import Plan


@dataclass(frozen=True)
class LauncherFormat:
    """One launcher format."""

    name: str
    description: str
    suffix: str  # usual end of the file's name
    # Module and function of a plan. That gives the file's text, or, if it is called
    # ``..._files``, name and text of each of several files.
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
        return self.writer.endswith("_files")

    def written(self, plan: Plan) -> Any:
        """What its writer gives for a plan."""
        module, function = self.writer.split(".")
        return getattr(import_module(f"placer.emit.{module}"), function)(plan)


# What a row may say of its format, and the attribute that is false then.
_LIMITS = {
    "consecutive-ranks": "free_ranks",
    "gpus-in-order": "free_gpus",
    "equal-nodes": "unequal_nodes",
    "aligned-nodes": "unaligned_nodes",
    "helper": "alone",
}
# A name, its writer, the end of its file's name (- for a folder) and its limits; below
# them what it is.
_TABLE = """\
torchrun torchrun.render .sh consecutive-ranks
    script a node: static rendezvous in the plan's node order
torchrun-wrapper torchrun.render_wrapper .sh
    script a node: torchrun, then the RANK of its workers
torchrun-map torchrun.render_map .json consecutive-ranks gpus-in-order
    node map for torchrun --rdzv-backend=placer
env shell.render_env .sh
    script a process: RANK, LOCAL_RANK, ... for env://
sbatch slurm.render .sbatch
    batch script: the plan's nodes, one task a rank
sbatch-torchrun slurm.render_torchrun .sbatch consecutive-ranks
    batch script: the plan's nodes, one torchrun a node
slurm-hostfile slurm.render_hostfile .txt gpus-in-order
    one host a task in rank order, for srun -m arbitrary
openmpi-seq openmpi.render_seq .txt gpus-in-order
    one host a rank, for mpirun --map-by seq
openmpi-rankfile openmpi.render_rankfile .txt gpus-in-order
    rank K=HOST slot=S lines for mpirun
hydra shell.hydra_files -
    machine file and GPU script for mpiexec.hydra
deepspeed deepspeed.render .txt consecutive-ranks gpus-in-order aligned-nodes
    HOST slots=N lines for deepspeed --hostfile
deepspeed-node deepspeed.render_node .sh consecutive-ranks
    script a node: DeepSpeed's launcher, GPUs in any order
jax rank_map.jax_files -
    process ids and device order, with a loader in Python
kubernetes-job kubernetes.render_job .yaml equal-nodes
    indexed Job: pods find their node rank by node name
kubernetes-jobset kubernetes.render_jobset .yaml equal-nodes
    JobSet: pods find their node rank by node name
kubernetes-pinned kubernetes.render_pinned .yaml
    JobSet: every node rank on a node of its own
kubeflow-trainer kubernetes.render_kubeflow .yaml equal-nodes
    TrainJob and its runtime: pods find their node rank by name
ray rank_map.ray_files -
    placement group of labelled nodes, with a loader in Python
gpu-wrapper shell.render_gpu .sh helper
    script a process: the GPU of the rank it already has
megatron megatron.render .sh helper
    bash array of Megatron-LM flags for the plan's rank order
torchtitan torchtitan.render .sh helper
    bash array of torchtitan's flags for the plan's rank order
dlrover torchrun.render_dlrover .json consecutive-ranks gpus-in-order helper
    groups of nodes for DLRover's --enable-topology-rerank
nccl nccl.render .txt helper
    report: communicators and the rings NCCL will build
slurm-request slurm.render_request .sbatch helper
    #SBATCH lines for a next job with such nodes (--segment)
kueue-request pod_request.render_kueue .yaml equal-nodes helper
    annotations for next pods on such nodes, for Kueue
kai-request pod_request.render_kai .yaml equal-nodes helper
    annotations for next pods on such nodes, for KAI scheduler
volcano-request pod_request.render_volcano .yaml equal-nodes helper
    HyperNodes, and a next job on such nodes, for Volcano
grove-request pod_request.render_grove .yaml equal-nodes helper
    a PodCliqueSet that asks for such nodes, for Grove
role-map rank_map.render_roles .json helper
    hosts and ranks of every instance of each role, as JSON
patch patch.render .patch helper
    unified diff of the script that the job was read from
json rank_map.render_json .json
    the rank map as placer/rank-map JSON
csv rank_map.render_csv .csv
    the rank map as a table, one rank a line
"""


def _rows() -> Iterator[LauncherFormat]:
    lines = _TABLE.splitlines()
    for row, description in zip(lines[::2], lines[1::2], strict=True):
        name, writer, suffix, *limits = row.split()
        yield LauncherFormat(
            name,
            description.strip(),
            suffix.removeprefix("-"),
            writer,
            **{_LIMITS[limit]: False for limit in limits},
        )


FORMATS: dict[str, LauncherFormat] = {row.name: row for row in _rows()}


def render(plan: Plan, name: str) -> str:
    """Text of the launcher file called ``name`` for ``plan``.

    Raises `EmitError` if the launcher cannot express the plan, or a host name is not
    safe to write.
    """
    row = format_called(name)
    if row.folder:
        message = f'"{name}" is several files: name a folder to write them to'
        hint = f"{named('path', 'FOLDER')}; it is made if need be"
        raise InputError(message, hint=hint)
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
        raise InputError(f'"{name}" is one file')
    files: dict[str, str] = row.written(plan)
    return files


def format_called(name: str) -> LauncherFormat:
    """The format called ``name``."""
    if name in FORMATS:
        return FORMATS[name]
    near = get_close_matches(name, FORMATS, n=1)
    meant = f' (did you mean "{near[0]}"?)' if near else ""
    raise InputError(
        f'unknown format "{name}"{meant}', hint=f"formats: {', '.join(FORMATS)}"
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
