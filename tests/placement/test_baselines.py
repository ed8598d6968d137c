"""The placements a job would get without a search, against what launchers do."""

import random
from dataclasses import replace

import numpy as np
import pytest

from placer.job.axes import MEGATRON_DEFAULT_ORDER, REPLICA_MAJOR_ORDER, Parallelism
from placer.job.model import Job
from placer.job.started import Started
from placer.placement.baselines import baseline
from placer.testing.oracle import coordinates
from placer.topology.read import read_topology
from tests.solve.random_cases import random_axes


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(
    ("name", "order"),
    [
        ("megatron-default", MEGATRON_DEFAULT_ORDER),
        ("replica-major", REPLICA_MAJOR_ORDER),
    ],
)
def test_named_orders_number_ranks_by_that_order(seed, name, order):
    """The g-th GPU holds the rank whose coordinates are those of g in that order."""
    rng = random.Random(seed)
    axes = random_axes(rng, rng.choice((6, 8, 12, 24)))
    job = Job("j", axes)
    topology = read_topology("node:4 gpu:6")
    rank_at = np.argsort(baseline(name, topology, job).gpu_of_rank)
    for gpu in range(job.world_size):
        there = coordinates(axes, int(rank_at[gpu]))
        rest = gpu
        for axis in order:
            if axis != "ep":
                assert rest % axes.size(axis) == there[axis]
                rest //= axes.size(axis)


def test_sorted_hosts_are_those_of_the_launcher():
    """By text, and by their numbers where Slurm starts the job."""
    plain, job = read_topology("node:12 gpu:1"), Job("j", Parallelism(dp=12))
    names = tuple(f"n{k}" for k in range(1, 13))
    machine = replace(plain, domain_names=(names, *plain.domain_names[1:]))
    slurm = replace(job, started=Started("slurm", "a.sh", 1))
    by_text, by_number = (
        baseline("sorted-hosts", machine, one).gpu_of_rank.tolist()
        for one in (job, slurm)
    )
    assert (by_text, by_number) == ([0, 9, 10, 11, *range(1, 9)], [*range(12)])


def test_random_depends_on_the_seed_alone():
    """A seed gives the same hosts each time, and some other seed gives others."""
    topology = read_topology("node:16 gpu:1")
    job = Job("j", Parallelism(dp=16))
    drawn = [
        tuple(baseline("random", topology, job, seed).gpu_of_rank.tolist())
        for seed in (0, 0, 1, 2)
    ]
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) == 3
