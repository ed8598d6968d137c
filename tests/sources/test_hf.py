"""Shapes in ``config.json``, by the classes of transformers."""

from __future__ import annotations

import json

import pytest

from placer.job.models import attention_parameters
from tests.sources import texts
from tests.sources.reading import check, given, problems_of
from tests.texts import table


def test_config_of_a_mixture(job_of):
    """Every second layer has experts, but layer 3; heads are wider than the model."""
    job = job_of(
        "hf",
        texts.HF,
        gpus=1,
        given=given("sequence", "micro_batch", "micro_batches"),
    )
    check(
        job,
        {
            "model.layers": 8,
            "model.kv_heads": 4,
            "model.head_dim": 64,
            "model.experts": 8,
            "model.top_k": 2,
            "model.expert_ffn": 256,
            "model.moe_layers": 3,
            "model.dense_first": False,
            "model.gated": True,
            "model.tied_embeddings": True,
        },
    )
    assert attention_parameters(job.model) == 2 * 512 * (16 + 4) * 64


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (
            {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4},
            {"ffn": 256, "kv_heads": 4, "gated": False, "tied_embeddings": True},
        ),
        (
            {"model_type": "falcon", "hidden_size": 64, "num_hidden_layers": 2}
            | {"num_attention_heads": 4, "multi_query": True},
            {"ffn": 256, "kv_heads": 1, "gated": False},
        ),
        (
            {"model_type": "gemma", "hidden_size": 64, "num_hidden_layers": 2}
            | {"num_attention_heads": 4, "intermediate_size": 128},
            {"head_dim": 256, "tied_embeddings": True, "gated": True},
        ),
        (
            {"model_type": "deepseek_v3", "hidden_size": 64, "num_hidden_layers": 6}
            | {"num_attention_heads": 4, "intermediate_size": 128}
            | {"n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 2}
            | {"moe_intermediate_size": 32, "first_k_dense_replace": 2, "ep_size": 4}
            | {"q_lora_rank": None, "kv_lora_rank": 16, "qk_nope_head_dim": 8}
            | {"qk_rope_head_dim": 4, "v_head_dim": 8},
            {
                "moe_layers": 4,
                "shared_experts": 1,
                "expert_ffn": 32,
                "q_lora_rank": 0,
                "kv_lora_rank": 16,
                "qk_head_dim": 8,
                "rope_head_dim": 4,
                "v_head_dim": 8,
                "dense_first": True,
            },
        ),
        (
            {
                "model_type": "llama4",
                "text_config": {
                    "model_type": "llama4_text",
                    "hidden_size": 64,
                    "num_hidden_layers": 6,
                    "num_attention_heads": 4,
                    "head_dim": 16,
                    "intermediate_size": 32,
                    "intermediate_size_mlp": 128,
                    "num_local_experts": 4,
                    "num_experts_per_tok": 1,
                    "interleave_moe_layer_step": 2,
                },
            },
            {"ffn": 128, "expert_ffn": 32, "moe_layers": 3, "shared_experts": 1},
        ),
    ],
    ids=["gpt2", "falcon", "gemma", "deepseek", "llama4"],
)
def test_types_have_their_own_keys(job_of, config, expected):
    """Names of keys, and what their absence means, are those of the model's class."""
    rest = given("sequence", "micro_batch", "micro_batches", "model.vocab")
    job = job_of("hf", json.dumps(config), gpus=1, given=rest)
    check(job, {f"model.{key}": value for key, value in expected.items()})


@pytest.mark.parametrize(
    *table("sources/hf.yaml", "models_that_are_no_plain_transformers_are_refused")
)
def test_models_that_are_no_plain_transformers_are_refused(job_of, config, words):
    """An unknown type is not taken for a known one."""
    (problem,) = problems_of(job_of, "hf", json.dumps(config), gpus=1)
    assert words in str(problem)
