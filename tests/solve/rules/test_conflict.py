"""The least change that helps, and smallest sets of rules in conflict."""

from dataclasses import replace

import pytest

from placer import place, testing
from placer.base.errors import InfeasibleError
from placer.documents import document_of
from placer.job.rules import Rules
from placer.topology.read import decode_topology
from tests.solve.oracle import allowed_placements
from tests.solve.rules.draws import ruled_case
from tests.solve.solving import solve
from tests.texts import table


def named_rules(text, rules):
    """Those of the rules that an error names."""
    return Rules(
        pin=tuple(pin for pin in rules.pin if str(pin) in text),
        at_most={
            tier: n
            for tier, n in rules.at_most.items()
            if f"at most {n} replica{'s' * (n > 1)} in a {tier}" in text
        },
        spares={
            tier: n
            for tier, n in rules.spares.items()
            if f"{n} spare node{'s' * (n > 1)} in every {tier}" in text
        },
    )


@pytest.mark.parametrize("objective", ["time", "hop-cost"])
@pytest.mark.parametrize("first", range(0, 40, 10))
def test_named_rules_are_in_conflict(first, objective):
    """The rules that an error blames cannot be kept, by trying all placements."""
    for seed in range(first, first + 10):
        topology, job = ruled_case(seed, objective, "small")
        if allowed_placements(topology, job):
            continue
        if not allowed_placements(topology, replace(job, rules=Rules())):
            continue
        with pytest.raises(InfeasibleError) as caught:
            solve(topology, job, objective=objective)
        blamed = named_rules(str(caught.value).split("\n  hint:")[0], job.rules)
        assert blamed, str(caught.value)
        assert allowed_placements(topology, replace(job, rules=blamed)) == []
        assert "no placement was found" not in str(caught.value)


@pytest.mark.parametrize(*table("solve/infeasible.yaml", "rules_in_conflict"))
def test_rules_in_conflict_are_told_by_number(machine, job, told):
    """Every one that stands in the way, with what it allows and what is asked."""
    if isinstance(machine, dict):
        machine = decode_topology(document_of(machine, "machine.yaml"))
    with pytest.raises(InfeasibleError) as caught:
        place(machine, testing.job("ring", weights={"dp": 1}, **job))
    assert all(words in str(caught.value) for words in told), str(caught.value)
