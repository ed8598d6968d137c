"""Azure's MLPerf v6.0 run: 128 racks, one replica of 64 GPUs in each."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from placer.cost.step import StepModel
from placer.job.read import read_job
from placer.topology.read import read_topology

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.topology.model import Topology

RACK = 64


@cache
def azure() -> tuple[Topology, Job]:
    """The machine and the job."""
    return (
        read_topology("azure-gb200-mlperf-v6"),
        read_job("llama3.1-405b-mlperf-v6"),
    )


def in_racks(rack_of_rank: np.ndarray) -> np.ndarray:
    """GPU of each rank when 64 ranks fill the first 64 GPUs of their rack."""
    topology, _ = azure()
    rack = topology.domain_of_gpu[topology.tier_index("rack")]
    gpus = np.stack([np.flatnonzero(rack == r)[:RACK] for r in range(128)])
    by_rack = np.argsort(rack_of_rank, kind="stable")
    gpu_of_rank = np.empty(len(rack_of_rank), dtype=np.int64)
    gpu_of_rank[by_rack] = gpus.ravel()
    return gpu_of_rank


def as_run() -> np.ndarray:
    """Replica after replica, each in a rack of its own."""
    return in_racks(np.arange(8192) // RACK)


def spread(axis: str) -> np.ndarray:
    """The same with the members of each group of an axis in racks of their own."""
    _, job = azure()
    width = job.parallelism.size(axis)
    rack = np.arange(8192) // RACK
    turned = rack + job.parallelism.coordinates[axis]
    return in_racks(rack // width * width + turned % width)


@cache
def as_run_step_s() -> float:
    """Step time of the run."""
    return StepModel(*azure()).step(as_run()).step_time_s
