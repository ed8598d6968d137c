"""How layers are cut over tensor, context and expert ranks."""

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


@dataclass(frozen=True)
class ExpertParallel:
    """How tokens reach their experts over ``ep``.

    Attributes
    ----------
    imbalance : float
        Tokens of the busiest expert rank, in those of the mean; at least 1.
    dispatch : str
        ``flat`` sends every copy of a token by itself, ``deduplicated`` one to each
        scale-up domain, and there to each GPU.
    """

    imbalance: float = 1.0
    dispatch: str = "flat"


@dataclass(frozen=True)
class Collectives:
    """Algorithms of the collectives.

    Attributes
    ----------
    all_reduce : str
        ``auto`` (the fastest that NCCL would take), ``ring``, ``tree`` or ``nvls``.
    """

    all_reduce: str = "auto"
