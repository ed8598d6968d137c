"""The jobs of the tests of allocations, and their machines."""

from placer.testing import job, racks

__all__ = ["racks", "training"]


def training(name="training", **sizes):
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
