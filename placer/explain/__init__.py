"""The score of a placement, and why it is so: its groups, links, ranks and hosts."""

from placer.loading import answer_calls

answer_calls(__name__, "placer.api.explain")
