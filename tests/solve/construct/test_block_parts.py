"""Expert groups in parts that the bound counts, block by block."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from placer.solve.bounds.certificate import prove
from placer.solve.bounds.experts.part_steps import PartSteps
from placer.solve.construct.experts.block_parts import (
    block_fills,
    block_parts,
    held_as_counted,
)
from placer.solve.construct.units.in_parts import in_parts_fills
from placer.solve.count import blocks
from placer.solve.count.blocks import solved_in_blocks
from placer.solve.count.engine import Limits
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent
from tests.solve.construct.test_walked_parts import drawn


@pytest.mark.slow
def test_what_the_bound_counts_is_a_good_placement() -> None:
    """Hosts of 5 to 9 GPUs behind thin uplinks: better than parts as even as can be.

    With few words, so that no stage waits for the one with the output layer.
    """
    given, _ = drawn(3)
    assert given.job.model is not None
    few_words = replace(given.job.model, vocab=8)
    problem = Problem.of(given.machine, replace(given.job, model=few_words), "time")
    incumbent = Incumbent(problem, Budget(60))
    incumbent.offer_all(in_parts_fills(problem))
    prove(problem, incumbent)
    even = incumbent.value
    incumbent.offer_all(block_fills(problem, incumbent, Budget(60)))
    assert incumbent.value < 0.98 * even
    assert incumbent.is_within(0.01)


@pytest.mark.slow
def test_blocks_whose_patterns_do_not_mix_are_asked_as_a_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without a round of patterns what is counted is laid out all the same."""
    monkeypatch.setattr(blocks, "ROUNDS", 0)
    problem, _ = drawn(1)
    incumbent = Incumbent(problem, Budget(60))
    incumbent.offer_all(in_parts_fills(problem))
    even = incumbent.value
    incumbent.offer_all(block_fills(problem, incumbent, Budget(60)))
    assert incumbent.value < 0.98 * even


def test_a_walk_comes_before_programs() -> None:
    """Programs that never end leave better placements than even parts all the same."""
    problem, _ = drawn(1)
    problem = problem.with_params(parts_work_in_all=0.0)
    incumbent = Incumbent(problem, Budget(60))
    incumbent.offer_all(in_parts_fills(problem))
    even = incumbent.value
    incumbent.offer_all(block_fills(problem, incumbent, Budget(60)))
    assert incumbent.value == even
    block_parts(problem, incumbent, Budget(60))
    assert incumbent.value < 0.98 * even


@pytest.mark.parametrize("seed", [1, 3, 10])
def test_units_are_whole_and_domains_hold_them(seed: int) -> None:
    """Fills, units and shares that are counted fit together."""
    problem, asked = drawn(seed)
    by_step = PartSteps.finest(asked.parts, problem.params)
    stated = by_step.stated(float(by_step.steps[-1]))
    assert stated is not None
    counts = solved_in_blocks(stated.program, Limits(4.0)).counts
    assert counts is not None
    held = held_as_counted(asked, stated, counts)
    assert held.shape == (asked.parts.units.number, len(asked.ground.room))
    assert (held.sum(axis=1) == asked.parts.units.pieces).all()
    assert (held.sum(axis=0) <= asked.ground.room).all()
    assert (held >= 0).all()
    walked = sum(counts[column] for column, way in stated.ways if way.home < 0)
    homes = asked.ground.outer
    lies_in = np.array([len(np.unique(homes[row > 0])) for row in held])
    assert (lies_in > 1).sum() <= walked
