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
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from placer.base.errors import InputError, Problem
from placer.base.naming import named
from placer.documents import closest
from placer.documents.tree import visible
from placer.formats.jobs.findings import Asked, Place, Scalar
from placer.formats.jobs.python_flow import Reader
from placer.formats.jobs.python_leaves import leaves
from placer.formats.jobs.settings import Setting

if TYPE_CHECKING:
    from collections.abc import Iterable

# Values by dotted key.
Values = Mapping[str, Scalar]


@dataclass(frozen=True)
class Library:
    """Functions and classes of a framework.

    Attributes
    ----------
    package : str
        Its classes are there: a keyword that a call leaves out is a default of the
        framework. Classes from elsewhere may have defaults of their own.
    returns : mapping of str to Values or tuple of Values
        What functions return, by their names.
    named : tuple of str
        Ends of names of functions that say what they return: it stands for itself.
    shapes : tuple of str
        Functions that look up a model by their first argument.
    changes : mapping of str to tuple of str
        What functions may set in their first argument, and nothing else.
    """

    package: str
    returns: Mapping[str, Values | tuple[Values, ...]] = field(default_factory=dict)
    named: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()
    changes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


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
