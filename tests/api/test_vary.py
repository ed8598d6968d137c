"""Placements of the same cost in which nothing stays together, and what they tell."""

from __future__ import annotations

import json
from time import process_time
from typing import TYPE_CHECKING

import numpy as np
import pytest

import placer
from placer import testing
from placer.explain.suspects import Run, verdict_of
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.solve.problem.compiled import Problem
from placer.solve.rearrange.vary import varied
from tests.marks import slow

if TYPE_CHECKING:
    from pathlib import Path

    from placer.explain.suspects import Verdict
    from placer.placement.plan import Plan

RESTARTS = 4


def plan_of(machine: str, **axes: int) -> Plan:
    require = {"pp": "rack"} if machine.startswith("rack") else {}
    weights = {"tp": 1000, "pp": 10, "dp": 1}
    job = testing.job("j", **axes, weights=weights, require=require)
    return placer.place(machine, job).plan


def held(plan: Plan, axis: str, tier: str) -> set[tuple[str, int]]:
    """Pairs of a place and the stage or replica that it holds."""
    assert plan.axes is not None
    places = plan.nodes if tier == "node" else plan.domains[tier]
    of_rank = [places[node] for node in plan.node_of_rank]
    return {*zip(of_rank, plan.axes.coordinates[axis].tolist(), strict=True)}


MACHINES = {
    "hosts": ("dgx-h100-32x8", {"tp": 8, "pp": 4, "dp": 8}, {"node": ("pp", "dp")}),
    "racks": (
        "rack:8 node:10 gpu:4",
        {"tp": 4, "pp": 8, "dp": 8},
        {"node": ("pp", "dp"), "rack": ("dp",)},
    ),
}


@pytest.mark.parametrize("name", MACHINES)
def test_nothing_stays_together(name: str) -> None:
    """No node keeps a stage or a replica and no rack a replica, at the same cost."""
    machine, axes, apart = MACHINES[name]
    plans = placer.vary(plan_of(machine, **axes), 4)
    assert len({plan.bound["value"] for plan in plans}) == 1
    assert len({plan.score["hop_cost"] for plan in plans}) == 1
    for plan in plans:
        placer.check(plan)
    for tier, kinds in apart.items():
        for axis in kinds:
            pairs = [held(plan, axis, tier) for plan in plans]
            assert sum(map(len, pairs)) == len(set().union(*pairs)), (tier, axis)


def test_rules_hold() -> None:
    """Where rules forbid exchanges, the plans that break them are not given."""
    rules = {
        "pin": [
            {"ranks": f"{r}-{r + 3}", "nodes": f"r{r // 8 + 1}-n{r // 4 % 2 + 1}"}
            for r in range(0, 32, 4)
        ]
    }
    job = testing.job(tp=4, pp=2, dp=4, weights={"tp": 9, "pp": 1}, rules=rules)
    plan = placer.place("rack:4 node:2 gpu:4", job).plan
    with pytest.raises(placer.InfeasibleError, match="only 1 was found"):
        placer.vary(plan, 3)


def slowed(plan: Plan, kind: str, name: str, rng: np.random.Generator) -> np.ndarray:
    """Times of the ranks of a plan with a slow node, or a slow link of a node.

    A slow link is seen in the gradients: by every group with a rank on the node.
    """
    assert plan.axes is not None
    at = plan.axes.coordinates
    times = 1 + 0.01 * rng.standard_normal(plan.world_size)
    on = np.array(plan.host_of_rank) == name
    if kind == "node link":
        group = (at["pp"] * plan.axes.cp + at["cp"]) * plan.axes.tp + at["tp"]
        on = np.isin(group, group[on])
    if kind == "replica":
        on = at["dp"] == int(name)
    times[on] *= 1.06
    return times


def found_after(plans: list[Plan], kind: str, name: str) -> tuple[int, Verdict]:
    """After how many restarts something is named, and what."""
    rng = np.random.default_rng(0)
    runs = []
    for restarts, plan in enumerate(plans):
        times = slowed(plan, kind, name, rng)
        runs.append(Run(plan, np.arange(len(times)), times))
        verdict = verdict_of(runs)
        if verdict.named:
            return restarts, verdict
    return len(plans), verdict


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("kind", ["node", "node link", "replica"])
def test_what_is_planted_is_named(kind: str, name: str) -> None:
    """A slow node, link or replica is named, rightly, after four restarts at most."""
    machine, axes, _ = MACHINES[name]
    plans = placer.vary(plan_of(machine, **axes), RESTARTS + 1)
    names = plans[0].nodes[::13] if kind != "replica" else ("0", "5")
    for planted in names:
        restarts, verdict = found_after(plans, kind, planted)
        assert restarts <= RESTARTS, (planted, verdict)
        assert verdict.named is not None
        assert (verdict.named.kind, verdict.named.name) == (kind, planted)


