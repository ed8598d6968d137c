"""Slower work or slower links never make a step shorter, whatever the placement."""

from dataclasses import replace

import numpy as np
import pytest

from placer.cost.step import StepModel
from tests.cost.random_cases import random_case, unequal
from tests.marks import slow

ROUNDING = 1e-10


def long_case(seed):
    """A random case with up to 60 groups of micro-batches, half of them unequal."""
    draw = np.random.default_rng(seed)
    case = random_case(seed, with_model=True)
    job = case.job
    groups = int(draw.integers(1, 60))
    long = replace(job, micro_batches=job.parallelism.pp * groups)
    machine = unequal(case.topology, seed) if seed % 2 else case.topology
    return replace(case, topology=machine, job=long)


def slower(case, draw):
    """The case with one thing slower: the work, a tier, a node or a link."""
    topology, job = case.topology, case.job
    more = 1 + float(draw.choice([1e-6, 1e-3, 0.3]))
    if job.compute.micro_batch_time and not _is_hidden(job):
        compute = replace(
            job.compute, micro_batch_time=job.compute.micro_batch_time * more
        )
        yield topology, replace(job, compute=compute)
    for t, tier in enumerate(topology.tiers):
        for changed in (
            replace(tier, latency=tier.latency * more + 1e-9),
            replace(tier, bandwidth=tier.bandwidth / more),
            replace(tier, oversubscription=tier.oversubscription * more),
        ):
            tiers = (*topology.tiers[:t], changed, *topology.tiers[t + 1 :])
            yield replace(topology, tiers=tiers), job
    factor, speed = topology.bandwidth_factor.copy(), topology.speed_of_node.copy()
    node = draw.integers(len(factor))
    factor[node], speed[node] = factor[node] / more, speed[node] / more
    yield replace(topology, bandwidth_factor=factor), job
    if not _is_hidden(job):
        yield replace(topology, compute_factor=speed), job
    for link in topology.links[:1]:
        slow = replace(link, bandwidth=link.bandwidth / more)
        yield replace(topology, links=(slow, *topology.links[1:])), job


def _is_hidden(job):
    """Whether work hides traffic of several axes: each has all of it for itself."""
    overlap = job.overlap
    return overlap.tp or overlap.cp or overlap.ep or any(g.overlap for g in job.groups)


def check(seed):
    case = long_case(seed)
    before = StepModel(case.topology, case.job).step(case.gpu_of_rank).step_time_s
    for topology, job in slower(case, np.random.default_rng(seed)):
        after = StepModel(topology, job).step(case.gpu_of_rank).step_time_s
        assert after >= before * (1 - ROUNDING), seed


@pytest.mark.parametrize("first", [0, *slow(range(10, 100, 10))])
def test_slower_is_never_shorter(first):
    """Slow down work, each tier in each way, a node or link: no step gets shorter."""
    for seed in range(first, first + 10):
        check(seed)
