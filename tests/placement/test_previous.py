"""Seats of a previous plan on the machine as it is now."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from placer.base.errors import InputError
from placer.job.axes import MEGATRON_DEFAULT_ORDER
from placer.job.orders import in_order
from placer.placement.build import build_plan
from placer.placement.placement import Placement
from placer.placement.previous import PreviousPlan
from tests.plan_cases import machine, tiny, tiny_plan


def test_the_same_machine_and_job() -> None:
    """Every rank is where the plan has it."""
    topology, job = tiny()
    found = PreviousPlan(tiny_plan(), topology).seats(job)
    assert found.gpu_of_rank.tolist() == list(range(16))
    assert (found.lost, found.is_new.any()) == ((), False)
    assert found.summary(np.arange(16)) == {"kept": 16, "moved": 0, "new": 0}


def test_a_node_that_is_gone() -> None:
    """Its ranks have no seat any more; the domains it was in are remembered."""
    topology, job = tiny()
    # Node n002 is the first of rack r1 in block b0.
    left = topology.select(np.array([0, 1, 3, 4, 5, 6, 7]))
    found = PreviousPlan(tiny_plan(), left).seats(job)
    (lost,) = found.lost
    assert lost.ranks.tolist() == [4, 5]
    assert lost.number == -1
    node, *around, _ = found.domain[:, 4].tolist()
    assert node >= left.num_nodes
    assert [left.domain_names[t][d] for t, d in enumerate(around, 1)] == ["r1", "b0"]
    expected = [*range(4), -1, -1, *range(4, 14)]
    assert found.gpu_of_rank.tolist() == expected
    assert found.summary(np.arange(16)) == {"kept": 4, "moved": 12, "new": 0}


def test_a_node_with_fewer_gpus() -> None:
    """All ranks of a node that lost a GPU need another seat."""
    _, job = tiny()
    topology = machine([("b0", [2, 1]), ("b0", [2, 2]), ("b1", [2, 2]), ("b1", [2, 2])])
    found = PreviousPlan(tiny_plan(), topology).seats(job)
    assert [lost.ranks.tolist() for lost in found.lost] == [[2, 3]]
    assert found.lost[0].number == 1


def test_ranks_correspond_by_what_they_do() -> None:
    """In another order the same work is the same rank, and dp may grow or shrink."""
    topology, job = tiny()
    plan = tiny_plan()
    other = in_order(job, MEGATRON_DEFAULT_ORDER)
    found = PreviousPlan(plan, topology).seats(other)
    mine, theirs = job.parallelism.coordinates, other.parallelism.coordinates
    for rank, gpu in enumerate(found.gpu_of_rank.tolist()):
        assert all(mine[a][gpu] == theirs[a][rank] for a in ("tp", "cp", "pp", "dp"))
    for dp, kept in ((2, 8), (6, 16)):
        axes = replace(job.parallelism, dp=dp)
        found = PreviousPlan(plan, topology).seats(replace(job, parallelism=axes))
        assert int((found.gpu_of_rank >= 0).sum()) == kept
        assert int(found.is_new.sum()) == max(0, 4 * dp - 16)


def test_plans_without_axes_correspond_by_number() -> None:
    """A plan that names no axes can only be compared rank by rank."""
    topology, job = tiny()
    plan = replace(tiny_plan(), job={"name": "j", "sha256": "", "order": ""})
    assert PreviousPlan(plan, topology).seats(job).gpu_of_rank.tolist() == list(
        range(16)
    )
    axes = replace(job.parallelism, dp=2)
    with pytest.raises(InputError, match="16 ranks against 8"):
        PreviousPlan(plan, topology).seats(replace(job, parallelism=axes))


def test_another_job_is_refused() -> None:
    """Ranks of another tensor parallel size do other work."""
    topology, job = tiny()
    axes = replace(job.parallelism, tp=1, etp=1, dp=8)
    with pytest.raises(InputError, match="tp 2 against 1, etp 2 against 1"):
        PreviousPlan(tiny_plan(), topology).seats(replace(job, parallelism=axes))


def test_hosts_of_another_machine() -> None:
    """Where no host is known any more every rank is lost, and nothing fails."""
    topology, job = tiny()
    plan = build_plan(topology, job, Placement(np.arange(16)))
    plan = replace(
        plan,
        nodes=tuple(f"x{name}" for name in plan.nodes),
        domains={"rack": tuple("other" for _ in plan.nodes)},
    )
    found = PreviousPlan(plan, topology).seats(job)
    assert (found.gpu_of_rank == -1).all()
    assert {lost.number for lost in found.lost} == {-1}
    for row, known in zip(found.domain[:3], topology.domain_names, strict=False):
        assert row.min() >= len(known)
    assert not found.domain[3].any()
