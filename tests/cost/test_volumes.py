"""Bytes of each operation against the published shape of Llama 3.1 405B."""

from dataclasses import replace

import numpy as np
import pytest

from placer.cost.step import StepModel
from placer.cost.volumes import Volumes, volumes
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.job.models import Model
from placer.job.parallel import EndStages, TensorParallel
from tests.cost.azure import as_run, azure


def test_operations_of_the_405b_run() -> None:
    """One TP operation sends 100.7 MB, a message 33.6 MB, keys and values 4.2 MB."""
    sizes = volumes(azure()[1])
    assert sizes.tp_slab * 3 / 4 == pytest.approx(100.7e6, rel=1e-3)
    assert sizes.pp_message == pytest.approx(33.6e6, rel=2e-3)
    assert sizes.cp_block == pytest.approx(4.2e6, rel=2e-3)


def test_bytes_a_gpu_and_step_of_the_405b_run() -> None:
    """TP 101.5 GB and 25.4 GB of repeated gathers, PP 4.3 GB, CP 1.6 GB.

    The last activations do not travel on, so PP is 1/64 below 2 v m act/t. TP has 126
    layers of the 128 units. Gradients and parameters of 126 layers and of the
    vocabulary, twice, over 8 stages are 25.3 GB each way.
    """
    traffic = StepModel(*azure()).step(as_run()).traffic()
    each = {axis: float(t.bytes_by_tier.sum()) / 8192 for axis, t in traffic.items()}
    assert each["tp"] == pytest.approx(101.5e9 + 25.4e9, rel=0.01)
    assert each["pp"] == pytest.approx(4.3e9 * 63 / 64, rel=0.01)
    assert each["cp"] == pytest.approx(1.6e9, rel=0.01)
    layer = 3.1877e9
    parameters = 126 * layer + 2 * 128_256 * 16_384
    assert each["dp"] == pytest.approx(2 * 255 / 256 * parameters / 8 / 4 * 2, rel=1e-4)


def test_chunks_of_the_405b_run() -> None:
    """A chunk of two layers is 3.19 GB of gradients; the ends hold one and V h / t."""
    held = volumes(azure()[1]).dense_parameters(8, 8) * 2
    end = 3.19e9 / 2 + 128_256 * 16_384 / 4 * 2
    assert held[1:-1].min() == held.max() == pytest.approx(3.19e9, rel=1e-3)
    assert held[0, 0] == held[-1, -1] == pytest.approx(end, rel=1e-3)
    assert held[0, 1:].min() == held[-1, :-1].min() == held.max()


def dense_job(**changes: object) -> Job:
    """2 layers of width 8 with 4 heads; 3 stages of 1 chunk share 6 layers."""
    model = Model("tiny", layers=6, hidden=8, ffn=16, heads=4, kv_heads=2, vocab=10)
    axes = Parallelism(tp=2, cp=3, pp=3, dp=2)
    usual = Job("tiny", axes, model, sequence=12, micro_batch=5)
    return replace(usual, **changes)


def test_a_tiny_model_by_hand() -> None:
    """Every volume of a six-layer model, counted on paper.

    act = 12/3 x 5 x 8 x 2 B = 320 B; kv = 2 x (12/3) x 5 x (2/2) x (8/4) x 2 B = 160 B;
    a layer has 2 x 64 + 2 x 8 x 2 x 2 + 3 x 8 x 16 + 16 = 592 parameters.
    """
    assert volumes(dense_job()) == Volumes(
        layers_per_chunk=2.0,
        moe_layers_per_chunk=0.0,
        tp_slab=320.0,
        cp_block=160.0,
        cp_queries=160.0,
        cp_outputs=160.0,
        pp_message=160.0,
        ep_buffer=0.0,
        dense_chunk=2 * 592 / 2,
        expert_chunk=0.0,
        embedding_parameters=10 * 8 / 2,
        output_parameters=10 * 8 / 2,
    )


def test_uneven_chunks_by_hand() -> None:
    """6 layers, an embedding of 1 and a loss of 2 over 3 chunks: 2, 3 and 1 layers."""
    sizes = volumes(dense_job(stages=EndStages(1, 2)))
    assert (sizes.layer_share(3, 1) * sizes.layers_per_chunk).tolist() == (
        pytest.approx(np.array([[2.0], [3.0], [1.0]]))
    )
    vocabulary = 10 * 8 / 2
    expected = [2 * 592 / 2 + vocabulary, 3 * 592 / 2, 592 / 2 + vocabulary]
    assert sizes.dense_parameters(3, 1)[:, 0] == pytest.approx(expected)


def test_without_sequence_parallelism() -> None:
    """Every TP rank holds all tokens: what it sends on is t times larger."""
    whole = volumes(dense_job(tensor_parallel=TensorParallel(sequence=False)))
    assert (whole.tp_slab, whole.pp_message) == (320.0, 320.0)


def test_experts_by_hand() -> None:
    """Four experts of width 6 in half the layers, two a token, over ep 2 and etp 1.

    An expert has 3 x 8 x 6 = 144 parameters, a router 8 x 4 = 32; attention 192, norms
    16.
    """
    model = Model(
        "moe",
        layers=2,
        hidden=8,
        ffn=16,
        heads=4,
        kv_heads=2,
        vocab=10,
        experts=4,
        top_k=2,
        shared_experts=1,
        expert_ffn=6,
        moe_layers=1,
    )
    axes = Parallelism(tp=2, ep=2, etp=1, dp=2)
    sizes = volumes(Job("moe", axes, model, sequence=3))
    assert sizes.ep_buffer == 3 * 8 * 2 * 2 / 2
    assert sizes.dense_chunk == (592 + 192 + 16 + 32 + 144) / 2
    assert sizes.expert_chunk == 4 * 144 / 2


def test_heads_of_a_width_of_their_own() -> None:
    """Heads of 6 in a model of width 8: 4 x 6 = 24 for queries, 2 x 6 for keys.

    kv = 2 x (12/3) x 5 x (2/2) x 6 x 2 B; queries 4 x 5 x 24 / 2 x 2 B; a layer has
    2 x 8 x (4 + 2) x 6 + 3 x 8 x 16 + 16 parameters.
    """
    model = replace(dense_job().model, head_dim=6)
    sizes = volumes(dense_job(model=model))
    assert (sizes.cp_block, sizes.cp_queries, sizes.cp_outputs) == (480, 480, 480)
    assert sizes.dense_chunk == 2 * (576 + 384 + 16) / 2
    assert (sizes.tp_slab, sizes.pp_message) == (320, 160)


def test_latent_heads_send_whole_keys_and_values() -> None:
    """Queries and keys of 3 + 1, values of 5: 4 heads over tp 2, all exchanged."""
    model = replace(
        dense_job().model,
        kv_heads=4,
        kv_lora_rank=4,
        qk_head_dim=3,
        rope_head_dim=1,
        v_head_dim=5,
    )
    sizes = volumes(dense_job(model=model))
    tokens = 4 * 5 * 2
    assert sizes.cp_block == tokens * 2 * (4 + 5)
    assert (sizes.cp_queries, sizes.cp_outputs) == (tokens * 2 * 4, tokens * 2 * 5)
