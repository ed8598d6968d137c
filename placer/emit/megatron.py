"""Megatron-LM: the flags with which it numbers ranks as the plan does.

Source: Megatron-LM d98e8a64, ``megatron/training/initialize.py`` (the two orders) and
``megatron/core/parallel_state.py`` (``RankGenerator`` and what it refuses).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placer.base.errors import EmitError
from placer.emit.nodes import array_of_flags, axes_of, nodes_of
from placer.job.axes import (
    MEGATRON_DEFAULT_ORDER,
    REPLICA_MAJOR_ORDER,
    Parallelism,
    pipeline_groups_agree,
)
from placer.placement.plan import Plan

_USAGE = """\
# Megatron-LM's flags for the rank numbering of the plan, as a bash array:
#   source megatron.sh
#   bash {script} pretrain_gpt.py "${{MEGATRON_ARGS[@]}}" --its --arguments
# They place no rank: launch with {launchers} of the same plan.
# A plan holds no model, sharding or groups of the job's own: give their flags yourself.
"""

_REPLICA_MAJOR = "use-tp-pp-dp-mapping"
_OF_JOB = (
    ("kv-channels", "model", "head_dim"),
    ("num-distributed-optimizer-instances", "data_parallel", "optimizer_instances"),
)
_NO_EXPERTS = """\
# For a model without experts. Megatron-LM refuses this order where experts would have
# other pipeline groups, and looks even if there are none: so their tensor parallel size
# is tp x cp, which nothing else uses.
"""


def render(plan: Plan) -> str:
    """Shell text that sets the array ``MEGATRON_ARGS``."""
    nodes, axes = nodes_of(plan), axes_of(plan, "megatron")
    flags = flags_of_axes(axes)
    remark = f"# Data parallel size: {axes.dp}.\n"
    if flags["expert-tensor-parallel-size"] != axes.etp:
        remark += _NO_EXPERTS
    # The switch of the order, which has no value, stands last.
    switch = {name: flags.pop(name) for name in (_REPLICA_MAJOR,) if name in flags}
    flags |= _of_job(plan) | switch
    return array_of_flags(nodes, _USAGE, remark, "MEGATRON_ARGS", flags)


def flags_of_axes(axes: Parallelism) -> dict[str, int | str]:
    """Flags of the sizes of the axes and their order; a switch has an empty value."""
    order = _order(axes)
    if axes.vp > 1 and axes.pp == 1:
        raise EmitError("Megatron-LM has virtual stages with pp > 1 only")
    flags: dict[str, int | str] = {
        "tensor-model-parallel-size": axes.tp,
        "pipeline-model-parallel-size": axes.pp,
        "context-parallel-size": axes.cp,
        "expert-model-parallel-size": axes.ep,
        "expert-tensor-parallel-size": axes.etp,
    }
    if axes.vp > 1:
        flags["num-virtual-stages-per-pipeline-rank"] = axes.vp
    if order == REPLICA_MAJOR_ORDER:
        flags[_REPLICA_MAJOR] = ""
        # It wants the data parallel sizes of dense layers and experts to be equal.
        if axes.pp > 1 and axes.edp != axes.dp:
            flags["expert-tensor-parallel-size"] = axes.tp * axes.cp
    return flags


def _of_job(plan: Plan) -> dict[str, int | str]:
    """Flags of what the plan's job says and Megatron-LM would take otherwise.

    It takes heads to share the width, and one copy of a distributed optimizer.
    """
    job = plan.inputs.get("job", {})
    flags: dict[str, int | str] = {}
    for flag, section, key in _OF_JOB:
        value = job.get(section, {}).get(key, 0)
        if isinstance(value, int) and value > (key == "optimizer_instances"):
            flags[flag] = value
    return flags


def _order(axes: Parallelism) -> tuple[str, ...]:
    """The order of Megatron-LM that numbers ranks as ``axes`` do, the default first."""
    for order in (MEGATRON_DEFAULT_ORDER, REPLICA_MAJOR_ORDER):
        if _numbers_alike(axes, order):
            break
    else:
        raise EmitError(
            f"Megatron-LM numbers ranks by {'-'.join(MEGATRON_DEFAULT_ORDER)}, or by "
            f"{'-'.join(REPLICA_MAJOR_ORDER)} with --use-tp-pp-dp-mapping, but this "
            f"plan's order is {'-'.join(axes.order)}; place the job in one of the two"
        )
    if not pipeline_groups_agree(replace(axes, order=order)):
        raise EmitError(
            f"Megatron-LM refuses the order {'-'.join(order)} where, as with ep "
            f"{axes.ep} and etp {axes.etp}, experts would have other pipeline groups"
        )
    return order


def _numbers_alike(axes: Parallelism, order: tuple[str, ...]) -> bool:
    """Whether every rank has the same coordinates in ``order``."""
    own, other = axes.coordinates, axes.coordinates_in(order)
    return all(np.array_equal(own[axis], other[axis]) for axis in own)
