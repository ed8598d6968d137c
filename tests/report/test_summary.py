"""The terminal summary: narrow, complete, and right about what it says."""

from dataclasses import replace

import pytest

import placer
from placer.placement.plan import Plan
from placer.report.summary import summarise


@pytest.fixture(scope="module")
def plan() -> Plan:
    topology = placer.read_topology("dgx-h100-32")
    return placer.place(topology, placer.read_job("quickstart")).plan


CASES = [
    ("dgx-h100-32", "quickstart", "time"),
    ("dgx-h100-32", "quickstart", "hop-cost"),
    ("dgx-h100-32", "dlrm-all-to-all", "time"),
    ("rack:3 node:5 gpu:4", "quickstart", "time"),
    ("azure-gb200-mlperf-v6", "llama3.1-405b-mlperf-v6", "time"),
]


@pytest.mark.parametrize(("machine", "job", "objective"), CASES)
def test_fits_a_terminal(machine: str, job: str, objective: str) -> None:
    """No line is wider than 80 columns or ends in blanks, and all is printable."""
    topology = placer.read_topology(machine)
    result = placer.place(topology, placer.read_job(job), objective=objective)
    lines = result.summary().splitlines()
    assert max(map(len, lines)) <= 80
    assert all(line == line.rstrip() and line.isprintable() for line in lines)
    for name in result.plan.baselines:
        assert any(line.startswith(f"  {name} ") for line in lines)


def test_parts_and_gains(plan: Plan) -> None:
    """Gains are split by axis, in one unit, and broken rules are said."""
    score = plan.score | {
        "step_time_s": 1.0,
        "exposed_s": {"tp": 0.1, "pp": 0.02, "dp": 0.005},
        "exposed_scale_out_s": 0.025,
    }
    usual = {
        "step_time_s": 1.009,
        "exposed_s": {"tp": 0.1, "pp": 0.0291, "dp": 0.0049},
        "violates": ["a rule", "another"],
    }
    text = summarise(replace(plan, score=score, baselines={"given-order": usual}))
    assert "  given-order  +9.0 ms (pp +9.1, dp -0.1); it breaks 2 hard rules" in text
    assert "exposed cross-node 25 ms 2.5%" in " ".join(text.split())


def test_gap_is_rounded_up(plan: Plan) -> None:
    """A gap is never shown smaller than it is; optimal is said only when it is so."""
    bound = plan.bound | {"status": "feasible", "lower_bound": 1.0, "gap": 1e-7}
    text = summarise(replace(plan, bound=bound))
    assert "lower bound 1 s, gap 0.001%" in text
    assert "optimal" not in text.partition("lower bound")[2].partition("\n")[0]
    bound = plan.bound | {"status": "optimal"}
    assert "\noptimal step time" in summarise(replace(plan, bound=bound))


def test_hop_cost_gain(plan: Plan) -> None:
    """For hop cost the gain is in cost and in percent of the usual placement's."""
    changed = replace(
        plan,
        score=plan.score | {"hop_cost": 75.0},
        bound=plan.bound
        | {
            "objective": "hop-cost",
            "value": 75.0,
            "lower_bound": 60.0,
            "gap": 0.2,
            "status": "feasible",
        },
        baselines={"given-order": {"hop_cost": 100.0}, "random": {"hop_cost": 75.0}},
    )
    text = summarise(changed)
    assert "  given-order  +25 (25.00%)" in text
    assert "  random       nothing" in text
    assert "lower bound 60, gap 20.000%" in text


def test_plan_of_few_words(plan: Plan) -> None:
    """A plan without score, bound, baselines and solver still has a summary."""
    bare = replace(
        plan,
        topology={"name": "machine", "sha256": ""},
        job={"name": "job", "sha256": "", "order": "tp-cp-ep-pp-dp"},
        score={},
        bound={},
        baselines={},
        advice={},
        solver={},
    )
    assert summarise(bare).splitlines() == [
        "job on machine: 16 ranks",
        "numbered tp-cp-ep-pp-dp",
        "2 nodes (8 GPUs each)",
    ]


def test_uneven_domains(plan: Plan) -> None:
    """Domains that hold different numbers of ranks are shown as a range."""
    uneven = replace(plan, node_of_rank=plan.node_of_rank * 0 + ([0] * 12 + [1] * 4))
    assert "2 nodes (4 to 12 GPUs)" in summarise(uneven)
