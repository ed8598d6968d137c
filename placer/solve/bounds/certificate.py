"""The lower bound of a problem: the best of all bounds.

``value of every placement >= max over the bounds that apply``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from typing import TYPE_CHECKING

from placer.solve.bounds import Proof
from placer.solve.bounds.steps.time import least_of_every_launch, least_step_time
from placer.solve.count.engine import Limits
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import ENDLESS, Budget
from placer.solve.run.later import is_of_hops
from placer.solve.run.solution import EXACT

if TYPE_CHECKING:
    from placer.solve.run.incumbent import Incumbent

# A bound: of a problem whose nodes hold blocks of so many consecutive ranks (1 bounds
# every launch, 0 one whose nodes hold a run of any length each), given the value of a
# known placement, which need not be exceeded, and time. None where it does not apply.
Bound = Callable[[Problem, int, float, Budget], Proof | None]


def least_hop_cost(
    problem: Problem, block: int, incumbent: float, budget: Budget
) -> Proof | None:
    """A bound on the hop cost, loaded for those who ask for that, who are few."""
    if not is_of_hops(problem):
        return None
    from placer.solve.bounds.hops import hop_cuts

    return hop_cuts.least_hop_cost(problem, block, incumbent, budget)


BOUNDS: tuple[Bound, ...] = (
    least_step_time,
    least_of_every_launch,
    least_hop_cost,
)
OF_EVERY_LAUNCH = (least_of_every_launch, least_hop_cost)
NONE = Proof(0.0, "none")


def prove(problem: Problem, incumbent: Incumbent) -> None:
    """Offer the bound of a problem, or of the search that it is a part of."""
    if incumbent.terms is not None:
        incumbent.prove(*incumbent.terms.bound(incumbent.value))
    else:
        _prove(problem, incumbent, incumbent.budget)


def _prove(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    if problem.params.known_bound:
        incumbent.prove(problem.params.known_bound, "known before")
        return
    block = problem.forced_block
    for bound, proof in _proofs(problem, block, incumbent.value, budget):
        if block == 1 or bound in OF_EVERY_LAUNCH:
            incumbent.launch_bound = max(incumbent.launch_bound, proof.value)
        incumbent.prove(*proof)


def counted_parts(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Work more on whole numbers of parts, on those of expert groups in wide gaps."""
    params = problem.params
    if incumbent.terms is not None or not is_of_hops(problem):
        return
    from placer.solve.bounds.hops.hop_cuts import counted_hop_cost

    is_wide = not incumbent.is_within(params.parts_walk_gap)
    limits = Limits(params.parted_nodes, budget.seconds_left, engine="highs")
    proof = counted_hop_cost(problem, incumbent.value, limits, is_wide=is_wide)
    if proof is not None:
        incumbent.prove(*proof)


def lower_bound(
    problem: Problem, block: int, incumbent: float = inf, budget: Budget = ENDLESS
) -> Proof:
    """The best of all bounds for every placement that meets the requirements.

    ``block`` consecutive ranks share a node; 1 bounds every launch, 0 one whose nodes
    hold a run of any length each. ``incumbent`` is the value of a known placement: a
    bound that reaches it is not improved further. When ``budget`` ends it is the best
    so far.
    """
    proofs = (proof for _, proof in _proofs(problem, block, incumbent, budget))
    return max(proofs, default=NONE)


def _proofs(
    problem: Problem, block: int, incumbent: float, budget: Budget
) -> Iterator[tuple[Bound, Proof]]:
    """Bounds that apply and what each proves, until one reaches a known value."""
    for bound in BOUNDS:
        proof = bound(problem, block, incumbent, budget)
        if proof is not None:
            yield bound, proof
            if incumbent * (1 - EXACT) <= proof.value:
                return
