"""Cases of Slurm's block topology plugin (SchedMD/slurm, commit 284c3b95f0)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from placer.base.errors import InfeasibleError
from tests.conformance.machines import (
    Host,
    crossings,
    domains_of,
    job,
    machine,
    ranks_in,
    varied,
    without,
)
from tests.solve.solving import solve

if TYPE_CHECKING:
    from placer.placement.placement import Placement
    from placer.topology.model import Topology

TIERS = ("node", "block", "pair")
VARIATIONS = range(6)


def two_blocks(seed: int = 0, size: int = 4) -> Topology:
    """Two base blocks of equal one-GPU nodes."""
    hosts = domains_of({"b1": [1] * size, "b2": [1] * size})
    return machine(TIERS, varied(hosts, seed))


def place(topology: Topology, nodes: int, tier: str) -> Placement:
    """A job of whole nodes inside one domain of a tier."""
    return solve(topology, job({"dp": tier}, dp=nodes)).placement


@pytest.mark.parametrize("seed", VARIATIONS)
def test_jobs_lie_in_one_base_block(seed: int) -> None:
    """After jobs of 2 and 3 nodes another 3 do not fit a block: 2 + 1 are left.

    Source: testsuite/python/tests/test_150_1.py.
    """
    topology = two_blocks(seed)
    left = without(topology, place(topology, 2, "block"))
    left = without(left, place(left, 3, "block"))
    assert left.num_nodes == 3
    with pytest.raises(InfeasibleError) as caught:
        place(left, 3, "block")
    text = str(caught.value)
    assert "3 ranks together in one block" in text
    assert "roomiest block can take 2 ranks" in text


@pytest.mark.parametrize("seed", VARIATIONS)
def test_small_and_large_job_share_the_machine(seed: int) -> None:
    """A 3-node job in a base block and a 5-node job in the pair run together.

    Source: testsuite/python/tests/test_150_1.py.
    """
    topology = two_blocks(seed)
    small = place(topology, 3, "block")
    assert len(ranks_in(topology, small, "block")) == 1
    left = without(topology, small)
    assert len(ranks_in(left, place(left, 5, "pair"), "node")) == 5


@pytest.mark.parametrize(
    ("nodes", "candidates", "segment", "fits"),
    [
        (4, [1, 2, 3, 4], 2, True),
        (4, [1, 2, 5, 6], 2, True),
        (6, [1, 2, 3, 4, 5, 6, 7, 8], 3, True),
        (6, [1, 2, 3, 5, 6, 7], 3, True),
        (6, [1, 2, 3, 4, 5, 6], 3, False),
        (6, [1, 2, 3, 4, 5], 3, False),
    ],
)
@pytest.mark.parametrize("reverse", [False, True])
def test_segments_lie_in_one_block(
    nodes: int, candidates: list[int], segment: int, fits: bool, reverse: bool
) -> None:
    """Each segment of a job on given candidate nodes lies inside one base block.

    Source: testsuite/python/tests/test_150_2.py.
    """
    listed = candidates[::-1] if reverse else candidates
    hosts = [Host(f"n{n}", 1, ("b1" if n <= 4 else "b2",)) for n in listed]
    topology = machine(TIERS, hosts)
    case = job({"tp": "block"}, tp=segment, dp=nodes // segment)
    if not fits:
        with pytest.raises(InfeasibleError) as caught:
            solve(topology, case)
        text = str(caught.value)
        if len(candidates) < nodes:
            assert "needs 6 GPUs" in text
            assert "5 usable" in text
        else:
            assert "3 ranks together in one block" in text
            assert "2 such parts are needed, 1 fit" in text
        return
    found = solve(topology, case)
    assert found.status == "optimal"
    assert crossings(topology, case, found.placement, "block")["tp"] == 0


@pytest.mark.parametrize("size", [2, 3, 4, 7])
def test_a_block_is_finished_before_the_next(size: int) -> None:
    """With interleaved numbering ranks go through one block, then through the other.

    Source: testsuite/python/tests/test_150_3.py.
    """
    hosts = [Host(f"n{n}", 1, (f"b{2 - n % 2}",)) for n in range(1, 2 * size + 1)]
    topology = machine(TIERS, hosts)
    case = job(dp=2 * size)
    found = solve(topology, case)
    assert found.status == "optimal"
    assert crossings(topology, case, found.placement, "block")["dp"] == min(2, size)
    names = [topology.node_names[g] for g in found.placement.gpu_of_rank]
    odd_first = [f"n{n}" for n in range(1, 2 * size, 2)]
    even = [f"n{n}" for n in range(2, 2 * size + 1, 2)]
    assert names == odd_first + even


def test_a_step_stays_in_one_block() -> None:
    """A step of 3 takes 1 3 5; the next takes 2 4 6 rather than the left-over 7.

    Source: testsuite/python/tests/test_150_3.py.
    """
    hosts = [Host(f"n{n}", 1, (f"b{2 - n % 2}",)) for n in range(1, 9)]
    topology = machine(TIERS, hosts)
    first = solve(topology, job(dp=3)).placement
    assert len(ranks_in(topology, first, "block")) == 1
    left = without(topology, first)
    second = solve(left, job(dp=3)).placement
    assert ranks_in(left, second, "block").most_common() == [
        (next(iter({"b1", "b2"} - set(ranks_in(topology, first, "block")))), 3)
    ]
