"""``--effort``, and what it is by default."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

import placer.api.place
from placer.base.errors import InputError
from placer.cli.main import main

INPUTS = ["place", "-t", "node:2 gpu:8", "-j", "quickstart"]


@pytest.mark.parametrize(
    ("options", "effort"),
    [
        ([], "measurable"),
        (["--time-limit", "60"], "measurable"),
        (["--time-limit", "60", "--effort", "full"], "full"),
        (["--effort", "quick"], "quick"),
        (["--effort", "12"], 12),
    ],
)
def test_a_time_limit_is_a_ceiling(
    monkeypatch: pytest.MonkeyPatch, options: list[str], effort: str | int
) -> None:
    """A time limit asks for no more effort than there is without one."""
    asked: dict[str, Any] = {}

    def place(*_args: object, **given: Any) -> None:
        asked.update(given)
        raise InputError([])

    monkeypatch.setattr(placer.api.place, "place", place)
    CliRunner().invoke(main, [*INPUTS, *options])  # type: ignore[arg-type]
    assert asked["effort"] == effort


@pytest.mark.parametrize("text", ["hard", "-1", "1.5", "²"])
def test_an_effort_there_is_not(text: str) -> None:
    """It is a usage error that names those there are."""
    result = CliRunner().invoke(main, [*INPUTS, f"--effort={text}"])  # type: ignore[arg-type]
    assert result.exit_code == 2
    assert "quick, measurable, normal, full or a number" in " ".join(
        result.stderr.split()
    )
