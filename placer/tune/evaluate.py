"""What is found out about a choice on the machine: a lower bound, then a placement.

What it needs of a GPU's memory is worked out only where it matters.
Of choices with the same degrees and sharding none needs less than that of one sample a
micro-batch and full recomputation, layer by layer or as the job has it (`_floor`):

- States do not depend on either.
- A layer keeps no less than its input. What it keeps and what comes back when it is
  computed again are the whole layer together, so ``n`` layers that keep ``k`` each take
  ``n k + whole - k`` at work, which grows with ``k``. Layers that share one input take
  more at work and keep fewer inputs, so the job's own number of them is asked too.
- A micro-batch of b samples is b times as large. A rank holds as many as its schedule
  runs ahead, or all there are, ``B / b``: ``min(ahead b, B)`` samples.

So where that does not fit, nothing of these fits, and none of it is looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from math import inf
from typing import Any, Literal, NamedTuple

import numpy as np

from placer.base.arrays import IntArray
from placer.base.errors import InfeasibleError, InputError
from placer.cost.footprint.stages import footprint
from placer.explain.score import score_with
from placer.job.model import Job
from placer.job.rules import Rules
from placer.placement.host_rules import with_rules
from placer.solve.bounds.case import step_on_best_links
from placer.solve.bounds.certificate import lower_bound
from placer.solve.problem.compiled import Problem
from placer.solve.problem.launch import ranks_within
from placer.solve.problem.params import QUICK, Effort, params_of
from placer.solve.problem.rules import box_of
from placer.solve.run.budget import Budget
from placer.solve.run.solution import Solution, is_reached
from placer.solve.search import solve
from placer.topology.machine import Machine
from placer.topology.model import Topology
from placer.tune.choice import Choice

# Of so few ranks the best placement is searched for, if all placements are listed only
# where they are so few: to price one takes some milliseconds.
_FEW_RANKS = 128
_LISTED = 400

# A placement so near its bound is not improved: two choices that differ by less are
# far within the noise of the model (1 %).
_ENOUGH_GAP = 5e-5


def params_for(effort: Effort) -> dict[str, Any]:
    """The `Params` with which choices are placed."""
    return {
        **params_of(effort),
        "enough_gap": _ENOUGH_GAP if effort == QUICK else 0.0,
        "listed": {"time": _LISTED},
    }


def effort_of(ranks: int) -> Effort:
    """How choices are placed: few ranks by a whole search, else by constructions."""
    return 0 if ranks <= _FEW_RANKS else QUICK


Wanted = Literal["links", "bound", "placement", "search"]


class Question(NamedTuple):
    """A choice, and what is wanted.

    The least dear is the step on the best links imaginable (``links``), then the bound
    over all placements (``bound``), then the best of the constructions that take little
    time (``placement``), then what a ``search`` gains. A bound that reaches
    ``enough_s`` need not be sharper. In a ``hurry`` not all constructions are tried.
    """

    choice: Choice
    wanted: Wanted
    enough_s: float = inf
    hurry: bool = False


class Answer(NamedTuple):
    """Of a choice: seconds of a step.

    ``lower_bound_s`` holds for every placement; it is infinite where there is proved to
    be none. ``step_time_s`` is that of the one that
    was found, infinite where none was looked for or none obeys the rules; ``parts`` are
    what it is made of, ``domains`` the scale-up domains that it touches, ``effort`` how
    hard it was searched for, ``solution`` the placement itself.
    """

    lower_bound_s: float
    step_time_s: float = inf
    exposed_scale_out_s: float = 0.0
    parts: tuple[tuple[str, float], ...] = ()
    domains: int = 0
    refusal: str = ""
    effort: Effort = QUICK
    solution: Solution | None = None

    def after(self, first: Answer) -> Answer:
        """The better of this placement and an earlier one, with the sharper bound."""
        best = min(self, first, key=lambda answer: answer.step_time_s)
        bound = max(self, first, key=lambda answer: answer.lower_bound_s)
        least_s = min(bound.lower_bound_s, best.step_time_s)
        solution = best.solution
        if solution and bound.solution:
            solution = replace(
                solution, lower_bound=least_s, argument=bound.solution.argument
            )
        return best._replace(
            lower_bound_s=least_s, effort=self.effort, solution=solution
        )


def is_searched(choice: Choice, answer: Answer) -> bool:
    """Whether no better placement than that of an answer is looked for."""
    if is_reached(answer.step_time_s, answer.lower_bound_s):
        return True
    effort = effort_of(choice.gpus)
    return answer.effort == effort or (effort == QUICK and _is_near(answer))


def _is_near(answer: Answer) -> bool:
    return answer.step_time_s * (1 - _ENOUGH_GAP) <= answer.lower_bound_s


def is_enough(choice: Choice, answer: Answer) -> bool:
    """Whether an answer is near enough, where the last digit does not count."""
    return _is_near(answer) or is_searched(choice, answer)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What all choices share; it can be pickled."""

    machine: Topology  # the allocation
    job: Job
    seed: int = 0
    time_limit: float = 60.0  # s: for one placement

    def ruled(self, choice: Choice) -> Job:
        """The job with a choice, under its rules and the budgets of the machine."""
        return with_rules(choice.applied(self.job), self.machine, self.machine, Rules())

    def answer(
        self, point: Question, stop: Callable[[], bool] = lambda: False
    ) -> Answer | None:
        """The answer to a question; None when ``stop`` cut it short."""
        try:
            job = self.ruled(point.choice)
        except InputError as error:  # pins name ranks that it lacks
            return Answer(inf, refusal=str(error))
        is_built = point.wanted == "placement"
        effort = QUICK if is_built else effort_of(job.world_size)
        problem = Problem.of(self.machine, job, "time", self.seed)
        problem = problem.with_params(**params_for(effort))
        if point.wanted == "links":
            return Answer(step_on_best_links(problem, problem.forced_block))
        if point.wanted == "bound":
            block = problem.forced_block
            budget = Budget(inf, stop)
            proof = lower_bound(problem, block, point.enough_s, budget)
            return None if budget.is_over() else Answer(proof.value)
        try:
            limit = 0.0 if point.hurry else self.time_limit
            found = solve(problem, Budget(limit, stop))
        except InfeasibleError as error:
            bound = inf if error.is_proved else 0.0
            return Answer(bound, refusal=error.reason.partition("\n")[0])
        if found.stop_reason == "interrupted":
            return None
        costs = score_with(problem.model, found.placement)
        parts = {key: costs[f"{key}_s"] for key in ("compute", "bubble", "fixed")}
        parts |= {f"exposed {axis}": s for axis, s in costs["exposed_s"].items() if s}
        return Answer(
            min(found.lower_bound, found.value),
            found.value,
            costs["exposed_scale_out_s"],
            tuple(parts.items()),
            _domains(problem.machine, found.placement.gpu_of_rank),
            effort=effort,
            solution=found,
        )


