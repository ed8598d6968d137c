"""torchtitan's flags give back the plan's groups and shards, by the rules of its mesh.

The mesh here follows ``ParallelDims`` (torchtitan, ``distributed/parallel_dims.py``):
``pp, dp_replicate, dp_shard, cp, tp``, and for experts ``pp, dp_replicate, efsdp, ep``.
"""

from math import prod

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from placer.base.errors import EmitError
from placer.emit import emit
from placer.job.axes import Parallelism
from tests.emit.readback import CONTIGUOUS, array_of, plan_of
from tests.texts import table

DEGREES = {
    "data_parallel_replicate_degree": "replicate",
    "data_parallel_shard_degree": "shard",
    "context_parallel_degree": "cp",
    "tensor_parallel_degree": "tp",
    "pipeline_parallel_degree": "pp",
    "expert_parallel_degree": "ep",
}


def plan_with(order="tp-cp-ep-dp-pp", mode=None, **sizes):
    """A plan of one rank a node, which keeps how its job shards parameters."""
    world_size = prod(sizes.get(axis, 1) for axis in ("tp", "cp", "pp", "dp"))
    plan = plan_of([(f"n{rank}", 0) for rank in range(world_size)], **sizes)
    plan.job["order"] = order
    if mode is not None:
        object.__setattr__(plan, "inputs", {"job": {"data_parallel": mode}})
    return plan


def flags(text):
    """Flags of the array, as bash makes them."""
    words = array_of(text, "TORCHTITAN_ARGS")
    names = [word.removeprefix("--parallelism.") for word in words[::2]]
    return dict(zip(names, words[1::2], strict=True))


def along(mesh, *axes):
    """Groups of the ranks that differ along some axes of a mesh alone."""
    moved = np.moveaxis(mesh, axes, range(-len(axes), 0))
    size = prod(mesh.shape[axis] for axis in axes)
    return set(map(tuple, moved.reshape(-1, size).tolist()))


def groups(axes, name):
    return set(map(tuple, axes.ranks_of_group[name].tolist()))


@given(
    sizes=st.fixed_dictionaries(
        {axis: st.integers(1, 3) for axis in ("tp", "cp", "pp", "replicate", "shard")}
    ),
    ep=st.sampled_from([1, 2, 3, 4]),
)
def test_meshes(sizes, ep):
    """Groups of every axis and shards of parameters are those that torchtitan makes."""
    tp, cp, pp = sizes["tp"], sizes["cp"], sizes["pp"]
    replicate, shard = sizes["replicate"], sizes["shard"]
    assume(shard * cp * tp % ep == 0)
    dp = replicate * shard
    mode = {"sharding": "hsdp", "shard_size": shard * cp}
    plan = plan_with(mode=mode, tp=tp, cp=cp, pp=pp, dp=dp, ep=ep, etp=1)
    found = flags(emit(plan, "torchtitan"))
    # With a pipeline it would keep what it gathered, which this job does not.
    assert found.pop("fsdp_reshard_after_forward", "") == ("always" if pp > 1 else "")
    size = {DEGREES[name]: int(value) for name, value in found.items()}
    assert size == sizes | {"ep": ep}
    axes = Parallelism(tp=tp, cp=cp, pp=pp, dp=dp, ep=ep, etp=1)
    dense = np.arange(axes.world_size).reshape(pp, replicate, shard, cp, tp)
    assert along(dense, 4) == groups(axes, "tp")
    assert along(dense, 3) == groups(axes, "cp")
    assert along(dense, 0) == groups(axes, "pp")
    assert along(dense, 1, 2, 3) == groups(axes, "dp_cp")
    members = axes.ranks_of_group["dp_cp"]
    assert along(dense, 2, 3) == set(
        map(tuple, members.reshape(-1, shard * cp).tolist())
    )
    if ep > 1:
        sparse = np.arange(axes.world_size).reshape(pp, replicate, -1, ep)
        assert along(sparse, 3) == groups(axes, "ep")
        assert along(sparse, 1, 2) == groups(axes, "edp")


@pytest.mark.parametrize(*table("emit/frameworks.yaml", "torchtitan_shards"))
def test_sharding(mode, degrees, said):
    """Replicas and shards are the job's; what torchtitan lacks is said."""
    text = emit(plan_with(mode=mode, tp=2, dp=4), "torchtitan")
    found = flags(text)
    names = ("data_parallel_replicate_degree", "data_parallel_shard_degree")
    assert [found[name] for name in names] == degrees
    assert (said in text) if said else ("# The plan's" not in text)
    assert "fsdp_reshard_after_forward" not in found


def test_other_flags():
    """Virtual stages ask for an interleaved schedule; kept parameters are not cut."""
    mode = {"sharding": "zero3", "keep_parameters": True}
    text = emit(plan_with(mode=mode, pp=2, dp=2, vp=4), "torchtitan")
    assert flags(text)["pipeline_parallel_schedule"] == "Interleaved1F1B"
    assert flags(text)["fsdp_reshard_after_forward"] == "never"
    assert "4 stages a rank" in text
    assert "stages a rank" not in emit(plan_with(pp=2, dp=2, vp=2), "torchtitan")


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (plan_with("tp-cp-ep-pp-dp", pp=2, dp=2), "numbers ranks by tp-cp-dp-pp"),
        (plan_with(mode={"sharding": "hsdp", "shard_size": 2}, cp=4, dp=2), "cp 4"),
        (plan_with(mode={"sharding": "ddp"}, cp=2, dp=2), "it has no ddp"),
        (plan_with(tp=2, dp=2, ep=2), "etp 2"),
        (
            plan_with(mode={"sharding": "hsdp", "shard_size": 2}, dp=4, ep=4, etp=1),
            "ep 4 does not divide",
        ),
        (plan_of(CONTIGUOUS), "needs the sizes of the axes"),
    ],
)
def test_what_it_cannot_do(plan, message):
    """Orders, shards and experts that torchtitan has no flags for are refused."""
    with pytest.raises(EmitError, match=message):
        emit(plan, "torchtitan")
