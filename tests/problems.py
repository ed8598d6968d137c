"""What is wrong with what is read, and the place that a mark in a text shows."""

import pytest

from placer.base.errors import InputError


def problems_of(call, *arguments, **options):
    """The problems for which a call refuses what it is given."""
    with pytest.raises(InputError) as caught:
        call(*arguments, **options)
    return caught.value.problems


def marked(text, mark="^"):
    """A text without its mark, and the line and column after it: None without one."""
    before, found, after = text.partition(mark)
    place = before.count("\n") + 1, len(before) - before.rfind("\n")
    return before + after, place if found else None
