"""Colours can be told apart, and read on, whatever cones a reader has.

Neighbours on a map differ, so that a group on two racks is seen as one.
"""

from itertools import combinations, pairwise, product

import numpy as np
import pytest

from placer.draw import palette, time_line
from placer.draw.grouping import colours_apart
from placer.draw.placement_map import placement_map
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.placement.build import build_plan
from placer.placement.placement import Placement
from placer.testing.strategies import machine
from tests.draw.colour_vision import VISION, contrast, difference, lab
from tests.draw.pictures import of_class, parse


@pytest.mark.parametrize("vision", VISION)
def test_distinct_colours(vision):
    """Any two of them, or parts of a step, differ by 16, seven times the noticeable."""
    for colours in (palette.DISTINCT, time_line.PART_COLOURS.values()):
        for one, other in combinations(colours, 2):
            assert difference(one, other, vision) >= 16, (one, other)


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("count", [8, 12, 16])
def test_neighbours_on_the_scale(vision, count):
    """Of up to 16 values in an order, neighbours differ; lightness rises."""
    shades = [palette.ordered(index, count) for index in range(count)]
    for one, other in pairwise(shades):
        assert difference(one, other, vision) >= 4, (one, other)
        assert lab(one, vision)[0] < lab(other, vision)[0]


def test_text_can_be_read():
    """Text on a coloured cell has the contrast that WCAG asks of small text.

    So has all text of both themes on both of their backgrounds.
    """
    shades = [palette.along(step / 100) for step in range(101)]
    own = time_line.PART_COLOURS.values()
    for colour in (*palette.DISTINCT, *shades, *own):
        assert contrast(palette.ink_on(colour), colour) >= 4.5
    for theme in (palette.LIGHT, palette.DARK):
        for text, back in product(("ink", "soft"), ("page", "panel")):
            assert contrast(theme[text], theme[back]) >= 4.5


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


def test_colours_do_not_pretend():
    """A cell with more groups than colours is grey, and says how many they are."""
    root = parse(placement_map(rows_of_replicas(32, 4), "dp"))
    grey = of_class(root, "p-mixed")
    assert len(grey) == 32 + 1  # and one in the legend
    assert sum(e.text == "18 parts" for e in root.iter()) == 32
