"""Which requirements and rules cannot be kept together, why, and what would fit.

Where the requirements alone do not fit, the fewest tiers to give up are looked for.
Otherwise rules are left out one after the other; one without which nothing fits either
is not to blame (deletion filter; Chinneck and Dravnieks 1991, ORSA Journal on Computing
3(2)). What is left is a smallest set in conflict: without any one of them the job fits.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
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
from placer.solve.rules.search import PlainSearch, fits_under_rules
from placer.solve.rules.seats import seat
from placer.solve.run.budget import ENDLESS, Budget
from placer.solve.score import is_built
from placer.topology.machine import Machine


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


class Rule(NamedTuple):
    """A rule that can be left out."""

    key: str  # of the job's rules, "require" or "launcher"
    name: str  # an axis, a tier or which of several
    value: Any
    text: str  # the rule in the job's words
    relaxed: str  # what is said of a change that helps
    # Other numbers or tiers, the strictest first; None where there is none.
    others: Sequence[Any] | None = None
    made: Callable[[Any], Any] = lambda other: other  # the value with another one

    def with_other(self, other: Any) -> Rule:
        """The rule with another number or tier."""
        return self._replace(value=self.made(other))


def broken_rules(
    problem: Problem, plain: PlainSearch, budget: Budget
) -> InfeasibleError:
    """The error that names the rules in conflict, the counts and what would fit.

    Parameters
    ----------
    problem : Problem
        With rules under which no placement was found.
    """
    topology, job = problem.machine, problem.job
    unruled = replace(job, rules=Rules())
    trials = _Trials(problem, plain, budget)
    if job.world_size > topology.num_gpus or trials.fits(unruled) is False:
        return infeasible(topology, unruled)
    lines: list[str] = []
    hints: list[str] = []
    is_proved = any(broken_counts(topology, job))
    rules = [*_rules(topology, job)]
    others = rules
    while True:
        blamed = trials.smallest_conflict(others)
        reasons, sure = trials.reasons(blamed)
        lines += reasons
        is_proved |= sure
        fits = [hint for rule in blamed if (hint := trials.relaxation(rule, rules))]
        if fits:
            hints.append(f"it fits {', or '.join(fits)}")
        others = [rule for rule in others if rule not in blamed]
        # No rule of a conflict helps where those that are left cannot be kept either.
        if fits or not blamed or trials.keep(others) is not False:
            break
    if not is_proved and budget.is_over():
        hints.append("give it more time, such as 5m")
    if not is_proved and not is_built():
        hints.append("install placer where there is a C++ compiler: it then finds more")
    return InfeasibleError("\n".join(lines), hints=hints, is_proved=is_proved)


class _Trials:
    """Whether rules can be kept, as far as a search can tell in its time."""

    def __init__(self, problem: Problem, plain: PlainSearch, budget: Budget) -> None:
        self.problem, self.topology, self.plain = problem, problem.machine, plain
        shortest, longest = problem.params.diagnosis_s
        seconds = min(max(budget.seconds_left, shortest), longest)
        self.budget = budget.anew(seconds, grace_s=0.0)

    def job(self, kept: list[Rule]) -> Job:
        """The job with only some of its rules."""
        own: dict[str, dict[str, Any]] = defaultdict(dict)
        for rule in kept:
            if rule.value:
                own[rule.key][rule.name] = rule.value
        job = self.problem.job
        changed = replace(
            job.rules,
            pin=tuple(own["pin"].values()),
            at_most=own["at_most"],
            spares=own["spares"],
            budgets=tuple(own["budgets"].values()),
        )
        launcher = job.launcher if own["launcher"] else "free"
        require = {key: job.require[key] for key in job.require if part_size(key) == 1}
        require |= own["require"]
        return replace(job, rules=changed, launcher=launcher, require=require)

    def fits(self, job: Job) -> bool | None:
        """Whether some placement keeps the rules of ``job``; None when out of time."""
        if self.budget.is_over():
            return None
        problem = self.problem.on(self.topology, job)
        if not job.rules and problem.choices:
            return True
        if any(broken_counts(self.topology, job)):
            return False
        at_once = self.budget.anew(0.0, grace_s=self.budget.seconds_left)
        return fits_under_rules(problem, self.plain, at_once)

    def keep(self, kept: list[Rule]) -> bool | None:
        """Whether some placement keeps these rules; None when out of time."""
        return self.fits(self.job(kept))

    def smallest_conflict(self, rules: list[Rule]) -> list[Rule]:
        """Rules in conflict, none of which can be left out.

        Where counts say that there is one, they say between which rules: at once, and
        whatever a search finds in its time.
        """
        blamed = rules
        is_counted = any(broken_counts(self.topology, self.job(rules)))
        for rule in rules:
            fewer = [other for other in blamed if other is not rule]
            job = self.job(fewer)
            # Counts that hold with a rule hold without it.
            is_counted_too = is_counted and any(broken_counts(self.topology, job))
            if is_counted_too or (not is_counted and self.fits(job) is False):
                blamed = fewer
        return blamed

    def reasons(self, blamed: list[Rule]) -> tuple[list[str], bool]:
        """Rules in conflict, what counts say of them alone; whether it is proved."""
        smallest = self.job(blamed)
        lines = list(broken_counts(self.topology, smallest))
        sure = bool(lines) or _is_proved(self.topology, smallest, self.budget)
        head = (
            "cannot be kept together" if sure else "no placement was found that keeps"
        )
        if len(blamed) == 1:
            what = f"this rule cannot be kept: {blamed[0].text}"
            what = what if sure else f"{head} this rule: {blamed[0].text}"
            return [what, *lines], sure
        rules = "\n".join(f"  - {rule.text}" for rule in blamed)
        what = f"these rules {head}:" if sure else f"{head} these rules together:"
        return [f"{what}\n{rules}", *lines], sure

    def relaxation(self, rule: Rule, rules: list[Rule]) -> str:
        """The least change of one rule with which the job fits; empty without any."""

        def fits(*new: Rule) -> bool:
            return bool(self.keep([*(r for r in rules if r is not rule), *new]))

        if rule.others is None:
            return rule.relaxed if fits() else ""
        if not rule.others or not fits(rule.with_other(rule.others[-1])):
            return ""
        # All after the first that fits do. Out of time, one that is known to fit.
        least = bisect_left(
            rule.others,
            True,
            hi=len(rule.others) - 1,
            key=lambda other: fits(rule.with_other(other)),
        )
        other = rule.others[least]
        return rule.relaxed.format(other) if other else f"without {rule.text}"


def _is_proved(topology: Machine, job: Job, budget: Budget) -> bool:
    """Whether there is no placement, rather than none found."""
    seating = seat(Limits(topology, job), budget)
    return seating.proved and seating.node_of_rank is None


def _rules(topology: Machine, job: Job) -> Iterator[Rule]:
    """Rules to leave out, those least likely to be to blame first."""
    rules, tiers = job.rules, [tier.name for tier in topology.tiers]
    if job.launcher != "free":
        text = f"a node holds consecutive ranks (launcher: {job.launcher})"
        yield Rule("launcher", "", True, text, "with launcher: {ranks: free}")
    for axis, tier in job.require.items():
        if part_size(axis) != 1:  # which ties nothing
            noun = told_part(axis) if part_size(axis) else f"{axis} group"
            text = told(axis, tier) if is_even(axis) else f"every {noun} in one {tier}"
            relaxed = f"with a wider tier than {tier} for {axis}"
            wider = tiers[tiers.index(tier) + 1 :]
            yield Rule("require", axis, tier, text, relaxed, wider)
    for tier, number in rules.spares.items():
        text = f"{counted(number, 'spare node')} in every {tier} that is used"
        relaxed, fewer = f"with {{}} spare nodes a {tier}", range(number - 1, -1, -1)
        yield Rule("spares", tier, number, text, relaxed, fewer)
    for tier, number in rules.at_most.items():
        text = f"at most {counted(number, 'replica')} in a {tier}"
        relaxed = f"with at most {{}} a {tier}"
        more = range(number + 1, job.parallelism.dp + 1)
        yield Rule("at_most", tier, number, text, relaxed, more)
    for index, budget in enumerate(rules.budgets):
        yield _budget(str(index), budget, job)
    for pin in rules.pin:
        yield Rule("pin", str(pin), pin, str(pin), f"without pinning {pin}")


def _budget(name: str, budget: HostBudget, job: Job) -> Rule:
    """A budget, which would hold with more GPUs or replicas."""
    if budget.replicas is None:
        noun, more = "GPUs", range((budget.most_gpus or 0) + 1, job.world_size + 1)
    else:
        noun, more = "replicas", range(budget.replicas + 1, job.parallelism.dp + 1)

    def made(number: int) -> HostBudget:
        if budget.replicas is None:
            return replace(budget, gpus=number, watts=None)
        return replace(budget, replicas=number)

    relaxed = f"with {{:,}} {noun} on {budget.hosts}"
    if budget.watts is not None:
        relaxed += f", {format_power(budget.gpu_watts)} each"
    return Rule("budgets", name, budget, str(budget), relaxed, more, made)
