"""Modules loaded where no signal reaches them.

Python runs signal handlers in the main thread. A handler that raises, as that of Ctrl-C
does, breaks off whatever is imported there. An extension module that is broken off says
that it cannot be imported, and some never can be again in that process.
"""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import Any

from placer.base.threads import start


class Shown:
    """Shows itself by `placer.report.notebook`, loaded when somebody looks."""

    def __repr__(self) -> str:
        title: str = load("placer.report.notebook").title(self)
        return f"<placer.{type(self).__name__}{title}>"

    def _repr_html_(self) -> str:
        shown: str = load("placer.report.notebook").html(self)
        return shown


def load(name: str) -> Any:
    """The module ``name``, loaded in a thread unless it is there.

    What a signal raises meanwhile reaches the caller, and the module loads to its end.

    Raises `ImportError` if it cannot be imported.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and name not in sys.modules:
        start(lambda: _load(name), "placer-loading").join()
    return import_module(name)


def answer_calls(package: str, home: str = "") -> None:
    """Make a package answer calls as the function of its own name does.

    Importing a submodule binds the package to its name in the parent, whatever the
    parent put there: so the package itself must answer.

    ``home``: the module of the function, loaded with the first call; else the package.
    """
    name = package.rpartition(".")[2]

    def function() -> Any:
        return getattr(load(home or package), name)

    class _CallableModule(ModuleType):
        def __getattr__(self, asked: str) -> Any:
            if home and asked == name:
                return function()
            raise AttributeError(f"module {package!r} has no attribute {asked!r}")

        def __dir__(self) -> list[str]:
            return sorted({*super().__dir__(), name})

        def __call__(self, *args: Any, **options: Any) -> Any:
            return function()(*args, **options)

        @property
        def __wrapped__(self) -> Any:  # whose signature help shows
            return function()

    sys.modules[package].__class__ = _CallableModule


def _load(name: str) -> None:
    # Whoever waits imports it too, and gets the error where it can be handled.
    with suppress(Exception):
        import_module(name)
