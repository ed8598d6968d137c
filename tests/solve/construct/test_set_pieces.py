"""Closed sets on racks: whole or in pieces, so that transfers take the least time."""

from dataclasses import replace

import numpy as np
import pytest

from placer.solve.bounds import certificate
from placer.solve.construct.transfers.set_pieces import loose_pieces, set_pieces
from placer.solve.construct.transfers.set_ways import Ways
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from tests.solve.solving import known
from tests.solve.test_transfers import role, transfers
from tests.solve.test_workloads import machine_of, workload_of


def problem_of(title, gpus, racks):
    roles, keys = next(of for name, *of in transfers(gpus) if name == title)
    sent = {"from": "a", "to": "b", "bytes": "80GB"} | keys
    job = workload_of(roles, [sent], launcher={"ranks": "node-contiguous"})
    return Problem.of(machine_of(racks, 4, "900GB/s"), job, "time", 0)


def placed(problem, gpus):
    """Seconds of ranks in order, and of sets in pieces."""
    found = known(problem, np.arange(gpus))
    before = found.value
    set_pieces(problem, found, Budget(600.0))
    return before, found.value


@pytest.mark.parametrize(
    ("title", "gpus", "racks", "seconds"),
    [
        pytest.param(
            "wider",
            64,
            [14, 6],
            2.7818e-3,
            marks=pytest.mark.slow,
            id="one of two sets in halves",
        ),
        pytest.param(
            "stages", 128, [9, 16, 7], 0.125, marks=pytest.mark.slow, id="none to spare"
        ),
        pytest.param(
            "stages", 128, [9, 16, 8], 0.1, marks=pytest.mark.slow, id="one to spare"
        ),
        pytest.param(
            "stages",
            512,
            [6, 13, 8, 11, 12, 11, 15, 12, 18, 8, 9, 9, 9, 2],
            0.125,
            marks=pytest.mark.slow,
            id="three pieces of a set",
        ),
    ],
)
def test_sets_are_cut_where_racks_hold_them_so(title, gpus, racks, seconds):
    before, after = placed(problem_of(title, gpus, racks), gpus)
    assert after == pytest.approx(seconds, rel=1e-3)
    assert after < before / 1.5


@pytest.mark.slow
def test_nothing_takes_less_than_sets_in_pieces():
    """Halves of sets on eleven racks."""
    problem = problem_of("wider", 512, [9, 15, 16] * 3 + [9, 14])
    _, after = placed(problem, 512)
    bound = certificate.lower_bound(problem, 0).value
    assert bound <= after <= bound * 1.01


def test_sets_are_not_cut_so_that_ranks_without_needs_lack_nodes():
    """Racks hold 15 of 16 sets of ten nodes whole, one in halves of six, 128 others."""
    racks = [4] * 3 + [5] * 3 + [6] + [7] * 3 + [9] * 4 + [10, 12, 12, 13]
    racks += [14] * 3 + [16] + [17] * 4 + [18] * 3
    rollouts = role("b", 128, 2, sharding="zero3", tp=8, pp=2)
    roles = [role("a", 1024, tp=2, pp=4), rollouts]
    sent = {"from": "a", "to": "b", "bytes": "80GB"}
    job = workload_of(roles, [sent], launcher={"ranks": "node-contiguous"})
    problem = Problem.of(machine_of(racks, 4, "900GB/s"), job, "time", 0)
    _, after = placed(problem, 1152)
    assert after == pytest.approx(2 * 6.25e8 / 900e9, rel=1e-2)


@pytest.mark.slow
def test_receivers_whom_nobody_needs_near_are_anywhere():
    """Two trays of senders with twelve of receivers each: racks hold one and six."""
    roles = [role("a", 8, tp=8), role("b", 96, 6, tp=16)]
    sent = {"from": "a", "to": "b", "bytes": "80GB"}
    job = workload_of(roles, [sent], launcher={"ranks": "node-contiguous"})
    problem = Problem.of(machine_of([10, 7, 6, 5], 4, "900GB/s"), job, "time", 0)
    before, after = placed(problem, 104)
    assert after == pytest.approx(before / 2, rel=1e-3)


def test_sets_that_no_cut_fits_lie_rank_by_rank():
    """Seven of eight sets of four nodes are whole; the last shares nodes with others.

    Half of the time takes one of two partners near, and less is ruled out.
    """
    roles = [role("a", 32, tp=2, pp=4), role("b", 32, 2, tp=8, pp=2)]
    sent = {"from": "a", "to": "b", "bytes": "80GB"}
    job = workload_of(roles, [sent], launcher={"ranks": "node-contiguous"})
    # As if one message could fill a NIC: else half of them take as long as all.
    assert job.traffic is not None
    job = replace(job, traffic=replace(job.traffic, pair_share=1.0))
    problem = Problem.of(machine_of([21, 9, 3, 2], 2, "900GB/s"), job, "time", 0)
    found = known(problem, np.arange(64))
    set_pieces(problem, found, Budget(600.0))
    before = found.value
    loose_pieces(problem, found, Budget(600.0))
    assert found.value == pytest.approx(before / 2, rel=1e-3)
    bound = certificate.lower_bound(problem, 0, found.value).value
    assert found.value == pytest.approx(bound, rel=1e-3)


def test_all_times_are_tried_whole_before_any_set_is_cut(monkeypatch):
    """Cuts take long to find, and longer times often need none."""
    asked = []

    def up_to(_ways, pieces, _budget):
        asked.append(pieces)
        return []

    monkeypatch.setattr(Ways, "up_to", up_to)
    problem = problem_of("stages", 128, [9, 16, 7])
    set_pieces(problem, known(problem, np.arange(128)), Budget(600.0))
    assert asked == sorted(asked)
    assert asked.count(1) > 1


def test_stages_that_end_amid_a_node_are_on_nodes_of_their_own():
    """A stage of 260 ranks: on nodes of 8 in order all are one set, else 32 of four."""
    trainer = {"parallelism": {"ep": 4, "pp": 2, "dp": 260}}
    roles = [{"name": "a", "job": trainer}, role("b", 512, 32)]
    roles[1]["job"]["parallelism"] = {"ep": 16, "dp": 16}
    sent = {"from": "a", "to": "b", "bytes": "80GB", "expert_share": 0.95}
    job = workload_of(roles, [sent], launcher={"ranks": "node-contiguous"})
    problem = Problem.of(machine_of([18] * 8, 8, "900GB/s"), job, "time", 0)
    before, after = placed(problem, 1032)
    assert before > 0.1
    assert after == pytest.approx(0.00973, rel=1e-3)
