"""Which nodes: those of one job or several, out of the free nodes of a machine."""

from placer.base.loading import answer_calls

__all__ = ["allocate"]

answer_calls(__name__, "placer.api.allocate")
