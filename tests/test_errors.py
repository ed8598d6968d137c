"""Problems of an input, raised together."""

import pytest

from placer.base.errors import MOST_PROBLEMS, InputError, Problem, refuse


def test_the_rest_of_many_is_counted():
    """Beyond the limit the others are a number, in the same file."""
    with pytest.raises(InputError) as caught:
        refuse(Problem(f"wrong {i}", "a.yaml") for i in range(MOST_PROBLEMS + 5))
    assert len(caught.value.problems) == MOST_PROBLEMS + 1
    assert str(caught.value.problems[-1]) == "a.yaml: and 5 more problems"
