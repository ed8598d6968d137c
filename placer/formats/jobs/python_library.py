"""What is known of functions that are not in the file that is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from placer.formats.jobs.findings import Scalar

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
