"""Azure's MLPerf v6.0 run of Llama 3.1 405B: its bytes, and one mistake at a time.

The bounds are arithmetic from public figures (volumes, NIC and NVLink rates), not
results of this model.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from placer.cost.step import StepModel
from placer.explain.score import score
from placer.job.read import read_job
from placer.placement.placement import Placement
from placer.topology.read import read_topology

RACK = 64  # GPUs of a replica, which has a rack to itself


@cache
def azure():
    """128 racks, and the job."""
    return (
        read_topology("azure-gb200-mlperf-v6"),
        read_job("llama3.1-405b-mlperf-v6"),
    )


def in_racks(rack_of_rank):
    """GPU of each rank when 64 ranks fill the first 64 GPUs of their rack."""
    topology, _ = azure()
    rack = topology.domain_of_gpu[topology.tier_index("rack")]
    gpus = np.stack([np.flatnonzero(rack == r)[:RACK] for r in range(128)])
    gpu_of_rank = np.empty(len(rack_of_rank), dtype=np.int64)
    gpu_of_rank[np.argsort(rack_of_rank, kind="stable")] = gpus.ravel()
    return gpu_of_rank


def as_run():
    """Replica after replica, each in a rack of its own."""
    return in_racks(np.arange(8192) // RACK)


@cache
def run():
    """A step of the run."""
    return StepModel(*azure()).step(as_run())


def spread(axis):
    """The same with the members of each group of an axis in racks of their own."""
    _, job = azure()
    width = job.parallelism.size(axis)
    rack = np.arange(8192) // RACK
    turned = rack + job.parallelism.coordinates[axis]
    placed = in_racks(rack // width * width + turned % width)
    return StepModel(*azure()).step(placed)


def with_slower_nics(share):
    """The run with NICs of a share of their rate."""
    topology, job = azure()
    tiers = tuple(
        t if t.scale_up else replace(t, bandwidth=t.bandwidth * share)
        for t in topology.tiers
    )
    return StepModel(replace(topology, tiers=tiers), job).step(as_run())


def with_gradients_seen():
    """The run with nothing beside reduction and gather."""
    topology, job = azure()
    mode = replace(job.data_parallel, overlap_reduce=False, overlap_gather=False)
    return StepModel(topology, replace(job, data_parallel=mode)).step(as_run())


def test_the_run_itself():
    """About 1.27 s a step, about 20 ms of it exposed cross-rack time (published)."""
    result = score(*azure(), Placement(as_run()))
    assert result["step_time_s"] == pytest.approx(1.2712, rel=0.02)
    assert 0.015 < result["exposed_scale_out_s"] < 0.025


# What is wrong, and the share of the step that it costs. TP over four racks sends 101.5
# GB at one NIC; attention hides CP; 254 ms of gradients are seen; half the rate of NICs
# still hides, a quarter is past the cliff.
MISTAKES = {
    "tp off NVLink": (lambda: spread("tp"), 0.65, 0.90),
    "pp off NVLink": (lambda: spread("pp"), 0.02, 0.04),
    "cp off NVLink": (lambda: spread("cp"), 0.0, 0.015),
    "gradients seen": (with_gradients_seen, 0.16, 0.22),
    "NICs at a half": (lambda: with_slower_nics(0.5), 0.015, 0.035),
    "NICs at a quarter": (lambda: with_slower_nics(0.25), 0.20, 0.30),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_costs_what_arithmetic_says(mistake):
    """How much slower the step gets."""
    wrong, least, most = MISTAKES[mistake]
    assert least <= wrong().step_time_s / run().step_time_s - 1 < most


def test_bytes_a_gpu_and_step():
    """TP 101.5 GB and 25.4 GB of repeated gathers, PP 4.3 GB, CP 1.6 GB.

    The last activations do not travel on, so PP is 1/64 below 2 v m act/t. TP has 126
    layers of the 128 units. Gradients and parameters of 126 layers and of the
    vocabulary, twice, over 8 stages are 25.3 GB each way.
    """
    traffic = run().traffic()
    each = {axis: float(t.bytes_by_tier.sum()) / 8192 for axis, t in traffic.items()}
    assert each["tp"] == pytest.approx(101.5e9 + 25.4e9, rel=0.01)
    assert each["pp"] == pytest.approx(4.3e9 * 63 / 64, rel=0.01)
    assert each["cp"] == pytest.approx(1.6e9, rel=0.01)
    parameters = 126 * 3.1877e9 + 2 * 128_256 * 16_384
    assert each["dp"] == pytest.approx(2 * 255 / 256 * parameters / 8 / 4 * 2, rel=1e-4)
