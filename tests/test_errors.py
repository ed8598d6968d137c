"""Problems of an input, raised together."""

import pytest

from placer.base.errors import MOST_PROBLEMS, InputError, Problem, refuse


def test_an_error_is_made_of_the_words_of_its_one_problem():
    """Its place, its key and its hint are said as those of a listed one."""
    error = InputError("is wrong", "a.yaml", 2, 5, key="tiers", hint="mend it")
    listed = Problem("is wrong", "a.yaml", 2, 5, key="tiers", hint="mend it")
    assert error.problems == (listed,)
    assert str(error) == "a.yaml:2:5: tiers: is wrong\n  hint: mend it"


def test_the_rest_of_many_is_counted():
    """Beyond the limit the others are a number, in the same file."""
    with pytest.raises(InputError) as caught:
        refuse(Problem(f"wrong {i}", "a.yaml") for i in range(MOST_PROBLEMS + 5))
    assert len(caught.value.problems) == MOST_PROBLEMS + 1
    assert str(caught.value.problems[-1]) == "a.yaml: and 5 more problems"
