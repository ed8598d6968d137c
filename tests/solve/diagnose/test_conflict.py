"""The least change that helps, and smallest sets of rules in conflict."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from placer import place
from placer.base.errors import InfeasibleError
from placer.documents import parse_document
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.job.read import decode_job
from placer.job.rules import Pin, Rules
from placer.solve.diagnose.conflict import _least
from placer.solve.diagnose.counts import broken_counts
from placer.topology.read import parse_topology, read_topology
from tests.solve.rules.rules_oracle import allowed_placements, ruled_case
from tests.solve.solving import solve


@pytest.mark.parametrize("count", range(12))
@pytest.mark.parametrize("first", range(13))
def test_finds_the_first_number_that_fits(count: int, first: int) -> None:
    """Of numbers that fit from some place on, the first that does is found."""
    numbers = tuple(range(100, 100 + count))
    expected = 100 + first if first < count else None
    assert _least(numbers, lambda number: number >= 100 + first) == expected


def test_out_of_time_gives_one_that_fits() -> None:
    """When answers stop coming, what is named still fits."""
    answers = iter([True, False, True])
    found = _least(range(40), lambda _: next(answers, None))
    assert found == 29  # asked: 39, 19, 29
    assert _least((1, 2), lambda _: None) is None


def named_rules(text: str, rules: Rules) -> Rules:
    """Those of the rules that an error names."""
    return Rules(
        pin=tuple(pin for pin in rules.pin if str(pin) in text),
        at_most={
            tier: n
            for tier, n in rules.at_most.items()
            if f"at most {n} replica{'s' * (n > 1)} in a {tier}" in text
        },
        spares={
            tier: n
            for tier, n in rules.spares.items()
            if f"{n} spare node{'s' * (n > 1)} in every {tier}" in text
        },
    )


@pytest.mark.parametrize("objective", ["time", "hop-cost"])
@pytest.mark.parametrize("first", range(0, 40, 10))
def test_named_rules_are_in_conflict(first: int, objective: str) -> None:
    """The rules that an error blames cannot be kept, by trying all placements."""
    for seed in range(first, first + 10):
        topology, job = ruled_case(seed, objective, "small")
        if allowed_placements(topology, job):
            continue
        if not allowed_placements(topology, replace(job, rules=Rules())):
            continue
        with pytest.raises(InfeasibleError) as caught:
            solve(topology, job, objective=objective)
        blamed = named_rules(str(caught.value).split("\n  hint:")[0], job.rules)
        assert blamed, str(caught.value)
        assert allowed_placements(topology, replace(job, rules=blamed)) == []
        assert "no placement was found" not in str(caught.value)


def test_rules_that_each_stand_in_the_way_are_all_named() -> None:
    """Giving up one budget does not help while the other cannot be kept either."""
    text = """{format: placer/topology, version: 1, name: two, tiers: [
        {name: node, size: 4, bandwidth: 1GB/s, latency: 1us, scale_up: true},
        {name: cluster, bandwidth: 1GB/s, latency: 1us}], nodes: [{names: "a,b"}],
        budgets: [{hosts: a, gpus: 3}, {hosts: b, gpus: 2}]}"""
    job = """{format: placer/job, version: 1, name: ring, parallelism: {dp: 8},
        weights: {dp: 1}}"""
    with pytest.raises(InfeasibleError) as caught:
        place(parse_topology(text, "two.yaml"), decode_job(parse_document(job, "j")))
    assert "this rule cannot be kept: at most 3 GPUs on a" in str(caught.value)
    assert "this rule cannot be kept: at most 2 GPUs on b" in str(caught.value)


@pytest.mark.parametrize(
    ("pins", "expected"),
    [
        ({0: ["c"], 2: ["d"]}, "2 replicas are pinned to c,d, which may hold 1"),
        ({0: ["a"], 1: ["a"]}, "2 ranks are pinned to a, which may hold 1"),
        ({0: ["b"], 1: ["b"], 2: ["b"]}, "ranks 0-2 are pinned to b: 3 ranks, 2 GPUs"),
    ],
)
def test_pins_are_counted_against_every_rule(
    pins: dict[int, list[str]], expected: str
) -> None:
    """Pinned ranks too many for a rack, a budget or GPUs are told by number."""
    text = """{format: placer/topology, version: 1, name: four, tiers: [
        {name: node, size: 2, bandwidth: 1GB/s, latency: 1us, scale_up: true},
        {name: rack, bandwidth: 1GB/s, latency: 1us},
        {name: cluster, bandwidth: 1GB/s, latency: 1us}],
        nodes: [{names: "a,b", rack: x}, {names: "c,d", rack: y}],
        budgets: [{hosts: a, gpus: 1}]}"""
    job = """{format: placer/job, version: 1, name: ring, parallelism: {tp: 2, dp: 2},
        weights: {dp: 1}, launcher: {ranks: free}}"""
    pin = tuple(Pin((rank,), tuple(hosts)) for rank, hosts in pins.items())
    rules = Rules(pin=pin, at_most={"rack": 1})
    with pytest.raises(InfeasibleError) as caught:
        place(
            parse_topology(text, "four.yaml"),
            decode_job(parse_document(job, "j")),
            rules=rules,
        )
    assert expected in str(caught.value)


def test_pins_to_hosts_that_a_part_of_a_machine_lacks() -> None:
    """The line names the ranks, and ties them to nobody."""
    machine = read_topology("node:2 gpu:4")
    rules = Rules(pin=(Pin((1,), machine.node_names[1:]),))
    job = Job("ring", Parallelism(dp=4), weights={"dp": 1.0}, rules=rules)
    found = list(broken_counts(machine.by_island.select(np.array([0])), job))
    assert found == ["ranks 1 are pinned to hosts that are not there: 1 ranks, 0 GPUs"]


@pytest.mark.parametrize("between", [{}, {1: (0, 1)}, {1: (1,)}])
def test_ranks_between_two_of_a_host_are_on_it(
    between: dict[int, tuple[int, ...]],
) -> None:
    """A launch in order has them there, whatever hosts they are pinned to besides."""
    machine = read_topology("node:2 gpu:3")
    pin = tuple(
        Pin((rank,), tuple(machine.node_names[node] for node in nodes))
        for rank, nodes in {0: (0,), 3: (0,), **between}.items()
    )
    job = Job("ring", Parallelism(dp=6), weights={"dp": 1.0}, rules=Rules(pin=pin))
    where = f"pins bring consecutive ranks 0-3 to {machine.node_names[0]}"
    assert [*broken_counts(machine.by_island, job)] == [f"{where}: 4 ranks, 3 GPUs"]


def test_replicas_that_domains_may_not_hold_are_no_lack_of_gpus() -> None:
    """Two replicas, one allowed: the line counts ranks, since eight GPUs are there."""
    machine = read_topology("node:4 gpu:2")
    rules = Rules(at_most={"cluster": 1})
    axes = Parallelism(tp=2, dp=2)
    job = Job("ring", axes, weights={"dp": 1.0}, rules=rules)
    found = [*broken_counts(machine.by_island, job)]
    assert found == ["there is room for 2 of the 4 ranks: 2 ranks too many"]
