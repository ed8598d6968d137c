"""Llama 3.1 405B on NVL72 racks, as in MLPerf Training v5.1.

Source of the jobs: mlcommons/training_results_v5.1, commit 441d65f444,
``NVIDIA/benchmarks/llama31_405b/implementations`` (hsg_ngpu5120, hsg_ngpu2560,
tyche_ngpu512, theia_ngpu512) and ``NVIDIA/systems``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from placer.job.axes import MEGATRON_DEFAULT_ORDER, REPLICA_MAJOR_ORDER
from placer.placement.baselines import baseline
from tests.conformance.machines import (
    Host,
    crossings,
    job,
    machine,
    ranks_in,
    varied,
)
from tests.solve.solving import solve

if TYPE_CHECKING:
    from placer.placement.placement import Placement
    from placer.topology.model import Topology

TIERS = ("tray", "rack", "cluster")
LIMIT = 20.0  # s


def racks(count: int, trays: int = 18, seed: int = 0) -> Topology:
    """NVL72 racks: trays of 4 GPUs."""
    hosts = [
        Host(f"r{rack:03d}t{tray:02d}", 4, (f"r{rack:03d}",))
        for rack in range(count)
        for tray in range(trays)
    ]
    return machine(TIERS, varied(hosts, seed))


def members_by_rack(topology: Topology, case: object, placement: Placement) -> set[int]:
    """How many members of a dp group a rack holds, over all groups and racks."""
    groups = case.parallelism.ranks_of_group["dp"]  # type: ignore[attr-defined]
    rack = topology.domain_of_gpu[1][placement.gpu_of_rank]
    return {
        int(count)
        for members in groups
        for count in np.unique(rack[members], return_counts=True)[1]
    }


@pytest.mark.parametrize(
    ("count", "dp", "seed"), [(80, 80, 0), (40, 40, 0), (8, 8, 0), (8, 8, 1), (9, 7, 2)]
)
def test_one_replica_a_rack(count: int, dp: int, seed: int) -> None:
    """No tp, cp or pp group leaves its rack, and a dp ring crosses once a rack."""
    topology = racks(count, seed=seed)
    case = job(
        launcher="node-contiguous", tp=4, cp=2, pp=8, dp=dp, order=REPLICA_MAJOR_ORDER
    )
    found = solve(topology, case, time_limit=LIMIT)
    assert crossings(topology, case, found.placement, "rack") == {
        "tp": 0,
        "cp": 0,
        "pp": 0,
        "dp": 64 * dp,
    }
    assert members_by_rack(topology, case, found.placement) == {1}
    assert set(ranks_in(topology, found.placement, "rack").values()) == {64}
    assert found.status == "optimal"


def test_a_tray_down_leaves_the_rack_enough() -> None:
    """With one or two trays down in some racks each still holds a replica."""
    hosts = [
        Host(f"r{rack}t{tray:02d}", 4, (f"r{rack}",))
        for rack in range(8)
        for tray in range(18)
    ]
    topology = machine(TIERS, hosts, down=["r2t03", "r5t17", "r6t00", "r6t01"])
    case = job(tp=4, cp=2, pp=8, dp=8, order=REPLICA_MAJOR_ORDER)
    found = solve(topology, case, time_limit=LIMIT)
    crossed = crossings(topology, case, found.placement, "rack")
    assert crossed == {"tp": 0, "cp": 0, "pp": 0, "dp": 512}


@pytest.mark.parametrize("launcher", ["free", "node-contiguous"])
def test_megatrons_default_order_is_left_behind(launcher: str) -> None:
    """Numbered tp-cp-dp-pp a rack holds one stage of all replicas; search undoes it.

    As numbered, each of the 7 x 64 pipeline hops crosses racks and nothing else does.
    """
    topology = racks(8, trays=16)
    case = job(launcher=launcher, tp=4, cp=2, pp=8, dp=8, order=MEGATRON_DEFAULT_ORDER)
    given = baseline("given-order", topology, case)
    assert crossings(topology, case, given, "rack") == {
        "tp": 0,
        "cp": 0,
        "pp": 7 * 64,
        "dp": 0,
    }
    found = solve(topology, case, time_limit=LIMIT)
    assert crossings(topology, case, found.placement, "rack") == {
        "tp": 0,
        "cp": 0,
        "pp": 0,
        "dp": 8 * 64,
    }


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("count", [8, 10])
def test_two_replicas_a_rack(count: int, seed: int) -> None:
    """Replicas of 8 trays: two a rack in 16 of 18, 8 racks, 8 crossings a dp ring."""
    topology = racks(count, seed=seed)
    case = job(tp=2, cp=2, pp=8, dp=16, order=REPLICA_MAJOR_ORDER)
    found = solve(topology, case, time_limit=LIMIT)
    assert crossings(topology, case, found.placement, "rack") == {
        "tp": 0,
        "cp": 0,
        "pp": 0,
        "dp": 8 * 32,
    }
    assert list(ranks_in(topology, found.placement, "rack").values()) == [64] * 8
