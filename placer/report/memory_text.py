"""Whether a job fits into the memory of a GPU, in one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from placer.base.units import format_bytes

# Parts that are told apart from the smallest share of the total on.
_WORTH_TELLING = 0.05
_PARTS = ("parameters", "gradients", "optimizer", "activations", "other")


def misfit(score: Mapping[str, Any]) -> str:
    """By how much the fullest stage does not fit, and why; empty when it fits.

    Also empty when the score says nothing of the memory needed, or of that of a GPU.
    """
    needs, limit = score.get("memory_bytes"), score.get("memory_limit_bytes")
    if not needs or not limit or needs["total"] <= limit:
        return ""
    total = needs["total"]
    parts = ", ".join(
        f"{part} {format_bytes(needs[part])}"
        for part in sorted(_PARTS, key=lambda part: -needs[part])
        if needs[part] >= _WORTH_TELLING * total
    )
    role = f" of {needs['role']}" if "role" in needs else ""
    where = f"stage {needs['stage']}{role}"
    return (
        f"does not fit: {where} needs {format_bytes(total)} of memory, "
        f"{format_bytes(total - limit)} more than a GPU has ({parts})"
    )
