"""The benchmark on drawn machines: who is asked, what is kept, what the page says."""

from unittest.mock import patch

import numpy as np
import pytest

from benchmarks import annealing, drawn
from benchmarks.attempt import PLACER, STARTS, Attempt
from benchmarks.cases import case
from placer.cost.hop_cost import HopCost


def test_hop_price_is_the_hop_cost():
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


def test_runs_go_on_where_they_were(tmp_path, capsys):
    """What the file has is not measured again; a loser makes the exit code 1."""
    asked = []

    def made(task, _tell):
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
