"""How well a layer's matrix products fill the multiprocessors of a GPU.

A product of ``m x k`` and ``k x n`` is cut into tiles of its result, a tile for a
multiprocessor at a time; the last wave takes as long as a full one however few tiles it
has (NVIDIA, *Matrix multiplication background user's guide*, sections on tile and wave
quantization). A tile of 256 x 128, which loads the fewest bytes a FLOP, keeps its sums
in half of all registers of a multiprocessor (128 of 256 KiB), so no second one
multiplies while it writes. That takes as long as ``w peak / (2 bandwidth)`` more terms
of a sum:

    share of the peak = m n k / (waves x multiprocessors x 256 x 128 x (k + d))
    d = w peak / (2 bandwidth)

By hand, an A100 (108 multiprocessors, 312 TFLOP/s, 1.7 TB/s: d = 184): 2,048 tokens,
widths 14,336 and 5,376, tp 8's queries, keys and values of BLOOM: 8 x 42 tiles are 3.1
waves and take four, 78 %, of which writing leaves 77 %. Twice as many tokens: 6.2
waves take seven, 88 %.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.job.models import attention_flops, attention_widths

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.job.models import Model

TILE = 256, 128


def fill(job: Job, model: Model, *, tp: int, cp: int, work: float) -> float:
    """Share of the peak that a dense layer reaches when so many ranks cut its products.

    ``work`` is a sample's FLOPs, of which attention proper has a rate of its own.
    """
    compute = job.compute
    tokens = job.micro_batch * -(-job.sequence // cp)
    depth = 0.0
    if compute.peak_tflops and compute.memory_bandwidth:
        ridge = compute.peak_tflops * 1e12 / compute.memory_bandwidth
        depth = job.bytes.activation * ridge / 2
    useful = taken = 0.0
    for into, out in _widths(model, tp):
        # Forward, gradient of the inputs and, of weights that are trained, their own.
        products = [(tokens, out, into), (tokens, into, out), (out, into, tokens)]
        for m, n, k in products[: 3 if job.adapters is None else 2]:
            useful += m * n * k
            taken += _tiles(m, n, compute.multiprocessors) * (k + depth)
    attention = attention_flops(model, job.sequence, causal=False)
    share = attention / compute.attention_rate / work
    return 1 / ((1 - share) * taken / useful + share)


def _widths(model: Model, tp: int) -> list[tuple[int, int]]:
    """Inputs and outputs of a layer's products on one of ``tp`` ranks."""
    queries, values = (int(width) for width in attention_widths(model))
    kept = model.kv_heads / model.heads
    heads = int(queries + kept * (queries + values)) // tp
    width, ffn = model.hidden, model.ffn // tp
    up = [(width, ffn)] * (2 if model.gated else 1)
    return [(width, heads), (values // tp, width), *up, (ffn, width)]


def _tiles(m: int, n: int, multiprocessors: int) -> int:
    """Results that all waves of a product have room for, the tile either way round."""
    waves = min(
        -(-(-(-m // high) * -(-n // wide)) // multiprocessors)
        for high, wide in (TILE, TILE[::-1])
    )
    return waves * multiprocessors * TILE[0] * TILE[1]
