"""The benchmark instances are the published ones, and the evaluator agrees with them.

Expected figures: placement benchmark definitions.
"""

import pytest

from benchmarks.instances import leaf_capacities, load, megatron_default, replica_major
from placer.cost.hop_cost import HopCost
from placer.job.edges import hop_edges

# name: ranks, edges, total weight, leaves, GPUs
SIZES = {
    "A": (8_192, 27_648, 34_725_888, 128, 8_192),
    "Araw": (8_192, 27_648, 23_311_360, 128, 8_192),
    "B": (8_192, 27_648, 34_725_888, 144, 8_728),
    "C": (16_384, 48_128, 66_215_936, 2_304, 18_432),
    "D": (10_752, 30_912, 43_427_328, 1_344, 10_752),
    "E": (8_192, 273_408, 16_834_560, 128, 9_216),
    "F": (98_304, 337_920, 416_956_416, 1_536, 98_304),
    "G": (98_304, 337_920, 416_956_416, 1_792, 106_932),
    "H": (10_240, 29_440, 41_359_360, 1_536, 10_384),
}
# name: megatron-default, replica-major
ORDERS = {
    "A": (41_393_152, 35_307_520),
    "Araw": (38_938_624, 133_821_440),
    "B": (43_329_248, 37_878_144),
    "C": (74_350_592, 72_038_400),
    "D": (47_364_096, 45_072_384),
    "E": (106_336_960, 104_476_736),
    "F": (495_575_040, 436_600_832),
    "G": (663_417_568, 609_062_240),
    "H": (45_108_960, 42_938_240),
}


@pytest.mark.parametrize("name", SIZES)
def test_published_figures(name):
    """Sizes are those of the definition, and so is what two plain orders cost."""
    topology, job = load(name)
    edges = hop_edges(job)
    assert (
        job.world_size,
        sum(len(axis.edges) for axis in edges),
        sum(axis.weight * len(axis.edges) for axis in edges),
        len(leaf_capacities(name)),
        topology.num_gpus,
    ) == SIZES[name]
    orders = megatron_default, replica_major
    cost = HopCost(topology, job).cost
    costs = tuple(cost(order(topology, job).gpu_of_rank) for order in orders)
    assert costs == ORDERS[name]
