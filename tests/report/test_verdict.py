"""The sentence on a plan: right about what it compares, and honest."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import placer
from placer.cost.noise import noise
from placer.report.diff_verdict import diff_verdict
from placer.report.used_text import used_lines
from placer.report.verdict import verdict
from placer.report.words import share_text
from placer.units import plural
from tests.plan_cases import tiny_plan

if TYPE_CHECKING:
    from placer.placement.plan import Plan

SPLIT = "1 of 8 tp groups leave their node"
OPTIMAL: dict[str, Any] = {"status": "optimal", "gap": 0.0}
OPEN: dict[str, Any] = {"status": "feasible", "gap": 0.003}


def plan(
    own: float, other: float | None, bound: dict[str, Any] = OPTIMAL, **more: Any
) -> Plan:
    """A plan of steps of ``own`` seconds beside a given order of ``other``."""
    usual = {"step_time_s": other, **more} if other is not None else {}
    if other is not None:
        usual.setdefault("noise", noise(other, own))
    value = {"objective": "time", "value": own, "lower_bound": own * (1 - bound["gap"])}
    return tiny_plan(
        score={"step_time_s": own},
        baselines={"given-order": usual},
        bound=value | bound,
    )


# 16 GPUs, 384 GPU hours a day.
FASTER = "8.4 % faster than your order (given-order): 6.35 s instead of 6.936 s a step"
SENTENCES = [
    (plan(6.350, 6.936), f"{FASTER}; 8 nodes in 4 racks; saves 32 GPU hours a day"),
    (plan(2.0, 2.0), "no faster than your order (given-order): it is optimal already"),
    (plan(2.0, 2.0, OPEN), "no faster than your order (given-order): 2 s a step"),
    (plan(1.99, 2.0), "1.99 s instead of 2 s a step, within the noise of the model"),
    (plan(1.0, 2.0, violates=[SPLIT]), "order (given-order, which breaks hard rules"),
    (plan(3.0, 2.0, violates=[SPLIT]), "50 % slower than your order"),
    (plan(6.35, None), "step time 6.35 s; 8 nodes"),
    (plan(6.3500001, 6.3500002), "less than 0.01 % faster than your order"),
]


@pytest.mark.parametrize(("made", "said"), SENTENCES)
def test_sentence(made: Plan, said: str) -> None:
    """Share, times, nodes, GPU hours: each once, each as the numbers have it."""
    assert said in verdict(made)


def test_proof_is_said_once() -> None:
    """Optimal, or how far from it, stands once in every sentence."""
    for made, _ in SENTENCES:
        assert verdict(made).count("optimal") == 1
    assert verdict(plan(1.0, 2.0, OPEN)).endswith("; within 0.300 % of optimal")


def test_nothing_is_claimed_within_the_noise() -> None:
    """No GPU hours are saved that the model cannot tell."""
    assert "GPU hours" not in verdict(plan(1.99, 2.0))
    assert "GPU hours" in verdict(plan(1.9, 2.0))


def test_a_job_that_does_not_fit() -> None:
    """The sentence ends with what is missing."""
    made = plan(1.0, 2.0)
    score = {"memory_bytes": {"total": 90e9}, "memory_limit_bytes": 80e9}
    said = verdict(replace(made, score={**made.score, **score}))
    assert said.endswith("does not fit: 90 GB of memory needed, 80 GB in a GPU")


def test_after_a_failure() -> None:
    """A repair is compared with the plan before, not with the given order."""
    about = {"moved": 4, "fewest": 4, "value_before": 1.0}
    said = verdict(replace(plan(1.1, 2.0), previous=about))
    assert said.startswith(
        "10 % slower than before: 1.1 s instead of 1 s a step; 4 of 16 ranks move, the "
        "fewest possible; 8 nodes in 4 racks; costs 38 GPU hours a day"
    )
    assert "given-order" not in said
    same = verdict(replace(plan(1.0, 2.0), previous=about))
    assert same.startswith("no slower than before: step time 1 s; 4 of 16 ranks move")
    assert "GPU hours" not in same


def test_every_plan_of_a_search_has_it() -> None:
    """`place` and `replace` write it; a placement that was given has none."""
    job = placer.read_job("quickstart")
    machine = placer.read_topology("rack:2 node:4 gpu:8")
    found = placer.place(machine, job).plan
    assert found.verdict == verdict(found)
    assert found.to_dict()["verdict"] == found.verdict
    mended = placer.replace(found, failed=found.nodes[:1]).plan
    assert "ranks move" in mended.verdict
    assert placer.predict(machine, job, "slurm").verdict == ""
    difference = placer.diff(found, mended)
    assert difference.to_dict()["verdict"] == diff_verdict(difference)


def test_domains_by_their_nodes() -> None:
    """Which domains, and how many nodes of each: the fullest first, all of them."""
    made = plan(1.0, 2.0)
    domains = {"rack": ("a1",) * 3 + ("a2",) * 3 + ("b",) * 2}
    lines = [*used_lines(replace(made, domains=domains))]
    assert lines == ["3 nodes each in 2 racks: a[1-2]", "2 nodes in 1 rack: b"]
    many = {"rack": tuple(f"r{n}" for n in range(8) for _ in range(n + 1))}
    lines = [*used_lines(replace(made, domains=many))]
    assert lines[0] == "8 nodes in 1 rack: r7"
    assert lines[-1] == "fewer in 2 other racks"
    assert [*used_lines(replace(made, domains={}))] == []


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0844, "8.4 %"),
        (0.007, "0.7 %"),
        (0.00274, "0.27 %"),
        (0.00004, "less than 0.01 %"),
        (0.5, "50 %"),
        (12.5, "1,250 %"),
    ],
)
def test_shares(share: float, text: str) -> None:
    """Two digits, none of them nothing but noise."""
    assert share_text(share) == text


def test_plurals() -> None:
    """Tiers are called as their users call them."""
    words = ["rack", "leaf", "switch", "bay", "island group", "superpod", "city"]
    assert [plural(word, 2) for word in words] == [
        "racks",
        "leaves",
        "switches",
        "bays",
        "island groups",
        "superpods",
        "cities",
    ]
    assert plural("leaf", 1) == "leaf"
