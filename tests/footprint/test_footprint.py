"""A GPU's memory by part: closed forms, and how it answers to what a job says."""

from dataclasses import replace
from itertools import pairwise

import pytest

from placer.cost.footprint.layer import LayerActivations
from placer.cost.footprint.parameters import held_of_layer
from placer.cost.footprint.stages import PARTS, footprint, footprints, memory_score
from placer.cost.volumes import volumes
from placer.job.models import layer_parameters, total_parameters
from placer.job.read import read_job
from tests.footprint.cases import EXPERTS, SMALL, job_of
from validation.memory_page import FIGURES, figure_values

GPT = SMALL | {"kv_heads": 16, "gated": False}
LATENT = EXPERTS | {
    "kv_heads": 16,
    "q_lora_rank": 384,
    "kv_lora_rank": 128,
    "qk_head_dim": 64,
    "rope_head_dim": 32,
    "v_head_dim": 64,
}


def only(job):
    found = footprint(job)
    assert found is not None
    return found


def layer_of(job, moe=False, gemm="bf16"):
    assert job.model is not None
    return LayerActivations(job, job.model, moe, gemm)


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_figure_1_of_korthikanti(figure) -> None:
    """Activations to the bit; states but for norms, which the paper leaves out."""
    states, kept = figure_values(figure)
    assert kept == pytest.approx(figure.bars, rel=1e-12)
    assert states == pytest.approx(figure.states, rel=2e-3)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ({"hidden": 4096, "ffn": 14336, "heads": 32}, 34.0),
        ({"hidden": 8192, "ffn": 28672, "heads": 64}, 33.5),
        ({"hidden": 16384, "ffn": 53248, "heads": 128}, 31.75),
    ],
)
def test_llama_layers(shape, expected) -> None:
    """A gate keeps both halves, few key-value heads keep less."""
    job = job_of(SMALL | shape | {"kv_heads": 8})
    rows = 4 * shape["heads"] * 2048
    found = (layer_of(job).whole - rows) / (2048 * shape["hidden"])
    assert found == pytest.approx(expected)


def test_products_in_fp8_keep_their_inputs_in_fp8() -> None:
    """405B: 27.5 instead of 31.75 bytes a token and width."""
    shape = {"hidden": 16384, "ffn": 53248, "heads": 128, "kv_heads": 8}
    job = job_of(SMALL | shape)
    rows = 4 * 128 * 2048
    found = (layer_of(job, gemm="fp8").whole - rows) / (2048 * 16384)
    assert found == pytest.approx(27.5)


def test_shards_hold_the_model_together() -> None:
    """Over all tensor, expert and pipeline ranks: every parameter, replicas counted."""
    job = job_of(EXPERTS, parallelism={"tp": 2, "pp": 4, "dp": 4, "ep": 4, "etp": 1})
    model = job.model
    assert model is not None
    stages = footprints(job)
    states = sum(stage.parameters for stage in stages) / 2
    routed = 14 * 16 * 3 * 1024 * 512
    norms = 16 * 2 * 1024 + 14 * 1024 * 16 + 1024
    whole = total_parameters(model)
    expected = (whole - routed - norms) / 2 + norms + routed / 4
    assert states == pytest.approx(expected, rel=1e-12)


def test_parameters_are_those_that_the_step_time_sends() -> None:
    """But for norms, router and padding, the cost model counts the same."""
    job = read_job("llama3.1-405b-mlperf-v6")
    sizes = volumes(job)
    sent = sizes.dense_parameters(8, 8).sum(axis=1)
    held = [stage.parameters / 2 for stage in footprints(job)]
    assert held == pytest.approx(sent.tolist(), rel=1e-3)


def test_latent_projections_to_the_ranks_are_on_every_tensor_rank() -> None:
    """Megatron cuts the projections up and out, not those down and their norms."""
    job = job_of(LATENT, parallelism={"tp": 4})
    model = job.model
    assert model is not None
    held = held_of_layer(model, job.parallelism, moe=False)
    down = 1024 * (384 + 128 + 32) + 384 + 128
    whole = layer_parameters(model) - 2 * 1024 - down
    assert held.matrices == whole / 4 + down
    assert held.others == 2 * 1024