def _domains(machine: Machine, gpu_of_rank: IntArray) -> int:
    """Scale-up domains that a placement touches, or nodes where there are none."""
    tier = max(machine.scale_up_tier, 0)
    nodes = machine.node_of_gpu[gpu_of_rank]
    return len(np.unique(machine.domain_of_node[tier][nodes]))


def gpus_left(machine: Topology) -> Callable[[int], int] | None:
    """GPUs that the machine's budgets leave, by the ranks of a replica; None: all."""
    if not machine.budgets:
        return None
    boxes = [box_of(machine, budget.names) for budget in machine.budgets]

    def left(replica: int) -> int:
        most = [np.array([budget.most_ranks(replica)]) for budget in machine.budgets]
        rooms = [*zip(boxes, most, strict=True)]
        return ranks_within(rooms, machine.gpus_of_node)[0]

    return cache(left)


@dataclass
class Room:
    """Memory of a GPU, and what is known of choices."""

    job: Job
    limit: float  # bytes: 0 when unknown: all fits
    _needs: dict[Choice, float] = field(default_factory=dict)
    _least: dict[Choice, float] = field(default_factory=dict)
    _unseen: dict[Choice, list[Choice]] = field(default_factory=dict)

    def is_hopeless(self, choice: Choice) -> bool:
        """Whether nothing with its degrees and sharding fits; it is not looked at."""
        if not self.limit:
            return False
        samples = choice.micro_batch * choice.micro_batches
        slightest = choice._replace(
            micro_batch=1, micro_batches=samples, recompute="full"
        )
        if self._floor(slightest) <= self.limit:
            return False
        self._unseen.setdefault(slightest, []).append(choice)
        return True

    def holds(self, choice: Choice, job: Job) -> bool:
        """Whether a choice fits; ``job`` is the job with it."""
        self._needs[choice] = needs = needed(job)
        return not self.limit or needs <= self.limit

    def needs(self, choice: Choice) -> float:
        """Bytes of a choice that was looked at."""
        return self._needs[choice]

    def least(self) -> tuple[float, Choice]:
        """The least that a choice needs which was asked about, bytes, and it."""
        found = [(needs, choice) for choice, needs in self._needs.items()]
        most = min(found)[0] if found else inf
        for slightest in sorted(self._unseen, key=self._least.__getitem__):
            if self._least[slightest] > most:
                break
            unseen = self._unseen[slightest]
            found += [(needed(one.applied(self.job)), one) for one in unseen]
            most = min(found)[0]
        return min(found)

    def _floor(self, slightest: Choice) -> float:
        """Bytes below which no choice of these degrees and this sharding gets."""
        if slightest not in self._least:
            job = slightest.applied(self.job)
            usual = replace(job.memory, recompute_method="uniform", recompute_layers=1)
            self._least[slightest] = needed(replace(job, memory=usual))
            if job.memory != usual:
                self._least[slightest] = min(self._least[slightest], needed(job))
        return self._least[slightest]


def needed(job: Job) -> float:
    """Bytes of a GPU of the fullest stage; 0 without a model."""
    needs = footprint(job)
    return needs.total if needs else 0.0
