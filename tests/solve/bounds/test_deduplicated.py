"""A token goes once to each GPU: no bound on exchanges of experts counts more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from placer.job.axes import Parallelism
from placer.job.model import Compute, Job
from placer.job.models import Model
from placer.job.parallel import ExpertParallel
from placer.solve.bounds.certificate import lower_bound
from placer.solve.problem.compiled import Problem
from placer.topology.model import Tier
from tests.solve.oracle import least, legal_placements
from tests.solve.random_cases import machine_of

if TYPE_CHECKING:
    from placer.topology.model import Topology


def nodes_of(gpus: list[int], nvlink: float, outside: float) -> Topology:
    """Nodes behind a network."""
    node = Tier("node", nvlink, 0.0, True, 1.0, 1.0, 1.0)
    cluster = Tier("cluster", outside, 1e-4, False, 1.0, 0.8, 9.0)
    return machine_of(gpus, [[0] * len(gpus)], [node, cluster])


def job_of(axes: Parallelism, top_k: int) -> Job:
    """A model whose exchanges take longest."""
    model = Model(
        name="experts",
        layers=2,
        hidden=1024,
        ffn=4096,
        heads=16,
        kv_heads=4,
        vocab=32000,
        experts=8,
        top_k=top_k,
        expert_ffn=1024,
        moe_layers=1,
    )
    return Job(
        name="experts",
        parallelism=axes,
        model=model,
        sequence=1024,
        micro_batch=1,
        micro_batches=2,
        compute=Compute(micro_batch_time=1e-4),
        expert_parallel=ExpertParallel(1.0, "deduplicated"),
        launcher="free",
    )


@pytest.mark.parametrize(
    ("machine", "axes"),
    [
        # Groups that fit into a node, and groups that are cut 2 to 2 or 1 to 3.
        (nodes_of([6], 25e9, 10e9), Parallelism(1, 2, 2, 1, 2, 1, 1)),
        (nodes_of([2, 3], 50e9, 50e9), Parallelism(1, 1, 4, 1, 4, 1, 1)),
        (nodes_of([3, 3, 2], 10e9, 400e9), Parallelism(1, 1, 4, 1, 8, 1, 1)),
    ],
)
@pytest.mark.parametrize("top_k", [2, 8])
def test_no_placement_is_faster(
    machine: Topology, axes: Parallelism, top_k: int
) -> None:
    """The best of all placements is no faster than the bound."""
    job = job_of(axes, top_k)
    best = least(machine, job, "time", legal_placements(machine, job))
    bound = lower_bound(Problem.of(machine, job, "time"), 1)
    assert bound.value <= best * (1 + 1e-9)
