"""The degrees and the placement of a job, chosen together."""

from placer.base.loading import answer_calls

__all__ = ["tune"]

answer_calls(__name__, "placer.api.tune")
