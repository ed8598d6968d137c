"""torchtitan: the flags with which it numbers ranks as the plan does.

Source: torchtitan b5bcd76c, ``torchtitan/distributed/parallel_dims.py`` (the mesh is
``pp, dp_replicate, dp_shard, cp, tp``, the last varies fastest; experts lie on
``pp, dp_replicate, efsdp, ep``) and ``torchtitan/config/configs.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from placer.base.errors import EmitError
from placer.emit.nodes import array_of_flags, axes_of, nodes_of
from placer.job.axes import MEGATRON_DEFAULT_ORDER, Parallelism
from placer.placement.plan import Plan

_USAGE = """\
# torchtitan's flags for the rank numbering of the plan, as a bash array:
#   source torchtitan.sh
#   bash {script} -m torchtitan.train --module llama3 --config llama3_8b \\
#     "${{TORCHTITAN_ARGS[@]}}"
# They place no rank: launch with {launchers} of the same plan.
"""


def render(plan: Plan) -> str:
    """Shell text that sets the array ``TORCHTITAN_ARGS``."""
    nodes, axes = nodes_of(plan), axes_of(plan, "torchtitan")
    kept = plan.inputs.get("job", {}) if plan.inputs else {}
    mode: Mapping[str, Any] = kept.get("data_parallel", {})
    flags = flags_of_axes(axes, mode)
    remark = _remark(mode)
    if axes.vp > 1 and axes.vp != _STAGES_OF_A_RANK:
        remark += (
            f"# The plan has {axes.vp} stages a rank: set "
            "--parallelism.pipeline_parallel_layers_per_stage for that.\n"
        )
    return array_of_flags(nodes, _USAGE, remark, "TORCHTITAN_ARGS", flags)


def flags_of_axes(axes: Parallelism, mode: Mapping[str, Any]) -> dict[str, int | str]:
    """Flags of the sizes of the axes and of the section ``data_parallel`` of a job."""
    _require_its_order(axes)
    replicate, shard = _degrees(axes, mode)
    _require_its_experts(axes, shard)
    flags: dict[str, int | str] = {
        "data_parallel_replicate_degree": replicate,
        "data_parallel_shard_degree": shard,
        "context_parallel_degree": axes.cp,
        "tensor_parallel_degree": axes.tp,
        "pipeline_parallel_degree": axes.pp,
        "expert_parallel_degree": axes.ep,
    }
    if axes.vp > 1:
        flags["pipeline_parallel_schedule"] = "Interleaved1F1B"
    if mode.get("keep_parameters"):
        flags["fsdp_reshard_after_forward"] = "never"
    elif axes.pp > 1 and mode.get("sharding") in ("zero3", "hsdp"):
        # With a pipeline it keeps them, unless told otherwise.
        flags["fsdp_reshard_after_forward"] = "always"
    return {f"parallelism.{name}": value for name, value in flags.items()}


# What torchtitan gives a rank of an interleaved schedule unless told otherwise.
_STAGES_OF_A_RANK = 2


def _require_its_order(axes: Parallelism) -> None:
    own, other = axes.coordinates, axes.coordinates_in(MEGATRON_DEFAULT_ORDER)
    if not all(np.array_equal(own[a], other[a]) for a in ("tp", "cp", "pp", "dp")):
        raise EmitError(
            "torchtitan numbers ranks by tp-cp-dp-pp, innermost first, but this "
            f"plan's order is {'-'.join(axes.order)}; place the job in the order "
            "tp-cp-ep-dp-pp"
        )


def _degrees(axes: Parallelism, mode: Mapping[str, Any]) -> tuple[int, int]:
    """Degrees of replication and of sharding.

    torchtitan shards over ``dp_shard x cp`` ranks, so shards of ``shard_size`` ranks
    are of ``shard_size / cp`` data-parallel ones.
    """
    sharding = mode.get("sharding")
    if sharding == "hsdp":
        size = int(mode["shard_size"])
        if size % axes.cp:
            raise EmitError(
                f"torchtitan shards parameters over dp_shard x cp ranks, so that a "
                f"shard_size of {size} is none with cp {axes.cp}"
            )
        return axes.dp * axes.cp // size, size // axes.cp
    if sharding == "ddp":
        if axes.cp > 1:
            raise EmitError(
                "torchtitan shards parameters over cp: with cp > 1 it has no ddp"
            )
        return axes.dp, 1
    return 1, axes.dp


def _remark(mode: Mapping[str, Any]) -> str:
    """That torchtitan shares parameters otherwise than the plan's job, if so."""
    sharding = mode.get("sharding")
    if sharding in ("hsdp", "ddp", "zero3"):
        return ""
    said = f"sharding is {sharding}" if sharding else "sharding is not in it"
    return f"# The plan's {said}: torchtitan has FSDP over dp for that.\n"


def _require_its_experts(axes: Parallelism, shard: int) -> None:
    if axes.ep == 1:
        return
    if axes.etp > 1:
        raise EmitError(
            f"torchtitan cuts no expert, but this plan has etp {axes.etp}; place the "
            "job with etp 1"
        )
    if shard * axes.cp * axes.tp % axes.ep:
        raise EmitError(
            f"torchtitan lays experts out over dp_shard x cp x tp, {shard} x {axes.cp} "
            f"x {axes.tp} ranks, which ep {axes.ep} does not divide"
        )
