"""Neighbours on a map differ, so that a group on two racks is seen as one."""

from itertools import pairwise

import numpy as np
import pytest

from placer.draw import palette
from placer.draw.grouping import colours_apart
from placer.draw.placement_map import placement_map
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.placement.build import build_plan
from placer.placement.placement import Placement
from placer.testing.strategies import machine
from tests.draw.pictures import of_class, parse

COUNT = len(palette.DISTINCT)


def in_order(value, gpus, nodes):
    """Colours of values on GPUs in their order, with so many a node and rack."""
    gpu = np.arange(len(value))
    node = gpu // gpus
    return colours_apart(value, node, gpu % gpus, node // nodes, COUNT).of_value


@pytest.mark.parametrize("seed", range(5))
def test_cells_that_touch_differ(seed):
    """Cells side by side or one above the other differ, if of different groups."""
    rows = np.random.default_rng(seed).permutation(128).reshape(32, 4)
    value = np.repeat(rows, 2, axis=1)
    colour = in_order(value.ravel(), 8, 4)
    shown = np.vectorize(colour.get)(value)
    for one, other, a, b in (
        (value[:, 1:], value[:, :-1], shown[:, 1:], shown[:, :-1]),
        (value[1:], value[:-1], shown[1:], shown[:-1]),
    ):
        assert (a != b)[one != other].all()


def rows_of_replicas(racks, size):
    """Replicas of ``size`` ranks in a row over racks of 72 GPUs."""
    topology = machine([(f"b{i // 4:02d}", [4] * 18) for i in range(racks)])
    job = Job("job", Parallelism(pp=size, dp=racks * 72 // size))
    ranks = job.parallelism.coordinates
    gpu = ranks["dp"] * size + ranks["pp"]
    return build_plan(topology, job, Placement(gpu))


def test_a_replica_on_two_racks_is_one_colour_there():
    """On both sides of a rack's edge there is one colour only if one replica is."""
    plan = rows_of_replicas(40, 64)
    cells = of_class(parse(placement_map(plan, "dp")), "cell")
    assert len(cells) == 40
    for rack, (one, other) in enumerate(pairwise(cells)):
        last, first = (
            [e.get("fill") for e in cell if e.tag.endswith("rect")][at]
            for cell, at in ((one, -1), (other, 0))
        )
        straddles = (rack + 1) * 72 % 64 != 0
        assert (last == first) == straddles, rack


@pytest.mark.parametrize(("size", "holds"), [(64, True), (24, True), (8, False)])
def test_the_legend_does_not_pretend(size, holds):
    """That one colour is one replica is said where it holds, and only there."""
    root = parse(placement_map(rows_of_replicas(14, size), "dp"))
    promise = "one colour across a gap is one replica"
    assert any(promise in (e.text or "") for e in root.iter()) == holds


def test_colours_do_not_pretend():
    """A cell with more groups than colours is grey, and says how many they are."""
    root = parse(placement_map(rows_of_replicas(32, 4), "dp"))
    grey = of_class(root, "p-mixed")
    assert len(grey) == 32 + 1  # and one in the legend
    assert sum(e.text == "18 parts" for e in root.iter()) == 32
