"""Shapes that frameworks make of what their files say, worked out by hand."""

from __future__ import annotations

import json

import pytest

from placer.formats.jobs.job import Options, open_job
from tests.sources import texts
from tests.sources.reading import check, given, problems_of
from tests.texts import table

REST = given("sequence", "micro_batch", "micro_batches")


@pytest.mark.parametrize(*table("sources/shapes.yaml", "a_gate_of_neox_takes_a_third"))
def test_a_gate_of_neox_takes_a_third(job_of, lines, ffn):
    """Two thirds of what is said, half of it for the gate, then up to a multiple."""
    for activation in ("swiglu", "geglu"):
        more = f'"activation": "{activation}", {lines}'.rstrip(", ")
        text = texts.NEOX.replace('"no-weight', f'{more}, "no-weight')
        check(job_of("neox", text, gpus=16), {"model.ffn": ffn, "model.gated": True})


@pytest.mark.parametrize(
    ("line", "ffn"), [("", 2048), ('"expansion_factor": 3,', 1536)]
)
def test_a_feed_forward_of_neox_without_a_gate(job_of, line, ffn):
    """What is said, or four widths."""
    text = texts.NEOX.replace('"no-weight', f'{line} "no-weight')
    check(job_of("neox", text, gpus=16), {"model.ffn": ffn, "model.gated": False})


@pytest.mark.parametrize(
    ("block", "layers"), [("gemma2", 16), ("gemma3", 8), ("llama4", 8), ("olmo3", 8)]
)
def test_layers_of_a_block_of_maxtext(job_of, block, layers):
    """A block of Gemma 2 is a local and a global layer; those of others are one."""
    text = f'{texts.MAXTEXT}decoder_block: "{block}"\n'
    check(job_of("maxtext", text, gpus=32), {"model.layers": layers})


@pytest.mark.parametrize(
    ("block", "words"),
    [("qwen3_next", "gated delta nets"), ("deepseek4", "compressed attention")],
)
def test_blocks_of_maxtext_that_are_not_modelled(job_of, block, words):
    """A hybrid is refused by its name, whatever its sizes."""
    text = f'{texts.MAXTEXT}decoder_block: "{block}"\n'
    (problem,) = problems_of(job_of, "maxtext", text, gpus=32)
    assert block in problem.message
    assert words in problem.message


def test_the_gpus_of_maxtext_are_asked_for(job_of):
    """Shards that are said make the GPUs a multiple of them, with tensor ranks."""
    text = texts.MAXTEXT.replace("dcn_data_parallelism: 2", "ici_fsdp_parallelism: 8")
    (problem,) = problems_of(job_of, "maxtext", text)
    assert problem.hint == "--gpus N, a multiple of 32"
    (problem,) = problems_of(job_of, "maxtext", text, gpus=48)
    assert "tp 4 x fsdp 8 x expert 1 = 32 does not divide the 48" in problem.message
    mode = {"parallelism.dp": 8, "data_parallel.sharding": "zero3"}
    check(job_of("maxtext", text, gpus=32), mode)


@pytest.mark.parametrize(
    "zero",
    [
        {"num_nextn_predict_layers": 0},
        {"n_shared_experts": 0},
        {"sliding_window": 0},
        {"head_dim": 0},
        {"num_key_value_heads": 0},
        {"q_lora_rank": 0, "kv_lora_rank": 0},
        {"n_routed_experts": 0, "num_experts_per_tok": 0, "moe_intermediate_size": 0},
        {"num_experts": 0, "decoder_sparse_step": 0},
        {"num_local_experts": 0, "interleave_moe_layer_step": 0},
        {"shared_expert_intermediate_size": 0},
    ],
    ids=lambda zero: next(iter(zero)),
)
@pytest.mark.parametrize("kind", ["llama", "deepseek_v3", "qwen2_moe", "mixtral"])
def test_zero_is_as_if_a_key_were_missing(job_of, kind, zero):
    """Files are published with 0 where a model has none of something."""
    shape = json.loads(texts.SHAPE) | {"model_type": kind}
    shape = {k: v for k, v in shape.items() if k not in zero}
    without, with_zero = (
        job_of("hf", json.dumps(config), gpus=16, given=REST).model
        for config in (shape, shape | zero)
    )
    assert with_zero == without


def test_a_size_that_no_model_lacks_is_not_zero(job_of):
    """Without layers, width or heads there is no model."""
    text = texts.SHAPE.replace('"num_hidden_layers": 8', '"num_hidden_layers": 0')
    (problem,) = problems_of(job_of, "hf", text, gpus=16, given=REST)
    assert problem.key == "num_hidden_layers"


REGISTRY = """from MODULE import model_registry


def NAME() -> Trainer.Config:
    return Trainer.Config(
        model_spec=model_registry("4B"),
        training=TrainingConfig(local_batch_size=2, seq_len=4096),
    )
"""


@pytest.mark.parametrize(
    *table("sources/shapes.yaml", "a_model_of_torchtitan_is_not_another")
)
def test_a_model_of_torchtitan_is_not_another(tmp_path, folder, module, name, layers):
    """A longer name is of another model, whose shape is asked for."""
    path = tmp_path / folder / "config_registry.py"
    path.parent.mkdir()
    path.write_text(REGISTRY.replace("MODULE", module).replace("NAME", name))
    source, options = f"torchtitan:{path}", Options(gpus=16, tflops=400)
    if layers:
        assert open_job(source, options).job().model.layers == layers
    else:
        problems = problems_of(open_job, source, options)
        assert "the shape of 4B is not in the file" in str(problems[0])


def test_the_gpus_of_torchtitan_are_a_multiple_of_its_replicas(job_of):
    """Two replicas over tp 2, cp 2 and pp 2."""
    (problem,) = problems_of(job_of, "torchtitan", texts.TORCHTITAN)
    assert problem.hint == "--gpus N, a multiple of 16"
