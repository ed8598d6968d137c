"""Modules loaded where no signal reaches them.

Python runs signal handlers in the main thread. A handler that raises, as that of Ctrl-C
does, breaks off whatever is imported there. An extension module that is broken off says
that it cannot be imported, and some never can be again in that process.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import Any

from placer.threads import start


def load(name: str) -> Any:
    """The module ``name``, loaded in a thread unless it is there.

    What a signal raises meanwhile reaches the caller, and the module loads to its end.

    Raises
    ------
    ImportError
        If it cannot be imported.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and name not in sys.modules:
        start(lambda: _load(name), "placer-loading").join()
    return import_module(name)


def answer_calls(name: str, function: Callable[..., Any]) -> None:
    """Make the package ``name`` answer calls as its function of the same name does.

    Importing a submodule binds the package to its name in the parent, whatever the
    parent put there: so the package itself must answer.
    """

    class _CallableModule(ModuleType):
        __call__ = staticmethod(function)
        __wrapped__ = staticmethod(function)  # whose signature help shows

    sys.modules[name].__class__ = _CallableModule


def _load(name: str) -> None:
    # Whoever waits imports it too, and gets the error where it can be handled.
    with suppress(Exception):
        import_module(name)
