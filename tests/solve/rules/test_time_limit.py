"""A search under rules ends with its limit, whether or not it has found a placement."""

from dataclasses import replace
from itertools import count
from math import inf
from time import process_time

import pytest

from placer import place, read_topology
from placer.base.errors import InfeasibleError
from placer.documents import document_of
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.job.read import decode_job, read_job
from placer.job.rules import Pin, Rules
from placer.solve import search
from placer.solve.problem.compiled import Problem
from placer.solve.run import budget
from placer.topology.model import Tier
from placer.topology.read import decode_topology
from tests.solve.random_cases import machine_of
from tests.texts import content

# 16 racks of 16 hosts; a block of eight ranks a host.
MACHINE = read_topology("rack:16 node:16 gpu:8")
NODES = MACHINE.node_names
JOB = Job(
    "job", Parallelism(tp=8, pp=4, dp=40), weights={"tp": 100.0, "pp": 10.0, "dp": 1.0}
)
BESIDE = {"at_most": {"rack": 20}, "spares": {"cluster": 2}, "avoid": NODES[-16:]}
LOADED_S = 4.0  # beside the limit: busy cores take twice as long for the reasons


def pins(count):
    """Blocks of ranks on one of two hosts that follow each other, as in host order."""
    return tuple(
        Pin(tuple(range(8 * i, 8 * i + 8)), (NODES[i], NODES[i + 1]))
        for i in range(count)
    )


def split(count):
    """Two ranks of each of some blocks on different hosts: no launch by nodes does."""
    return tuple(
        Pin((16 * i + j,), (NODES[2 * i + j],)) for i in range(count) for j in range(2)
    )


def placed(machine, job, limit):
    """What is found in so many seconds, within that and a little."""
    begun = process_time()
    try:
        return place(machine, job, time_limit=limit, workers=1, effort="full")
    finally:
        assert process_time() - begun < limit + LOADED_S


def test_pins_that_host_order_keeps():
    """A placement that needs no search is found in any time, under other rules too.

    Where time ends before one without hosts to avoid is found, a usual order is taken.
    """
    job = replace(JOB, rules=Rules(pin=pins(150), **BESIDE))
    found = placed(MACHINE, job, 0.5)
    assert found.plan.bound["value"] > 0
    assert found.plan.rules["avoided_nodes"] == []
    job = replace(JOB, rules=Rules(pin=pins(150), **BESIDE | {"avoid": NODES[:160]}))
    assert placed(MACHINE, job, 0.0).plan.rules["avoided_nodes"]


def test_pins_that_cannot_be_kept():
    """Pins that no launch meets end in the error for that, not in a long search.

    Where time ended the search and nothing is proved, the error says so.
    """
    job = replace(JOB, rules=Rules(pin=split(30), **BESIDE))
    with pytest.raises(InfeasibleError, match=r"kept|keep"):
        placed(MACHINE, job, 0.5)
    tied = replace(JOB, require={"pp": "rack"}, rules=Rules(pin=split(30), **BESIDE))
    with pytest.raises(InfeasibleError) as raised:
        placed(MACHINE, tied, 0.0)
    assert raised.value.is_proved or "give it more time" in str(raised.value)


def test_fewest_hosts_to_avoid_are_not_waited_for():
    """So few that no fewer will do took 54 s to prove, whatever the time limit."""
    found = content("solve/few_to_avoid.yaml")
    machine = decode_topology(document_of(found["machine"], "machine.json"))
    job, begun = decode_job(document_of(found["job"], "job.json")), process_time()
    place(machine, job, time_limit=1.0)
    assert process_time() - begun < 10


# A job whose 126 placements on two of three hosts are listed after all else.
FAST, FAR = Tier("node", 300e9, 1e-6, True), Tier("cluster", 10e9, 4e-6, False)
HOSTS = machine_of([4, 5, 2], [[0, 0, 0]], [FAST, FAR])
NINE = replace(
    read_job("quickstart"),
    launcher="free",
    require={},
    parallelism=Parallelism(pp=3, dp=3),
    rules=Rules(avoid=("n2",)),
)


def test_a_listing_that_time_cuts_keeps_what_was_found(monkeypatch):
    """Cut among all placements or among those that keep the rules: nothing is lost.

    The clock goes on by a second whenever it is read.
    """
    problem = Problem.of(HOSTS, NINE, "time").with_params(local_search=False)

    def searched(limit):
        """What is found, the values told on the way, and when the search was over."""
        clock = count()
        told = []
        monkeypatch.setattr(budget, "monotonic", lambda: float(next(clock)))
        within = budget.Budget(limit)
        found = search.solve(
            problem, within, lambda now: told.append(now.solution.value)
        )
        return found, told, within.elapsed_s

    whole, _, end = searched(inf)
    assert "all 126 ways" in whole.argument
    for left in (2_000, 130, 60):
        found, told, _ = searched(end - left)
        assert found.value == min(told) < told[0]
        assert found.is_cut_short
        assert found.lower_bound < found.value
