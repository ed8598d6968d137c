"""Pictures of plans and sweeps: pure functions that return SVG text."""

from placer.draw.picture import draw
from placer.loading import answer_calls

__all__ = ["draw"]

answer_calls(__name__)
