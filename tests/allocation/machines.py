"""The jobs of the tests of allocations, and their machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placer.testing import job, racks

if TYPE_CHECKING:
    from placer.job.model import Job

__all__ = ["racks", "training"]


def training(name: str = "training", **sizes: Any) -> Job:
    """A training job of these axes; ``require`` and ``launcher`` too."""
    return job(
        name,
        model="llama3.1-405b",
        sequence=8192,
        micro_batch=1,
        micro_batches=8,
        overlap={"cp": True, "pp": True},
        compute={"micro_batch_time": "120ms", "fixed_time": "200ms"},
        **sizes,
    )
