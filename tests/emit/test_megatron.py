"""Megatron-LM's flags give back the plan's groups, by the rules of its rank generator.

The generator here follows ``RankGenerator`` and the assertions around it (Megatron-LM,
``megatron/core/parallel_state.py``), written as loops over coordinates.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from placer.base.errors import EmitError
from placer.emit import emit
from placer.job.axes import Parallelism, pipeline_groups_agree
from tests.emit.readback import CONTIGUOUS, FREE, array_of, plan_of
from tests.texts import table

FLAGS = {
    "--tensor-model-parallel-size": "tp",
    "--pipeline-model-parallel-size": "pp",
    "--context-parallel-size": "cp",
    "--expert-model-parallel-size": "ep",
    "--expert-tensor-parallel-size": "etp",
    "--num-virtual-stages-per-pipeline-rank": "vp",
}


def parse(text):
    """Sizes and order that Megatron-LM takes from the flags."""
    words = array_of(text, "MEGATRON_ARGS")
    flag = "--use-tp-pp-dp-mapping"
    order = "tp-cp-ep-pp-dp" if flag in words else "tp-cp-ep-dp-pp"
    rest = [word for word in words if word != flag]
    pairs = zip(rest[::2], rest[1::2], strict=True)
    return {FLAGS[name]: int(value) for name, value in pairs}, order


def groups(sizes, order, token):
    """Ranks that differ in the axes of ``token`` alone; the first axis is fastest."""
    axes = order.split("-")
    found = {}
    outermost_first = [range(sizes[axis]) for axis in reversed(axes)]
    for rank, at in enumerate(product(*outermost_first)):
        place = dict(zip(reversed(axes), at, strict=True))
        rest = tuple(place[axis] for axis in axes if axis not in token.split("-"))
        found.setdefault(rest, []).append(rank)
    return set(map(tuple, found.values()))


def megatron_groups(text, world_size):
    """Groups that Megatron-LM builds from the flags, after its own checks."""
    size, order = parse(text)
    dense = {axis: size[axis] for axis in ("tp", "cp", "pp")} | {"ep": 1}
    dense["dp"] = world_size // (size["tp"] * size["cp"] * size["pp"])
    expert = {"tp": size["etp"], "cp": 1, "ep": size["ep"], "pp": size["pp"]}
    expert["dp"], rest = divmod(world_size, size["etp"] * size["ep"] * size["pp"])
    assert rest == 0
    assert order.endswith("pp") or size["pp"] == 1 or expert["dp"] == dense["dp"]
    assert groups(dense, order, "pp") == groups(expert, order, "pp")
    return {
        **{axis: groups(dense, order, axis) for axis in ("tp", "cp", "pp", "dp")},
        "dp_cp": groups(dense, order, "dp-cp"),
        "ep": groups(expert, order, "ep"),
        "etp": groups(expert, order, "tp"),
        "edp": groups(expert, order, "dp"),
    }


def emitted(order, **sizes):
    world_size = int(np.prod([sizes.get(axis, 1) for axis in ("tp", "cp", "pp", "dp")]))
    plan = plan_of([(f"n{rank}", 0) for rank in range(world_size)], **sizes)
    plan.job["order"] = order
    return emit(plan, "megatron")


MEGATRON_ORDERS = ("tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp")


def numbers_alike(axes, order):
    """Whether the axes that have several members stand in the same sequence."""
    dense = {"tp": axes.tp, "cp": axes.cp, "pp": axes.pp, "dp": axes.dp}
    expert = {"tp": axes.etp, "ep": axes.ep, "pp": axes.pp, "dp": axes.edp}
    grids = [dense] if (axes.ep, axes.etp) == (1, axes.tp) else [dense, expert]
    return all(
        [axis for axis in axes.order if grid.get(axis, 1) > 1]
        == [axis for axis in order.split("-") if grid.get(axis, 1) > 1]
        for grid in grids
    )


SIZES = st.sampled_from([1, 2, 2, 3])
ORDERS = st.sampled_from(
    ["tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp", "cp-tp-ep-dp-pp", "tp-ep-cp-pp-dp"]
)


@given(SIZES, SIZES, SIZES, SIZES, ORDERS, st.data())
def test_groups_are_the_plan_s(tp, cp, pp, dp, order, data):
    """Megatron-LM, told these flags, puts every rank in the groups of the plan."""
    ranks = tp * cp * dp
    ep = data.draw(st.sampled_from([k for k in range(1, ranks + 1) if ranks % k == 0]))
    rest = ranks // ep
    etp = data.draw(st.sampled_from([k for k in range(1, rest + 1) if rest % k == 0]))
    if data.draw(st.booleans()):
        ep, etp = 1, tp
    axes = Parallelism(tp, cp, ep, pp, dp, etp=etp, order=tuple(order.split("-")))
    assume(pipeline_groups_agree(axes))
    sizes = {"tp": tp, "cp": cp, "pp": pp, "dp": dp, "ep": ep, "etp": etp}
    if not any(numbers_alike(axes, other) for other in MEGATRON_ORDERS):
        with pytest.raises(EmitError, match="place the job in one of the two"):
            emitted(order, **sizes)
        return
    text = emitted(order, **sizes)
    found = megatron_groups(text, axes.world_size)
    dense_only = ep == 1 and etp == tp
    kinds = ("tp", "cp", "pp", "dp", "dp_cp", *(() if dense_only else ("ep", "edp")))
    for kind in kinds:
        assert found[kind] == set(map(tuple, axes.ranks_of_group[kind].tolist())), kind


@pytest.mark.parametrize(*table("emit/frameworks.yaml", "megatron_refuses"))
def test_refusals(order, ranks, sizes, reason):
    """What Megatron-LM cannot be told is refused, with the reason."""
    plan = plan_of([(f"n{rank}", 0) for rank in range(ranks)], **sizes)
    plan.job["order"] = order
    with pytest.raises(EmitError, match=reason):
        emit(plan, "megatron")


def test_it_names_the_launcher():
    """Consecutive ranks go with torchrun, others with formats for any map."""
    assert "launch with torchrun of" in emit(plan_of(CONTIGUOUS, dp=8), "megatron")
    text = emit(plan_of(FREE, dp=8), "megatron")
    assert "launch with torchrun-wrapper, env or sbatch of" in text


def test_what_megatron_would_take_otherwise():
    """Heads of a width of their own, and several instances of the optimizer."""
    plan = plan_of(CONTIGUOUS, tp=2, dp=len(CONTIGUOUS) // 2)
    job = {"model": {"head_dim": 128}, "data_parallel": {"optimizer_instances": 2}}
    words = array_of(
        emit(replace(plan, inputs={"job": job}), "megatron"), "MEGATRON_ARGS"
    )
    assert words[-4:] == [
        "--kv-channels",
        "128",
        "--num-distributed-optimizer-instances",
        "2",
    ]
    job = {"model": {"head_dim": 0}, "data_parallel": {"optimizer_instances": 1}}
    usual = emit(replace(plan, inputs={"job": job}), "megatron")
    assert usual == emit(plan, "megatron")
