"""Rails: a hop to another rail goes over NVLink first."""

import json
from dataclasses import replace

import numpy as np
import pytest

from placer.api.place import place
from placer.base.errors import InputError
from placer.cost.step import StepModel
from placer.job.axes import Parallelism
from placer.job.model import Compute, Job
from placer.job.models import Model
from placer.job.parallel import DataParallel
from placer.placement.build import placement_of_plan
from placer.topology.read import parse_topology, read_topology
from placer.topology.write import to_document

MACHINE = """\
format: placer/topology
version: 1
name: rails
tiers:
  - {name: node, size: 4, bandwidth: 450GB/s, latency: 1us, scale_up: true}
  - {name: leaf, bandwidth: 50GB/s, latency: 5us, rails: true}
  - {name: cluster, bandwidth: 50GB/s, latency: 8us}
layout: "cluster:1 leaf:2 node:4"
"""
PLAIN = MACHINE.replace(", rails: true", "")


def machine(text=MACHINE):
    """The machine in a text."""
    return parse_topology(text, "m.yaml")


def small_job(**degrees):
    """A job with gradients that nothing hides."""
    return Job(
        name="small",
        parallelism=Parallelism(**degrees),
        model=Model("m", 4, 1024, 4096, 16, 16, 32000),
        sequence=1024,
        micro_batches=2,
        data_parallel=DataParallel(overlap_reduce=False, overlap_gather=False),
        compute=Compute(micro_batch_time=1e-3),
    )


def shuffled(seed):
    """GPUs of 32 ranks in order, and with those of each node mixed up."""
    draw = np.random.default_rng(seed)
    nodes = [4 * node + draw.permutation(4) for node in range(8)]
    return np.arange(32), np.concatenate(nodes)


def test_only_groups_that_change_rails_are_slower():
    """Those on one rail pay nothing, nor does a ring through all GPUs of its nodes."""

    def seconds(text, gpus, **degrees):
        return StepModel(machine(text), small_job(**degrees)).step(gpus).step_time_s

    straight, mixed = shuffled(0)
    for gpus, degrees in ((straight, {"tp": 4, "dp": 8}), (mixed, {"dp": 32})):
        assert seconds(MACHINE, gpus, **degrees) == seconds(PLAIN, gpus, **degrees)
    broken = seconds(PLAIN, mixed, tp=4, dp=8)
    assert seconds(MACHINE, mixed, tp=4, dp=8) > broken


@pytest.mark.slow
def test_a_free_launch_keeps_to_rails():
    """No mix of the GPUs of a node makes the placement found faster."""
    topology, job = machine(), replace(small_job(tp=4, dp=8), launcher="free")
    model = StepModel(topology, job)
    found = placement_of_plan(place(topology, job).plan, topology).gpu_of_rank
    least = model.step(found).step_time_s
    assert least <= model.step(np.arange(32)).step_time_s
    for seed in range(10):
        _, mixed = shuffled(seed)
        assert model.step(mixed[found]).step_time_s >= least


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("latency: 1us, scale_up: true", "latency: 1us", "cannot reach other rails"),
        ("scale_up: true}", "scale_up: true, rails: true}", "around nodes has rails"),
        ("size: 4", "size: 64", "64 rails"),
    ],
)
def test_rails_that_cannot_be(old, new, words):
    """A fabric of rails alone needs NVLink in the node to join them."""
    with pytest.raises(InputError, match=words):
        machine(MACHINE.replace(old, new))


def test_documents_keep_rails():
    """Rails are written, and part of what the machine is."""
    found = machine()
    assert machine(json.dumps(to_document(found))).sha256 == found.sha256
    assert found.sha256 != machine(PLAIN).sha256
    assert read_topology("block:2 node:4 gpu:4").tiers[1].rails is False
