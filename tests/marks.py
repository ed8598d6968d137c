"""Marks of parameters."""

from collections.abc import Iterable
from typing import Any

import pytest


def slow(values: Iterable[Any]) -> list[Any]:
    """The values as parameters of slow cases."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]
