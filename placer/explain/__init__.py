"""The score of a placement, why it is so, and how sure its difference to another is."""

from placer.base.loading import answer_calls

__all__ = ["explain"]

answer_calls(__name__, "placer.api.explain")
