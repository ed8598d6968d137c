"""Pictures of plans and sweeps: pure functions that return SVG text."""

from placer.base.loading import answer_calls
from placer.draw.picture import draw

__all__ = ["draw"]

answer_calls(__name__)
