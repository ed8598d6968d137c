"""The rules of a job file: what is wrong with them, and two of them together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.documents import parse_document
from placer.job.read import decode_job
from placer.job.rules import Pin, Rules, parse_ranks, ranks_text
from tests.problems import problems_of
from tests.texts import table

HEAD = """\
format: placer/job
version: 1
name: small
parallelism: {tp: 4, dp: 4}
weights: {tp: 10, dp: 1}
"""


def job_of(rules):
    return decode_job(parse_document(HEAD + rules, "job.yaml"))


@pytest.mark.parametrize(*table("job/job.yaml", "rules"))
def test_problems_have_a_place(rules, expected):
    """What is wrong is said with line, column and key."""
    found = [*map(str, problems_of(job_of, f"rules: {rules}\n"))]
    assert any(expected in text for text in found), found
    assert all(text.startswith("job.yaml:6:") for text in found)


@given(st.sets(st.integers(0, 300), min_size=1))
def test_rank_lists_read_back(ranks):
    """A rank list that is written reads back as the same ranks."""
    assert parse_ranks(ranks_text(sorted(ranks)), 300) == tuple(sorted(ranks))


@pytest.mark.parametrize("text", ["", ",", "1-", "-1", "1..3", "a", "0x3", "1;2"])
def test_bad_rank_lists(text):
    """Anything but numbers and ranges is refused."""
    with pytest.raises(ValueError, match="list of ranks"):
        parse_ranks(text)


def test_huge_ranges_are_not_expanded():
    """A range beyond the last rank is refused before it takes any memory."""
    with pytest.raises(ValueError, match="above 15"):
        parse_ranks("0-999999999999", 15)


def test_both_rules_together():
    """Of two numbers the stricter holds, pins and hosts to avoid add up."""
    mine = Rules((Pin((0,), ("a",)),), ("x",), {"rack": 2}, {"rack": 1})
    more = Rules((Pin((1,), ("b",)),), ("x", "y"), {"rack": 3, "row": 9}, {"rack": 2})
    both = mine.and_also(more)
    assert both.pin == (*mine.pin, *more.pin)
    assert both.avoid == ("x", "y")
    assert (both.at_most, both.spares) == ({"rack": 2, "row": 9}, {"rack": 2})
    assert both.and_also(more) == both
