"""``placer emit --role``: one instance of a role as a job of its own."""

import csv
import io
import json
from pathlib import Path

import pytest

import placer
from placer.base.errors import InputError
from placer.emit.role_part import role_part
from tests.commands import run
from tests.emit.readback import OF_PLANS
from tests.texts import FOLDER


@pytest.fixture(scope="module")
def plan():
    file = FOLDER / "jobs/workload-roles.yaml"
    return placer.place("rack:2 node:3 gpu:4", file, effort="quick").plan


def test_every_instance_has_its_ranks_from_0(plan):
    """Hosts and GPUs are those of the whole plan, as the role map has them."""
    for entry in json.loads(placer.emit(plan, "role-map"))["instances"]:
        asked = f"{entry['role']}:{entry['instance']}"
        text = placer.emit(plan, "csv", role=asked)
        rows = list(csv.DictReader(io.StringIO(text)))
        assert [int(row["rank"]) for row in rows] == [*range(4)]
        assert [row["host"] for row in rows] == entry["host"]
        assert [int(row["gpu"]) for row in rows] == entry["gpu"]


def test_a_part_has_the_degrees_of_its_role(plan):
    """So that flags and meshes are those of the role's own job."""
    part = role_part(plan, "trainer")
    assert part.job["name"] == "rl-trainer-0"
    assert part.axes is not None
    assert (part.axes.tp, part.axes.pp, part.axes.dp) == (2, 2, 1)
    assert not part.role_of_rank
    assert set(part.domains) == set(plan.domains)


@pytest.mark.parametrize("name", sorted(OF_PLANS))
def test_every_format_takes_a_part(plan, name, tmp_path):
    """A role is launched as any job is."""
    path = placer.emit(plan, name, tmp_path / "out", role="rollout:1")
    assert Path(path).exists()


@pytest.mark.parametrize(
    ("asked", "message", "hint"),
    [
        ("rollout", "rollout has 2 instances", "rollout:0 to rollout:1"),
        ("rollout:2", 'rollout has no instance "2"', "rollout:0 to rollout:1"),
        ("trainer:x", 'trainer has no instance "x"', "trainer:0"),
        ("critic", 'there is no role "critic"', "known: trainer, rollout"),
    ],
)
def test_what_is_not_there_is_said(plan, asked, message, hint):
    """With what there is."""
    with pytest.raises(InputError, match=message) as caught:
        role_part(plan, asked)
    assert caught.value.problems[0].hint == hint


def test_the_command_prints_a_role(plan, tmp_path):
    """One host a line for the four ranks of the trainer."""
    file = tmp_path / "plan.json"
    placer.write_plan(plan, file)
    done = run("emit", file, "slurm-hostfile", "--role", "trainer")
    assert done.stdout.split() == [plan.host_of_rank[rank] for rank in range(4)]
