"""The cut bound reaches the published bounds."""

import numpy as np
import pytest

from benchmarks.instances import load, place_in_order, replica_major
from placer.cost.hop_cost import hop_cost
from placer.placement.placement import Placement
from tests.solve.bounds.hop_bound import cut_bound

# Placement benchmark definitions, lower bounds and where they are tight.
PUBLISHED = {
    "A": (35_307_520, True),
    "Araw": (34_508_800, False),
    "B": (35_521_952, False),
    "C": (72_038_400, True),
    "D": (45_072_384, True),
    "E": (22_462_464, True),
    "F": (436_600_832, True),
    "G": (440_082_688, False),
    "H": (42_928_768, False),
}
# Costs of known placements of the open instances, from the same source.
KNOWN_COST = {
    "Araw": 34_551_808,
    "B": 35_623_456,
    "G": 440_716_256,
    "H": 42_938_240,
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_bound_is_reached(name):
    """Equal where it is tight; no more is worked out than that takes."""
    published, tight = PUBLISHED[name]
    bound = cut_bound(*load(name), incumbent=published)
    assert bound.value == published if tight else bound.value >= published


@pytest.mark.slow
@pytest.mark.parametrize("name", KNOWN_COST)
def test_full_bound_stays_below_known_costs(name):
    """Worked out to the end the bound exceeds no known cost of a placement."""
    value = cut_bound(*load(name)).value
    assert PUBLISHED[name][0] <= value <= KNOWN_COST[name]


@pytest.mark.parametrize("name", ["S64", "S128", "S256", "S512"])
def test_toys_are_proved_optimal(name):
    """On the toys the bound equals the cost of the replica-major order."""
    topology, job = load(name)
    cost = hop_cost(topology, job, replica_major(topology, job))
    assert cut_bound(topology, job).value == cost


def test_raw_weights_are_proved_optimal():
    """On Araw tp x dp16 in racks and cp x dp4 of those in blocks is optimal."""
    topology, job = load("Araw")
    at = job.parallelism.coordinates
    keys = (at["tp"], at["dp"] % 16, at["dp"] // 16 % 4, at["cp"], at["dp"] // 64)
    placement = place_in_order(topology, np.lexsort((*keys, at["pp"])))
    cost = hop_cost(topology, job, placement)
    assert cut_bound(topology, job, incumbent=cost).value == cost


def test_hosts_down_are_proved_optimal():
    """On H only 3 replicas need to cross units, where 2 + 2 spare hosts meet."""
    topology, job = load("H")
    unit_of_host = topology.domain_of_node[1]
    hosts_of_unit = [np.flatnonzero(unit_of_host == unit) for unit in range(48)]
    odd = [hosts for hosts in hosts_of_unit if len(hosts) % 4 == 2][:6]
    whole = [
        hosts[: len(hosts) // 4 * 4]
        for hosts in hosts_of_unit
        if not any(hosts is other for other in odd)
    ]
    hosts = np.concatenate([*whole, *odd])
    at = job.parallelism.coordinates
    gpu_of_rank = np.empty(job.world_size, dtype=np.int64)
    gpu_of_rank[np.lexsort((at["tp"], at["pp"], at["dp"]))] = (
        topology.first_gpu_of_node[hosts][:, None] + np.arange(8)
    ).ravel()
    cost = hop_cost(topology, job, Placement(gpu_of_rank))
    assert cost < KNOWN_COST["H"]
    assert cut_bound(topology, job).value == cost
