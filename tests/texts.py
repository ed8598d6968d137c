"""What lies in ``tests/data``, and files of placer's own with a few keys."""

from __future__ import annotations

import json
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


def file_text(format: str, /, **keys: Any) -> str:
    """A file of a format with these keys, called ``small`` unless they say it."""
    head = {"format": f"placer/{format}", "version": 1, "name": "small"}
    return json.dumps(head | keys)
