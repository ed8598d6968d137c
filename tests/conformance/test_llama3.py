"""The order of Llama 3's pre-training (arXiv 2407.21783, section 3.3.2).

24,576 H100: pods of 3,072 with 192 racks of two hosts, and 1:7 oversubscription between
pods. Groups go into the network in the order tp, cp, pp, dp.
"""

from __future__ import annotations

import numpy as np
import pytest

from placer.job.axes import REPLICA_MAJOR_ORDER
from tests.conformance.machines import Host, crossings, job, machine
from tests.solve.solving import solve

AXES = {"tp": 8, "pp": 16, "dp": 128}


@pytest.mark.slow
def test_only_data_parallel_leaves_a_pod() -> None:
    """On 16,384 GPUs tp stays in a host and pp in a pod, in the fewest pods.

    A replica has 128 GPUs, a pod holds 24 of them, so 128 need 6 pods.
    """
    hosts = [
        Host(f"p{pod}r{rack:03d}h{host}", 8, (f"p{pod}r{rack:03d}", f"p{pod}"))
        for pod in range(8)
        for rack in range(192)
        for host in range(2)
    ]
    topology = machine(("host", "rack", "pod", "cluster"), hosts)
    case = job(launcher="node-contiguous", order=REPLICA_MAJOR_ORDER, **AXES)
    found = solve(topology, case, time_limit=5.0)
    inside_host = crossings(topology, case, found.placement, "host")
    assert inside_host["tp"] == 0
    crossed = crossings(topology, case, found.placement, "pod")
    assert {axis for axis, count in crossed.items() if count} == {"dp"}
    used = np.unique(topology.domain_of_gpu[2][found.placement.gpu_of_rank])
    assert len(used) == 6
