"""Colours can be told apart, and read on, whatever cones a reader has."""

from itertools import combinations, pairwise

import pytest

from placer.draw import palette, time_line
from tests.draw.colour_vision import VISION, contrast, difference, lab


@pytest.mark.parametrize("vision", VISION)
def test_distinct_colours(vision):
    """Any two of the distinct colours differ by 16, seven times what is noticeable."""
    for one, other in combinations(palette.DISTINCT, 2):
        assert difference(one, other, vision) >= 16, (one, other)


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("count", [8, 12, 16])
def test_neighbours_on_the_scale(vision, count):
    """Of up to 16 values in an order, neighbours differ; lightness rises."""
    shades = [palette.ordered(index, count) for index in range(count)]
    for one, other in pairwise(shades):
        assert difference(one, other, vision) >= 4, (one, other)
        assert lab(one, vision)[0] < lab(other, vision)[0]


def test_text_on_colours():
    """Text on a coloured cell has the contrast that WCAG asks of small text."""
    shades = [palette.along(step / 100) for step in range(101)]
    own = time_line.PART_COLOURS.values()
    for colour in (*palette.DISTINCT, *shades, *own):
        assert contrast(palette.ink_on(colour), colour) >= 4.5


@pytest.mark.parametrize("theme", [palette.LIGHT, palette.DARK], ids=["light", "dark"])
def test_text_on_themes(theme):
    """All text of both themes has that contrast on both of their backgrounds."""
    for text in ("ink", "soft"):
        for background in ("page", "panel"):
            assert contrast(theme[text], theme[background]) >= 4.5


@pytest.mark.parametrize("vision", VISION)
def test_parts_of_a_step(vision):
    """The parts of a time line differ visibly from each other."""
    for one, other in combinations(time_line.PART_COLOURS.values(), 2):
        assert difference(one, other, vision) >= 16, (one, other)
