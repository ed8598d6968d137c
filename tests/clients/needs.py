"""The real programs a test needs.

Without one the test is skipped, with the reason. Where PLACER_CLIENTS is "required", as
in continuous integration, it fails instead: there every client must run.
"""

import importlib
import os
import shutil
import sys
from pathlib import Path

import pytest

REQUIRED = os.environ.get("PLACER_CLIENTS") == "required"


def missing(reason):
    """Skip the test, or fail it where every client must run."""
    if REQUIRED:
        pytest.fail(f"PLACER_CLIENTS=required, but {reason}", pytrace=False)
    pytest.skip(reason)


def program(name, package):
    """Path of an installed program; ``package`` says where to get it."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    return found or missing(f"{name} is not installed (package {package})")


def module(name):
    """An installed Python module."""
    try:
        return importlib.import_module(name)
    except ImportError:
        missing(f"the Python package {name} is not installed")


def torchrun():
    """Skip the test, or fail it, where torchrun is not beside this Python."""
    if not Path(sys.executable).with_name("torchrun").exists():
        missing("torchrun is not installed (Python package torch)")
