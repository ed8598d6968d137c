"""Pictures of plans and sweeps: pure functions that return SVG text.

What is wrong with an input is raised as one `placer.InputError` with all problems and
their places, by whatever function here finds it; docstrings do not say so again.
"""

from placer.base.loading import answer_calls
from placer.draw.picture import draw

__all__ = ["draw"]

answer_calls(__name__)
