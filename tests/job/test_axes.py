"""Rank groups: Megatron-LM's own example, small cases by hand, a nested-loop oracle.

The 16-GPU example is the docstring of ``initialize_model_parallel`` in Megatron-LM's
``core/parallel_state.py``.
"""

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from placer.job.axes import AXES, Parallelism
from placer.job.read_axes import pipeline_groups_agree


def groups(parallelism, axis):
    return parallelism.ranks_of_group[axis].tolist()


def test_megatron_docstring_example_of_16_ranks():
    """Two-way tensor and four-way pipeline on 16 GPUs give the documented groups."""
    job = Parallelism(tp=2, pp=4, dp=2, etp=2)
    assert groups(job, "tp") == [[2 * i, 2 * i + 1] for i in range(8)]
    assert groups(job, "pp") == [[i, i + 4, i + 8, i + 12] for i in range(4)]
    dp = [[0, 2], [1, 3], [4, 6], [5, 7], [8, 10], [9, 11], [12, 14], [13, 15]]
    assert groups(job, "dp") == dp


EIGHT = [[i] for i in range(8)]
FOURS = [[0, 1, 2, 3], [4, 5, 6, 7]]
FAR = [[0, 4], [1, 5], [2, 6], [3, 7]]


@pytest.mark.parametrize(
    ("etp", "ep", "of_etp", "of_ep", "of_edp"),
    [
        (1, 4, EIGHT, FOURS, FAR),  # experts without tensor parallelism
        (2, 2, [[0, 1], [2, 3], [4, 5], [6, 7]], [[0, 2], [1, 3], [4, 6], [5, 7]], FAR),
        (4, 2, FOURS, FAR, EIGHT),  # experts with a wider tensor size
    ],
)
def test_expert_groups_by_hand(etp, ep, of_etp, of_ep, of_edp):
    """Experts number the ranks of tp x cp x dp by their own etp, ep and edp."""
    job = Parallelism(tp=2, dp=4, ep=ep, etp=etp)
    assert groups(job, "etp") == of_etp
    assert groups(job, "ep") == of_ep
    assert groups(job, "edp") == of_edp


sizes = st.integers(1, 4)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(sizes, sizes, sizes, sizes, st.sampled_from(list(permutations(AXES))))
def test_dense_groups_agree_with_nested_loops(tp, cp, pp, dp, order):
    """Counting ranks in nested loops, outermost axis first, gives the same groups."""
    size = {"tp": tp, "cp": cp, "ep": 1, "pp": pp, "dp": dp}
    job = Parallelism(tp=tp, cp=cp, pp=pp, dp=dp, etp=tp, order=order)
    outermost_first = order[::-1]
    points = [
        dict(zip(outermost_first, point, strict=True))
        for point in product(*(range(size[axis]) for axis in outermost_first))
    ]
    for axis in ("tp", "cp", "pp", "dp"):
        expected = {}
        for rank, at in enumerate(points):
            rest = tuple(at[other] for other in AXES if other != axis)
            expected.setdefault(rest, []).append(rank)
        assert sorted(groups(job, axis)) == sorted(expected.values())


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 2]),
    st.sampled_from([2, 4, 8]),
    st.sampled_from([1, 2, 3]),
    st.sampled_from([1, 2]),
    st.sampled_from([1, 2]),
    st.sampled_from(list(permutations(AXES))),
)
def test_groups_of_every_axis_partition_the_ranks(tp, cp, dp, pp, ep, etp, order):
    """Every rank is in one group of each axis, and groups have the axis' size."""
    assume((tp * cp * dp) % (ep * etp) == 0)
    job = Parallelism(tp=tp, cp=cp, dp=dp, pp=pp, ep=ep, etp=etp, order=order)
    assume((ep == 1 and etp == tp) or pipeline_groups_agree(job))
    for axis, rows in job.ranks_of_group.items():
        assert sorted(rows.ravel().tolist()) == list(range(job.world_size))
        assert (np.diff(rows, axis=1) > 0).all()
        size = cp * dp if axis == "dp_cp" else job.size(axis)
        assert rows.shape == (job.world_size // size, size)
