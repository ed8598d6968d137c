"""What jobs to come want decides what is left free: `placer allocate --demand`."""

from dataclasses import replace

import numpy as np
import pytest

import placer
from placer import testing
from placer.allocate.question import demand_of
from placer.base.errors import InputError
from tests.problems import problems_of


def ring(ranks):
    """A ring of ranks in one rack, which costs the same in every rack."""
    return testing.job("ring", dp=ranks, weights={"dp": 1}, require={"dp": "rack"})


@pytest.mark.parametrize("demand", ["6", "5=2,1", "3", "2=9,6=1", "4"])
@pytest.mark.parametrize("free", [(6, 4, 3), (6, 5, 5), (4, 3, 2)])
def test_the_rest_is_the_best_of_all_for_the_demand(demand, free):
    """Two nodes of one rack: the rack whose rest serves the demand best is taken."""
    topology = placer.read_topology("rack:3 node:6 gpu:1")
    by_rack = np.array(topology.node_names).reshape(3, 6)
    names = [str(n) for own, k in zip(by_rack, free, strict=True) for n in own[:k]]
    wanted = demand_of(demand)

    def worth(left):
        return sum(often * u * (f // u) for u, often in wanted for f in left)

    best = max(
        worth([f - 2 * (rack == chosen) for rack, f in enumerate(free)])
        for chosen in range(len(free))
    )
    found = placer.allocate(topology, [ring(2)], free=names, demand=demand)
    assert found.status == "optimal"
    left = found.left["useful_nodes"] * sum(often for _, often in wanted)
    assert left == pytest.approx(best)


def test_a_demand_is_read_from_a_queue(tmp_path):
    """An item a line, comments and equal items; a mapping and a text say the same.

    All bad lines are told, with their places.
    """
    queue = tmp_path / "queue.txt"
    queue.write_text("4\n 16 # big\n\n4\n2 = 0.5\n")
    assert demand_of(f"@{queue}") == ((16, 2), (4, 4), (2, 1))
    assert demand_of("4=2,16,2=.5") == demand_of({"4": 2, "16": 1, "2": 0.5})
    queue.write_text("4\nx\n  0\n")
    problems = problems_of(demand_of, f"@{queue}")
    assert [(p.line, p.column) for p in problems] == [(2, 1), (3, 3)]
    for bad in ("", "4,,1", "4=0", "-1", "4=x"):
        with pytest.raises(InputError, match="demand"):
            demand_of(bad)


def test_without_racks_jobs_to_come_may_have_any_nodes():
    """Of 12 nodes that are left 8 serve a job of 8, and 12 those of 3."""
    machine = "node:16 gpu:1"
    free = replace(ring(4), require={})
    found = placer.allocate(machine, free, demand="8=1,3=1")
    assert found.left["useful_nodes"] == pytest.approx((8 + 12) / 2)
    assert found.left["stranded_nodes"] == pytest.approx(2)
    assert "8 (50%), 3 (50%) nodes can fill 10.0 of them" in " ".join(
        found.summary().split()
    )
    many = placer.allocate(machine, free, demand="9=1,8=2,7=3,3=2,2=2").summary()
    assert "8 (20%), 7 (30%), 3 (20%), 2 (20%), others (10%) nodes" in " ".join(
        many.split()
    )
