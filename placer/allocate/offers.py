"""What a job makes of given nodes: its best placement there, and what no other beats.

More nodes are never worse. So a bound on many nodes holds for any of them, and the
value on some is an upper limit on more.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from placer.allocate.question import Question, Running, Wanted
from placer.allocate.shared import Allowance, Use, Uses, limits_used, under
from placer.base.arrays import BoolArray, FloatArray
from placer.base.errors import InfeasibleError
from placer.cost import DIFFERENCE
from placer.job.model import Job
from placer.job.orders import in_order
from placer.placement.placement import Placement
from placer.solve.orders import solve_orders
from placer.solve.problem.compiled import Problem
from placer.solve.problem.params import NORMAL, QUICK, Effort, params_of
from placer.solve.run.budget import Budget, InTime, LeftBehind, Patience
from placer.solve.run.solution import Progress, Solution
from placer.topology.model import Topology
from placer.topology.submachine import Submachine


class Asked(NamedTuple):
    """How a job is searched for.

    The search ends with a placement of value ``enough``. Where nothing worse will do
    (``is_needed``), it asks no programs. It works out no bound of its own then, nor
    where it is said to be bounded: that on all free nodes holds. It shares what time is
    left with all ``to_come``.
    """

    share: tuple[FloatArray, ...] | None = None  # of each uplink; None for all of it
    effort: Effort = QUICK
    allowed: Allowance | None = None  # of the limits; None for all that is allowed
    enough: float = 0.0
    is_needed: bool = False
    is_bounded: bool = False
    to_come: int = 1


AS_USUAL = Asked()
# Free nodes of a machine on which nothing less than a proof will do.
SMALL_NODES = 64


@dataclass(frozen=True, eq=False)
class Offer:
    """A job on its nodes."""

    job: Job  # in the rank order of the placement
    solution: Solution  # its placement, on the whole machine
    nodes: BoolArray  # (N,): what it takes, spare nodes among it
    # cost and least: the value of the placement with the price of moving, and a bound
    # on that.
    cost: float
    least: float
    moved: bool = False  # whether it leaves the nodes it ran on
    uses: Allowance = ()  # what it uses of each limit of the question
    # A bound on the cost where others leave no more than the share of the uplinks that
    # it was searched with; 0 where it was searched alone.
    least_beside: float = 0.0


class Offers:
    """The offers of all jobs of a question, each worked out once.

    ``budget``: of the searches. ``progress``: told the job of each search before it,
    and how many have begun. ``always``: what jobs that stay where they are take of the
    uplinks. ``uplinks``: what all leave each other.
    """

    def __init__(
        self,
        question: Question,
        budget: Budget,
        progress: Callable[[str, int], None] = lambda _job, _number: None,
        always: Sequence[Use] = (),
    ) -> None:
        self.progress = progress
        self.uplinks = Uses(question.machine, always)
        self.question, self.budget = question, budget
        self.is_cut_short = False  # whether one ended for want of time
        # Whether one found no placement, and did not prove that there is none.
        self.is_unsure = False
        self.count = 0
        alike = [_content(wanted) for wanted in question.jobs]
        self._first_alike = [alike.index(content) for content in alike]
        self._known: dict[tuple[object, ...], Offer | None] = {}
        # Of each job on all free nodes, which holds on any of them.
        self._bounds: dict[int, float] = {}

    def different(self, indices: Iterable[int]) -> int:
        """How many of some jobs are not alike."""
        return len({self._first_alike[index] for index in indices})

    def alone(self, index: int, effort: Effort, to_come: int = 1) -> Offer:
        """A job with all free nodes to itself; its bound then holds on any of them.

        ``to_come``: searches that share what time is left, this one among them. Raises
        `InfeasibleError` if they cannot hold it.
        """
        asked = Asked(effort=effort, to_come=to_come)
        found = self.needed(index, self.question.free, asked)
        self._bounds[self._first_alike[index]] = found.solution.lower_bound
        return found

    def best(
        self, index: int, nodes: BoolArray, asked: Asked = AS_USUAL
    ) -> Offer | None:
        """The offer of a job for some nodes; None where they cannot hold it."""
        try:
            return self.needed(index, nodes, asked)
        except InfeasibleError:
            return None

    def needed(self, index: int, nodes: BoolArray, asked: Asked = AS_USUAL) -> Offer:
        """The offer of a job for some nodes.

        Raises `InfeasibleError` where they cannot hold it, with the reason; of several
        jobs it is named.
        """
        share, effort, allowed, enough, *_ = asked
        jobs = self.question.jobs
        name = jobs[index].name
        who = f"{name}: " if len(jobs) > 1 else ""
        nodes = self.question.open_to(index, nodes)
        shares = None if share is None else b"".join(s.tobytes() for s in share)
        allowed = self._within_need(index, allowed)
        index = self._first_alike[index]
        same = index, nodes.tobytes(), shares, effort, allowed
        key = (*same, enough, asked.is_needed, asked.is_bounded)
        harder = index, nodes.tobytes(), shares, NORMAL, allowed, 0.0, False, False
        for known_key in (key, (*same, 0.0, False, False), harder):
            known = self._known.get(known_key)
            if known is not None:
                return known
            if known_key in self._known:
                raise InfeasibleError(f"{who}these nodes cannot hold the job")
        self.count += 1
        self.progress(name, self.count)
        self._known[key] = None
        within = self.budget.share(asked.to_come)
        try:
            asked = asked._replace(allowed=allowed)
            found = self._worked_out(index, nodes, asked, within)
        except InfeasibleError as error:
            self.is_unsure |= not error.is_proved
            raise (error.of(name) if len(jobs) > 1 else error) from None
        self._known[key] = found
        return found

    def _within_need(self, index: int, allowed: Allowance | None) -> Allowance:
        """An allowance without what a job has no use for, so that equal ones meet."""
        question = self.question
        allowed = question.allowance if allowed is None else allowed
        job = question.jobs[index].job
        pairs = zip(allowed, question.limits, strict=True)
        return tuple(min(most, limit.most_of(job)) for most, limit in pairs)

    def _worked_out(
        self, index: int, nodes: BoolArray, asked: Asked, within: Budget
    ) -> Offer:
        wanted = self.question.jobs[index]
        stay = self._stay(index, nodes, asked.allowed or ())
        try:
            part = self.question.part(nodes, asked.share)
            new = self._placed(index, part, asked, within)
        except InfeasibleError as error:
            if stay is None:
                raise
            return stay if error.is_proved else _unproved(stay)
        running = wanted.running
        if running is None:
            return new
        moved = replace(
            new,
            cost=new.cost + running.price,
            least=new.least + running.price,
            moved=True,
            least_beside=new.least_beside + running.price,
        )
        if stay is None:
            return moved
        chosen = stay if stay.cost <= moved.cost else moved
        least = min(stay.solution.value, new.solution.lower_bound)
        return replace(
            chosen,
            solution=replace(
                chosen.solution, lower_bound=least, argument=new.solution.argument
            ),
            least=min(stay.cost, moved.least),
            least_beside=min(stay.cost, moved.least_beside),
        )

    def _stay(self, index: int, nodes: BoolArray, allowed: Allowance) -> Offer | None:
        """The job where it runs, if these nodes are among those."""
        wanted = self.question.jobs[index]
        if wanted.running is None or (wanted.running.nodes & ~nodes).any():
            return None
        solution, held, _ = wanted.running
        uses = self._uses(wanted.job, solution)
        if any(used > most for used, most in zip(uses, allowed, strict=True)):
            return None
        value = solution.value
        return Offer(wanted.job, solution, held, value, value, uses=uses)

    def _uses(self, job: Job, solution: Solution) -> Allowance:
        """What a placement on the whole machine uses of each limit."""
        machine, limits = self.question.machine, self.question.limits
        return limits_used(limits, machine, job, solution.placement.gpu_of_rank)

    def _placed(
        self, index: int, part: Submachine[Topology], asked: Asked, within: Budget
    ) -> Offer:
        question, wanted = self.question, self.question.jobs[index]
        pinned = question.pinned[index]
        if not len(part.nodes) or not np.isin(np.flatnonzero(pinned), part.nodes).all():
            raise InfeasibleError("none of the nodes that it may have is free")
        job = wanted.job
        if question.limits:
            job = under(question.limits, asked.allowed or (), job)
        free = part.topology.num_gpus
        if free < job.world_size:
            from placer.solve.rules.conflict import smaller_job

            raise InfeasibleError(
                f"the job needs {job.world_size:,} GPUs, {free:,} are free"
                f"{_kept_out(question)}",
                hints=[smaller_job(part.topology.by_island, job)],
            )
        is_bounded = asked.is_needed or asked.is_bounded
        problem = Problem.of(part.topology, job, question.objective, question.seed)
        problem = problem.with_params(
            **params_of(asked.effort),
            enough_value=asked.enough,
            asks_enough=asked.is_needed,
            known_bound=self._bounds.get(index, 0.0) if is_bounded else 0.0,
            search_gap=0.0 if int(question.free.sum()) <= SMALL_NODES else DIFFERENCE,
        )
        chosen, solution = solved_in_time(problem, within)
        self.is_cut_short |= solution.is_cut_short
        gpus = part.gpu_in_whole(solution.placement.gpu_of_rank)
        used = np.zeros(question.machine.num_nodes, dtype=bool)
        used[question.machine.node_of_gpu[gpus]] = True
        nodes = _with_spares(chosen.job, part, used) | pinned
        value, least, least_beside = solution.value, solution.lower_bound, 0.0
        if part.topology.uplink_share is not None:
            # What it costs alone; others on the uplinks are counted where jobs meet.
            goal = Problem.of(question.machine, chosen.job, question.objective).goal
            value, least, least_beside = float(goal.value(gpus)), 0.0, least
        solution = replace(
            solution, placement=Placement(gpus), value=value, lower_bound=least
        )
        job = replace(chosen.job, rules=wanted.job.rules)
        uses = self._uses(job, solution)
        return Offer(
            job, solution, nodes, value, least, uses=uses, least_beside=least_beside
        )


def solved_in_time(problem: Problem, budget: Budget) -> tuple[Problem, Solution]:
    """The problem in the order of its ranks, and the best that is found in time.

    A job without nodes is no answer, so the first placement is waited for.
    """

    def search(tell: Progress, within: Budget) -> tuple[Problem, Solution]:
        return solve_orders(problem, within, tell)

    found = InTime(search, budget, patience=Patience(for_any=True)).run()
    if isinstance(found, LeftBehind):
        job = in_order(problem.job, found.order)
        return problem.on(problem.machine, job), found.solution
    return found


def _unproved(stay: Offer) -> Offer:
    """A job where it runs, where none was found elsewhere and there may be some."""
    solution = replace(stay.solution, lower_bound=0.0, argument="none")
    return replace(stay, solution=solution, least=0.0)


def _content(wanted: Wanted) -> tuple[bytes, Running | None]:
    """What two jobs have in common to which the same nodes are worth the same."""
    return pickle.dumps(replace(wanted.job, name="", sha256="")), wanted.running


def _kept_out(question: Question) -> str:
    """What else is free, and why no job may have it."""
    lost = question.free & question.beside_staying
    if question.apart is None or not lost.any():
        return ""
    gpus, tier = question.machine.gpus_of_node[lost], question.machine.tiers
    return (
        f" beside {gpus.sum():,} in a {tier[question.apart].name} of a job that stays"
    )


def _with_spares(job: Job, part: Submachine[Topology], used: BoolArray) -> BoolArray:
    """Nodes of a job: those with ranks, and the spares that its rules ask for."""
    taken = used.copy()
    own = used[part.nodes]
    for tier, number in job.rules.spares.items():
        row = part.topology.domain_of_node[part.topology.tier_index(tier)]
        for domain in np.unique(row[own]):
            spare = np.flatnonzero((row == domain) & ~own)[:number]
            taken[part.nodes[spare]] = True
    return taken
