"""What a search over degrees looks at first, and what it says when time is up."""

from math import inf
from random import Random

import pytest

from placer.degrees.evaluate import Answer
from placer.degrees.least import Least
from placer.degrees.search import AT_A_TIME, ROUNDS, Search
from placer.degrees.space import Legal, Space
from tests.degrees.cases import job, machine


def _legal(work):
    assert work.model is not None
    return Legal(work, work.model, Space((16,), work.micro_batches))


def _search(work, run, stop):
    legal = _legal(work)
    return Search(legal, Least(machine(), work, legal.model), 80e9, run, stop)


def _own(work):
    """A legal choice that is the last in line."""
    legal = _legal(work)
    least = Least(machine(), work, legal.model)
    return legal.variants(max(legal.shapes(), key=least.work_s))[-1]


def test_a_search_that_is_cut_short_has_an_answer():
    """Links far worse than the cheap bounds keep all choices from their turn."""
    asked = []

    def run(questions):
        asked.extend(questions)
        return [(i, Answer(100.0, 101.0)) for i in range(len(questions))]

    most = (ROUNDS + 4) * AT_A_TIME
    found = _search(job(Random(3)), run, lambda: len(asked) > most).best(1)
    assert [question.wanted for question in asked].count("placement") == 1
    assert found.rows


def test_own_degrees_whose_placement_was_broken_off_are_the_answer():
    """Not some other choice: they are placed once more, in a hurry."""
    asked = []

    def run(questions):
        asked.extend(questions)
        return [(0, Answer(100.0, 101.0))] if questions[0].hurry else []

    work = job(Random(3))
    own = _own(work)
    found = _search(work, run, lambda: bool(asked)).best(1, own=own)
    assert [question.choice for question in asked] == [own, own]
    assert [row.choice for row in found.rows] == [own]


@pytest.mark.slow
def test_time_that_ends_among_choices_with_less_memory_leaves_the_proof():
    """The first row is proved before they are looked at."""
    calls, most = 0, inf

    def stop():
        nonlocal calls
        calls += 1
        return calls > most

    def run(questions):
        return [(i, Answer(100.0, 100.0)) for i, _ in enumerate(questions)]

    work = job(Random(3))
    assert _search(work, run, stop).best(1).least_s >= 100.0
    most, calls = calls - 3, 0  # three calls follow the proof
    found = _search(work, run, stop).best(1, slack=1.0)
    assert found.is_cut
    assert found.least_s >= 100.0
