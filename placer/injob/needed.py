"""Packages that a door leads to; who opens it has them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from placer.base.errors import InputError, Problem


def needed(module: str, package: str | None = None) -> Any:
    """A module of a package that placer does without otherwise.

    Raises
    ------
    InputError
        If it cannot be imported.
    """
    try:
        return import_module(module)
    except ImportError as error:
        name = package or module.partition(".")[0]
        hint = f"pip install {name}"
        message = f"{name} cannot be imported: {error}"
        raise InputError([Problem(message, hint=hint)]) from None
