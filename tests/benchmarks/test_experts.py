"""The page's figures on EPLB's example, and the pairs they rest on."""

from __future__ import annotations

import random
from itertools import permutations, product

import pytest

from benchmarks import experts


def test_the_figures_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    """EPLB's own output, the least by groups, and the least of all."""
    experts.main()
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert rows == [
        ["1", "129.1", "156.0", "151.0", "136.0"],
        ["2", "144.5", "179.5", "179.5", "172.0"],
    ]


@pytest.mark.parametrize("seed", range(20))
def test_no_way_to_pair_copies_is_better(seed: int) -> None:
    """Six slots on three GPUs, every number of copies and every order of them."""
    rng = random.Random(seed)
    loads = [float(rng.randint(1, 30)) for _ in range(rng.randint(2, 5))]
    best = float("inf")
    for own in product(range(1, 7), repeat=len(loads)):
        if sum(own) != 6:
            continue
        copies = [loads[e] / n for e, n in enumerate(own) for _ in range(n)]
        for order in set(permutations(copies)):
            pairs = (order[g] + order[g + 1] for g in range(0, 6, 2))
            best = min(best, max(pairs))
    assert experts.least(loads, 6) == pytest.approx(best)
