"""What lies in ``tests/data``: files of other programs, and tables of cases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "data"


def data(name: str) -> str:
    """The file of this name."""
    return (FOLDER / name).read_text()


def table(name: str, test: str) -> tuple[Any, list[Any]]:
    """The columns and rows of a test, as ``pytest.mark.parametrize`` takes them."""
    found = yaml.safe_load(data(name))[test]
    return found["columns"], found["rows"]
