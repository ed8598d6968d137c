"""A second, slow scorer: the same model in plain loops, to test the fast one against.

It takes nothing from the rest of `placer.cost`: groups, rings, link loads, volumes and
the pipeline are written again from the formulas in ``docs/cost-model.md``.
"""

from tests.cost.reference.step import Reference, reference_seconds, reference_step

__all__ = ["Reference", "reference_seconds", "reference_step"]
