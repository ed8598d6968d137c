"""The report page of a plan: what it is worth, why, and where its ranks are."""

from __future__ import annotations

from typing import Literal

from placer.api.predict import scored_plan
from placer.base.arguments import NOTHING, PLAN, TEXT, Kind, takes
from placer.documents.files import is_file
from placer.placement.baselines import (
    BASELINES,
    BaselineName,
    baseline,
    order_in_use_of,
)
from placer.placement.inputs import Inputs, inputs_of
from placer.placement.plan import Plan
from placer.placement.plan_file import PlanLike, plan_of
from placer.report.page.report_page import report_page
from placer.report.page.side import Side
from placer.report.verdict import name_in_use

_IN_USE = "in-use"
_TWO_NAMES = Kind(
    "two names",
    lambda value: (
        isinstance(value, tuple) and len(value) == 2 and all(map(TEXT.fits, value))
    ),
)


@takes(before=PLAN | NOTHING, names=_TWO_NAMES)
def report_html(
    plan: PlanLike,
    before: PlanLike | BaselineName | Literal["in-use"] | None = "in-use",
    *,
    names: tuple[str, str] = ("", ""),
    path: str = "plan.json",
) -> str:
    """A web page about a plan, beside another placement; it is one file of its own.

    Parameters
    ----------
    plan : Plan, Result, path or dict
    before : Plan, Result, path, dict, str or None
        What to compare it with: a plan, the name of a baseline on the same hosts,
        ``in-use`` for the order that the job has today, or nothing. Without a launcher
        that is known, the order in use is ``given-order``.
    names : (str, str)
        What to call the two; their kind if empty.
    path : str
        File of the plan in the commands that the page tells; none are told if empty.

    Returns
    -------
    str
        HTML, with all it needs inside.

    Raises
    ------
    InputError
        If the two are of jobs or machines that do not correspond, or there is no such
        baseline; or the plan is of an older placer, which kept no inputs, and
        ``before`` is a baseline.
    InfeasibleError
        If the hosts have fewer GPUs than the job has ranks.

    Examples
    --------
    >>> plan = placer.predict("dgx-h100-4x8", "quickstart", "slurm")
    >>> placer.report_html(plan)[:15]
    '<!doctype html>'
    """
    plan = plan_of(plan)
    after = Side(names[1] or "the plan", plan, _inputs(plan))
    if before is None:
        return report_page([after], path)
    named = isinstance(before, str) and before in (*BASELINES, _IN_USE)
    if not isinstance(before, str) or (not named and is_file(before)):
        earlier = plan_of(before)
        old = Side(names[0] or "before", earlier, _inputs(earlier))
        return report_page([old, after], path)
    inputs = inputs_of(plan)
    name: str = before
    if before == _IN_USE:
        before, name = order_in_use_of(plan), name_in_use(plan)
    placement = baseline(before, inputs.machine, inputs.job)
    usual = scored_plan(inputs, placement, f"baseline: {before}")
    return report_page([Side(names[0] or name, usual, inputs), after], path)


def _inputs(plan: Plan) -> Inputs | None:
    """What a plan was made of; None for one that does not keep it."""
    return inputs_of(plan) if plan.inputs else None
