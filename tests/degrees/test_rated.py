"""How layouts were rated in validation, and how sure their gain is."""

from __future__ import annotations

from dataclasses import replace

import pytest

import placer
from placer.degrees import rated
from placer.degrees.choice import Choice
from placer.degrees.rated import RATED, changes
from tests.degrees.test_tuning import machine, work
from validation import pairs

OWN = Choice(tp=2, pp=2, dp=4, sharding="zero1")


def test_changes_are_named() -> None:
    """Each by what differs; replicas alone change nothing."""
    assert changes(OWN, OWN._replace(dp=8, micro_batches=4)) == []
    other = OWN._replace(tp=4, etp=4, micro_batch=2, sharding="hsdp", shard_size=4)
    assert changes(OWN, other) == ["tp", "micro_batch", "sharding"]
    (told,) = rated.tested(OWN, OWN._replace(tp=4))
    assert told["pairs"] == 3
    assert (told["median"], told["worst"]) == pytest.approx((0.027, 0.162))
    assert rated.tested(OWN, OWN._replace(sharding="ddp")) == [
        {"change": "sharding", "pairs": 0}
    ]


@pytest.mark.slow
def test_ratings_are_those_of_the_pairs() -> None:
    """Every judged pair stands under all that it changes, to a tenth of a percent."""
    found: dict[str, list[float]] = {name: [] for name in RATED}
    for pair in pairs.pairs():
        if not pair.untested:
            for name in changes(*map(Choice.of, pair.jobs)):
                found[name].append(round(abs(pairs.error(pair)), 3))
    assert {name: tuple(each) for name, each in found.items()} == RATED


def test_the_gain_has_an_interval() -> None:
    """It holds what is saved; where it holds 0 the summary says so."""
    found = placer.tune(machine(), work(), top=1)
    told = found.to_dict()
    gain = told["gain"]
    low, high = gain["saved_s_interval"]
    assert low <= gain["saved_s"] <= high
    own, best = told["own"]["step_time_s"], told["rows"][0]["step_time_s"]
    assert gain["saved_s"] == pytest.approx(own - best)
    said = " ".join(found.summary().split())
    assert "Pairs of runs: " in said
    assert ("maybe nothing" in said) == (low <= 0 <= high)


def test_much_that_is_assumed_is_warned_of() -> None:
    """60 ms of a step that is short are told, and none where the job says its own."""
    job = work()
    short = replace(job, compute=replace(job.compute, fixed_time=None))
    found = placer.tune(machine(), short, top=1)
    share = 0.06 / found.rows[0]["step_time_s"]
    warned = f"warning: that is {share:.0%} of the step" in found.summary()
    assert warned == (share > 0.05)
    said = replace(job, compute=replace(job.compute, fixed_time=0.06))
    assert "warning" not in placer.tune(machine(), said, top=1).summary()


def test_nothing_is_rated_where_nothing_changes() -> None:
    """The job's own degrees have no gain."""
    job = work()
    axes = job.parallelism
    only = {"tp": axes.tp, "pp": axes.pp, "cp": axes.cp, "vp": axes.vp, "ep": axes.ep}
    mode = {"micro_batch": job.micro_batch, "recompute": "none", "sharding": "zero1"}
    found = placer.tune(machine(), replace(job), top=1, **only, **mode).to_dict()
    assert found["gain"] is None
    assert found["rows"][0]["tested"] == []
