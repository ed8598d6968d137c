"""The fast scorer against the slow one that shares no code with it."""

import pytest

from placer.explain.score import score
from placer.placement.placement import Placement
from tests.cost.random_cases import Case, random_case, with_adapters
from tests.cost.reference import reference_step
from tests.marks import slow

PARTS = ("step_time_s", "compute_s", "bubble_s", "fixed_s", "exposed_scale_out_s")
BATCH = 20


def _check(case: Case, seed: int) -> None:
    fast = score(case.topology, case.job, Placement(case.gpu_of_rank))
    slow = reference_step(case.topology, case.job, case.gpu_of_rank.tolist())
    # A difference of two step times is known to a share of the step, not of itself.
    small = 1e-9 * slow["step_time_s"]
    for part in PARTS:
        expected = pytest.approx(slow[part], rel=1e-9, abs=small)
        assert fast[part] == expected, (seed, part)
    expected = pytest.approx(slow["exposed_s"], rel=1e-9, abs=small)
    assert fast["exposed_s"] == expected, seed


@pytest.mark.parametrize("first", [0, *slow(range(BATCH, 480, BATCH))])
def test_agrees_with_plain_loops(first: int) -> None:
    """Both scorers give the same step time and parts to 1e-9 on random cases.

    So they do where only adapters are trained.
    """
    for seed in range(first, first + BATCH):
        case = random_case(seed)
        _check(case, seed)
        _check(with_adapters(case, seed), seed)
