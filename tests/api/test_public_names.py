"""Public names mean the same however often they are asked for."""

import subprocess
import sys
from collections.abc import Callable
from inspect import signature
from pkgutil import iter_modules
from typing import get_args

import pytest

import placer
from placer import emit, sweep
from placer.api import explain
from placer.api.checked_plan import OBJECTIVES
from placer.api.options import ObjectiveName
from placer.degrees.frameworks import FRAMEWORKS, FrameworkName
from placer.draw import picture
from placer.emit import FormatName
from placer.emit.registry import FORMATS
from placer.placement.launcher_orders import LAUNCHERS, LauncherName

PACKAGES = {module.name for module in iter_modules(placer.__path__)}


@pytest.mark.parametrize("name", sorted(PACKAGES & set(placer.__all__)))
def test_a_public_name_stays_what_it_is(name: str) -> None:
    """No package that loads with it takes the place of a function."""
    script = (
        f"import placer; first = placer.{name}; "
        f"assert placer.{name} is first and callable(first)"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("draw", picture.draw),
        ("emit", emit.emit),
        ("explain", explain.explain),
        ("sweep", sweep.sweep),
    ],
)
def test_help_shows_all_arguments(name: str, call: Callable[..., object]) -> None:
    """The first one too, of packages that answer calls."""
    assert signature(getattr(placer, name)) == signature(call)


def test_names_that_editors_complete() -> None:
    """The literals of arguments are what the calls take."""
    assert set(get_args(FormatName)) == set(FORMATS)
    assert set(get_args(ObjectiveName)) == set(OBJECTIVES)
    assert set(get_args(FrameworkName)) == set(FRAMEWORKS)
    assert set(get_args(LauncherName)) == set(LAUNCHERS)
