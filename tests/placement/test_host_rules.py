"""Rules against a machine: hosts and tiers that it must have."""

from dataclasses import replace

import numpy as np
import pytest

from placer import read_topology
from placer.base.errors import InputError
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.job.rules import Pin, Rules
from placer.placement.host_rules import with_rules
from placer.topology.allocation import allocate

WHOLE = read_topology("rack:2 node:3 gpu:2")
MACHINE = allocate(WHOLE, exclude=["r2-n3"])
JOB = Job("job", Parallelism(tp=2, dp=4), weights={"tp": 1.0})


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (Rules((Pin((0,), ("r9-n1",)),)), 'the topology has no host "r9-n1"'),
        (Rules((Pin((0,), ("r2-n3",)),)), 'host "r2-n3" is not among the hosts'),
        (Rules((Pin((8,), ("r1-n1",)),)), "there is no rank 8"),
        (Rules((Pin((0,), ("r1-n1",)), Pin((0,), ("r1-n2",)))), "rank 0 is pinned"),
        (Rules(avoid=("x",)), 'rules.avoid: the topology has no host "x"'),
        (
            Rules(at_most={"racks": 1}),
            'has no tier "racks"\n  hint: did you mean "rack',
        ),
        (Rules(spares={"node": 1}), "spares are whole nodes, which no node holds"),
    ],
)
def test_refuses_what_the_machine_lacks(rules, expected):
    """Unknown and excluded hosts, ranks and tiers are input errors."""
    with pytest.raises(InputError) as caught:
        with_rules(JOB, MACHINE, WHOLE, rules)
    assert expected in str(caught.value)


def test_names_the_reason_of_an_unavailable_host():
    """A pin to a node that must not be used says why it must not."""
    machine = replace(WHOLE, unavailable={"r1-n2": "xid 79"})
    machine = machine.select(np.array([0, 2, 3, 4, 5]))
    with pytest.raises(InputError, match="unavailable: xid 79"):
        with_rules(JOB, machine, machine, Rules((Pin((0,), ("r1-n2",)),)))
