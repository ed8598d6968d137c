"""How far apart two steps of a job must be for the model to tell them apart.

Two placements of one job share their compute, bubble and fixed time, and what the model
misses in these: it cancels. What is left was measured where public runs differ in
machines and replicas alone, and is written down in ``docs/validation.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isclose
from typing import Any

# Of the step, with 95 % confidence; the validation page measures it again.
DIFFERENCE = 0.01


def noise(before_s: float, after_s: float) -> dict[str, Any]:
    """Whether two steps of one job are too near each other to say which is shorter.

    Returns
    -------
    dict
        ``relative``: the least difference that can be told, as a share of the step
        before; ``within``: whether the steps differ by no more.
    """
    within = abs(after_s - before_s) <= DIFFERENCE * before_s
    return {"relative": DIFFERENCE, "within": bool(within)}


def noise_of(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any] | None:
    """The same of two scores; None where their compute differs, or there is none.

    Then the errors of the compute do not cancel, and more is unknown.
    """
    before, after = old.get("compute_s", 0.0), new.get("compute_s", 0.0)
    if not before or not isclose(before, after, rel_tol=1e-9):
        return None
    return noise(old["step_time_s"], new["step_time_s"])