@pytest.mark.parametrize(
    ("sharding", "keys", "kept", "shared"),
    [
        ("ddp", {}, 18, 0),
        ("zero1", {}, 6, 12),
        ("zero2", {}, 2, 16),
        ("zero3", {"parameter_bytes": 2, "optimizer_bytes": 12}, 0, 18),
        ("zero3", {"parameter_bytes": 4}, 0, 16),
        ("zero1", {"parameter_bytes": 4}, 8, 8),
        ("zero1", {"optimizer_bytes": 8}, 6, 8),
    ],
)
def test_bytes_of_a_parameter(sharding, keys, kept, shared) -> None:
    """FP32 gradients; D counts context ranks. Gathered units are left out."""
    job = job_of(
        parallelism={"dp": 4, "cp": 2},
        data_parallel={"sharding": sharding},
        memory={"gradient_bytes": 4, **keys},
    )
    found = only(job)
    model = job.model
    assert model is not None
    count = total_parameters(model)
    if sharding == "zero3":
        unit = layer_parameters(model)
        gathered = 2 * (2 * unit + 2 * 32768 * 1024 + 1024) + 6 * unit
    else:
        gathered = 0
    states = found.parameters + found.gradients + found.optimizer - gathered
    assert states / count == pytest.approx(kept + shared / 8, rel=1e-9)


def test_copies_of_the_optimizer_share_out_less() -> None:
    """Two instances, or two shard groups, hold twice as much a GPU."""
    one = only(job_of(parallelism={"dp": 8}))
    two = only(job_of(parallelism={"dp": 8}, data_parallel={"optimizer_instances": 2}))
    assert two.optimizer == 2 * one.optimizer
    shards = [
        only(
            job_of(
                parallelism={"dp": 8},
                data_parallel={"sharding": "hsdp", "shard_size": size},
            )
        ).optimizer
        for size in (8, 4)
    ]
    assert shards[1] == 2 * shards[0]


def test_dense_layers_come_first_unless_spread() -> None:
    """The first of four stages holds both dense layers of sixteen, or half of one."""
    axes = {"pp": 4, "dp": 2}
    first = footprints(job_of(EXPERTS, parallelism=axes))
    spread = footprints(job_of(EXPERTS | {"dense_first": False}, parallelism=axes))
    assert first[1].parameters == first[2].parameters > spread[1].parameters
    assert first[0].parameters < spread[0].parameters
    totals = [sum(stage.parameters for stage in stages) for stages in (first, spread)]
    assert totals[0] == pytest.approx(totals[1], rel=1e-12)


def test_layers_for_further_tokens_lie_on_the_last_stage() -> None:
    """A layer, a matrix that joins two vectors, a second embedding; logits again."""
    bare = footprints(job_of(parallelism={"pp": 4}))
    more = footprints(job_of(SMALL | {"mtp_layers": 1}, parallelism={"pp": 4}))
    model = job_of().model
    assert model is not None
    assert more[:3] == bare[:3]
    added = layer_parameters(model) + 2 * 1024**2 + 32768 * 1024
    assert (more[3].parameters - bare[3].parameters) / 2 == added
    logits = 6 * 2048 * 32768 + 2 * 2 * 2048 * 1024
    kept = more[3].kept - bare[3].kept
    assert more[3].activations - bare[3].activations == pytest.approx(kept + logits)


