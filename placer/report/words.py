"""Words and numbers that several reports share."""

from __future__ import annotations

import math
from collections.abc import Sequence

from placer.units import format_seconds

# What each objective is called.
NOUN = {"time": "step time", "hop-cost": "hop cost"}


def amount(objective: str, value: float) -> str:
    """A value of an objective: a time with its unit, or a hop cost."""
    return format_seconds(value) if objective == "time" else hop_cost(value)


def gap_text(gap: float) -> str:
    """A gap in percent, rounded up, so as not to promise too much."""
    thousandths = math.ceil(round(gap * 1e5, 6))  # 0.00037 stays 0.037%
    return f"{thousandths / 1e5:.3%}"


def within_noise(relative: float) -> str:
    """What a difference is that the model cannot tell, of at most this share."""
    return f"within the noise of the model ({relative * 100:.2g}%)"


def hop_cost(value: float) -> str:
    """A hop cost in full, as far as it is exact."""
    return f"{value:,.12g}"


def largest_island(tiers: Sequence[str], scale_up: int) -> str:
    """What the largest NVLink domain is called.

    Parameters
    ----------
    tiers : sequence of str
        Tier names, innermost first.
    scale_up : int
        How many of the tiers are NVLink tiers.
    """
    return tiers[scale_up - 1] if scale_up else "GPU"
