"""What ranks send each other on tiny machines: no bound is above the best placement."""

import random
from itertools import permutations, product

import pytest

from placer.solve.bounds.certificate import lower_bound
from placer.solve.problem.compiled import Problem
from tests.marks import slow
from tests.solve.attack import MACHINES
from tests.solve.oracle import least, legal_placements
from tests.solve.test_communicators import job_of

MOST_PLACEMENTS = 600


def flows(rng, ranks):
    """One side to the other as between roles, a ring, pairs, or any."""
    who = list(range(ranks))
    if rng.random() < 0.4:
        rng.shuffle(who)
    cut = rng.randint(1, ranks - 1)
    found = rng.choice(
        (
            list(product(who[:cut], who[cut:])),
            list(zip(who, who[1:] + who[:1], strict=True)),
            list(zip(who[: ranks // 2], who[ranks // 2 :], strict=False)),
            list(permutations(who, 2)),
        )
    )
    chosen = sorted(rng.sample(found, rng.randint(-(-len(found) // 2), len(found))))
    senders, receivers = zip(*chosen, strict=True)
    sizes = [1e8] if rng.random() < 0.5 else [1e5, 3e7, 1e8, 2.5e8]
    size = [rng.choice(sizes) for _ in chosen]
    return {"from": list(senders), "to": list(receivers), "bytes": size}


def compared(seed):
    """Whether a bound is the best of all placements; None where they are too many."""
    rng = random.Random(seed)
    machine, ranks = MACHINES[rng.choice(("plain", "thin", "racks"))](rng)
    launcher = rng.choice(("free", "node-contiguous"))
    if not 2 <= ranks <= min(machine.num_gpus, 6):
        return None
    job = job_of(ranks, launcher, traffic=flows(rng, ranks))
    placements = legal_placements(machine, job)
    if not 0 < len(placements) <= MOST_PLACEMENTS:
        return None
    problem = Problem.of(machine, job, "time")
    best = least(machine, job, "time", placements)
    bounds = [lower_bound(problem, of).value for of in {1, problem.forced_block}]
    assert max(bounds) <= best * (1 + 1e-9), seed
    return max(bounds) >= best * (1 - 1e-6)


@pytest.mark.parametrize("seeds", [range(30), *slow([range(1_000, 1_600)])])
def test_no_bound_is_above_the_best_placement(seeds):
    found = [is_least for is_least in map(compared, seeds) if is_least is not None]
    assert sum(found) > len(found) / 4
