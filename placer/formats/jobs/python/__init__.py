"""Configurations that Python functions return, read as syntax and never run.

What can be followed: constants and their arithmetic, names, dicts and calls as records
of their keywords, functions and classes of the same file and those that the caller
knows, assignments to parts of a record, branches whose condition is known and loops
over what is known. Anything else is unknown, and so is what it may change: what a
branch or a loop assigns, what a function of another file returns.
"""

from placer.formats.jobs.python.config import python_values
from placer.formats.jobs.python.expressions import Library

__all__ = ["Library", "python_values"]
