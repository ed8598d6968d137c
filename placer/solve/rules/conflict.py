"""Which requirements and rules cannot be kept together, why, and what would fit.

Where the requirements alone do not fit, the fewest tiers to give up are looked for.
Otherwise rules are left out one after the other; one without which nothing fits either
is not to blame (deletion filter; Chinneck and Dravnieks 1991, ORSA Journal on Computing
3(2)). What is left is a smallest set in conflict: without any one of them the job fits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, product
from typing import Any, NamedTuple

from placer.base.budget import HostBudget
from placer.base.errors import InfeasibleError
from placer.base.units import counted, format_power
from placer.job.even import is_even, part_size, told, told_part
from placer.job.model import Job
from placer.job.rules import Rules
from placer.solve.problem.compiled import Problem
from placer.solve.problem.launch import feasible_colocations
from placer.solve.problem.rules import Limits
from placer.solve.rules.counts import broken_counts, is_packed_never, missing_parts
from placer.solve.rules.search import Tools, fits_under_rules
from placer.solve.rules.seats import seat
from placer.solve.run.budget import ENDLESS, Budget
from placer.solve.score import is_built
from placer.topology.machine import Machine

# Least and most time, in s, to find out which rules are to blame and what would help;
# between them what the search leaves of its own.
DIAGNOSIS_S = (0.3, 30.0)


def infeasible(topology: Machine, job: Job) -> InfeasibleError:
    """The error that says which rule cannot hold, by how much, and what would fit."""
    if job.world_size > topology.num_gpus:
        return InfeasibleError(
            f"the job needs {job.world_size:,} GPUs, the machine "
            f'"{topology.name}" has {topology.num_gpus:,} usable '
            f"({_left_out(topology)})",
            hints=[smaller_job(topology, job)],
        )
    lines = missing_parts(topology, job)
    relaxed = smallest_relaxation(topology, job)
    if relaxed is None:
        hint = "no relaxation of the required tiers fits; use fewer ranks or more nodes"
    elif relaxed.require == job.require:
        hint = "use launcher: {ranks: free}; then it fits"
    else:
        changes = [
            f"{axis}={relaxed.require[axis]} instead of {axis}={tier}"
            for axis, tier in job.require.items()
            if relaxed.require[axis] != tier
        ]
        hint = f"it fits with {' and '.join(changes)}"
    is_proved = is_packed_never(topology, job) or _is_proved(topology, job, ENDLESS)
    if not is_proved:
        lines = ["no placement was found that keeps what is required", *lines]
    return InfeasibleError("\n".join(lines), hints=[hint], is_proved=is_proved)


def smallest_relaxation(topology: Machine, job: Job) -> Job | None:
    """The job with the fewest tiers given up so that it fits, None when none does."""
    tiers = [tier.name for tier in topology.tiers]
    axes = list(job.require)
    levels = [range(tiers.index(job.require[axis]), len(tiers)) for axis in axes]
    choices = sorted(product(*levels), key=lambda choice: (sum(choice), choice))
    for choice in choices:
        require = {axis: tiers[t] for axis, t in zip(axes, choice, strict=True)}
        candidate = replace(job, require=require)
        if feasible_colocations(topology, candidate):
            return candidate
    if job.launcher != "free":
        free = replace(job, launcher="free")
        if feasible_colocations(topology, free):
            return free
        if axes:  # in order, nodes may hold as many ranks as they have GPUs
            return replace(job, require=dict.fromkeys(axes, tiers[-1]))
    return None


def _left_out(topology: Machine) -> str:
    """Nodes that are not used, by reason."""
    reasons = Counter(topology.unavailable.values())
    if not reasons:
        return "no node is marked unavailable"
    return "left out: " + ", ".join(
        f"{count} x {reason}" for reason, count in sorted(reasons.items())
    )


def smaller_job(topology: Machine, job: Job) -> str:
    """What of a job a machine has GPUs for."""
    axes = job.parallelism
    if job.roles:
        least = min(job.roles, key=lambda role: role.job.world_size)
        each = f"one of {least.name} takes {least.job.world_size:,} GPUs"
        return f"give a role fewer instances, or smaller ones: {each}"
    most = topology.num_gpus // (axes.world_size // axes.dp)
    if most:
        return f"dp {most} would fit instead of dp {axes.dp}"
    return f"one replica alone takes {axes.world_size // axes.dp:,} GPUs"


class Blamed(NamedTuple):
    """A rule that can be left out."""

    text: str  # the rule in the job's words
    # The job with another number in its place, or without it (None).
    changed: Callable[[Job, int | None], Job]
    relaxed: str  # what is said of a change that helps
    # Other numbers, the strictest first; None where it has no number.
    numbers: Sequence[int] | None = None

    def without(self, job: Job) -> Job:
        """The job without the rule."""
        return self.changed(job, None)


def broken_rules(problem: Problem, tools: Tools) -> InfeasibleError:
    """The error that names the rules in conflict, the counts and what would fit.

    Parameters
    ----------
    problem : Problem
        With rules under which no placement was found.
    """
    topology, job = problem.machine, problem.job
    plain = replace(job, rules=Rules())
    trials = _Trials(problem, tools)
    if job.world_size > topology.num_gpus or trials.fits(plain) is False:
        return infeasible(topology, plain)
    lines: list[str] = []
    hints: list[str] = []
    is_proved = any(broken_counts(topology, job))
    others = job
    while True:
        blamed, smallest = _smallest_conflict(topology, others, trials)
        reasons, sure = _reasons(topology, blamed, smallest, trials)
        lines += reasons
        is_proved |= sure
        fits = [hint for rule in blamed if (hint := _relaxation(rule, job, trials))]
        if fits:
            hints.append(f"it fits {', or '.join(fits)}")
        for rule in blamed:
            others = rule.without(others)
        # No rule of a conflict helps where those that are left cannot be kept either.
        if fits or not blamed or trials.fits(others) is not False:
            break
    if not is_proved and tools.budget.is_over():
        hints.append("give it more time, such as 5m")
    if not is_proved and not is_built():
        hints.append("install placer where there is a C++ compiler: it then finds more")
    return InfeasibleError("\n".join(lines), hints=hints, is_proved=is_proved)


def _reasons(
    topology: Machine, blamed: list[Blamed], smallest: Job, trials: _Trials
) -> tuple[list[str], bool]:
    """Rules in conflict, the counts of a job with only these; whether it is proved."""
    lines = list(broken_counts(topology, smallest))
    sure = bool(lines) or _is_proved(topology, smallest, trials.budget)
    head = "cannot be kept together" if sure else "no placement was found that keeps"
    if len(blamed) == 1:
        what = f"this rule cannot be kept: {blamed[0].text}"
        what = what if sure else f"{head} this rule: {blamed[0].text}"
        return [what, *lines], sure
    rules = "\n".join(f"  - {rule.text}" for rule in blamed)
    what = f"these rules {head}:" if sure else f"{head} these rules together:"
    return [f"{what}\n{rules}", *lines], sure


class _Trials:
    """Whether jobs fit, as far as the search can tell in the time it may take."""

    def __init__(self, problem: Problem, tools: Tools) -> None:
        self.problem = problem
        shortest, longest = DIAGNOSIS_S
        seconds = min(max(tools.budget.seconds_left, shortest), longest)
        self.budget = tools.budget.anew(seconds, grace_s=0.0)
        self.tools = replace(tools, progress=None, wants_any=True)

    def fits(self, job: Job) -> bool | None:
        """Whether some placement keeps the rules of ``job``; None when out of time."""
        if self.budget.is_over():
            return None
        problem = self.problem.on(self.problem.machine, job)
        if not job.rules and problem.choices:
            return True
        if any(broken_counts(problem.machine, job)):
            return False
        at_once = self.budget.anew(0.0, grace_s=self.budget.seconds_left)
        return fits_under_rules(problem, replace(self.tools, budget=at_once))


def _smallest_conflict(
    topology: Machine, job: Job, trials: _Trials
) -> tuple[list[Blamed], Job]:
    """Rules in conflict, none of which can be left out, and the job with only these.

    Where counts say that there is one, they say between which rules: at once, and
    whatever a search finds in its time.
    """
    blamed = []
    current = job
    is_counted = any(broken_counts(topology, job))
    for rule in _rules(topology, job):
        fewer = rule.without(current)
        # Counts that hold with a rule hold without it.
        if is_counted:
            is_needless = any(broken_counts(topology, fewer))
        else:
            is_needless = trials.fits(fewer) is False
        if is_needless:
            current = fewer
        else:
            blamed.append(rule)
    return blamed, current


def _is_proved(topology: Machine, job: Job, budget: Budget) -> bool:
    """Whether there is no placement, rather than none found."""
    seating = seat(Limits.of(topology, job), budget=budget, waits=False)
    return seating is not None and seating.proved and seating.node_of_rank is None


def _rules(topology: Machine, job: Job) -> Iterator[Blamed]:
    """Rules to leave out, those least likely to be to blame first."""
    if job.launcher != "free":
        yield Blamed(
            "a node holds consecutive ranks (launcher: node-contiguous)",
            lambda job, _: replace(job, launcher="free"),
            "with launcher: {ranks: free}",
        )
    tiers = [tier.name for tier in topology.tiers]
    for axis, tier in job.require.items():
        if part_size(axis) != 1:  # which ties nothing
            yield _requirement(axis, tier, tiers)
    for tier, number in job.rules.spares.items():
        text = f"{counted(number, 'spare node')} in every {tier}"
        relaxed, fewer = f"with {{}} spare nodes a {tier}", range(number - 1, -1, -1)
        change = partial(_renumbered, "spares", tier)
        yield Blamed(f"{text} that is used", change, relaxed, fewer)
    for tier, number in job.rules.at_most.items():
        text = f"at most {counted(number, 'replica')} in a {tier}"
        more = range(number + 1, job.parallelism.dp + 1)
        change = partial(_renumbered, "at_most", tier)
        yield Blamed(text, change, f"with at most {{}} a {tier}", more)
    for budget in job.rules.budgets:
        yield _budget(budget, job)
    for pin in job.rules.pin:
        change = partial(_exchanged, "pin", pin, lambda _: None)
        yield Blamed(str(pin), change, f"without pinning {pin}")


def _requirement(axis: str, tier: str, tiers: list[str]) -> Blamed:
    def changed(job: Job, wider: int | None) -> Job:
        own = {a: t for a, t in job.require.items() if a != axis}
        return replace(
            job, require=own if wider is None else own | {axis: tiers[wider]}
        )

    noun = told_part(axis) if part_size(axis) else f"{axis} group"
    return Blamed(
        told(axis, tier) if is_even(axis) else f"every {noun} in one {tier}",
        changed,
        f"with a wider tier than {tier} for {axis}",
        range(tiers.index(tier) + 1, len(tiers)),
    )


def _budget(budget: HostBudget, job: Job) -> Blamed:
    """A budget, which would hold with more GPUs or replicas."""
    if budget.replicas is None:
        most, all_of_them, noun = budget.most_gpus or 0, job.world_size, "GPUs"
    else:
        most, all_of_them, noun = budget.replicas, job.parallelism.dp, "replicas"

    def more(number: int) -> HostBudget:
        if budget.replicas is None:
            return replace(budget, gpus=number, watts=None)
        return replace(budget, replicas=number)

    relaxed = f"with {{:,}} {noun} on {budget.hosts}"
    if budget.watts is not None:
        relaxed += f", {format_power(budget.gpu_watts)} each"
    change = partial(_exchanged, "budgets", budget, more)
    return Blamed(str(budget), change, relaxed, range(most + 1, all_of_them + 1))


def _renumbered(key: str, tier: str, job: Job, number: int | None) -> Job:
    """The job with another number for a tier; 0 or None is as good as no rule."""
    own: dict[str, int] = getattr(job.rules, key) | {tier: number or 0}
    kept: Any = {key: {tier: number for tier, number in own.items() if number}}
    return replace(job, rules=replace(job.rules, **kept))


def _exchanged(
    key: str, rule: object, other: Callable[[int], object], job: Job, number: int | None
) -> Job:
    """The job with another rule in the place of one, or without it."""
    new = [] if number is None else [other(number)]
    own = chain.from_iterable(
        new if r == rule else [r] for r in getattr(job.rules, key)
    )
    kept: Any = {key: tuple(own)}
    return replace(job, rules=replace(job.rules, **kept))


def _relaxation(rule: Blamed, job: Job, trials: _Trials) -> str:
    """The least change of one rule of ``job`` with which it fits; empty without any."""
    if rule.numbers is None:
        return rule.relaxed if trials.fits(rule.without(job)) else ""
    number = _least(rule.numbers, lambda n: trials.fits(rule.changed(job, n)))
    if number is None:
        return ""
    return rule.relaxed.format(number) if number else f"without {rule.text}"


def _least(numbers: Sequence[int], fits: Callable[[int], bool | None]) -> int | None:
    """The first of ``numbers`` that fits, as all after it do; None without any.

    Out of time, one that fits.
    """
    if not numbers or fits(numbers[-1]) is not True:
        return None
    low, high = 0, len(numbers) - 1
    while low < high:
        middle = (low + high) // 2
        if (answer := fits(numbers[middle])) is None:
            break
        low, high = (low, middle) if answer else (middle + 1, high)
    return numbers[high]
