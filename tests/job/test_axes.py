"""Rank groups and orders: Megatron-LM's own example, and orders alike.

The 16-GPU example is the docstring of ``initialize_model_parallel`` in Megatron-LM's
``core/parallel_state.py``.
"""

import json
from dataclasses import replace
from itertools import permutations

import pytest

from placer.base.errors import InputError
from placer.documents import parse_document
from placer.job.axes import (
    MEGATRON_DEFAULT_ORDER,
    REPLICA_MAJOR_ORDER,
    Parallelism,
    pipeline_groups_agree,
)
from placer.job.orders import as_planned, framework_orders, how_to_number, same_groups
from placer.job.read import decode_job
from placer.job.resize import reordered
from placer.job.write import to_document
from tests.problems import problems_of


def test_megatron_docstring_example_of_16_ranks():
    """Two-way tensor and four-way pipeline on 16 GPUs give the documented groups."""
    axes = Parallelism(tp=2, pp=4, dp=2, etp=2)
    ranks = {axis: rows.tolist() for axis, rows in axes.ranks_of_group.items()}
    assert ranks["tp"] == [[2 * i, 2 * i + 1] for i in range(8)]
    assert ranks["pp"] == [[i, i + 4, i + 8, i + 12] for i in range(4)]
    dp = [[0, 2], [1, 3], [4, 6], [5, 7], [8, 10], [9, 11], [12, 14], [13, 15]]
    assert ranks["dp"] == dp


TEXT = """\
format: placer/job
version: 1
name: j
parallelism: {tp: 2, pp: 2, dp: 2, order: ORDER}
weights: {pp: 1}
"""


def job_of(order, more=""):
    text = TEXT.replace("ORDER", order) + more
    return decode_job(parse_document(text, "job.yaml"))


def test_orders_of_megatron():
    """Both orders for dense models; pp last where experts lie across stages."""
    both = [MEGATRON_DEFAULT_ORDER, REPLICA_MAJOR_ORDER]
    assert framework_orders(Parallelism(tp=4, cp=2, pp=2, dp=2, etp=4)) == both
    # etp x ep = tp x cp: the same ranks lie inside a stage on either side.
    assert framework_orders(Parallelism(tp=4, cp=2, pp=2, dp=2, ep=8, etp=1)) == both
    assert framework_orders(Parallelism(ep=4, pp=2, dp=4)) == both[:1]
    assert how_to_number(both[1]).endswith("--use-tp-pp-dp-mapping")
    assert how_to_number(("dp", "tp", "cp", "ep", "pp")) == ""


@pytest.mark.parametrize(
    "axes",
    [
        Parallelism(tp=2, cp=2, pp=2, dp=3, etp=2),
        Parallelism(tp=2, cp=2, ep=4, pp=2, dp=2, etp=1),
        Parallelism(ep=2, pp=3, dp=4),
    ],
    ids=str,
)
def test_same_groups_are_the_same(axes):
    """Where two orders count as alike, every group has the same members in a row.

    Ranks are matched by their dense coordinates.
    """
    orders = [
        order
        for order in permutations(("tp", "cp", "ep", "pp", "dp"))
        if pipeline_groups_agree(replace(axes, order=order))
    ]
    first = replace(axes, order=orders[0])
    alike = 0
    for order in orders:
        if not same_groups(axes, orders[0], order):
            continue
        alike += 1
        number = first.numbers_in(order)
        second = replace(axes, order=order)
        for axis, members in first.ranks_of_group.items():
            mine = {tuple(row) for row in number[members].tolist()}
            assert mine == {tuple(row) for row in second.ranks_of_group[axis].tolist()}
    assert 1 < alike <= len(orders)


def test_auto_leaves_the_order_open():
    """The job says so, stands in for Megatron's default, and survives a round trip.

    Only an open order takes the plan's, and the digest stays the file's.
    """
    job = job_of("auto")
    assert job.parallelism.auto_order
    assert job.parallelism.order == MEGATRON_DEFAULT_ORDER
    document = to_document(job)
    assert document["parallelism"]["order"] == "auto"
    again = decode_job(parse_document(json.dumps(document), "job.json"))
    assert again.sha256 == job.sha256
    fixed = job_of("tp-cp-ep-dp-pp")
    assert job.sha256 != fixed.sha256
    planned = as_planned(job, "tp-cp-ep-pp-dp")
    assert planned.parallelism.order == REPLICA_MAJOR_ORDER
    assert planned.sha256 == job.sha256
    assert as_planned(job, "") is job
    assert as_planned(fixed, "tp-cp-ep-pp-dp") is fixed


@pytest.mark.parametrize(
    "more",
    [
        "groups: [{name: g, collective: all_reduce, bytes: 1MB, ranks: [[0, 3]]}]\n",
        'rules: {pin: [{ranks: "0-1", nodes: n1}]}\n',
    ],
    ids=["groups", "pins"],
)
def test_auto_needs_ranks_without_names(more):
    """Groups and pins by rank number refuse auto, at the place of the order."""
    job_of("tp-cp-ep-dp-pp", more)
    (problem,) = problems_of(job_of, "auto", more)
    assert (problem.line, problem.key) == (4, "parallelism.order")
    assert "by number" in problem.message
    assert "write the order" in problem.hint


def test_reordered_is_the_file_with_another_order():
    """A job in another order is what its file would say, digest included."""
    job = job_of("tp-cp-ep-dp-pp")
    for order in ("auto", "tp-cp-ep-pp-dp"):
        assert reordered(job, order).sha256 == job_of(order).sha256
    with pytest.raises(InputError, match="order: unknown axis"):
        reordered(job, "tp-xp")
