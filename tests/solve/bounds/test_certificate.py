"""The bound of a problem: each objective has one, and the best counts."""

from __future__ import annotations

import pytest

import placer
from placer.solve.bounds import Proof, certificate
from placer.solve.bounds.certificate import Bound
from placer.solve.problem.compiled import Problem


def _problem(objective: str) -> Problem:
    machine = placer.read_topology("dgx-h100-4x8")
    return Problem.of(machine, placer.read_job("quickstart"), objective)


@pytest.mark.parametrize(
    ("objective", "argument"), [("time", "NICs"), ("hop-cost", "least cut")]
)
def test_each_objective_has_a_bound(objective: str, argument: str) -> None:
    """Most of what the best placement costs is proved, with the argument."""
    bound = certificate.lower_bound(_problem(objective), 1)
    value = placer.place("dgx-h100-4x8", "quickstart", objective=objective).bound
    assert 0.9 * value["value"] <= bound.value <= value["value"]
    assert argument in bound.argument


def test_the_best_bound_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several bounds the greatest is taken; one that does not apply is not."""
    better = Proof(1e9, "better")
    found = None, better, Proof(1.0, "worse")
    more = [Bound("more", lambda _: True, lambda *_, one=one: one) for one in found]
    monkeypatch.setattr(certificate, "BOUNDS", (*certificate.BOUNDS, *more))
    assert certificate.lower_bound(_problem("time"), 1) == better
