"""The benchmark on drawn machines: who is asked, what is kept, what the page says."""

from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from benchmarks import annealing, curve, drawn, worth
from benchmarks.attempt import PLACER, STARTS, Attempt, Known, Spec, Task, attempt
from benchmarks.cases import case
from benchmarks.cluster_jobs import KINDS
from benchmarks.cluster_jobs import drawn as draw_of
from benchmarks.drawn import Outcome
from benchmarks.drawn_page import drawn_page
from benchmarks.peers import orders
from benchmarks.peers.problem import leaves_joined
from placer.cost.hop_cost import HopCost
from placer.cost.step import StepModel
from placer.placement.check import violations
from placer.placement.placement import Placement
from placer.topology.read import read_topology
from tests.marks import slow

ONE = Outcome(
    seed=3,
    objective="time",
    family="hosts",
    history="whole",
    kind="experts",
    launcher="free",
    uplink=4.0,
    ranks=64,
    gpus=72,
    missing=0.2,
    value=8.0,
    lower_bound=7.9,
    others={"replica-major, whole stages": 10.0, "METIS": 7.0},
)


@pytest.mark.parametrize("objective", drawn.OBJECTIVES)
@pytest.mark.parametrize("seed", [5, *slow([13, 23])])
def test_annealing_keeps_rules_and_improves(seed: int, objective: str) -> None:
    """From a bad order it gets nearer; rules and capacities hold."""
    topology, job = case(f"drawn-{seed}", objective)
    machine = leaves_joined(topology)
    found = orders.place(machine, job, unit="tp", variant="megatron-default")
    assert found is not None
    start = Placement.on_nodes(machine, found.leaf_of_rank).gpu_of_rank
    assert not violations(Placement(start), topology, job)
    end = annealing.annealed(topology, job, objective, start, 0.6)
    assert not violations(Placement(end), topology, job)
    if objective == "hop-cost":
        cost = HopCost(topology, job).cost
        assert cost(end) < cost(start) or job.launcher != "free"
    else:
        model = StepModel(topology, job)
        before, after = (model.step(gpus).step_time_s for gpus in (start, end))
        assert after <= before


def test_hop_price_is_the_hop_cost() -> None:
    """The annealing's own sum of edges says what a move adds to the cost."""
    topology, job = case("drawn-8", "hop-cost")
    start = np.arange(job.world_size)
    price = annealing._HopPrice(topology, job, start)
    cost = HopCost(topology, job)
    assert price.start == pytest.approx(cost.cost(start))
    ranks, gpus = np.array([0, 1, 70, 71]), np.array([70, 71, 0, 1])
    moved = start.copy()
    moved[ranks] = gpus
    added = cost.cost(moved) - cost.cost(start)
    assert price.delta(ranks, gpus) == pytest.approx(added)
    assert added != 0


def test_racks_are_leaves_of_mappers() -> None:
    """Trays as near as their own GPUs are joined; hosts under a switch are not."""
    racks = read_topology("block:2 rack:2 node:3 gpu:4")
    tiers = list(racks.tiers)
    near = replace(tiers[1], scale_up=True, distance=tiers[0].distance)
    joined = leaves_joined(replace(racks, tiers=(tiers[0], near, *tiers[2:])))
    assert joined.gpus_of_node.tolist() == [12] * 4
    assert joined.domain_of_node[1].tolist() == [0, 0, 1, 1]
    assert leaves_joined(racks) is racks


def test_fullest_first() -> None:
    """The order fills the largest unit first, and in it the largest leaf."""
    machine = read_topology("block:2 rack:2 node:3 gpu:4").select(
        np.array([0, 3, 4, 6, 7, 8, 9, 10])
    )
    topology, job = case("S64", "hop-cost")
    with_tp = replace(job, parallelism=replace(job.parallelism, dp=2))
    found = orders.place(machine, with_tp, variant="fullest-first")
    assert found is not None
    assert found.leaf_of_rank[::4].tolist() == [3, 4, 5, 6, 7, 1, 2, 0]
    assert topology.num_gpus == job.world_size


def test_annealing_needs_a_start() -> None:
    """It starts from what was placed before on the same case, for ten times as long."""
    topology, job = case("S64", "hop-cost")
    spec = Spec(annealing.NAME, variant=STARTS[0])
    task = Task("S64", "hop-cost", 1.0, [spec])
    assert attempt(topology, job, spec, task).status == "nothing to start from"
    known = Known()
    ours = attempt(topology, job, Spec(PLACER), task, known)
    known.placer_s = 0.01
    assert attempt(topology, job, spec, task, known).value == ours.value


def test_runs_go_on_where_they_were(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the file has is not measured again; a loser makes the exit code 1."""
    asked: list[tuple[str, str]] = []

    def made(task: Task, _tell: object) -> list[Attempt]:
        asked.append((task.case, task.objective))
        value = {PLACER: 10.0, "orders": 9.0}
        return [Attempt(s, value=value.get(s.tool, 11.0)) for s in task.specs]

    output = tmp_path / "drawn.json"
    words = ["--draws", "2", "--objective", "time", "--json", str(output)]
    with patch.object(drawn, "attempts", made):
        assert drawn.main([*words, "--peers", "orders"]) == 1
        assert drawn.main([*words, "--peers", "orders"]) == 1
        assert asked == [("drawn-0", "time"), ("drawn-1", "time")]
        assert "beaten by" in capsys.readouterr().err
        again = [*words, "--again", "--peers", "METIS", "--annealed"]
        assert drawn.main(again) == 1
    rows = drawn.read(output)
    assert [row.seed for row in rows] == [0, 1]
    names = set(rows[0].others)
    assert {"METIS", "replica-major", f"annealing {STARTS[0]}"} <= names


def test_launches_in_order_have_nodes_as_units() -> None:
    """A mapper may keep the ranks of a node together where the launch asks for that."""
    draws = [draw_of(seed) for seed in range(40)]
    for draw in draws:
        has_node = any(unit.isdigit() for unit in drawn.units(draw))
        if has_node:
            assert draw.job.launcher == "node-contiguous"
    assert any(unit.isdigit() for draw in draws for unit in drawn.units(draw))


def test_worth() -> None:
    """Savings are against the best order, by job and what is missing; zeros count."""
    assert worth.saved(ONE) == pytest.approx(0.2)
    assert ONE.better == {"METIS": pytest.approx(0.125)}
    even = replace(ONE, seed=4, value=10.0)
    none = replace(ONE, seed=5, others={})
    row = worth.cells([ONE, even, none])[list(KINDS).index("experts")]
    assert [len(cell.saved) for cell in row] == [0, 0, 2, 0]
    text = "\n".join(drawn_page([ONE, even, none]))
    assert "10.0 %, most 20.0 % (2)" in text
    assert "On 1 of 2 machines the best order is as good" in text
    assert "On 1 machines no order keeps the rules" in text
    assert "draw 3, hosts, whole, 4:1, experts, free, time: METIS by 12.50%" in text
    assert "10.0 % (20.0 %)" in worth.picture([ONE, even, none])


def test_curve(tmp_path: Path) -> None:
    """A search for each limit; gaps are to the best bound of all."""
    output = tmp_path / "curve.json"
    words = ["--instance", "S64", "--limits", "20", "30", "--json", str(output)]
    assert curve.main(words) == 0
    points = curve.read(output)
    assert [point.limit_s for point in points] == [20, 30]
    wide = [replace(points[0], value=1.25 * points[0].lower_bound), points[1]]
    assert curve.gaps(wide)[0] == pytest.approx(0.2)
    assert "30" in curve.picture(wide)
