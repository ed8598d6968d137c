"""Annealing change by change: temperatures, and Metropolis' rule."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest

from placer.solve.run.budget import Budget
from placer.solve.run.cooling import accepts, cooling, exchanged


def test_it_cools_by_the_same_share_with_every_change() -> None:
    heat = np.array(list(cooling(8.0, 0.5, 40, Budget(60.0))))
    assert len(heat) == 40
    assert heat[0] == 8.0
    assert heat[1:] / heat[:-1] == pytest.approx(np.full(39, (0.5 / 8) ** (1 / 40)))


def test_it_ends_with_the_budget_where_that_is_asked() -> None:
    assert not list(cooling(1.0, 0.1, 100, Budget(0.0)))
    taken: list[float] = []
    budget = Budget(60.0).until(lambda: len(taken) >= 3)
    for heat in cooling(1.0, 0.1, 100, budget, 8):
        taken.append(heat)  # noqa: PERF402
    assert len(taken) == 8


def test_a_gain_is_made_and_a_loss_as_often_as_the_rule_says() -> None:
    rng = np.random.default_rng(1)
    assert accepts(-1.0, 0.0, rng.random)
    assert not accepts(1.0, 0.0, rng.random)
    often = sum(accepts(1.0, 2.0, rng.random) for _ in range(20_000)) / 20_000
    assert often == pytest.approx(exp(-1 / 2), abs=0.02)


def test_items_change_places_with_as_many_others() -> None:
    """Either way round; nothing where none are as large, or it is among them."""
    row, sizes = list("abcd"), [3, 1, 2, 1]
    assert exchanged(row, sizes, 0, 1) == (list("bcad"), list("bc"))
    assert exchanged(row, sizes, 1, 3) == (list("adcb"), list("d"))
    assert exchanged(row, sizes, 3, 1) == (list("adcb"), list("b"))
    assert exchanged(row, sizes, 0, 2) == (list("cdba"), list("cd"))
    assert exchanged(row, sizes, 0, 0) is None
    assert exchanged(row, sizes, 1, 2) is None
    assert exchanged(row, sizes, 0, 3) is None
