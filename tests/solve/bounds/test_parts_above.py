"""What gradients expose in any case adds to what parts of expert groups ask for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from placer.solve.bounds.certificate import lower_bound
from placer.solve.bounds.experts import part_steps
from placer.solve.bounds.network.limit import Floor
from placer.solve.bounds.steps import cases
from placer.solve.problem.compiled import Problem
from tests.solve.construct.test_whole_first import job, machine

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

# Four hosts of 7 for three groups of 8: some replica has a part of 2 or less.
PROBLEM = Problem.of(
    machine([7, 7, 7, 7], [0] * 4),
    replace(job(ep=8, dp=8, pp=3), launcher="node-contiguous"),
    "time",
)


def bound_with(
    monkeypatch: pytest.MonkeyPatch, floors: Sequence[Floor]
) -> tuple[float, str]:
    """The bound where every placement has one of these floors, and its reason."""
    monkeypatch.setattr(cases, "floors", lambda _case: [list(floors)])
    found = lower_bound(PROBLEM, 0)
    return found.value, found.argument


def test_exposed_gradients_add_to_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second of gradients comes on top of the slowest replica's parts."""
    alone, argument = bound_with(monkeypatch, [Floor()])
    assert "the smallest of a group setting its pace" in argument
    more, argument = bound_with(monkeypatch, [Floor(exposed_s=1.0)])
    assert "the smallest of a group setting its pace" in argument
    assert 0.95 < more - alone <= 1.0


def test_the_cheapest_floor_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Either pipelines are slow or gradients exposed: placements have the cheaper."""
    alone, _ = bound_with(monkeypatch, [Floor()])
    slow = Floor(pipeline_s=alone + 0.5)
    both, _ = bound_with(monkeypatch, [slow, Floor(exposed_s=1.0)])
    assert alone + 0.45 < both < alone + 0.75
    less, _ = bound_with(monkeypatch, [slow, Floor(exposed_s=0.25)])
    assert alone + 0.2 < less <= alone + 0.25


def test_more_stages_than_sets_that_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With too many sets of slow stages the bound is no higher, and there is one."""
    alone, _ = bound_with(monkeypatch, [Floor()])
    monkeypatch.setattr(part_steps, "MOST_SETS", 1)  # there are three of one stage
    less, _ = bound_with(monkeypatch, [Floor()])
    assert 0 < less <= alone
