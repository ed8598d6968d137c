"""Runs of ranks change hosts so that little has to pass thin uplinks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from placer.placement.placement import Placement
from placer.solve.construct.by_nodes import seated_hosts as module
from placer.solve.construct.by_nodes.seated_hosts import Seats, seated_hosts
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import ENDLESS, Budget
from placer.solve.run.incumbent import Incumbent
from tests.solve.bounds.test_certain import TIERS, job
from tests.solve.random_cases import machine_of

if TYPE_CHECKING:
    import pytest

    from placer.topology.model import Topology

# Eight tp groups of 4, each on two hosts of 2.
GROUPS = replace(job("node-contiguous", tp=4, dp=8), sequence=8192)
# Hosts of four racks in turn: each group lies in two racks.
APART = np.repeat(np.arange(16).reshape(4, 4).T.ravel(), 2)


def machine(gpus: list[int], over: float = 8.0) -> Topology:
    """Hosts with so many GPUs, four in a rack."""
    tiers = [*TIERS[:-1], replace(TIERS[-1], oversubscription=over)]
    rack = np.repeat(range(len(gpus) // 4), 4).tolist()
    return machine_of(gpus, [rack, [0] * len(gpus)], tiers)


def test_groups_that_hosts_cut_come_together() -> None:
    """From two racks each, no group leaves its rack, and the step is shorter."""
    hosts = machine([2] * 16)
    problem = Problem.of(hosts, GROUPS, "time")
    found = Incumbent(problem, Budget(60))
    found.offer("start", Placement.on_nodes(hosts, APART).gpu_of_rank)
    seated_hosts(problem, found, Budget(60))
    assert found.gpu_of_rank is not None
    assert found.method == module.NAME
    rack = hosts.domain_of_gpu[1][found.gpu_of_rank]
    assert (rack.reshape(8, 4) == rack[::4, None]).all()


def test_rings_come_to_few_racks() -> None:
    """Four gradient rings of four hosts each lie in a rack each."""
    given = replace(GROUPS, parallelism=replace(GROUPS.parallelism, tp=2, dp=4, pp=4))
    hosts = machine([2] * 16)
    problem = Problem.of(hosts, given, "time")
    seats = Seats.of(problem)
    assert seats is not None
    rack = hosts.domain_of_node[1][seats.seated(APART, ENDLESS)]
    stage = given.parallelism.coordinates["pp"]
    assert all(len(set(rack[stage == one].tolist())) == 1 for one in range(4))


def test_runs_lie_on_hosts_that_hold_them() -> None:
    """Hosts of 3 take runs of 3, and some host is left out as before."""
    hosts = machine([3, 2] * 8)
    problem = Problem.of(hosts, replace(GROUPS, sequence=8192), "time")
    seats = Seats.of(problem)
    assert seats is not None
    used = np.argsort(-hosts.gpus_of_node, kind="stable")[:12]
    start = np.repeat(used, hosts.gpus_of_node[used])
    nodes = seats.seated(start, ENDLESS)
    held = np.bincount(nodes, minlength=16)
    assert (held <= hosts.gpus_of_node).all()
    assert (np.flatnonzero(np.diff(nodes)) == np.flatnonzero(np.diff(start))).all()
    assert problem.allows(hosts.gpus_on(nodes))


def test_loads_after_a_walk_are_those_counted_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What changes add to an uplink is what the whole sum says."""
    walks: list[tuple[module._Walk, np.ndarray]] = []
    make = module._Walk.__init__

    def remembered(self, seats, host, length, between):  # type: ignore[no-untyped-def]
        make(self, seats, host, length, between)
        walks.append((self, between))

    monkeypatch.setattr(module._Walk, "__init__", remembered)
    seats = Seats.of(Problem.of(machine([2] * 16), GROUPS, "time"))
    assert seats is not None
    seats.seated(APART, ENDLESS)
    walk, between = walks[0]
    home = seats.home[0][walk.host]
    leaves = between * (home[:, None] != home[None, :])
    anew = np.array([leaves[:, home == rack].sum(axis=(1, 2)) for rack in range(4)])
    assert np.allclose(walk.load.T, anew)


def test_where_no_uplink_is_thin_hosts_stay() -> None:
    """There is nothing to gain from less on uplinks."""
    assert Seats.of(Problem.of(machine([2] * 16, over=1.0), GROUPS, "time")) is None
