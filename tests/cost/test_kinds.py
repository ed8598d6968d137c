"""Many kinds of groups priced together cost what each costs alone, to the last bit."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from time import process_time

import numpy as np
import pytest

from placer.cost.custom import GroupTime, custom_times, group_time
from placer.cost.fabric import Fabric
from placer.cost.network import PlacedNetwork
from placer.cost.step import StepModel
from placer.job.axes import Parallelism
from placer.job.model import Collectives, Group, Job
from placer.solve.bounds.network.best_network import best_of_problem
from placer.solve.problem.compiled import Problem
from tests.cost.machines import racks
from tests.cost.random_cases import COLLECTIVES, random_case

SIZES = (1, 2, 2, 3, 4, 5, 8, 13, 16)


def random_groups(
    draw: np.random.Generator, ranks: int, count: int
) -> tuple[Group, ...]:
    """Kinds of a few communicators each, of one size or several, some of one rank."""

    def members() -> tuple[int, ...]:
        size = min(int(draw.choice(SIZES)), ranks)
        return tuple(draw.choice(ranks, size, replace=False).tolist())

    return tuple(
        Group(
            f"kind{number}",
            str(draw.choice(COLLECTIVES)),
            float(draw.choice([0.0, 1e3, 3e6, 1e9]) * draw.random()),
            float(draw.choice([1.0, 0.5, 7.0])),
            overlap=False,
            ranks=tuple(members() for _ in range(draw.integers(1, 4))),
        )
        for number in range(count)
    )


def assert_same(one: GroupTime, other: GroupTime) -> None:
    assert one.seconds == other.seconds
    assert one.group_seconds.tolist() == other.group_seconds.tolist()
    assert (one.traffic is None) == (other.traffic is None)
    if one.traffic is None or other.traffic is None:
        return
    assert one.traffic.bytes_by_tier.tolist() == other.traffic.bytes_by_tier.tolist()
    mine, alone = one.traffic.load, other.traffic.load
    for ups, downs in ((mine.up, alone.up), (mine.down, alone.down)):
        assert [up.tolist() for up in ups] == [down.tolist() for down in downs]
    assert mine.between.keys() == alone.between.keys()


@pytest.mark.parametrize("seed", range(60))
def test_kinds_together_cost_what_each_does_alone(seed: int) -> None:
    """Seconds, bytes and loads of every kind on any machine, with any algorithm."""
    case, draw = random_case(seed), np.random.default_rng(seed)
    algorithms = Collectives(
        str(draw.choice(["auto", "auto", "ring", "tree"])),
    )
    groups = random_groups(draw, case.job.world_size, 12)
    job = replace(case.job, groups=groups, collectives=algorithms)
    fabric = Fabric.of(case.topology)
    for on in (fabric, fabric.with_free_scale_out()):
        network = PlacedNetwork(on, case.gpu_of_rank)
        found = custom_times(network, job)
        for group in job.groups:
            assert_same(found[group.name], group_time(network, group, algorithms))


def many_groups(count: int) -> Job:
    draw = np.random.default_rng(count)
    return Job(
        name="many",
        parallelism=Parallelism(dp=256),
        groups=random_groups(draw, 256, count),
        launcher="free",
    )


def test_thousands_of_kinds_take_less_than_a_second() -> None:
    """A step with 3,000 kinds is priced in a fraction of the time each would take."""
    model = StepModel(racks(64, 2.0), many_groups(3_000))
    start = process_time()
    model.step(np.arange(256)[::-1].copy()).step_time_s  # noqa: B018
    assert process_time() - start < 1.0


def test_hops_of_a_relay_are_bounded_one_by_one() -> None:
    """The least time of a relay is that of its hops, whether or not ranks are tied."""
    job = replace(many_groups(40), require={"kind0": "rack"}, launcher="free")
    relays = [group for group in job.groups if group.collective == "relay"]
    assert relays
    network = best_of_problem(Problem.of(racks(64, 2.0), job))
    for group in relays:
        for ranks in group.ranks:
            members = np.array([ranks])
            hops = zip(members.T[:-1], members.T[1:], strict=True)
            alone = [network.send(*hop, group.size_bytes).seconds for hop in hops]
            told = [cost.seconds for cost in network.relay(members, group.size_bytes)]
            assert [*chain(*told)] == [*chain(*alone)]
