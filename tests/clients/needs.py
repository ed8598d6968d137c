"""The real programs a test needs.

Without one the test is skipped, with the reason. Where PLACER_CLIENTS is "required", as
in continuous integration, it fails instead: there every client must run.
"""

from __future__ import annotations

import importlib
import os
import shutil
from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from types import ModuleType

REQUIRED = os.environ.get("PLACER_CLIENTS") == "required"


def missing(reason: str) -> NoReturn:
    """Skip the test, or fail it where every client must run."""
    if REQUIRED:
        pytest.fail(f"PLACER_CLIENTS=required, but {reason}", pytrace=False)
    pytest.skip(reason)


def program(name: str, package: str) -> str:
    """Path of an installed program; ``package`` says where to get it."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    return found or missing(f"{name} is not installed (package {package})")


def module(name: str) -> ModuleType:
    """An installed Python module."""
    try:
        return importlib.import_module(name)
    except ImportError:
        missing(f"the Python package {name} is not installed")
