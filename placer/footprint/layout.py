"""Which layers lie in which chunk of which pipeline rank.

Shapes: P pipeline ranks, V chunks a rank. Chunk ``v`` of rank ``s`` is the
``v P + s``-th of the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import FloatArray

if TYPE_CHECKING:
    from placer.cost.volumes import Volumes
    from placer.job.model import Job, Model


def layers_by_chunk(
    job: Job, model: Model, sizes: Volumes
) -> tuple[FloatArray, FloatArray]:
    """Dense and MoE layers of each chunk; two arrays of shape (P, V).

    Layers are spread as for the step time (`placer.cost.volumes`): what embedding and
    loss count for is missing from the first and the last chunk. The dense layers of a
    mixture of experts come first, or are spread evenly. Layers that predict further
    tokens stand in the last chunk (Megatron-LM d98e8a64,
    ``core/transformer/multi_token_prediction.py``).
    """
    axes = job.parallelism
    layers = sizes.layers_per_chunk * sizes.layer_share(axes.pp, axes.vp)
    dense_layers = model.layers - model.moe_layers
    if model.dense_first:
        in_order = layers.T.ravel()
        before = in_order.cumsum() - in_order
        dense = np.minimum(np.maximum(dense_layers - before, 0.0), in_order)
        dense = np.ascontiguousarray(dense.reshape(axes.vp, axes.pp).T)
    else:
        dense = layers * (dense_layers / model.layers)
    moe = layers - dense
    (moe if model.moe_layers else dense)[-1, -1] += model.mtp_layers
    return dense, moe
