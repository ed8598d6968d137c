"""Public names stay what they are, and their help says what they give and shows it."""

import doctest
import inspect
import subprocess
import sys
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, get_args

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
        f"import placer.{name}; assert placer.{name} is first and callable(first)"
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


CALLS = [name for name in placer.__all__ if name[0].islower()]


def call(name: str) -> Callable[..., Any]:
    found = getattr(placer, name)
    function: Callable[..., Any] = getattr(found, "__wrapped__", found)
    return found if inspect.isfunction(found) else function


@pytest.mark.parametrize("name", CALLS)
def test_returns(name: str) -> None:
    """Every call that gives something back says what."""
    function = call(name)
    gives = inspect.signature(function).return_annotation not in (None, "None")
    assert ("Returns\n-------" in (inspect.getdoc(function) or "")) is gives


@pytest.mark.parametrize("name", CALLS)
def test_examples(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call has an example, which runs as it stands."""
    monkeypatch.chdir(tmp_path)
    text = inspect.getdoc(call(name)) or ""
    example = doctest.DocTestParser().get_doctest(
        text, {"placer": placer}, name, None, 0
    )
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0
