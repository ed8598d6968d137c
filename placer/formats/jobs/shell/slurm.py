"""The variables that Slurm sets for a job by the ``#SBATCH`` lines of its script."""

from __future__ import annotations

import re
from collections.abc import Iterator

from placer.formats.jobs.shell.text import Text, unknown

_SBATCH = re.compile(r"^#SBATCH[ \t]+([^\n]*)", re.MULTILINE)
_OPTION = re.compile(r"(--[a-z-]+|-[NnG])(?:=|[ \t]+|(?<=-[NnG]))(\S+)")
_IMAGE = "--container-image"
_NAME_OF_IMAGE = re.compile(r"[\w./:@-]+")
_COUNT = re.compile(r"(?:^|:)([0-9]{1,7})$")
_NODES = ("SLURM_NNODES", "SLURM_JOB_NUM_NODES")
_TASKS = ("SLURM_NTASKS", "SLURM_NPROCS")
_NAMES = {
    "--nodes": _NODES,
    "-N": _NODES,
    "--ntasks": _TASKS,
    "-n": _TASKS,
    "--ntasks-per-node": ("SLURM_NTASKS_PER_NODE",),
    "--gpus-per-node": ("SLURM_GPUS_PER_NODE",),
    "--gres": ("SLURM_GPUS_ON_NODE",),
}
# What Slurm sets for every job, whatever its options.
_ALWAYS = (
    "SLURM_JOB_ID", "SLURM_JOBID", "SLURM_JOB_NAME", "SLURM_JOB_NODELIST",
    "SLURM_NODELIST", "SLURM_NNODES", "SLURM_JOB_NUM_NODES", "SLURM_JOB_PARTITION",
    "SLURM_JOB_USER", "SLURM_JOB_UID", "SLURM_JOB_ACCOUNT",
    "SLURM_JOB_CPUS_PER_NODE", "SLURM_CPUS_ON_NODE", "SLURM_CLUSTER_NAME",
    "SLURM_SUBMIT_DIR", "SLURM_SUBMIT_HOST", "SLURM_TASKS_PER_NODE", "SLURM_NODEID",
    "SLURM_PROCID", "SLURM_LOCALID", "SLURM_GTIDS", "SLURM_TASK_PID",
    "SLURMD_NODENAME",
)  # fmt: skip


def image_of_batch(text: str) -> str:
    """The image that ``--container-image`` of Pyxis names; empty where none does."""
    options = (o for line in _SBATCH.finditer(text) for o in _OPTION.finditer(line[1]))
    return next((image_called(o[2]) for o in options if o[1] == _IMAGE), "")


def image_called(text: str) -> str:
    """An image as Kubernetes calls it; empty for a file, or where it is not known.

    Pyxis takes ``[docker://][USER@][REGISTRY#]IMAGE[:TAG]`` (NVIDIA/pyxis, README).
    """
    name = text.strip("\"'").removeprefix("docker://").replace("#", "/", 1)
    is_file = name.startswith(("/", ".")) or name.endswith(".sqsh")
    return "" if is_file or not _NAME_OF_IMAGE.fullmatch(name) else name


def batch_variables(text: Text) -> Iterator[tuple[str, Text]]:
    """Names and values of the variables.

    Source: sbatch's page, output environment variables.
    """
    lines = list(_SBATCH.finditer(text.text))
    for line in lines:
        for option in _OPTION.finditer(line[1]):
            count = _COUNT.search(option[2])
            if option[1] in _NAMES and count:
                start = line.start(1) + option.start(2) + count.start(1)
                value = text.part(start, start + len(count[1]))
                for name in _NAMES[option[1]]:
                    yield name, value
    if lines:
        place = text.place_at(lines[0].start())
        for name in _ALWAYS:
            yield name, unknown(name, place, f"${{{name}}}")
