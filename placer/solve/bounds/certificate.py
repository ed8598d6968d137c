"""The lower bound of a problem: the best of all bounds, which stand here in one list.

``value of every placement >= max over the bounds that apply``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from placer.base.rounding import EXACT
from placer.solve.bounds import Proof
from placer.solve.run.budget import ENDLESS, Budget
from placer.solve.run.incumbent import later

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.incumbent import Incumbent

# Of a problem whose nodes hold blocks of so many consecutive ranks (1 bounds every
# launch, 0 one whose nodes hold a run of any length each), given the value of a known
# placement, which need not be exceeded, and time. None where it does not apply.
Least = Callable[["Problem", int, float, Budget], Proof | None]


class Bound(NamedTuple):
    """A row of the list."""

    says: str  # what every placement pays
    # The bound; the docstring of its module, which is loaded only where the bound may
    # say anything, has the argument and an example by hand.
    least: Least
    counts_parts: bool = False  # of expert groups, if asked to


def of_step(problem: Problem) -> bool:
    """Whether the objective is the step time."""
    return problem.goal.name == "time"


def _of_speeds(problem: Problem) -> bool:
    return of_step(problem) and problem.model.fabric.speed_of_gpu is not None


def _of_traffic(problem: Problem) -> bool:
    return of_step(problem) and problem.job.traffic is not None


BOUNDS: tuple[Bound, ...] = (
    Bound(
        "a step on the best network imaginable, in the cheapest of a few cases: which "
        "groups leave their domains, NICs against cuts, uplinks, parts of experts",
        later("bounds.cases", "least_step", of_step),
        counts_parts=True,
    ),
    Bound(
        "a stage on GPUs no faster than so many of the machine are",
        later("bounds.case", "slowest_stages", _of_speeds),
    ),
    Bound(
        "what a rank and those who share its domain send to all others",
        later("bounds.neighbours", "least_with_neighbours", _of_traffic),
    ),
    Bound(
        "transfers of ranks that have no room near their partners",
        later("bounds.transfers", "least_near_partners", _of_traffic),
    ),
    Bound(
        "the edges that the least cut of every tier has",
        later("bounds.hop_cuts", "least_hop_cost", lambda p: not of_step(p)),
    ),
)
NONE = Proof(0.0, "none")


def prove(problem: Problem, incumbent: Incumbent) -> None:
    """Give the bound of a problem, or of the search that it is a part of.

    What takes long, parts of expert groups, comes when the incumbent asks for it.
    """
    if incumbent.terms is not None:
        incumbent.prove(*incumbent.terms.bound(incumbent.value))
        return
    has_parts = of_step(problem) and problem.job.parallelism.ep > 1
    if has_parts and problem.params.expert_rounds:
        incumbent.closer = partial(_prove, problem, incumbent, closer=True)
        problem = problem.searched_anew(problem.seed, expert_rounds=0)
    _prove(problem, incumbent)


def prove_closer(_: Problem, incumbent: Incumbent, _budget: Budget) -> None:
    """Work out what is dear of the bound, where no walk has asked for it."""
    incumbent.prove_closer()


def _prove(problem: Problem, incumbent: Incumbent, closer: bool = False) -> None:
    if problem.params.known_bound:
        incumbent.prove(problem.params.known_bound, "known before")
        return
    block = problem.forced_block
    # Which bounds say more where parts are counted; the others are known.
    rows = [bound for bound in BOUNDS if bound.counts_parts or not closer]
    for of_every_launch, proof in _proofs(
        problem, block, incumbent.value, incumbent.budget, rows
    ):
        if of_every_launch:
            incumbent.launch_bound = max(incumbent.launch_bound, proof.value)
        incumbent.prove(proof.value, proof.argument)


def lower_bound(
    problem: Problem, block: int, incumbent: float = inf, budget: Budget = ENDLESS
) -> Proof:
    """The best of all bounds for every placement that meets the requirements.

    ``block`` consecutive ranks share a node; 1 bounds every launch, 0 one whose nodes
    hold a run of any length each. ``incumbent`` is the value of a known placement: a
    bound that reaches it is not improved further. When ``budget`` ends it is the best
    so far.
    """
    proofs = (proof for _, proof in _proofs(problem, block, incumbent, budget, BOUNDS))
    return max(proofs, default=NONE)


def _proofs(
    problem: Problem,
    block: int,
    incumbent: float,
    budget: Budget,
    bounds: Sequence[Bound],
) -> Iterator[tuple[bool, Proof]]:
    """What each bound proves, until one reaches a known value; of every launch last.

    With each whether it holds for every launch, as what is said of hops does.
    """
    by_hops = not of_step(problem)
    for of in (block,) if by_hops or block <= 1 else (block, 1):
        for bound in bounds if of == block or not budget.is_over() else ():
            proof = bound.least(problem, of, incumbent, budget)
            if proof is not None:
                yield by_hops or of == 1, proof
                if incumbent * (1 - EXACT) <= proof.value:
                    return
