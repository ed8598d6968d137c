"""What a plan says of itself, beside what follows from its inputs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from placer.api.checked_plan import baseline_costs, judged
from placer.api.score import scored
from placer.base.rounding import EXACT
from placer.cost.step import StepModel
from placer.explain.difference import Saving
from placer.placement.build import job_section, placement_of_plan, topology_section
from placer.placement.inputs import Inputs
from placer.placement.memory_need import check_memory
from placer.placement.placement import Placement
from placer.placement.plan import OBJECTIVES, Plan
from placer.placement.plan_rules import rules_section
from placer.report.verdict import is_kept
from placer.version import __version__

STATUSES = ("optimal", "feasible")
MOST_SHOWN = 40
# Two runs on one machine give the same bits. Another processor may add in another
# order: that changes the last bits of a sum, so small terms by a share of the step.
OF_ITSELF, OF_THE_STEP = 1e-9, 1e-12

# How `scored_plan` calls what was not searched, and so has no bound.
_GIVEN = ("predicted: ", "baseline: ", "hostfile: ")


# What follows from the cost model, which is another one in each version.
_MODELLED = ("score", "baselines")

# What each version may say in words of its own.
_WORDS = ("text", "reason")


class Claims(NamedTuple):
    """What a plan says of itself and does not follow, a sentence each."""

    false: list[str]
    older: list[str]  # numbers of an older cost model


def is_older(plan: Plan) -> bool:
    """Whether a plan is of an older placer: it keeps no inputs, or names its version.

    Then its numbers are those of an older cost model, where they are not today's.
    """
    made_by = _version(plan.solver.get("version"))
    return not plan.inputs or made_by < _version(__version__)


def _version(text: object) -> tuple[int, ...]:
    """The numbers of a version; that of today where it has none."""
    numbers = re.match(r"\d+(\.\d+)*", text if isinstance(text, str) else "")
    return tuple(map(int, (numbers[0] if numbers else __version__).split(".")))


def claims(plan: Plan, inputs: Inputs) -> Claims:
    """A sentence for each thing that ``plan`` says and that does not follow.

    Topology, job, score, baselines, rules and bound are worked out again and compared,
    each named by its key with what was expected and found. Whether the lower bound can
    be proved is another question (`placer.api.bound_check`). What an older plan does
    not say is not missed, and its numbers need only agree with each other.

    Raises `InputError` if its placement is not one of its job on its machine.
    """
    job = inputs.ruled
    placement = placement_of_plan(plan, inputs.machine)
    check_memory(inputs.machine, job)
    model = StepModel(inputs.machine, job)
    expected = _expected(plan, inputs, placement, model)
    found: dict[str, Any] = {key: getattr(plan, key) for key in expected}
    step = expected.get("score", {}).get("step_time_s", 0.0)
    slack, older, baselines = OF_THE_STEP * step, [], expected.get("baselines", {})
    if is_older(plan):
        found, expected = _stated(found, expected)
        says, today = (
            {key: section.pop(key) for key in _MODELLED if key in section}
            for section in (found, expected)
        )
        older = [*_outdated("", says, today, slack)]
        baselines = plan.baselines
    wrong = [
        *_differences("", found, expected, slack),
        *_bound_faults(plan, inputs, baselines),
    ]
    # A sentence on nothing but what is right so far, or on an older plan.
    if plan.inputs and "advice" in plan.verdict and not (wrong or older):
        wrong += _verdict_faults(plan, inputs, model, slack)
    made_by = plan.solver.get("version", __version__)
    if wrong and made_by != __version__:
        wrong.append(f"placer {made_by} made the plan, this is {__version__}")
    if len(wrong) > MOST_SHOWN:
        more = len(wrong) - MOST_SHOWN
        wrong = [*wrong[:MOST_SHOWN], f"and {more} more such differences"]
    return Claims(wrong, older)


def _expected(
    plan: Plan, inputs: Inputs, placement: Placement, model: StepModel
) -> dict[str, Any]:
    """The sections of the plan that follow from its inputs and its placement."""
    machine, job = inputs.machine, model.job
    score = scored(model, placement)
    sections: dict[str, Any] = {
        "topology": topology_section(inputs.topology),
        "job": job_section(job),
        "score": score,
        "rules": rules_section(job.rules, machine, placement),
    }
    if plan.inputs and (plan.baselines or not _is_given(plan)):
        reason = str(plan.solver.get("stop_reason"))
        seed = plan.solver.get("seed", 0)
        costs = baseline_costs(machine, model, seed, placement, score, reason)
        sections["baselines"] = costs
    return sections


def _verdict_faults(
    plan: Plan, inputs: Inputs, model: StepModel, slack: float
) -> Iterator[str]:
    """A sentence for what the verdict says otherwise than it follows.

    What was found beside an order that was kept is no longer there: it saves no more
    than the bound leaves. An older placer may have said the same in other words.
    """
    told, bound = plan.verdict, plan.bound
    if "fewest" in plan.previous:
        return
    refused = _refused(plan) if is_kept(plan) else None
    if refused is not None:
        most = (bound["value"] - bound["lower_bound"]) * (1 + EXACT) + slack
        if refused.saved_s > most:
            yield f"verdict.saved_s: {refused.saved_s!r} is more than the bound leaves"
    expected = judged(plan, inputs.machine, model, refused).verdict
    if is_older(plan):
        told, expected = (
            {key: value for key, value in one.items() if key not in _WORDS}
            for one in (told, expected)
        )
    yield from _differences("verdict", told, expected, slack)


def _refused(plan: Plan) -> Saving | None:
    """What the best beside an order that was kept would have saved, as a plan says."""
    saved, ends = (plan.verdict.get(f"saved_s{end}") for end in ("", "_interval"))
    values = [saved, *(ends if isinstance(ends, list) else ())]
    if len(values) != 3 or not all(isinstance(one, int | float) for one in values):
        return None  # then a difference names it
    return Saving(plan.bound["value"], *values)


def _is_given(plan: Plan) -> bool:
    """Whether the placement was given rather than searched."""
    return str(plan.solver.get("method")).startswith(_GIVEN)


def _stated(
    found: Mapping[str, Any], expected: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both without what the plan does not say, nor what hangs on the allocation.

    Lists are left out: links that are equally hot follow in the order of the hosts.
    """
    said: dict[str, Any] = {}
    same: dict[str, Any] = {}
    for key, value in found.items():
        known = expected.get(key)
        if isinstance(value, Mapping) and isinstance(known, Mapping):
            said[key], same[key] = _stated(value, known)
        elif not isinstance(value, list) and key != "worst_group":
            said[key], same[key] = value, known
    return said, same


