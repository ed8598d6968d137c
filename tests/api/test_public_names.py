"""Public names mean the same however often they are asked for."""

import subprocess
import sys

import pytest

import placer


@pytest.mark.parametrize("name", sorted(set(placer.__all__) - {"__version__"}))
def test_a_public_name_stays_what_it_is(name: str) -> None:
    """No package that loads with it takes the place of a function or class."""
    script = (
        f"import placer; first = placer.{name}; "
        f"assert placer.{name} is first and callable(first)"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
