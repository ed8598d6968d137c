"""Groups that leave their host with a small part, where hosts have islands."""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import permutations, product
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from placer.solve.bounds.certificate import lower_bound
from placer.solve.bounds.groups import cut_groups
from placer.solve.bounds.groups.host_runs import fewest_leaving, hosts_of
from placer.solve.problem.compiled import Problem
from placer.topology.read import parse_topology
from tests.solve.bounds.test_certain import job

if TYPE_CHECKING:
    from placer.topology.model import Topology


def machine(hosts: list[tuple[int, int]]) -> Topology:
    """Hosts of two islands, with links between them that are no NVLink."""
    tiers = [
        {"name": "island", "size": 4, "bandwidth": 450e9, "latency": 1e-6},
        {"name": "node", "size": 2, "bandwidth": 100e9, "latency": 2e-6},
        {"name": "cluster", "bandwidth": 50e9, "latency": 8e-6},
    ]
    for tier, distance in zip(tiers, (1.0, 4.0, 9.0), strict=True):
        tier |= {"scale_up": distance == 1.0, "distance": distance}
    nodes = [{"names": f"n{at}", "gpus": list(gpus)} for at, gpus in enumerate(hosts)]
    document = {"format": "placer/topology", "version": 1, "name": "m"}
    return parse_topology(json.dumps(document | {"tiers": tiers, "nodes": nodes}), "m")


def fewest(hosts: list[tuple[int, ...]], size: int, part: int, groups: int) -> int:
    """The same by all orders of hosts and all that their islands may hold."""
    found = groups + 1
    for order in set(permutations(hosts)):
        islands = [(host, room) for host, own in enumerate(order) for room in own]
        for held in product(*(range(room + 1) for _, room in islands)):
            if sum(held) != size * groups:
                continue
            where = [
                (host, island)
                for island, ((host, _), ranks) in enumerate(
                    zip(islands, held, strict=True)
                )
                for _ in range(ranks)
            ]
            rows = [where[at : at + size] for at in range(0, len(where), size)]
            bad = sum(
                len({host for host, _ in row}) > 1 and min(Counter(row).values()) < part
                for row in rows
            )
            found = min(found, bad)
    return found


def test_even_parts_leave_islands_idle() -> None:
    """On hosts of 3 + 4 a group in 4 + 4 leaves the island of 3 between them idle."""
    hosts = (((3, 4), 4),)
    assert fewest_leaving(hosts, 8, 4, 16, 1.0) == 0
    assert fewest_leaving(hosts, 8, 3, 24, 1.0) == 2
    assert fewest_leaving((((4, 4), 1),), 8, 8, 8, 1.0) == 0


@pytest.mark.parametrize("seed", range(40))
def test_no_placement_has_fewer(seed: int) -> None:
    """By plain loops over all that hosts may hold."""
    rng = random.Random(seed)
    islands = rng.choice((1, 2))
    hosts = [
        tuple(rng.choice((2, 3)) for _ in range(islands))
        for _ in range(rng.choice((2, 3)))
    ]
    gpus, size = sum(map(sum, hosts)), rng.choice((3, 4, 5, 6))
    groups = gpus // size
    if not groups:
        return
    alike = tuple(sorted(Counter(hosts).items()))
    for part in (2, size // 2, size):
        found = fewest_leaving(alike, size, part, size * groups, 1.0)
        assert found <= fewest(hosts, size, part, groups)


def test_replicas_wait_for_groups_that_leave_their_host() -> None:
    """A part of 2 or less sends over the network, not only between islands."""
    hosts = machine([(4, 4), *[(3, 4)] * 4])
    problem = Problem.of(hosts, job("node-contiguous", tp=8, dp=4), "time")
    assert hosts_of(problem.machine) == (((3, 4), 4), ((4, 4), 1))
    known = lower_bound(problem, problem.forced_block).value
    with patch.object(cut_groups, "fewest_leaving", return_value=0):
        less = lower_bound(problem, problem.forced_block).value
    assert less < known
