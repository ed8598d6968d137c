"""Groups and messages of ranks in a workload, as `placer explain` says them."""

import pytest

import placer
from placer.base.errors import InputError
from placer.cost.step import StepModel
from placer.explain.group_cost import GroupCosts
from placer.placement.build import placement_of_plan
from placer.placement.inputs import inputs_of
from placer.report.subject_text import subjects_text
from tests.texts import FOLDER

MACHINE = "rack:2 node:3 gpu:4"


@pytest.fixture(scope="module")
def plan():
    return placer.place(MACHINE, FOLDER / "jobs/workload.yaml", effort="quick").plan


@pytest.fixture(scope="module")
def told(plan):
    """What is said of the ranks of the trainer, and of one of each rollout."""
    asked = [*range(8), 8, 13, 18]
    said = placer.explain(plan, ranks=asked)["subjects"]
    return dict(zip(asked, said, strict=True))


def test_groups_are_those_of_the_instance(plan, told):
    """Ranks are the workload's; costs are those of the role's job on its GPUs alone."""
    topology = placer.read_topology(MACHINE)
    gpus = placement_of_plan(plan, topology).gpu_of_rank
    trainer, rollout = inputs_of(plan).job.roles
    for rank, subject in told.items():
        groups = {facts["axis"]: facts for facts in subject["groups"]}
        role, first = (trainer, 0) if rank < 8 else (rollout, 8 + (rank - 8) // 4 * 4)
        name = "trainer." if rank < 8 else f"rollout:{(rank - 8) // 4}."
        own = gpus[first : first + role.job.world_size]
        costs = GroupCosts(StepModel(topology, role.job).step(own), own)
        assert groups.keys() == {f"{name}{axis}" for axis in costs.axes}
        for axis, members in costs.axes.items():
            facts = groups[f"{name}{axis}"]
            alone = costs.facts(axis, facts["group"])
            assert rank in facts["ranks"]
            assert facts["ranks"] == [r + first for r in members[facts["group"]]]
            assert facts["seconds"] == alone["seconds"]
            for hops in facts["neighbours"].values():
                assert all(hop["rank"] in facts["ranks"] for hop in hops)


def test_messages_are_the_flows_of_the_transfers(plan, told):
    """The trainer sends what all twelve ranks of rollouts get, each a quarter."""
    sent, got = {}, {}
    for rank, subject in told.items():
        ways = subject["messages"]
        for way, total in (("sends", sent), ("receives", got)):
            facts = ways.get(way, {"bytes": 0, "bytes_by_tier": {}, "largest": []})
            total[rank] = facts["bytes"]
            assert sum(facts["bytes_by_tier"].values()) == facts["bytes"]
            assert sum(hop["bytes"] for hop in facts["largest"]) == facts["bytes"]
            for hop in facts["largest"]:
                assert hop["host"] == plan.host_of_rank[hop["rank"]]
    assert sum(sent.values()) == 12 * 2e9
    assert [got[rank] for rank in told] == [0] * 8 + [2e9] * 3


def test_messages_in_words(plan):
    """From whom, where that is and how far."""
    found = placer.explain(plan, ranks=[8])
    text = subjects_text(found, ["node", "rack", "cluster"], 1)
    assert "\nmessages\n  receives 2 GB at the " in text
    assert "\n    1 GB from rank " in text
    assert "group rollout:0.talk:0 of 1: ranks 8-11" in text


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tp:0", "known: trainer.tp, trainer.pp, trainer.dp, rollout:0.talk"),
        ("trainer.tpp:0", 'did you mean "trainer.tp"'),
        ("rollout:9.talk:0", 'did you mean "rollout:0.talk"'),
        ("rollout:2.talk:1", "groups are rollout:2.talk:0 to rollout:2.talk:0"),
    ],
)
def test_groups_that_there_are_not(plan, name, message):
    """The error says how groups of roles are called."""
    with pytest.raises(InputError, match=message):
        placer.explain(plan, groups=[name])
