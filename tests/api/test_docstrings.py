"""What the help of a public call shows: what it returns, and an example that runs."""

import doctest
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import placer

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
