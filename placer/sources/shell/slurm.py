"""The variables that Slurm sets for a job by the ``#SBATCH`` lines of its script."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placer.sources.shell.text import Text

_SBATCH = re.compile(r"^#SBATCH[ \t]+([^\n]*)", re.MULTILINE)
_OPTION = re.compile(r"(--[a-z-]+|-[NnG])(?:=|[ \t]+|(?<=-[NnG]))(\S+)")
_COUNT = re.compile(r"(?:^|:)([0-9]{1,7})$")
_NODES, _TASKS = (
    ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
    ("SLURM_NTASKS", "SLURM_NPROCS"),
)
_NAMES = {
    "--nodes": _NODES,
    "-N": _NODES,
    "--ntasks": _TASKS,
    "-n": _TASKS,
    "--ntasks-per-node": ("SLURM_NTASKS_PER_NODE",),
    "--gpus-per-node": ("SLURM_GPUS_PER_NODE",),
    "--gres": ("SLURM_GPUS_ON_NODE",),
}


def batch_variables(text: Text) -> Iterator[tuple[str, Text]]:
    """Names and values of the variables.

    Source: sbatch's page, output environment variables.
    """
    for line in _SBATCH.finditer(text.text):
        for option in _OPTION.finditer(line[1]):
            count = _COUNT.search(option[2])
            if option[1] in _NAMES and count:
                start = line.start(1) + option.start(2) + count.start(1)
                value = text.part(start, start + len(count[1]))
                for name in _NAMES[option[1]]:
                    yield name, value
