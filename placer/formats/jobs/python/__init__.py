"""Configurations that Python functions return, read as syntax and never run.

What can be followed: constants and their arithmetic, names, dicts and calls as records
of their keywords, functions and classes of the same file and those that the caller
knows, assignments to parts of a record, branches whose condition is known and loops
over what is known. Anything else is unknown, and so is what it may change: what a
branch or a loop assigns, what a function of another file returns.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable
from typing import Any

from placer.base.errors import InputError, Problem
from placer.base.naming import named
from placer.documents import closest
from placer.documents.scalars import visible
from placer.formats.jobs.findings import Asked, Place
from placer.formats.jobs.python.expressions import Expressions, Library
from placer.formats.jobs.python.statements import Reader
from placer.formats.jobs.python.values import NO_CONSTANT, leaves, plain
from placer.formats.jobs.settings import Setting

__all__ = ["Library", "constant", "python_values"]


def python_values(
    text: str, source: str, asked: Asked, library: Library
) -> dict[str, Setting]:
    """Values of the configuration that one function returns, by dotted key.

    Parameters
    ----------
    asked : Asked
        Names the function, which is needed where several return one, and sets
        environment variables.
    library : Library
        What is known of other files.
    """
    module = _parsed(text, source)
    try:
        reader = Reader(module, source, asked, library)
        chosen = _chosen(reader.functions.values(), source, asked.select)
        values = dict(leaves(reader.call(chosen, {})))
    except RecursionError:
        raise InputError([Problem("not Python that can be read", source)]) from None
    place = Place(source, chosen.lineno, 1)
    return {"model.name": Setting(chosen.name, place)} | values


def constant(text: str) -> Any:
    """What an expression stands for; `NO_CONSTANT` where that is not known."""
    try:
        body = _parsed(text.strip(), "").body
        if len(body) != 1 or not isinstance(body[0], ast.Expr):
            return NO_CONSTANT
        return plain(Expressions("", Asked(), Library("")).value(body[0].value, {}))
    except (InputError, RecursionError):
        return NO_CONSTANT


def _parsed(text: str, source: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        place = error.lineno or 0, error.offset or 0
        message = f"not Python: {visible(error.msg)}"
        raise InputError([Problem(message, source, *place)]) from None
    except (RecursionError, MemoryError, ValueError):
        raise InputError([Problem("not Python that can be read", source)]) from None


def _chosen(
    functions: Iterable[ast.FunctionDef], source: str, select: str
) -> ast.FunctionDef:
    """The function that is selected, or the only one there is."""
    found = {
        node.name: node
        for node in functions
        if _returns_record(node) and not node.name.startswith("_")
    }
    chosen = select or (next(iter(found)) if len(found) == 1 else "")
    if chosen in found:
        return found[chosen]
    few = ", ".join(list(found)[:12]) + (", ..." if len(found) > 12 else "")
    message = f"there is no function {visible(select)}" if select else "which function"
    hint = (
        f"{named('select')} is one of {few}" if found else "it returns no configuration"
    )
    hint = (closest(select, found) if select else "") or hint
    raise InputError([Problem(message, source, key="select", hint=hint)])


def _returns_record(node: ast.FunctionDef) -> bool:
    """Whether a function without required arguments is said to return a record."""
    needed = len(node.args.args) - len(node.args.defaults)
    returns = ast.unparse(node.returns) if node.returns else ""
    last = node.body[-1] if node.body else None
    said = returns.rpartition(".")[2].endswith(("Config", "ConfigContainer"))
    called = isinstance(last, ast.Return) and isinstance(last.value, ast.Call)
    returned = any(isinstance(inner, ast.Return) for inner in ast.walk(node))
    return needed == 0 and (called or (said and returned))
