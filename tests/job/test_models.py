"""Parameters and FLOPs: published totals and closed forms written out by hand."""

import pytest

from placer.job.models import (
    Model,
    active_parameters,
    attention_flops,
    attention_parameters,
    flops_per_sample,
    layer_parameters,
    read_model,
    total_parameters,
)


def test_llama_405b_has_its_published_parameters():
    """126 layers of 3.1877e9 and two embeddings make 405.853e9."""
    model = read_model("llama3.1-405b")
    attention = 2 * 16384**2 + 2 * 16384 * 1024
    layer = attention + 3 * 16384 * 53248 + 2 * 16384
    assert layer_parameters(model) == layer
    assert total_parameters(model) == 126 * layer + 2 * 128256 * 16384 + 16384
    assert total_parameters(model) / 1e9 == pytest.approx(405.853, abs=5e-4)


def test_llama_405b_flops_of_a_sample():
    """8,192 tokens take 21,507 TFLOP with full attention, 20,676 when causal."""
    model = read_model("llama3.1-405b")
    full = flops_per_sample(model, 8192, causal=False)
    causal = flops_per_sample(model, 8192, causal=True)
    assert full / 1e12 == pytest.approx(21_507, abs=0.5)
    assert causal / 1e12 == pytest.approx(20_676, abs=0.5)


def test_gpt3_has_about_175e9_parameters():
    """12 h^2 a layer and one shared embedding: 174.6e9 (table D.1 of the paper)."""
    model = read_model("gpt3-175b")
    expected = 96 * (12 * 12288**2 + 2 * 12288) + 50257 * 12288 + 12288
    assert total_parameters(model) == expected
    assert expected == pytest.approx(174.6e9, rel=1e-3)


def test_deepseek_v3_has_671e9_parameters_of_which_37e9_are_active():
    """Totals and active parameters are those of arXiv 2412.19437 (671B, 37B)."""
    model = read_model("deepseek-v3")
    query = 7168 * 1536 + 1536 * 128 * (128 + 64)
    key_value = 7168 * (512 + 64) + 512 * 128 * (128 + 128)
    output = 128 * 128 * 7168
    norms = 1536 + 512
    assert attention_parameters(model) == query + key_value + output + norms
    assert total_parameters(model) == pytest.approx(671e9, rel=1e-3)
    assert active_parameters(model) == pytest.approx(37e9, rel=2e-2)


def small(**fields):
    shape = {
        "name": "small",
        "layers": 4,
        "hidden": 8,
        "ffn": 16,
        "heads": 4,
        "kv_heads": 2,
        "vocab": 10,
    }
    return Model(**(shape | fields))


def test_moe_layer_by_hand():
    """Router 8 x 6, six routed and one shared expert of 3 x 8 x 5."""
    model = small(experts=6, top_k=2, shared_experts=1, expert_ffn=5, moe_layers=3)
    assert layer_parameters(model, moe=True) == 192 + 48 + 7 * 120 + 16
    assert total_parameters(model) == 3 * 1096 + 592 + 2 * 80 + 8
    active = 4 * 192 + 384 + 3 * (48 + 3 * 120) + 80
    assert active_parameters(model) == active
    flops = 5 * (6 * active + 12 * 4 * 8 * 5)
    assert flops_per_sample(model, 5, causal=False) == flops


def test_attention_is_as_wide_as_its_heads():
    """Scores and values take ``6 s^2`` FLOPs a layer for each unit of both widths.

    Qwen3-30B-A3B has 32 heads of 128 over a width of 2,048; latent heads differ.
    """
    wide = small(head_dim=3)
    assert attention_flops(wide, 5, causal=False) == 6 * 4 * 25 * (2 * wide.heads * 3)
    latent = small(kv_lora_rank=2, qk_head_dim=3, rope_head_dim=1, v_head_dim=7)
    both = latent.heads * (4 + 7)
    assert attention_flops(latent, 5, causal=True) == 3 * 4 * 25 * both


@pytest.mark.parametrize(
    ("name", "total", "active"),
    [
        ("qwen3-235b-a22b", 235e9, 22e9),
        ("gpt-oss-120b", 116.8e9, 5.13e9),
        ("llama4-maverick", 400e9, 17e9),
    ],
)
def test_mixtures_have_their_published_parameters(name, total, active):
    """Totals and active parameters are those of the model cards, in round numbers."""
    model = read_model(name)
    assert total_parameters(model) == pytest.approx(total, rel=5e-3)
    assert active_parameters(model) == pytest.approx(active, rel=6e-2)
