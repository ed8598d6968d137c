"""The lower bound of an objective, whatever the placement."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from placer.solve.bounds.cut import least_hop_cost
from placer.solve.bounds.proof import Bound, Proof
from placer.solve.bounds.time import least_step_time

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.incumbent import Incumbent

BOUNDS: tuple[Bound, ...] = (least_step_time, least_hop_cost)
NONE = Proof(0.0, "none")


def prove(problem: Problem, incumbent: Incumbent) -> None:
    """Offer the bound of a problem, or of the search that it is a part of."""
    if incumbent.terms is not None:
        incumbent.prove(*incumbent.terms.bound(incumbent.value))
        return
    block = problem.forced_block
    bound, argument = lower_bound(problem, block, incumbent.value)
    if block == 1 or problem.goal.name == "hop-cost":
        incumbent.launch_bound = bound
    incumbent.prove(bound, argument)


def lower_bound(problem: Problem, block: int, incumbent: float = inf) -> Proof:
    """The best of all bounds for every placement that meets the requirements.

    ``block`` consecutive ranks share a node; 1 bounds every launch. ``incumbent`` is
    the value of a known placement: a bound that reaches it is not improved further.
    """
    proofs = (bound(problem, block, incumbent) for bound in BOUNDS)
    return max((proof for proof in proofs if proof is not None), default=NONE)