@pytest.mark.parametrize(
    ("model", "modules", "dropped"),
    [
        # A token leaves 2 bytes of each: two norms' outputs, both halves of the gate.
        (SMALL, ["layernorm"], 2 * 2 * 1024),
        (SMALL, ["mlp"], (2 + 1) * 2 * 4096),
        (SMALL, ["core_attn"], 4 * 16),
        (EXPERTS, ["moe_act"], 2 * 512 * 2),
        (EXPERTS, ["shared_experts"], (2 + 1) * 2 * 512),
        (LATENT, ["mla_up_proj"], 2 * 16 * (2 * (64 + 32) + 64)),
    ],
)
def test_modules_that_are_computed_again_drop_what_they_keep(
    model, modules, dropped
) -> None:
    """Bytes a token and layer."""
    moe = "experts" in model
    memory = {"recompute": "selective", "recompute_modules": modules}
    bare, again = (
        layer_of(job_of(model, memory=m), moe).kept
        for m in ({"recompute": "none"}, memory)
    )
    assert bare - again == dropped * 2048


def test_full_recomputation_keeps_inputs_and_one_layer_at_work() -> None:
    """Of every layer, of every n-th, or of n layers of each chunk and none else."""
    axes = {"pp": 2, "tp": 2}
    whole = layer_of(job_of(parallelism=axes)).whole
    inputs = 2 * 1024 * 2048 / 2
    for keys, kept, at_work in (
        ({}, 8 * inputs, whole - inputs),
        ({"recompute_layers": 4}, 2 * inputs, 4 * whole - inputs),
        (
            {"recompute_method": "block", "recompute_layers": 3},
            3 * inputs + 5 * whole,
            whole - inputs,
        ),
    ):
        memory = {"recompute": "full", **keys}
        found = footprints(job_of(parallelism=axes, memory=memory))[0]
        assert found.kept == pytest.approx(2 * kept)
        assert found.activations == pytest.approx(2 * kept + at_work)


def test_every_second_product_is_kept_by_operator() -> None:
    """torchtitan's list for a gated layer: query, value, a half of the gate, output."""
    job = job_of(memory={"recompute": "op"})
    wide = 1024 + 1024 + 1024 + 256 + 4096 + 1024
    assert layer_of(job).kept == 2048 * (2 * wide + 4 * 16)


@pytest.mark.parametrize("model", [SMALL, GPT, EXPERTS, LATENT])
@pytest.mark.parametrize("attention", ["fused", "unfused"])
@pytest.mark.parametrize("gemm", ["bf16", "fp8", "mxfp8", "nvfp4"])
def test_computing_again_never_takes_more(model, attention, gemm) -> None:
    """Whatever is recomputed, on every stage; full recomputation keeps the least.

    Of the four stages the first holds less than a layer, and no experts.
    """
    axes = {"pp": 4, "tp": 2, "dp": 2, "ep": 2 if "experts" in model else 1}

    def stages(**memory):
        keys = {"attention": attention, "gemm": gemm, "gemm_layers": 3, **memory}
        ends = {"embedding": 4.75}
        return footprints(job_of(model, parallelism=axes, memory=keys, stages=ends))

    bare, full = stages(), stages(recompute="full")
    for memory in (
        {"recompute": "selective"},
        {"recompute": "selective", "recompute_modules": ["mlp", "moe", "layernorm"]},
        {"recompute": "op"},
        {"recompute": "full", "recompute_method": "block"},
        {"recompute": "full"},
    ):
        for without, again, least in zip(bare, stages(**memory), full, strict=True):
            assert again.activations <= without.activations * (1 + 1e-12)
            assert least.kept <= again.kept * (1 + 1e-12)


@pytest.mark.parametrize("model", [SMALL, GPT, EXPERTS, LATENT])
@pytest.mark.parametrize("axis", ["tp", "cp", "pp", "dp"])
def test_more_ranks_never_hold_more(model, axis) -> None:
    """Of states and of what layers keep; a pipeline holds more micro-batches at once.

    The tokens of a micro-batch and the micro-batches stay.
    """
    found = []
    for size in (1, 2, 4):
        job = job_of(model, parallelism={axis: size}, memory={"reserve": 0})
        found.append(only(job))
    for less, more in pairwise(found):
        for part in ("parameters", "gradients", "optimizer"):
            assert getattr(more, part) <= getattr(less, part)
        if axis != "pp":
            assert more.kept <= less.kept
        assert more.total <= less.total * (1 + 1e-12)