def test_nodes_to_avoid_stay_empty() -> None:
    """Four full racks leave out a node of the fifth, which no exchange fills."""
    given = {"weights": {"tp": 9, "pp": 1}, "rules": {"avoid": "r3-n2"}}
    job = testing.job(tp=4, pp=4, dp=4, **given)
    plan = placer.place("rack:5 node:4 gpu:4", job).plan
    plans = placer.vary(plan, RESTARTS + 1)
    assert len(plans) == RESTARTS + 1
    assert not any("r3-n2" in other.nodes for other in plans)


def test_one_placement_cannot_tell() -> None:
    """In one placement a slow node and what it holds are the same."""
    machine, axes, _ = MACHINES["hosts"]
    plan = plan_of(machine, **axes)
    times = slowed(plan, "node", plan.nodes[3], np.random.default_rng(1))
    verdict = placer.diagnose([plan], [times])
    assert verdict.named is None
    assert verdict.alike > 1


def test_wrong_times() -> None:
    """Times that are not one for each rank, or are no times, are refused."""
    machine, axes, _ = MACHINES["hosts"]
    plan = plan_of(machine, **axes)
    for times in ([1.0] * 3, [0.0] * 256, [float("nan")] * 256):
        with pytest.raises(placer.InputError):
            placer.diagnose([plan], [times])


def test_hosts_of_islands(tmp_path: Path) -> None:
    """Hosts are exchanged whole: a launcher counts the GPUs of a host in order."""
    head = {"format": "placer/topology", "version": 1, "name": "islands"}
    slow = {"bandwidth": "50GB/s", "latency": "5us"}
    fast = {"bandwidth": "900GB/s", "latency": "1us", "scale_up": True}
    tiers = [
        {"name": "island", "size": 4, **fast},
        {"name": "node", "size": 2, **slow},
        {"name": "cluster", **slow},
    ]
    path = tmp_path / "machine.json"
    path.write_text(json.dumps(head | {"tiers": tiers, "layout": "cluster:1 node:8"}))
    plans = placer.vary(plan_of(str(path), tp=4, pp=4, dp=4), 3)
    for plan in plans:
        placer.check(plan)
    assert len({plan.score["hop_cost"] for plan in plans}) == 1
    pairs = [held(plan, "dp", "node") for plan in plans]
    assert len(set().union(*pairs)) > len(pairs[0])


def slow_link(plan: Plan, host: str) -> np.ndarray:
    """What each rank's gradients take where the link of one host is slow."""
    assert plan.axes is not None
    at = plan.axes.coordinates
    group = at["pp"] * plan.axes.tp + at["tp"]
    crossed = group[np.array(plan.host_of_rank) == host]
    return np.where(np.isin(group, crossed), 1.05, 1.0)


@pytest.mark.parametrize("host", slow(["r01-n3", "r05-n6", "r08-n1"]))
def test_the_next_placement_tells_apart_what_fits_alike(host: str) -> None:
    """Racks that hold a stage or two: fixed placements never part their hosts."""
    axes = {"tp": 4, "pp": 8, "dp": 12}
    plan = plan_of("cluster:1 rack:12 node:8 gpu:4", **axes)
    plans = [plan]
    while len(plans) <= RESTARTS:
        times = [slow_link(one, host) for one in plans]
        verdict = placer.diagnose(plans, times)
        if verdict.named:
            break
        assert len(verdict.open) == verdict.alike > 1
        plans.append(placer.vary(plan, 2, seed=len(plans), apart=verdict)[1])
    assert verdict.named is not None
    assert (verdict.named.name, verdict.named.axis) == (host, "dp")
    assert not verdict.open
    assert len({one.score["hop_cost"] for one in plans}) == 1
    placer.check(plans[-1])


@pytest.mark.slow
def test_a_large_flat_machine_is_varied_soon() -> None:
    """A thousand nodes alike change places four times in three seconds of CPU."""
    machine = placer.read_topology("cluster:1 node:1024 gpu:8")
    axes = Parallelism(tp=8, pp=16, dp=64, etp=8)
    job = Job("j", axes, weights={"tp": 9, "dp": 1}, sha256="j")
    problem = Problem.of(machine, job)
    started = process_time()
    found = list(varied(problem, np.arange(8192), 5))
    assert process_time() - started < 3
    node, at = machine.node_of_gpu, axes.coordinates
    for axis in ("pp", "dp"):
        pairs = [{*zip(node[gpus], at[axis], strict=True)} for gpus in found]
        assert sum(map(len, pairs)) == len(set().union(*pairs)) == 5 * 1024
