"""What the maps of a report are drawn from."""

from base64 import b64decode

import numpy as np
from hypothesis import given

from placer.placement.host_orders import natural_key
from placer.placement.plan import Plan
from placer.report.matching import match
from placer.report.page.seats import NOWHERE, partners, shown
from placer.report.page.side import Side
from tests.report.test_diff import replicas, two_plans


def decoded(text: str) -> list[int]:
    return np.frombuffer(b64decode(text), dtype="<i4").tolist()


def sides_of(*plans: Plan) -> list[Side]:
    return [Side("", plan, None) for plan in plans]


@given(two_plans())
def test_seats(plans: tuple[Plan, Plan]) -> None:
    """Every rank has the GPU of its plan, every node the domains of its plan."""
    machine = shown(sides_of(*plans))
    names = machine.names
    assert set(names[0]) == {*plans[0].nodes, *plans[1].nodes}
    owner = np.repeat(np.arange(len(names[0])), machine.gpus)
    first = np.cumsum(machine.gpus) - machine.gpus
    for plan in plans:
        seats = machine.seats(plan)
        assert [names[0][owner[seat]] for seat in seats] == list(plan.host_of_rank)
        assert (seats - first[owner[seats]]).tolist() == plan.gpu_of_rank.tolist()
        for level, tier in enumerate(machine.levels[1:], 1):
            at = machine.domain_of_node(level)
            for node, domain in zip(plan.nodes, plan.domains[tier], strict=True):
                assert names[level][at[names[0].index(node)]] == domain


@given(two_plans())
def test_domains_are_in_the_order_of_their_names(plans: tuple[Plan, Plan]) -> None:
    """Racks follow each other by block and name, nodes by name inside their rack."""
    machine = shown(sides_of(*plans))
    paths = [
        [machine.names[level][machine.domain_of_node(level)[node]]
         for level in reversed(range(len(machine.levels)))]
        for node in range(len(machine.names[0]))
    ]  # fmt: skip
    keys = [[natural_key(name) for name in path] for path in paths]
    assert keys == sorted(keys)


def test_partners() -> None:
    """Ranks that do the same work are partners; those that stop or start have none."""
    few, many = replicas(2, "tp-cp-ep-pp-dp"), replicas(3, "tp-cp-ep-pp-dp")
    assert partners(match(few, few), few.world_size) == ""
    assert decoded(partners(match(few, many), 12)) == list(range(8))
    back = decoded(partners(match(many, few), 8))
    assert back == [*range(8), *[NOWHERE] * 4]
