"""Copies of checkpoints on other ranks, against the rule that makes their cliques."""

import re
from dataclasses import replace
from itertools import islice

import pytest

import placer
from placer.base.errors import CheckError, InputError
from placer.placement.robust import Copies, cliques, copy_faults, parse_copies
from tests.emit.readback import CONTIGUOUS, plan_of
from tests.texts import table


def by_the_package(jump, factor, ranks):
    """Every jump-th rank from each start on, then so many at a time."""
    found = []
    for start in range(jump):
        rest = iter(range(start, ranks, jump))
        found += iter(lambda rest=rest: tuple(islice(rest, factor)), ())
    return sorted(found)


@pytest.mark.parametrize(
    ("ranks", "copies"), [(16, (4, 2)), (24, (2, 3)), (8, (1, 2)), (64, (16, 4))]
)
def test_cliques(ranks, copies):
    """They are those of nvidia-resiliency-ext."""
    found = sorted(map(tuple, cliques(ranks, Copies(*copies))))
    assert found == by_the_package(*copies, ranks)


def racks(*names):
    """Four nodes of two ranks each, in these racks."""
    return replace(plan_of(CONTIGUOUS), domains={"rack": names})


@pytest.mark.parametrize(*table("placement/rules.yaml", "copies_leave_what_fails"))
def test_copies_leave_what_fails(names, copies, fault):
    """The rack, and where there is one alone the node; with a jump that does."""
    found = copy_faults(racks(*names), parse_copies(copies))
    assert len(found) == bool(fault)
    assert re.search(fault, "".join(found))


@pytest.mark.parametrize("copies", ["", "x", "0", "2:1", "2:0", "-4", "2:2:2", "3"])
def test_what_are_no_copies(copies):
    """Words that are none, and jumps that do not divide the ranks."""
    with pytest.raises(InputError, match="copies: "):
        copy_faults(racks("a", "a", "b", "b"), parse_copies(copies))


def test_the_library_checks_them():
    """With all else that a plan promises."""
    plan = placer.place("dgx-h100-4x8", "quickstart", time_limit=5).plan
    placer.check(plan, copies="8")
    with pytest.raises(CheckError, match="copies 4 apart share a node"):
        placer.check(plan, copies="4:2")
