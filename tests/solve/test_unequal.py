"""Hosts of unequal speed and links of unequal rate: optima, bounds, idle slow hosts."""

from dataclasses import replace

import numpy as np
import pytest

from placer.base.errors import InfeasibleError
from placer.job.axes import Parallelism
from placer.job.model import Compute, Job
from placer.job.models import Model
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


def test_slow_hosts_are_left_idle_before_any_bound():
    """Whoever waits a moment has no step of slow hosts: walks rarely leave them all."""
    machine = with_speeds([1, 0.5, 1, 1, 0.9, 1])
    told = []
    found = solve(machine, job_of(Parallelism(dp=2, pp=2)), progress=told.append)
    assert min(one.value for one in told if one.lower_bound == 0) == found.value


def test_what_no_domain_holds_is_infeasible_on_slow_hosts_too():
    """Pipelines of 16 nodes in racks of 12, all hosts equally slow: an answer."""
    machine = racks({"a": 12, "b": 12, "c": 12})
    machine = replace(machine, compute_factor=np.full(36, 0.5))
    require = {"tp": "node", "cp": "rack", "pp": "rack"}
    job = training(tp=4, cp=2, pp=8, vp=8, dp=2, require=require)
    with pytest.raises(InfeasibleError, match="0 fit"):
        solve(machine, job)
