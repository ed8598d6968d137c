"""Exchanges of units: every one of a small job against a loop over all of them."""

from dataclasses import replace
from itertools import groupby

import numpy as np
import pytest

import placer
from placer.cost.hop_cost import HopCost
from placer.explain.exchanges import (
    broken_rules,
    exchange_changes,
    exchanges,
    units_with,
)
from placer.job.rules import Pin, Rules
from placer.placement.check import violations
from placer.placement.placement import Placement
from placer.solve.problem.compiled import objective_of
from tests.cost.random_cases import random_case
from tests.cost.two_racks import JOB as BASE
from tests.cost.two_racks import two_racks
from tests.marks import slow

JOB = replace(BASE, launcher="free")
RULES = [
    {"require": {"tp": "node"}},
    {"require": {"pp": "rack"}, "launcher": "node-contiguous"},
    {"rules": Rules(pin=(Pin((0, 1), ("node0", "node1")),))},
    {"rules": Rules(at_most={"rack": 1})},
]


def swapped(gpus, first, second):
    found = list(gpus)
    for one, other in zip(first, second, strict=True):
        found[one], found[other] = gpus[other], gpus[one]
    return np.array(found)


def partitions(gpus):
    """Kinds of units of the small job, by arithmetic on rank and GPU numbers."""

    def cut(key):
        ranks = sorted(range(8), key=lambda rank: (key(rank), rank))
        return [list(part) for _, part in groupby(ranks, key=key)]

    return {
        "rank": cut(lambda rank: rank),
        "node": cut(lambda rank: gpus[rank] // 2),
        "rack": cut(lambda rank: gpus[rank] // 4),
        "tp group": cut(lambda rank: rank // 2),
        "replica": cut(lambda rank: rank // 4),
    }


@pytest.mark.parametrize("objective", ["time", "hop-cost"])
@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("seed", [0, *slow(range(1, 4))])
def test_the_best_exchange_is_the_best_of_all(objective, rules, seed):
    """Best, cheapest worse and refused exchanges are those of a loop over all pairs."""
    topology, job = two_racks(), replace(JOB, **rules)
    draw = np.random.default_rng(seed)
    gpus = np.arange(8)
    if seed:
        nodes = draw.permutation(4)
        gpus = (2 * nodes[:, None] + np.arange(2)).ravel()
    key = {"time": "step_time_s", "hop-cost": "hop_cost"}[objective]

    def cost(at):
        return placer.score(topology, job, Placement(at))[key]

    def broken(at):
        return len(violations(Placement(at), topology, job))

    if broken(gpus):
        return
    rank = int(draw.integers(8))
    goal = objective_of(topology, job, objective)
    found = exchanges(topology, job, goal, gpus, np.array([rank]))
    kinds = partitions(gpus)
    assert {name for kind in found for name in kind["unit"].split(" = ")} >= {*kinds}
    for kind in found:
        units = kinds.get(kind["unit"].split(" = ")[0])
        if units is None:
            continue
        own = next(unit for unit in units if rank in unit)
        assert kind["ranks"] == own
        others = [swapped(gpus, own, unit) for unit in units if unit is not own]
        assert kind["others"] == kind["tried"] == len(others)
        legal = [cost(at) for at in others if not broken(at)]
        assert kind["legal"] == len(legal)
        assert (kind["best"] is None) == (not legal)
        if legal:
            assert kind["best"]["value"] == min(legal)
            assert kind["best"]["change"] == min(legal) - cost(gpus)
            at = swapped(gpus, own, kind["best"]["with"])
            assert cost(at) == min(legal)
            assert not broken(at)
        worse = [value for value in legal if value > cost(gpus) * (1 + 1e-9)]
        assert (kind["next"] or {}).get("value") == min(worse, default=None)
        illegal = [cost(at) for at in others if broken(at)]
        assert bool(kind["breaks"]) == bool(illegal)
        if illegal:
            assert kind["best_illegal"]["value"] == min(illegal)


def test_refused_rules_are_named():
    """An exchange that breaks a rule is counted under the rule's name."""
    topology = two_racks()
    job = replace(
        JOB,
        require={"tp": "node"},
        launcher="node-contiguous",
        rules=Rules(pin=(Pin((0,), ("node0",)),), at_most={"node": 1}),
    )
    gpus = swapped(np.arange(8), [0], [2])
    assert broken_rules(topology, job, np.arange(8)) == []
    told = ["tp=node", "node-contiguous", "pin rank 0 on node0"]
    assert broken_rules(topology, job, gpus) == told
    mixed = swapped(np.arange(8), [0], [4])
    assert broken_rules(topology, job, mixed)[-1] == "at most 1 replica a node"


def test_work_is_limited(monkeypatch):
    """With a small limit a few exchanges are tried, and it says of how many."""
    monkeypatch.setattr("placer.explain.exchanges.MOST_RANKS", 0)
    monkeypatch.setattr("placer.explain.exchanges.FEWEST_TRIED", 2)
    topology = two_racks()
    goal = objective_of(topology, JOB, "time")
    kinds = exchanges(topology, JOB, goal, np.arange(8), np.array([0]))
    (kind,) = (kind for kind in kinds if kind["unit"] == "rank")
    assert (kind["tried"], kind["others"]) == (2, 7)


@pytest.mark.parametrize("seed", range(15))
def test_changes_of_distances_are_exact(seed):
    """The change of every exchange is what the hop cost changes by, for every kind."""
    case = random_case(seed)
    weights = {"tp": 7.0, "cp": 5.0, "ep": 3.0, "pp": 2.0, "dp": 1.0, "edp": 0.5}
    pairs = zip(case.topology.tiers, (1.0, 3.0, 4.0, 9.0), strict=False)
    tiers = tuple(replace(tier, distance=distance) for tier, distance in pairs)
    topology = replace(case.topology, tiers=tiers)
    job = replace(case.job, weights=weights)
    hops = HopCost(topology, job)
    rank = np.random.default_rng(seed).integers(job.world_size, size=1)
    for units in units_with(topology, job, case.gpu_of_rank, rank):
        change = exchange_changes(topology, hops.axes, case.gpu_of_rank, units)
        for other in units.others.tolist():
            at = units.exchanged(case.gpu_of_rank, other)
            expected = hops.cost(at) - hops.cost(case.gpu_of_rank)
            assert change[other] == pytest.approx(expected), units.name
