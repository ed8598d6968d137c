"""Programs in blocks have the solutions of the same programs as a whole."""

from __future__ import annotations

import random

import pytest

from placer.solve.count import blocks
from placer.solve.count.blocks import Parted, solved_in_blocks
from placer.solve.count.engine import Answer, Limits, solve
from placer.solve.count.model import Program, Term

ENOUGH = Limits(10.0)


def drawn(seed: int) -> Program:
    """Blocks of few columns, some alike, that share a few rows with two others."""
    rng = random.Random(f"blocks {seed}")
    program = Program()
    sorts = [
        [(rng.randint(1, 5), rng.randint(2, 9)) for _ in range(3)] for _ in range(2)
    ]
    gains = [[rng.randint(-2, 4) for _ in range(3)] for _ in range(2)]
    shared: list[list[Term]] = [[], []]
    for block in range(rng.choice((2, 3, 4))):
        sort = rng.choice(sorts)
        columns = [program.column(most, block=block) for most, _ in sort]
        weights = [Term(c, n) for c, (_, n) in zip(columns, sort, strict=True)]
        program.row(weights, rng.choice((0, 3)), 11)
        for row, gain in zip(shared, gains, strict=True):
            row += [Term(c, n) for c, n in zip(columns, gain, strict=True)]
    common = [program.column(3) for _ in range(2)]
    for row, column in zip(shared, common, strict=True):
        least = rng.randint(0, 20)
        most = least + rng.choice((0, 2, 30))
        program.row([*row, Term(column, -rng.randint(1, 3))], least, most)
    program.row([Term(column) for column in common], rng.randint(0, 5))
    return program


def holds(program: Program, counts: list[int]) -> bool:
    """Whether counts keep to all rows and limits of columns."""
    is_within = all(0 <= n <= m for n, m in zip(counts, program.most, strict=True))
    sums = [sum(n * counts[c] for c, n in row.times.items()) for row in program.rows]
    return is_within and all(
        row.least <= total <= row.most
        for row, total in zip(program.rows, sums, strict=True)
    )


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_blocks_answer_as_the_whole(first: int) -> None:
    """Solutions keep to all rows; a proof that there are none holds for the whole."""
    answers = []
    for seed in range(first, first + 50):
        program = drawn(seed)
        whole = solve(program, ENOUGH)
        found = Parted(program).answer(ENOUGH)
        assert found.counts is None or holds(program, found.counts)
        if found.is_proved:
            assert (found.counts is None) == (whole.counts is None)
        assert solved_in_blocks(program, ENOUGH).is_proved
        answers.append((found.is_proved, found.counts is None))
    assert (True, True) in answers
    assert (True, False) in answers


def test_blocks_alike_count_once() -> None:
    """Two of three blocks are alike: they have their patterns in common."""
    program = Program()
    for block, most in enumerate((4, 4, 5)):
        column = program.column(most, block=block)
        program.row([Term(column, 2)], most=7)
    program.row([Term(column) for column in range(3)], 9)
    parted = Parted(program)
    assert (len(parted.kinds), parted.blocks) == (2, 3)
    assert parted.answer(ENOUGH).counts == [3, 3, 3]
    program.row([Term(column) for column in range(3)], 10)
    refuted = Parted(program).answer(ENOUGH)
    assert refuted.is_proved
    assert refuted.counts is None


def test_a_relaxation_without_solution_is_refuted_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No patterns are needed where fractions of columns do not do either."""
    monkeypatch.setattr(blocks, "ROUNDS", 0)
    program = Program()
    for block in range(3):
        parts = [program.column(9, block=block) for _ in range(2)]
        program.row([Term(parts[0], 2), Term(parts[1], 3)], most=7)
    program.row([Term(column) for column in range(0, 6, 2)], 6)
    program.row([Term(column) for column in range(1, 6, 2)], 4)
    refuted = Parted(program).answer(ENOUGH)
    assert refuted.is_proved
    assert refuted.counts is None


def test_the_whole_is_asked_before_blocks_take_all_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Parity of all rows together refutes at once; blocks would spend all there is."""

    def spent(_: Parted, limits: Limits) -> Answer:
        return blocks.NONE._replace(work=limits.work)

    monkeypatch.setattr(Parted, "answer", spent)
    program = Program()
    for block in range(2):
        program.column(9, block=block)
    program.row([Term(0, 2), Term(1, 2)], 7, 7)
    refuted = solved_in_blocks(program, ENOUGH)
    assert refuted.is_proved
    assert refuted.counts is None
