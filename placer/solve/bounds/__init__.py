"""Lower bounds: what no placement can beat, with the argument."""

from __future__ import annotations

from typing import NamedTuple


class Proof(NamedTuple):
    """A lower bound.

    Attributes
    ----------
    value : float
        No placement that meets the requirements costs less.
    argument : str
        What that rests on, in one sentence.
    """

    value: float
    argument: str