def _differences(
    path: str, found: object, expected: object, slack: float
) -> Iterator[str]:
    """A sentence for each leaf that is not as expected, missing, or not known."""
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        for key in dict.fromkeys([*expected, *found]):
            inner = f"{path}.{key}" if path else str(key)
            if key not in found:
                yield f"{inner}: expected {_shown(expected[key])}, found nothing"
            elif key not in expected:
                yield f"{inner}: expected nothing, found {_shown(found[key])}"
            else:
                yield from _differences(inner, found[key], expected[key], slack)
    elif isinstance(expected, list | tuple) and isinstance(found, list | tuple):
        if len(expected) != len(found):
            yield f"{path}: expected {len(expected)} entries, found {len(found)}"
            return
        for at, (one, other) in enumerate(zip(found, expected, strict=True)):
            yield from _differences(f"{path}[{at}]", one, other, slack)
    elif not _same(found, expected, slack):
        yield f"{path}: expected {_shown(expected)}, found {_shown(found)}"


def _outdated(
    path: str, found: object, expected: object, slack: float
) -> Iterator[str]:
    """A sentence for each number of a plan that today's cost model does not give."""
    if isinstance(found, Mapping):
        known = expected if isinstance(expected, Mapping) else {}
        for key, value in found.items():
            inner = f"{path}.{key}" if path else str(key)
            yield from _outdated(inner, value, known.get(key), slack)
    elif _number(found) is not None and not _same(found, expected, slack):
        today = _shown(expected) if _number(expected) is not None else "none"
        yield f"{path}: {found!r} is of an older cost model, today's gives {today}"


def _same(found: object, expected: object, slack: float) -> bool:
    one, other = _number(found), _number(expected)
    if one is None or other is None:
        return type(found) is type(expected) and found == expected
    allowed = max(slack, OF_ITSELF * max(abs(one), abs(other)))
    return one == other or abs(one - other) <= allowed


def _number(value: object) -> float | None:
    """The value, if it is a number."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number else None  # type: ignore[return-value]


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _bound_faults(
    plan: Plan, inputs: Inputs, baselines: Mapping[str, Any]
) -> Iterator[str]:
    """What is wrong with the bound, apart from whether it can be proved."""
    bound = plan.bound
    if not bound:
        if plan.inputs and not _is_given(plan):
            yield "bound: expected an object, found nothing"
        return
    objective = bound.get("objective")
    if objective not in OBJECTIVES:
        known = " or ".join(OBJECTIVES)
        yield f"bound.objective: expected {known}, found {_shown(objective)}"
        return
    value = _number(plan.score.get(OBJECTIVES[objective]))
    if value is None:
        yield f"bound.objective: {objective} has no value in the score"
        return
    lower = _number(bound.get("lower_bound"))
    if lower is None or not 0 <= lower <= value * (1 + EXACT):
        stated = _shown(bound.get("lower_bound"))
        yield f"bound.lower_bound: expected 0 to {value!r}, found {stated}"
        lower = 0.0
    gap = max(0.0, (value - lower) / value) if value > 0 else 0.0
    status = STATUSES[0] if gap <= EXACT else STATUSES[1]
    expected = {"value": value, "gap": gap, "status": status}
    found = {key: bound.get(key) for key in expected}
    wrong = list(_differences("bound", found, expected, EXACT))
    yield from wrong
    if wrong:
        yield f"bound.lower_bound: {lower!r} is what gap and status were compared with"
    yield from _differences(
        "bound.require", bound.get("require", {}), dict(inputs.require), 0.0
    )
    keys = {"objective", "lower_bound", "argument", "require", *expected}
    for key in sorted(bound.keys() - keys):
        yield f"bound.{key}: expected nothing, found {_shown(bound[key])}"
    argument = bound.get("argument")
    if not (isinstance(argument, str) and argument):
        yield f"bound.argument: expected a text, found {_shown(argument)}"
    yield from beaten(objective, lower, baselines)


def beaten(objective: str, lower: float, baselines: Mapping[str, Any]) -> Iterator[str]:
    """A sentence when a usual placement that breaks no rule costs less than a bound."""
    for name, entry in baselines.items():
        cost = entry.get(OBJECTIVES[objective], lower)
        if "violates" not in entry and cost < lower * (1 - EXACT):
            yield f"bound.lower_bound: {lower!r} is false: {name} costs {cost!r}"
            return
