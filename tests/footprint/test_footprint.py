"""A GPU's memory by part: closed forms, schedules, and how it answers to a job."""

import random
from dataclasses import replace

import numpy as np
import pytest

from placer.cost.footprint.activations import most_held
from placer.cost.footprint.layer import LayerActivations
from placer.cost.footprint.stages import PARTS, footprint, footprints, memory_score
from tests.footprint.cases import EXPERTS, SMALL, job_of, played
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
def test_figure_1_of_korthikanti(figure):
    """Activations to the bit; states but for norms, which the paper leaves out."""
    states, kept = figure_values(figure)
    assert kept == pytest.approx(figure.bars, rel=1e-12)
    assert states == pytest.approx(figure.states, rel=2e-3)


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
def test_modules_that_are_computed_again_drop_what_they_keep(model, modules, dropped):
    """Bytes a token and layer."""
    moe = "experts" in model
    memory = {"recompute": "selective", "recompute_modules": modules}
    bare, again = (
        layer_of(job_of(model, memory=m), moe).kept
        for m in ({"recompute": "none"}, memory)
    )
    assert bare - again == dropped * 2048


def test_full_recomputation_keeps_inputs_and_one_layer_at_work():
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


def test_sequence_parallelism_shares_out_norms_and_dropout():
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


def test_imbalance_fills_the_busiest_expert_rank_up_to_its_capacity():
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


def test_outside_the_allocator():
    """A context, and a communicator for each axis that has a group; or what is said."""
    gib = 2.0**30
    assert only(job_of()).other == gib
    assert only(job_of(parallelism={"tp": 2, "dp": 4})).other == 2.4 * gib
    assert only(job_of(memory={"reserve": "3GB"})).other == 3e9
    assert only(job_of(memory={"reserve": 0})).total == only(job_of()).allocated


def test_the_score_names_the_fullest_stage_and_the_sum_of_its_parts():
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


def test_torch_pipelines_keep_what_stages_pass_on():
    """A buffer for each micro-batch both ways; the last stage its logits."""
    axes = {"pp": 4}
    plain = footprints(job_of(parallelism=axes))
    keeping = footprints(job_of(parallelism=axes, memory={"keep_outputs": True}))
    message = 16 * 2 * 1024 * 2048
    added = [k.activations - p.activations for k, p in zip(keeping, plain, strict=True)]
    assert added == [message, 2 * message, 2 * message, message + 16 * 2 * 2048 * 32768]


def test_the_formula_is_the_schedule_played_on_random_pipelines():
    """Whatever the chunks hold, stage, groups and micro-batches."""
    rng = random.Random(1)
    for _ in range(300):
        pp, vp = rng.randint(2, 6), rng.randint(1, 5)
        group = rng.choice((pp, pp, pp + 1, 2 * pp)) if vp > 1 else pp
        groups = rng.randint(1, 9)
        rest = rng.choice((0, 0, pp)) if group > pp else 0
        micro_batches = groups * group + rest
        if vp == 1:
            micro_batches = rng.randint(1, 12)
        job = job_of(
            parallelism={"pp": pp, "vp": vp},
            model=None if pp * vp <= 18 else SMALL_AND_DEEP,
            micro_batches=micro_batches,
            memory={"micro_batch_group": group} if vp > 1 else {},
        )
        weights = [rng.randint(0, 3) for _ in range(vp)]
        for stage in range(pp):
            found = most_held(job, stage, np.array(weights, dtype=np.float64))
            expected = played(weights, stage, pp, micro_batches, group)
            assert found == expected, (pp, vp, micro_batches, group, stage, weights)


SMALL_AND_DEEP = {
    "layers": 64,
    "hidden": 256,
    "ffn": 512,
    "heads": 4,
    "kv_heads": 4,
    "vocab": 1024,
}
