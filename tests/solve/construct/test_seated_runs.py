"""Few ranks that send to many: each where most of those who get something are near."""

import numpy as np
import pytest

from placer.solve.bounds import certificate
from placer.solve.construct.transfers.seated_runs import seated_runs
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from tests.solve.solving import known
from tests.solve.test_transfers import role
from tests.solve.test_workloads import machine_of, workload_of


@pytest.mark.parametrize(
    ("racks", "near"),
    [
        pytest.param([5, 5, 5, 3], 8, id="two senders beside four nodes"),
        pytest.param([5, 5, 4, 3], 4, id="none to spare for nodes of two"),
    ],
)
def test_senders_are_parted_where_nodes_are_left_for_that(racks, near):
    """Nodes of four hold two ranks for each of two senders, or one for each of four."""
    roles = [role("a", 4, tp=4), role("b", 64, 8, tp=8)]
    job = workload_of(
        roles,
        [{"from": "a", "to": "b", "bytes": "80GB"}],
        launcher={"ranks": "node-contiguous"},
    )
    problem = Problem.of(machine_of(racks, 4, "900GB/s"), job, "time", 0)
    found = known(problem, np.arange(68))
    seated_runs(problem, found, Budget(60.0))
    assert found.value == pytest.approx((16 - near) * 10e9 / 50e9, rel=1e-3)
    bound = certificate.lower_bound(problem, problem.forced_block, found.value)
    assert bound.value == pytest.approx(found.value, rel=1e-3)
