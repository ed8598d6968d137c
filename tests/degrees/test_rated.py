"""How layouts were rated in validation, and how sure their gain is."""

from __future__ import annotations

from dataclasses import replace

import pytest

import placer
from placer.degrees.kinds import RATED
from tests.degrees.test_tuning import machine, work


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
    assert ("maybe nothing" in said) == (low <= 0 <= high)


def test_a_kind_that_is_rated_too_well_may_save_nothing(monkeypatch) -> None:
    """The interval reaches as far down as validation missed layouts of that kind."""
    ends = []
    for miss in (0.0, 0.05, 5.0):
        of_all = {key: one._replace(median=miss) for key, one in RATED.items()}
        monkeypatch.setattr("placer.degrees.kinds.RATED", of_all)
        found = placer.tune(machine(), work(), top=1)
        ends.append(found.to_dict()["gain"]["saved_s_interval"][0])
        assert (": maybe nothing." in found.summary()) == (ends[-1] <= 0)
    assert ends == sorted(ends, reverse=True)
    assert ends[-1] < 0


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
