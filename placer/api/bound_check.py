"""Whether the lower bound that a plan states can be proved again."""

from __future__ import annotations

from placer.base.rounding import EXACT
from placer.cost.least_cases import priced_step
from placer.job.orders import closed
from placer.placement.hop_bound import priced_hop_cost
from placer.placement.inputs import Inputs
from placer.placement.plan import OBJECTIVES, Plan
from placer.solve.bounds import Proof
from placer.solve.bounds.certificate import lower_bound, of_step
from placer.solve.bounds.hop_prices import hop_prices
from placer.solve.orders import open_orders, solve_orders
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget, InTime, LeftBehind
from placer.solve.run.solution import Progress, Solution


def bound_faults(plan: Plan, inputs: Inputs, time_limit: float) -> list[str]:
    """A sentence when the bound of ``plan`` is false, or cannot be proved again.

    The proofs that need no search come first; where these do not reach the bound, the
    job is placed afresh as it was, and what that search proves is compared.

    ``time_limit`` (s): of the search.
    """
    objective, stated = plan.bound.get("objective"), plan.bound.get("lower_bound")
    if objective not in OBJECTIVES or not isinstance(stated, int | float):
        return []  # told already
    machine, job = inputs.machine, inputs.ruled
    if inputs.use_spares:
        job = closed(job)  # as when it was placed again
    problem = Problem.of(machine, job, objective, int(plan.solver.get("seed", 0)))
    enough = stated * (1 - EXACT)
    budget = Budget(time_limit)
    proofs = _proofs(problem, stated)
    proved, argument, _ = min(proof for _, proof in proofs)
    told = plan.bound.get("argument")
    if proved >= enough > (counted := _counted(proofs, budget)):
        what = "prices" if objective == "hop-cost" else "cases"
        return [f"bound.lower_bound: {stated!r}: its {what} prove only {counted!r}"]
    if proved >= enough and (told == argument or abs(proved - stated) > EXACT * proved):
        return []
    found = _search(problem, budget)
    if proved >= enough:
        if told == found.argument:  # all placements of a small job were listed, say
            return []
        return [f"bound.argument: the proof found again is {argument!r}, not {told!r}"]
    if found.value < enough:
        return [
            f"bound.lower_bound: {stated!r} is false: "
            f"a placement was found that costs {found.value!r}"
        ]
    if found.lower_bound >= enough:
        return []
    proved = max(proved, found.lower_bound)
    why = "no proof of it was found again"
    if found.is_cut_short:
        why = f"not verified: the search did not finish ({found.stop_reason})"
    return [f"bound.lower_bound: {stated!r} is unproved, {proved!r} is proved: {why}"]


def _proofs(problem: Problem, stated: float) -> list[tuple[Problem, Proof]]:
    """The proofs that need no search, each with its problem: one a rank order."""
    every = (problem.on(problem.machine, job) for job in open_orders(problem.job))
    return [(one, lower_bound(one, one.forced_block, stated)) for one in every]


def _counted(proofs: list[tuple[Problem, Proof]], budget: Budget) -> float:
    """What prices or cases alone prove, over all orders; the bound if it takes more."""
    return min(_counted_again(problem, proof, budget) for problem, proof in proofs)


def _counted_again(problem: Problem, proof: Proof, budget: Budget) -> float:
    machine, job = problem.machine, problem.job
    if not of_step(problem):
        prices = hop_prices(problem, proof.value, budget)
        return proof.value if prices is None else priced_hop_cost(machine, job, prices)
    if proof.cases:
        return priced_step(machine, job, proof.cases)
    return proof.value


def _search(problem: Problem, budget: Budget) -> Solution:
    """The job placed afresh."""

    def search(tell: Progress, within: Budget) -> Solution:
        return solve_orders(problem, within, tell)[1]

    found = InTime(search, budget).run()
    return found.solution if isinstance(found, LeftBehind) else found
