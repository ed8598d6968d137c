"""The library: what ``placer.place`` promises, and what it refuses."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

import placer
from placer.job.rules import Rules
from placer.placement.check import violations
from placer.placement.placement import Placement
from placer.report.summary import summarise
from placer.solve.bounds import Proof
from placer.solve.bounds.certificate import Bound
from tests.texts import table

TOPOLOGY = placer.read_topology("dgx-h100-4x8")
JOB = placer.read_job("quickstart")


def test_result_is_frozen_and_checked():
    """A result cannot be changed, and its plan passes the independent checker."""
    result = placer.place(TOPOLOGY, JOB)
    with pytest.raises(FrozenInstanceError):
        result.plan = None
    placer.check(result.plan, TOPOLOGY, JOB)
    assert result.summary().splitlines() == result.plan.verdict["text"].split("; ")
    assert "\nquickstart on dgx-h100-4x8: 16 ranks\n" in summarise(
        result.plan, in_full=True
    )
    assert result.score is result.plan.score
    assert result.bound["status"] == "optimal"
    assert result.stop_reason == "proved"


def test_the_stricter_rule_holds():
    """A rule asked for besides can tighten the job's own and never loosens it."""
    strict = replace(JOB, require={"tp": "node"})
    result = placer.place(TOPOLOGY, strict, require={"tp": "cluster", "dp": "node"})
    placer.check(
        result.plan, TOPOLOGY, replace(JOB, require={"tp": "node", "dp": "node"})
    )
    with pytest.raises(placer.InfeasibleError):
        placer.place(TOPOLOGY, strict, require={"pp": "node"})


@pytest.mark.parametrize(*table("api/tables.yaml", "bad_arguments"))
def test_bad_arguments(options):
    """What does not fit the machine or the job is an InputError that says so."""
    with pytest.raises(placer.InputError) as caught:
        placer.place(TOPOLOGY, JOB, **options)
    assert caught.value.problems[0].key or caught.value.problems[0].source


@pytest.mark.parametrize(
    "gpus", [range(8), range(20, 36), range(-1, 15)], ids=["few", "beyond", "negative"]
)
def test_score_refuses_what_is_no_placement(gpus):
    """Too few ranks, or ranks on no GPU, are an InputError."""
    with pytest.raises(placer.InputError):
        placer.score(TOPOLOGY, JOB, Placement(np.array(gpus)))


@pytest.mark.parametrize(
    ("objective", "rules", "known_first"),
    [
        ("time", Rules(), True),
        ("hop-cost", Rules(spares={"cluster": 1}), True),
        ("hop-cost", Rules(), False),
        ("time", Rules(spares={"cluster": 1}), False),
    ],
)
@pytest.mark.filterwarnings("ignore:withdrawn:RuntimeWarning")
def test_a_refuted_bound_is_withdrawn(objective, rules, known_first, monkeypatch):
    """A bound above the value costs the proof, not the plan; a report is asked for.

    Whether the placement that refutes it was known before it or was found later. A list
    of all placements would be a proof of its own.
    """
    for module in ("construct.enumeration", "rules.search"):
        monkeypatch.setattr(f"placer.solve.{module}.every_placement", lambda *_: None)
    sound = placer.place(TOPOLOGY, JOB, objective=objective, rules=rules)
    factor = 2.0 if known_first else 1 + 1e-6
    false = Proof(factor * sound.bound["value"], "a proof with a hole")
    bounds = (Bound("all", lambda *_: false),)
    monkeypatch.setattr("placer.solve.bounds.certificate.BOUNDS", bounds)
    result = placer.place(TOPOLOGY, JOB, objective=objective, rules=rules)
    assert violations(result.plan, TOPOLOGY, JOB) == []
    assert result.bound["value"] <= sound.bound["value"] * (1 + 1e-9)
    assert result.bound["status"] == "feasible"
    assert result.bound["lower_bound"] == 0
    assert result.bound["gap"] == 1
    assert result.bound["argument"].startswith("withdrawn: ")
    assert "a proof with a hole" in result.bound["argument"]
    assert result.plan.advice.get("status") != "proved"
    words = " ".join(result.summary().split())
    assert "other placements (withdrawn: " in words
    assert "please report it" in words


def test_a_call_tells_machine_and_job_together():
    """Both files that cannot be read are named in one error."""
    with pytest.raises(placer.InputError) as error:
        placer.place("gone.yaml", "megatron:gone.sh")
    assert [p.source for p in error.value.problems] == ["gone.yaml", "gone.sh"]