def test_sequence_parallelism_shares_out_norms_and_dropout() -> None:
    """What tensor parallelism alone keeps whole: 10 of the paper's 34."""
    axes = {"tp": 4}
    memory = {"dropout": True}
    shared = job_of(GPT, parallelism=axes, memory=memory)
    whole = replace(
        shared, tensor_parallel=replace(shared.tensor_parallel, sequence=False)
    )
    rows = 4 * 16 * 2048 / 4
    slab = 2048 * 1024
    assert layer_of(shared).whole - rows == slab * 34 / 4
    assert layer_of(whole).whole - rows == slab * (10 + 24 / 4)


def test_imbalance_fills_the_busiest_expert_rank_up_to_its_capacity() -> None:
    """Twice the copies take twice the room; a capacity of 1.5 stops at that."""
    axes = {"dp": 4, "ep": 4}
    even = layer_of(job_of(EXPERTS, parallelism=axes), moe=True)
    twice, limited = (
        layer_of(
            job_of(
                EXPERTS,
                parallelism=axes,
                expert_parallel={"imbalance": 2.0},
                memory={"expert_capacity": capacity},
            ),
            moe=True,
        )
        for capacity in (0, 1.5)
    )
    copies = even.parts["moe"] + even.parts["moe_act"] - 8 * 16 * 2048
    assert twice.whole - even.whole == copies
    assert limited.whole - even.whole == copies / 2


def test_context_blocks_travel_beside_what_is_kept() -> None:
    """Two blocks of keys and values in a ring, all of them when gathered."""
    block = volumes(job_of(parallelism={"cp": 4})).cp_block
    for how, blocks in (("p2p", 2), ("all_gather", 8), ("a2a", 0)):
        # Where layers at work are more than the loss: recomputed in full.
        job = job_of(
            parallelism={"cp": 4, "pp": 2},
            context_parallel={"communication": how},
            memory={"recompute": "full"},
        )
        first = footprints(job)[0]
        layer = layer_of(job)
        rest = layer.whole - layer.kept
        assert first.activations - first.kept - rest == pytest.approx(blocks * block)


def test_outside_the_allocator() -> None:
    """A context, and a communicator for each axis that has a group; or what is said."""
    gib = 2.0**30
    assert only(job_of()).other == gib
    assert only(job_of(parallelism={"tp": 2, "dp": 4})).other == 2.4 * gib
    assert only(job_of(memory={"reserve": "3GB"})).other == 3e9
    assert only(job_of(memory={"reserve": 0})).total == only(job_of()).allocated


def test_the_score_names_the_fullest_stage_and_the_sum_of_its_parts() -> None:
    """`by_stage` has every stage; a measurement of activations replaces the model's."""
    job = job_of(parallelism={"pp": 4, "vp": 2})
    needs = memory_score(job, 80e9)["memory_bytes"]
    assert needs["total"] == pytest.approx(sum(needs[part] for part in PARTS))
    assert needs["total"] == max(needs["by_stage"])
    assert needs["by_stage"].index(needs["total"]) == needs["stage"]
    assert memory_score(job, 80e9)["memory_limit_bytes"] == 80e9
    assert "memory_limit_bytes" not in memory_score(job, 0.0)
    said = memory_score(replace(job, model=None), 80e9)
    assert said == {}
    measured = job_of(parallelism={"pp": 4}, memory={"activations": "5GB"})
    assert only(measured).activations == 5e9


def test_torch_pipelines_keep_what_stages_pass_on() -> None:
    """A buffer for each micro-batch both ways; the last stage its logits."""
    axes = {"pp": 4}
    plain = footprints(job_of(parallelism=axes))
    keeping = footprints(job_of(parallelism=axes, memory={"keep_outputs": True}))
    message = 16 * 2 * 1024 * 2048
    added = [k.activations - p.activations for k, p in zip(keeping, plain, strict=True)]
    assert added == [message, 2 * message, 2 * message, message + 16 * 2 * 2048 * 32768]
