"""How layers are cut over tensor and context ranks."""

from __future__ import annotations

from dataclasses import dataclass

LOSSES = ("parallel", "gathered")
# Not written, and no part of a digest, where they have their defaults.
NEWER_TENSOR_KEYS = {"loss": "parallel"}


@dataclass(frozen=True)
class TensorParallel:
    """How layers are cut over ``tp``.

    Attributes
    ----------
    sequence : bool
        Sequence parallelism: norms work on a slice of the sequence, and each all-reduce
        becomes a reduce-scatter and an all-gather.
    loss : str
        ``parallel``: each rank has its part of the logits. ``gathered``: each has all.
    """

    sequence: bool = True
    loss: str = "parallel"


@dataclass(frozen=True)
class ContextParallel:
    """How attention sees the whole sequence over ``cp``.

    Attributes
    ----------
    communication : str
        ``p2p`` (keys and values go round a ring beside attention), ``all_gather`` (they
        are gathered before it) or ``a2a`` (heads are exchanged for tokens and back).
    """

    communication: str = "p2p"
