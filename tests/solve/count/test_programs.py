"""Programs on counts by either engine, against every choice of counts."""

from __future__ import annotations

import random
from itertools import product
from math import inf
from typing import Literal

import pytest

from placer.solve.count.engine import Limits, solve
from placer.solve.count.model import ONE, Program, Term


def random_program(rng: random.Random) -> Program:
    """Up to four columns of up to three, some rows with constants in them."""
    program = Program()
    columns = [
        program.column(most=rng.randint(0, 3), price=rng.randint(-3, 3))
        for _ in range(rng.randint(1, 4))
    ]
    for _ in range(rng.randint(0, 4)):
        chosen = rng.choices([*columns, ONE], k=rng.randint(1, 4))
        terms = [Term(column, rng.choice((-2, -1, 1, 2, 3))) for column in chosen]
        least = rng.choice((-inf, rng.randint(-4, 4)))
        most = rng.choice((inf, least, max(least, rng.randint(-4, 4))))
        program.row(terms, least, inf if most == -inf else most)
    return program


def least_price(program: Program) -> float:
    """The least price of counts that keep all rows, infinity without any."""
    every = product(*(range(int(most) + 1) for most in program.most))
    return min(
        (
            sum(n * price for n, price in zip(counts, program.price, strict=True))
            for counts in every
            if keeps(program, counts)
        ),
        default=inf,
    )


def keeps(program: Program, counts: tuple[int, ...]) -> bool:
    """Whether counts keep all rows."""
    return all(
        row.least <= sum(counts[c] * n for c, n in row.times.items()) <= row.most
        for row in program.rows
    )


@pytest.mark.parametrize("engine", ["cp-sat", "highs"])
def test_the_least_price(engine: Literal["cp-sat", "highs"]) -> None:
    """Both engines find counts of the least price, or that there are none."""
    found = 0
    for seed in range(60):
        program = random_program(random.Random(seed))
        answer = solve(program, Limits(1000.0, engine=engine))
        best = least_price(program)
        assert (answer.counts is None) == (best == inf), seed
        if answer.counts is None:
            continue
        found += 1
        assert keeps(program, tuple(answer.counts)), seed
        pairs = zip(answer.counts, program.price, strict=True)
        assert sum(n * price for n, price in pairs) == best, seed
        assert answer.is_proved, seed
        assert not answer.cut_short, seed
        assert answer.bound == pytest.approx(best), seed
    assert 20 < found < 60
