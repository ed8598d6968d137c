"""The lines on other orders and launchers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from placer.report.summary import advice_lines
from placer.testing.strategies import tiny_plan

FLAG = "Megatron-LM: --use-tp-pp-dp-mapping"


def text_of(objective: str = "time", **advice: Any) -> str:
    plan = tiny_plan(bound={"objective": objective}, advice=advice)
    return " ".join(line.strip() for line in advice_lines(plan))


@pytest.mark.parametrize(
    ("advice", "expected"),
    [
        ({"status": "proved", "lower_bound": 1.0}, "no other rank order and no free"),
        ({"status": "not-computed", "most_ranks": 131072}, "more than 131,072 ranks"),
        (
            {"status": "searched", "tried": ["tp-cp-ep-dp-pp", "free"], "savings": []},
            "no better rank order or launcher found (tried tp-cp-ep-dp-pp, free)",
        ),
    ],
)
def test_what_is_known(advice: dict[str, Any], expected: str) -> None:
    """Proof, silence and vain attempts are told apart."""
    assert expected in text_of(**advice)


def test_savings() -> None:
    """What changes, what it saves in the objective's unit, and what does it."""
    order = {"change": "order", "to": "tp-cp-ep-pp-dp", "how": FLAG, "saves": 0.041}
    free = {"change": "launcher", "to": "free", "saves": 0.003}
    found = text_of(status="searched", tried=[], savings=[order, free])
    assert f"order tp-cp-ep-pp-dp would save 41 ms a step ({FLAG})" in found
    assert "a free launcher would save 3 ms a step (launcher: {ranks: free})" in found
    found = text_of(
        "hop-cost", status="searched", tried=[], savings=[order | {"saves": 1280.0}]
    )
    assert "would lower the hop cost by 1,280" in found


def test_the_chosen_order() -> None:
    """A plan that chose its order says which, and what numbers ranks so."""
    plan = tiny_plan()
    chosen = replace(plan, job={**plan.job, "auto_order": True})
    assert list(advice_lines(chosen)) == [f"rank order tp-cp-ep-pp-dp chosen ({FLAG})"]
    assert list(advice_lines(plan)) == []


def test_out_of_time() -> None:
    """A plan that a limit left without advice says so, unless its launch is free."""
    plan = tiny_plan(solver={"deterministic": False})
    (line,) = advice_lines(plan)
    assert line.endswith("not computed, no time was left")
    free = replace(plan, job={**plan.job, "launcher": "free"})
    assert list(advice_lines(free)) == []
