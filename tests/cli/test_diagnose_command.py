"""``placer diagnose``: plans and times in, a name or another plan out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import placer
from placer import testing
from tests.commands import data, refusal, run


@pytest.fixture
def plans(folder: Path) -> list[str]:  # noqa: ARG001
    """Three plans, and the times of a run with each on a slow host."""
    weights = {"tp": 1000, "pp": 10, "dp": 1}
    job = testing.job("j", tp=8, pp=4, dp=8, weights=weights)
    plan = placer.place("dgx-h100-32x8", job).plan
    for k, other in enumerate(placer.vary(plan, 3), start=1):
        placer.write_plan(other, f"p-{k}.json")
        hosts = other.host_of_rank
        times = [
            1.1 if host == "n05" else 1 + rank % 7 / 1e3
            for rank, host in enumerate(hosts)
        ]
        lines = [f"{rank},{time}" for rank, time in enumerate(times)]
        Path(f"t-{k}.csv").write_text("\n".join(["rank,seconds", *lines]))
    return [f"p-{k}.json=t-{k}.csv" for k in (1, 2, 3)]


def test_a_slow_host_is_named(plans: list[str]) -> None:
    """The name comes first; with one placement there is none, and the exit code 1."""
    told = run("diagnose", *plans).stdout
    assert told.startswith("slow: node n05, a place: +9.7%")
    assert data("diagnose", plans[0], code=1)["named"] is None
    named = data("diagnose", *plans)["named"]
    assert (named["kind"], named["name"], named["place"]) == ("node", "n05", True)


def test_the_next_placement_is_written(plans: list[str]) -> None:
    """One of the same cost, where none is named; none where one is."""
    said = run("diagnose", plans[0], code=1).stdout
    assert "--next PLAN writes" in said
    assert re.search(r"^  stage \d+ of replica \d+: \+", said, re.MULTILINE)
    done = run("diagnose", plans[0], "--next", "next.json", code=1)
    assert "fit alike; run next.json" in done.stdout
    placer.check(placer.read_plan("next.json"))
    first, other = (placer.read_plan(name) for name in ("p-1.json", "next.json"))
    assert other.host_of_rank != first.host_of_rank
    assert other.score["hop_cost"] == first.score["hop_cost"]
    run("diagnose", *plans, "--next", "none.json")
    assert not Path("none.json").exists()


def test_times_of_stages(plans: list[str]) -> None:
    """Times of stages of replicas name a host too: one host is a stage of a replica."""
    for k in (1, 2, 3):
        plan = placer.read_plan(f"p-{k}.json")
        assert plan.axes is not None
        at = plan.axes.coordinates
        lines = ["replica,stage,seconds"]
        for rank in range(0, plan.world_size, 8):
            slow = 1.1 if plan.host_of_rank[rank] == "n05" else 1 + rank % 7 / 1e3
            lines.append(f"{at['dp'][rank]},{at['pp'][rank]},{slow}")
        Path(f"t-{k}.csv").write_text("\n".join(lines))
    done = run("diagnose", "-q", *plans)
    assert done.stdout.startswith("slow: node n05, a place")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2\n", "t.csv:1:1: expected the columns seconds and rank"),
        ("rank,seconds\n256,1\n", 't.csv:2:1: rank: expected 0 to 255, got "256"'),
        ("rank,seconds\n1,x\n", "t.csv:2:1: seconds: expected a time above 0"),
        ("rank,seconds\n1,1\n1,2\n", "t.csv:3:1: has a time already"),
        ("rank,seconds\n", "t.csv:1:1: there are no times"),
    ],
)
def test_wrong_times(text: str, message: str, plans: list[str]) -> None:
    """What is wrong in a file of times is said with its line; the exit code is 2."""
    Path("t.csv").write_text(text)
    assert message in refusal("diagnose", plans[0], "p-2.json=t.csv")


def test_a_slow_stage_is_named_where_only_stages_are_timed(plans: list[str]) -> None:
    """No placement tells a stage from one replica's share of it: the stage is named."""
    assert len(plans) > 2
    for k in (1, 2):
        lines = [f"{stage},{1.05 if stage == 2 else 1.0}" for stage in range(4)]
        Path(f"s-{k}.csv").write_text("\n".join(["stage,seconds", *lines]))
    done = run("diagnose", "p-1.json=s-1.csv", "p-2.json=s-2.csv")
    assert done.stdout.startswith("slow: stage 2, a part of the job: +5.0%")
