"""Moved."""

from placer.solve.problem.rules import Limits as Limits
