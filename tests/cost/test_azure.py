"""Azure's MLPerf v6.0 run of Llama 3.1 405B: its step, and its bytes by arithmetic."""

import numpy as np
import pytest

from placer.explain.score import score
from placer.job.read import read_job
from placer.placement.placement import Placement
from placer.topology.read import read_topology


def test_the_run_itself():
    """About 1.27 s a step, about 20 ms of it exposed cross-rack time (published).

    Bytes a GPU and step: TP 101.5 GB and 25.4 GB of repeated gathers, PP 4.3 GB, CP 1.6
    GB. The last activations do not travel on, so PP is 1/64 below 2 v m act/t. TP has
    126 layers of the 128 units. Gradients and parameters of 126 layers and of the
    vocabulary, twice, over 8 stages are 25.3 GB each way.
    """
    topology = read_topology("azure-gb200-mlperf-v6")
    rack = topology.domain_of_gpu[topology.tier_index("rack")]
    # Each replica of 64 ranks has a rack to itself.
    gpus = np.concatenate([np.flatnonzero(rack == r)[:64] for r in range(128)])
    found = score(topology, read_job("llama3.1-405b-mlperf-v6"), Placement(gpus))
    assert found["step_time_s"] == pytest.approx(1.2712, rel=0.02)
    assert 0.015 < found["exposed_scale_out_s"] < 0.025
    each = {a: sum(sent.values()) / 8192 for a, sent in found["traffic_bytes"].items()}
    assert each["tp"] == pytest.approx(101.5e9 + 25.4e9, rel=0.01)
    assert each["pp"] == pytest.approx(4.3e9 * 63 / 64, rel=0.01)
    assert each["cp"] == pytest.approx(1.6e9, rel=0.01)
    parameters = 126 * 3.1877e9 + 2 * 128_256 * 16_384
    assert each["dp"] == pytest.approx(2 * 255 / 256 * parameters / 8 / 4 * 2, rel=1e-4)
