"""Hosts of unequal speed and links of unequal rate: optima, bounds, idle slow hosts."""

from dataclasses import replace

import numpy as np
import pytest

from placer.base.errors import InfeasibleError
from placer.cost.step import StepModel
from placer.job.axes import Parallelism
from placer.job.model import Compute, Job
from placer.job.models import Model
from placer.solve.bounds.certificate import lower_bound
from placer.solve.bounds.network.ideal import fastest_stages
from placer.solve.problem.compiled import Problem
from placer.topology.links import Link
from placer.topology.read import parse_topology
from tests.allocation.machines import racks, training
from tests.solve.solving import solve

REGIONS = """
format: placer/topology
version: 1
name: regions
tiers:
  - {name: node, size: 1, bandwidth: 100GB/s, scale_up: true}
  - {name: region, bandwidth: 10GB/s}
  - {name: cluster, bandwidth: 10GB/s}
nodes:
  - {names: "a[1-2]", region: a}
  - {names: "b[1-2]", region: b}
  - {names: "c[1-2]", region: c}
links:
  - {between: [a, b], bandwidth: 0.1GB/s}
  - {between: [a, c], bandwidth: 1GB/s}
  - {between: [b, c], bandwidth: 0.1GB/s}
"""


def job_of(axes, **changes):
    """A transformer whose gradients are many and whose messages are small."""
    job = Job(
        name="job",
        parallelism=axes,
        model=Model("small", 4, 1024, 4096, 16, 16, 32000),
        sequence=128,
        micro_batches=4,
        compute=Compute(micro_batch_time=0.01),
        launcher="free",
    )
    return replace(job, **changes)


def with_speeds(speed):
    """Regions without links, their hosts of these speeds."""
    machine = parse_topology(REGIONS, "regions")
    return replace(machine, links=(), compute_factor=np.array(speed))


def test_slow_hosts_stay_idle():
    """Four of six hosts are needed: the slow ones, in two regions, are left out."""
    machine = with_speeds([1, 0.5, 1, 1, 0.9, 1])
    found = solve(machine, job_of(Parallelism(dp=2, pp=2)))
    used = set(machine.node_of_gpu[found.placement.gpu_of_rank].tolist())
    assert used == {0, 2, 3, 5}
    assert found.status == "optimal"


def test_slow_hosts_are_left_idle_before_any_bound():
    """Whoever waits a moment has no step of slow hosts: walks rarely leave them all."""
    machine = with_speeds([1, 0.5, 1, 1, 0.9, 1])
    told = []
    found = solve(machine, job_of(Parallelism(dp=2, pp=2)), progress=told.append)
    assert min(one.value for one in told if one.lower_bound == 0) == found.value


def test_slow_hosts_share_a_pipeline_where_one_is_slow():
    """A stage of two GPUs takes both slow hosts, not one of two stages each."""
    machine = with_speeds([1, 0.5, 1, 0.5, 1, 1])
    job = job_of(Parallelism(cp=2, pp=3))
    found = solve(machine, job)
    step = StepModel(machine, job).step(found.placement.gpu_of_rank)
    assert sorted(step.slowness[0].tolist()) == [1, 1, 2]


def test_the_bound_is_that_of_the_fastest_gpus():
    """No GPU to spare, and data parallel work alone: the slowest used one."""
    machine = with_speeds([1, 0.5, 1, 1, 0.9, 1])
    job = Job("work", Parallelism(dp=5), compute=Compute(micro_batch_time=1.0))
    job = replace(job, groups=(), model=job_of(Parallelism()).model)
    problem = Problem.of(machine, job, "time")
    assert lower_bound(problem, 1).value >= 1 / 0.9
    assert fastest_stages(machine, 3, 2).tolist() == [1, 1, 0.5]
    assert fastest_stages(machine, 2, 2).tolist() == [1, 1]
    assert fastest_stages(machine, 5, 1).tolist() == [1, 1, 1, 1, 0.9]


def test_the_regions_of_the_fastest_link_are_taken():
    """Four hosts: two regions, a and c; gradients inside them, messages between."""
    machine = parse_topology(REGIONS, "regions")
    job = job_of(Parallelism(dp=2, pp=2))
    found = solve(machine, job)
    region = machine.domain_of_node[1][machine.node_of_gpu[found.placement.gpu_of_rank]]
    assert set(region.tolist()) == {0, 2}
    groups = job.parallelism.ranks_of_group["dp"]
    assert (region[groups][:, 0] == region[groups][:, 1]).all()


def test_a_pipeline_is_laid_around_the_slow_links():
    """Three stages, a region each: the chain is a, then c, or the other way around."""
    machine = parse_topology(REGIONS, "regions")
    machine = replace(
        machine,
        links=(
            Link("region", ("a", "b"), 1e8, 0.0),
            Link("region", ("a", "c"), 1e9, 0.0),
            Link("region", ("b", "c"), 1e9, 0.0),
        ),
    )
    job = job_of(Parallelism(dp=2, pp=3), sequence=4096)
    found = solve(machine, job)
    node = machine.node_of_gpu[found.placement.gpu_of_rank]
    lanes = job.parallelism.ranks_of_group["pp"]
    middle = machine.domain_of_node[1][node[lanes[:, 1]]]
    assert middle.tolist() == [2, 2]


def test_what_no_domain_holds_is_infeasible_on_slow_hosts_too():
    """Pipelines of 16 nodes in racks of 12, all hosts equally slow: an answer."""
    machine = racks({"a": 12, "b": 12, "c": 12})
    machine = replace(machine, compute_factor=np.full(36, 0.5))
    require = {"tp": "node", "cp": "rack", "pp": "rack"}
    job = training(tp=4, cp=2, pp=8, vp=8, dp=2, require=require)
    with pytest.raises(InfeasibleError, match="0 fit"):
        solve(machine, job)
