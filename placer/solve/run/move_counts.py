"""Moved."""

from placer.solve.run.incumbent import MoveCounts as MoveCounts
