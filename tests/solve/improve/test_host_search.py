"""Hosts take each other's runs so that groups lie in few racks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from placer.placement.placement import Placement
from placer.solve.improve import host_search
from placer.solve.improve.host_search import hosts_annealed
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent
from tests.solve.bounds.test_certain import job, machine

# Eight tp groups of 4, each on two hosts of 2, on four racks.
HOSTS = machine([2] * 16, np.repeat(range(4), 4).tolist())
GROUPS = replace(job("node-contiguous", tp=4, dp=8), sequence=8192)


def searched(order: list[int]) -> tuple[Incumbent, np.ndarray]:
    """What is found from hosts in this order, and the rack of every rank."""
    problem = Problem.of(HOSTS, GROUPS, "time")
    found = Incumbent(problem, Budget(60))
    start = Placement.on_nodes(HOSTS, np.repeat(order, 2))
    found.offer("start", start.gpu_of_rank)
    hosts_annealed(problem, found, Budget(60))
    assert found.gpu_of_rank is not None
    assert problem.allows(found.gpu_of_rank)
    return found, HOSTS.domain_of_gpu[1][found.gpu_of_rank]


def test_the_parts_of_groups_come_together() -> None:
    """From groups in two racks each, one host apart, none leaves its rack."""
    order = np.arange(16).reshape(2, 2, 4).transpose(0, 2, 1).ravel().tolist()
    found, rack = searched(order)
    assert found.method != "start"
    assert (rack.reshape(8, 4) == rack[::4, None]).all()


def test_groups_in_one_rack_each_are_left_alone() -> None:
    """There is nothing to bring together."""
    found, _ = searched(list(range(16)))
    assert found.method == "start"


def test_groups_that_no_rack_holds_are_left_in_the_fewest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Groups of 16 on eight hosts each take two racks anywhere: nothing is priced."""
    monkeypatch.setattr(host_search, "offer_walked", pytest.fail)
    problem = Problem.of(HOSTS, job("node-contiguous", tp=16, dp=2), "time")
    found = Incumbent(problem, Budget(60))
    found.offer("start", np.arange(32))
    hosts_annealed(problem, found, Budget(60))
    assert found.method == "start"
