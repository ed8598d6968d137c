"""Small jobs under random rules: feasible, optimal and bounded as trying all says."""

from __future__ import annotations

import pytest

from placer.base.errors import InfeasibleError
from placer.placement.check import violations
from tests.marks import slow
from tests.solve.oracle import hop_cost, least, step_time
from tests.solve.rules.rules_oracle import allowed_placements, ruled_case
from tests.solve.solving import solve

ROUNDING = 1e-9
MANY = 5_000
FEW = 100
CHUNK = 10
COSTS = {"time": step_time, "hop-cost": hop_cost}


def compare(seed: int, objective: str, kind: str) -> None:
    """Solve one random case and compare with the best of all legal placements."""
    topology, job = ruled_case(seed, objective, kind)
    case = f"{objective} {seed} {kind} {job.rules}"
    legal = allowed_placements(topology, job)
    if not legal:
        with pytest.raises(InfeasibleError):
            solve(topology, job, objective=objective)
        return
    best = least(topology, job, objective, legal)
    found = solve(topology, job, objective=objective)
    nodes = tuple(topology.node_of_gpu[found.placement.gpu_of_rank].tolist())
    assert violations(found.placement, topology, job) == [], case
    assert nodes in set(legal), case
    assert found.value == pytest.approx(
        COSTS[objective](topology, job, nodes), rel=ROUNDING
    ), case
    assert found.lower_bound <= best * (1 + ROUNDING), case
    if found.status == "optimal":
        assert found.value == pytest.approx(best, rel=ROUNDING), case
    else:
        assert found.value >= best * (1 - ROUNDING), case
        assert len(legal) > 1, case


@pytest.mark.parametrize("objective", ["time", "hop-cost"])
@pytest.mark.parametrize("first", [0, *slow(range(CHUNK, 30, CHUNK))])
def test_small_jobs(first: int, objective: str) -> None:
    """A job of 3 to 6 ranks is placed exactly when some placement keeps the rules."""
    for seed in range(first, first + CHUNK):
        compare(seed, objective, "small")


@pytest.mark.parametrize("objective", ["time", "hop-cost"])
def test_few_placements_are_counted_not_searched(objective: str) -> None:
    """Under any rules: the best is proved, where a bound alone would not reach it."""
    counted = 0
    for seed in range(30):
        topology, job = ruled_case(seed, objective, "small")
        legal = allowed_placements(topology, job)
        if not legal or len(legal) > FEW:
            continue
        found = solve(topology, job, objective=objective)
        assert found.status == "optimal", f"{objective} {seed} {job.rules}"
        counted += "under the rules" in found.argument
    assert counted


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["time", "hop-cost"])
@pytest.mark.parametrize("seed", [0, *slow(range(1, 4))])
def test_runs_of_ranks(seed: int, objective: str) -> None:
    """So is a node-contiguous launch of 9 to 24 ranks."""
    compare(seed, objective, "runs")


def test_one_part() -> None:
    """A job whose replicas, kept whole, are one part leaves nothing to polish."""
    compare(573, "hop-cost", "small")


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["time", "hop-cost"])
@pytest.mark.parametrize("kind", ["large", "runs"])
@pytest.mark.parametrize("seed", range(4, 8))
def test_many_larger_jobs(seed: int, kind: str, objective: str) -> None:
    """The same for jobs of up to 24 ranks."""
    compare(seed, objective, kind)
