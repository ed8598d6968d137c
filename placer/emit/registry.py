"""Every launcher format by name.

A format is a row of the table below and a function of a plan, whose module loads when
the format is first written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
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
    # What every node must be: properties of `placer.emit.nodes.NodeRanks`, or ``equal``
    # to the others in the number of its GPUs, counted from GPU 0.
    needs: frozenset[str]
    # Whether it launches the whole map by itself; others help a launcher.
    alone: bool

    @property
    def folder(self) -> bool:
        """Whether it is several files."""
        return self.writer.endswith("_files")

    def written(self, plan: Plan) -> Any:
        """What its writer gives for a plan."""
        module, function = self.writer.split(".")
        return getattr(import_module(f"placer.emit.{module}"), function)(plan)


# A name, its writer, the end of its file's name (- for a folder), what it needs, and
# ``helper`` where it does not launch; below them what it is.
_TABLE = """\
torchrun torchrun.render .sh consecutive
    script a node: static rendezvous in the plan's node order
torchrun-wrapper torchrun.render_wrapper .sh
    script a node: torchrun, then the RANK of its workers
torchrun-map torchrun.render_map .json consecutive gpus_in_order
    node map for torchrun --rdzv-backend=placer
env shell.render_env .sh
    script a process: RANK, LOCAL_RANK, ... for env://
sbatch slurm.render .sbatch
    batch script: the plan's nodes, one task a rank
sbatch-torchrun slurm.render_torchrun .sbatch consecutive
    batch script: the plan's nodes, one torchrun a node
slurm-hostfile slurm.render_hostfile .txt gpus_in_order
    one host a task in rank order, for srun -m arbitrary
openmpi-seq openmpi.render_seq .txt gpus_in_order
    one host a rank, for mpirun --map-by seq
openmpi-rankfile openmpi.render_rankfile .txt gpus_in_order
    rank K=HOST slot=S lines for mpirun
hydra shell.hydra_files -
    machine file and GPU script for mpiexec.hydra
deepspeed deepspeed.render .txt consecutive gpus_in_order aligned
    HOST slots=N lines for deepspeed --hostfile
deepspeed-node deepspeed.render_node .sh consecutive
    script a node: DeepSpeed's launcher, GPUs in any order
jax rank_map.jax_files -
    process ids and device order, with a loader in Python
kubernetes-job kubernetes.render_job .yaml equal
    indexed Job: pods find their node rank by node name
kubernetes-jobset kubernetes.render_jobset .yaml equal
    JobSet: pods find their node rank by node name
kubernetes-pinned kubernetes.render_pinned .yaml
    JobSet: every node rank on a node of its own
kubeflow-trainer kubernetes.render_kubeflow .yaml equal
    TrainJob and its runtime: pods find their node rank by name
ray rank_map.ray_files -
    placement group of labelled nodes, with a loader in Python
gpu-wrapper shell.render_gpu .sh helper
    script a process: the GPU of the rank it already has
megatron megatron.render .sh helper
    bash array of Megatron-LM flags for the plan's rank order
torchtitan torchtitan.render .sh helper
    bash array of torchtitan's flags for the plan's rank order
dlrover torchrun.render_dlrover .json consecutive gpus_in_order helper
    groups of nodes for DLRover's --enable-topology-rerank
nccl nccl.render .txt helper
    report: communicators and the rings NCCL will build
slurm-request slurm.render_request .sbatch helper
    #SBATCH lines for a next job with such nodes (--segment)
kueue-request pod_request.render_kueue .yaml equal helper
    annotations for next pods on such nodes, for Kueue
kai-request pod_request.render_kai .yaml equal helper
    annotations for next pods on such nodes, for KAI scheduler
volcano-request pod_request.render_volcano .yaml equal helper
    HyperNodes, and a next job on such nodes, for Volcano
grove-request pod_request.render_grove .yaml equal helper
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
        name, writer, suffix, *words = row.split()
        needs = frozenset(words) - {"helper"}
        end, alone = suffix.removeprefix("-"), "helper" not in words
        yield LauncherFormat(name, description.strip(), end, writer, needs, alone)


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


def format_called(name: str) -> LauncherFormat:
    """The format called ``name``."""
    if name in FORMATS:
        return FORMATS[name]
    near = get_close_matches(name, FORMATS, n=1)
    meant = f' (did you mean "{near[0]}"?)' if near else ""
    raise InputError(
        f'unknown format "{name}"{meant}', hint=f"formats: {', '.join(FORMATS)}"
    )


def formats_for(lacks: Collection[str]) -> Iterable[str]:
    """Names of the formats that can launch a plan whose nodes lack some properties."""
    rows = (row for row in FORMATS.values() if row.alone)
    return (row.name for row in rows if row.needs.isdisjoint(lacks))
