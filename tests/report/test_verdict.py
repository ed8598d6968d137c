"""The sentence on a plan: right about what it compares, and honest."""

from dataclasses import replace

import pytest

from placer.cost import JITTER
from placer.report.summary import used_texts
from placer.report.verdict import reason, sentence, why_broken
from placer.testing.strategies import tiny_plan
from tests.texts import table

SPLIT = "1 of 8 tp groups leave their node"
OPTIMAL = {"status": "optimal", "gap": 0.0}
OPEN = {"status": "feasible", "gap": 0.003}


def plan(own, other, bound=OPTIMAL, **more):
    """A plan of steps of ``own`` seconds beside a given order of ``other``."""
    usual = {"step_time_s": other, **more} if other is not None else {}
    value = {"objective": "time", "value": own, "lower_bound": own * (1 - bound["gap"])}
    return tiny_plan(
        score={"step_time_s": own},
        baselines={"given-order": usual},
        bound=value | bound,
    )


def said_of(made, sure=0.1, why="", moved=8, found=None):
    """The verdict, where the difference is known to a share of it.

    ``found`` is the best that was found, where the plan is not that.
    """
    own, other = made.bound["value"], made.baselines["given-order"].get("step_time_s")
    if other is None:
        return sentence(made, {})
    saved = other - (own if found is None else found)
    low, high = sorted((saved * (1 - sure), saved * (1 + sure)))
    is_better = low > JITTER * other or "violates" in made.baselines["given-order"]
    facts = {
        "advice": "move" if is_better else "keep",
        "saved_s": saved,
        "saved_s_interval": [low, high],
        "saved_share": saved / other,
        "ranks_moved": moved,
        "reason": why or why_broken(made.baselines["given-order"].get("violates", ())),
    }
    return sentence(made, facts)


@pytest.mark.parametrize(*table("report/verdict.yaml", "sentences"))
def test_sentence(own, other, more, said):
    """Saving, times, nodes, GPU hours: each once, each as the numbers have it."""
    bound = OPEN if "gap" in more else OPTIMAL
    broken = {"violates": [SPLIT]} if "breaks" in more else {}
    assert said in said_of(plan(own, other, bound, **broken))


def test_nothing_is_claimed_that_nobody_can_measure():
    """No GPU hours, and no move, for what steps of a run differ by anyway."""
    assert "GPU hours" not in said_of(plan(1.9995, 2.0))
    assert "GPU hours" in said_of(plan(1.99, 2.0))
    assert "Nothing measurable" in said_of(plan(1.998, 2.0), sure=0.6)


def test_an_order_that_is_kept_has_three_parts():
    """What to do, what it costs, what is proved."""
    assert said_of(plan(2.0, 2.0), moved=0).split("; ") == [
        "Keep your order: nothing to win",
        "your order: given-order (hosts as listed), 2 s a step on 8 nodes",
        "no placement on these nodes can be faster, under the model",
    ]
    near = {"status": "feasible", "gap": 0.0002}
    left = said_of(plan(2.0, 2.0, near), moved=0)
    assert left.startswith("Keep your order: nothing measurable to win (0.02 %); ")
    more = said_of(plan(2.0, 2.0, OPEN), moved=0, sure=2.0, found=1.996)
    assert more.startswith(
        "Keep your order: another order may save 4 ms a step (likely -4 to 12), 0.2 %; "
    )
    left = said_of(plan(2.0, 2.0, OPEN), moved=0)
    assert left.startswith("Keep your order: no better one was found; ")


@pytest.mark.parametrize(
    ("count", "said"),
    [(2, "rule 0, rule 1; "), (4, "rule 2, rule 3; "), (5, "rule 2, and 2 more; ")],
)
def test_broken_rules_are_named(count, said):
    """All of a few, each without its first group; never all but one."""
    rules = [f"rule {i}: the first is group {i}" for i in range(count)]
    told = said_of(plan(1.0, 2.0, violates=rules))
    assert f"your order breaks {count} rules of the job: rule 0, rule 1" in told
    assert said in told


def test_the_reason_is_in_the_sentence():
    """Which groups cross, and who waits; a rule that is broken is said once.

    Of a plan whose verdict lacks a fact, no comparison is made up.
    """
    why = "1 of 32 tp groups crosses racks, and all wait for it"
    assert f"a step; in your order {why}; no" in said_of(plan(1.0, 2.0), why=why)
    assert said_of(plan(1.0, 2.0, violates=[SPLIT])).count(SPLIT) == 1
    facts = {"advice": "move", "saved_share": 0.1, "saved_s": 0.1}
    assert "your order" not in sentence(plan(0.9, 1.0), facts)


@pytest.mark.parametrize(*table("report/verdict.yaml", "reasons"))
def test_reasons(theirs, mine, said):
    """The groups of the axis that waits longest, so far as they lie otherwise."""

    def lie(counts):
        return {"tp": dict(zip(("rack", "cluster"), counts, strict=True))}

    score = {"step_time_s": 1.0, "exposed_s": {"tp": 0.1}, "crossings": lie(mine)}
    before = {"exposed_s": {"tp": 0.6, "dp": 0.1}, "crossings": lie(theirs)}
    assert reason(replace(plan(1.0, 1.5), score=score), before) == said
    assert (
        reason(replace(plan(1.0, 1.5), score=score), {**before, "exposed_s": {}}) == ""
    )


def test_after_a_failure():
    """A repair is compared with the plan before, not with the given order."""
    about = {"moved": 4, "fewest": 4, "value_before": 1.0}
    said = said_of(replace(plan(1.1, 2.0), previous=about))
    assert said.startswith(
        "10 % slower than before: 1.1 s instead of 1 s a step, costs 38 GPU hours a "
        "day; 4 of 16 ranks move, the fewest possible; 8 nodes in 4 racks, optimal"
    )
    assert "given-order" not in said
    same = said_of(replace(plan(1.0, 2.0), previous=about))
    assert same.startswith("no slower than before: step time 1 s; 4 of 16 ranks move")
    assert "GPU hours" not in same


def test_domains_by_their_nodes():
    """Which domains, and how many nodes of each: the fullest first, all of them."""
    made = plan(1.0, 2.0)
    domains = {"rack": ("a1",) * 3 + ("a2",) * 3 + ("b",) * 2}
    lines = [*used_texts(replace(made, domains=domains))]
    assert lines == ["3 nodes each in 2 racks: a[1-2]", "2 nodes in 1 rack: b"]
    many = {"rack": tuple(f"r{n}" for n in range(8) for _ in range(n + 1))}
    lines = [*used_texts(replace(made, domains=many))]
    assert lines[0] == "8 nodes in 1 rack: r7"
    assert lines[-1] == "fewer in 2 other racks"
    assert [*used_texts(replace(made, domains={}))] == []
