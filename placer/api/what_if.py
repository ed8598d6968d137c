"""What a plan would save were what is assumed otherwise: the same placements again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from placer.assumed import OVERSUBSCRIPTION, RATE, Assumption
from placer.cost import JITTER
from placer.cost.step import StepModel
from placer.placement.placement import Placement
from placer.topology.uplinks import oversubscribed

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.topology.model import Topology

_RATIOS = (2, 4)
# Ranks and members of the job's own groups above which placements are not scored again.
MOST_RANKS = 1 << 15


def what_if(
    machine: Topology, model: StepModel, chosen: Placement, usual: Placement
) -> list[dict[str, Any]]:
    """What a plan saves beside the usual placement with other values.

    Parameters
    ----------
    machine : Topology
        The allocation.
    model : StepModel
        Of the job on it.
    chosen, usual : Placement

    Returns
    -------
    list of dict
        ``key`` of an assumption, another ``value``, and ``saved_share`` of the step.
        Uplinks at 2:1 and 4:1; the rate at the ends of its interval, where these differ
        from the assumed one in whether the plan is faster by more than runs differ. A
        plan that is the usual placement has none: then the first nestings are tried
        at these ratios, and told where they save.
    """
    job = model.job
    members = sum(group.num_members for group in job.groups)
    if job.world_size + members > MOST_RANKS:
        return []
    assumed = {each.key: each for each in (*machine.assumed, *job.assumed)}
    found: list[dict[str, Any]] = []
    is_same = chosen.same_as(usual)
    if OVERSUBSCRIPTION in assumed:
        for ratio in _RATIOS:
            thinner = oversubscribed(machine, ratio)
            other = StepModel(thinner, job)
            tried = [chosen] if not is_same else _nested(thinner, job)
            entries = [
                _entry(OVERSUBSCRIPTION, ratio, _steps(other, one, usual))
                for one in tried
            ]
            best = max(entries, key=lambda entry: entry["saved_share"], default=None)
            if best is not None and (best["saved_share"] > JITTER or not is_same):
                found.append(best)
    if is_same:
        return found
    rate = assumed.get(RATE)
    if rate is not None and job.compute.tflops_per_gpu:
        found += _at_other_rates(rate, model, chosen, usual)
    return found


def _nested(machine: Topology, job: Job) -> list[Placement]:
    """The first few nestings that keep the rules."""
    # The solver takes half a second to load; who searches has it.
    from placer.solve.construct.fills.fills import nested_fills
    from placer.solve.problem.compiled import Problem
    from placer.solve.rearrange.settle import TIDY_FILLS

    problem = Problem.of(machine, job)
    if not problem.choices:
        return []
    filled = islice(nested_fills(problem), TIDY_FILLS)
    return [Placement(gpus) for _, gpus in filled if problem.allows(gpus)]


def _at_other_rates(
    rate: Assumption, model: StepModel, chosen: Placement, usual: Placement
) -> Iterator[dict[str, Any]]:
    """The ends of the rate's interval, where they change the verdict."""
    if rate.interval is None or isinstance(rate.value, str):
        return
    ends, job = [], model.job
    for value in rate.interval:
        sustained = job.compute.tflops_per_gpu * value / rate.value
        compute = replace(job.compute, tflops_per_gpu=sustained)
        other = StepModel(model.topology, replace(job, compute=compute))
        steps = _steps(other, chosen, usual)
        ends.append((value, steps))
    verdict = _is_faster(*_steps(model, chosen, usual))
    if any(_is_faster(*steps) != verdict for _, steps in ends):
        yield from (_entry(RATE, value, steps) for value, steps in ends)


def _steps(
    model: StepModel, chosen: Placement, usual: Placement
) -> tuple[float, float]:
    """The step of both placements, s."""
    own, other = (model.step(one.gpu_of_rank) for one in (chosen, usual))
    return float(own.step_time_s), float(other.step_time_s)


def _entry(key: str, value: float, steps: tuple[float, float]) -> dict[str, Any]:
    own, other = steps
    saved = (other - own) / other if other else 0.0
    return {"key": key, "value": value, "saved_share": saved}


def _is_faster(own: float, other: float) -> bool:
    """Whether the plan is, by more than runs differ."""
    return other - own > JITTER * other
