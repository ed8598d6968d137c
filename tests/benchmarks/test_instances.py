"""The benchmark instances are the published ones, and the evaluator agrees with them.

Expected figures: placement benchmark definitions.
"""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.cases import case
from benchmarks.instances import (
    INSTANCES,
    capacities_digest,
    leaf_capacities,
    load,
    megatron_default,
    place_in_order,
    replica_major,
)
from placer.cost.hop_cost import hop_cost
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
DIGESTS = {
    "B": ("714a1817561c1f1c", [60, 52, 64, 68, 48, 60, 60, 72]),
    "G": ("a190dc1e03e094e2", [48, 56, 48, 68, 52, 52, 72, 48]),
    "H": ("c75e6a6bb4eece09", None),
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
def test_sizes(name: str) -> None:
    """Ranks, edges, total weight, leaves and GPUs are those of the definition."""
    topology, job = load(name)
    edges = hop_edges(job)
    assert (
        job.world_size,
        sum(len(axis.edges) for axis in edges),
        sum(axis.weight * len(axis.edges) for axis in edges),
        len(leaf_capacities(name)),
        topology.num_gpus,
    ) == SIZES[name]


@pytest.mark.parametrize("name", DIGESTS)
def test_capacities(name: str) -> None:
    """The random capacities have the digest and first values of the definition."""
    digest, first = DIGESTS[name]
    capacities = leaf_capacities(name)
    assert capacities_digest(capacities) == digest
    if first:
        assert capacities[:8].tolist() == first


def test_hosts_up_of_h() -> None:
    """Instance H has the published numbers of hosts in its first units."""
    hosts = (leaf_capacities("H").reshape(48, 32) > 0).sum(axis=1)
    assert hosts[:8].tolist() == [28, 24, 24, 28, 24, 24, 24, 20]


@pytest.mark.parametrize("name", ORDERS)
def test_orders(name: str) -> None:
    """Two plain orders cost on every instance what the definition says."""
    topology, job = load(name)
    costs = (
        hop_cost(topology, job, megatron_default(topology, job)),
        hop_cost(topology, job, replica_major(topology, job)),
    )
    assert costs == ORDERS[name]


@pytest.mark.parametrize(("name", "cost"), [("B", 35_997_376), ("G", 490_219_136)])
def test_whole_units(name: str, cost: int) -> None:
    """Replica-major with leaves filled by whole units of 8 costs what was published."""
    topology, job = load(name)
    assert hop_cost(topology, job, replica_major(topology, job, unit=8)) == cost


def test_64_a_leaf() -> None:
    """On E both orders with at most 64 ranks a leaf cost what was published."""
    topology, job = load("E")
    default = place_in_order(topology, np.arange(job.world_size), limit=64)
    assert hop_cost(topology, job, default) == 24_010_752
    limited = replica_major(topology, job, limit=64)
    assert hop_cost(topology, job, limited) == 22_462_464


@pytest.mark.parametrize(
    ("name", "optimum"), [("S64", 263_296), ("S128", 526_592), ("S256", 1_053_184)]
)
def test_toys(name: str, optimum: int) -> None:
    """On the toys replica-major has the published optimal cost."""
    topology, job = load(name)
    assert hop_cost(topology, job, replica_major(topology, job)) == optimum


def test_every_instance_is_covered() -> None:
    """No instance is missing from the tables of this file."""
    assert set(SIZES) == set(ORDERS) == set(INSTANCES)


def test_uneven_racks_of_any_size() -> None:
    """A case names ranks, load and seed; the job takes about that share."""
    topology, job = case("uneven-16384-0.95-1", "hop-cost")
    assert job.world_size == 16_384
    assert job.world_size / topology.num_gpus == pytest.approx(0.95, abs=0.02)
