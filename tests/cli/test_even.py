"""``--even`` and ``even``: equal parts of groups, from a script to what is emitted."""

import json
from pathlib import Path

import pytest

import placer
from placer import testing
from placer.topology.write import compact_document
from tests.commands import run
from tests.texts import file_text

SCRIPT = """\
#!/bin/bash
{before}
torchrun --nproc_per_node 4 --nnodes {nodes} pretrain_gpt.py --num-layers 8 \\
  --hidden-size 4096 --num-attention-heads 32 --ffn-hidden-size 14336 \\
  --num-experts 64 --moe-router-topk 8 --expert-model-parallel-size 32 \\
  --seq-length 4096 --micro-batch-size 1 --global-batch-size {batch} --bf16 \\
  --use-distributed-optimizer --vocab-size 128000 --swiglu \\
  --moe-token-dispatcher-type flex {more}
"""
EVEN = ("--even", "ep=rack", "-o", "plan.json")
pytestmark = pytest.mark.usefixtures("folder")


def machine(racks, gpus=4):
    """Racks ``a``, ``b`` ... of so many nodes, each joined by NVLink."""
    found = testing.racks(dict(zip("abcdefgh", racks, strict=False)), gpus)
    Path("m.json").write_text(json.dumps(compact_document(found)))


def job(ep, ranks, **more):
    axes, weights = {"ep": ep, "dp": ranks}, {"ep": 64, "edp": 4}
    text = file_text("job", parallelism=axes, weights=weights, **more)
    Path("j.json").write_text(text)


def place(source, *words, code=0):
    given = ("-t", "m.json", "-j", source, "--time-limit", 2, "--effort", "quick")
    return run("place", *given, *words, code=code)


def held(plan, size):
    """Ranks of each group of consecutive ranks in each rack, in their order."""
    content = json.loads(Path(plan).read_text())
    racks = content["domains"]["rack"]
    at = [racks[node] for node in content["node_of_rank"]]
    groups = [at[first : first + size] for first in range(0, len(at), size)]
    return [[group.count(rack) for rack in dict.fromkeys(group)] for group in groups]


@pytest.mark.parametrize(
    ("racks", "gpus", "ep", "ranks", "parts"),
    [
        ([18, 18, 18, 18], 4, 64, 256, [64]),  # 16 of 18, and not 18, 18, 18 and 10
        ([3, 3, 2, 2, 2], 4, 16, 48, None),  # four parts, none twice in a rack
    ],
)
def test_groups_in_equal_parts(racks, gpus, ep, ranks, parts):
    """Each lies in racks in parts of one size, and the plan passes its check."""
    machine(racks, gpus)
    job(ep, ranks)
    place("j.json", *EVEN)
    for found in held("plan.json", ep):
        assert found == parts or (parts is None and len({*found}) == 1)
    run("check", "plan.json")


@pytest.mark.parametrize(
    ("racks", "gpus", "ep", "ranks", "words"),
    [
        ([13, 11, 8], 4, 32, 128, ["13, 11, 8 nodes", "with 32 or 16 a rack"]),
        ([13, 11, 8], 4, 32, 128, ["24 of the 32 nodes are usable"]),
        ([8, 16], 8, 192, 192, ["ep 64, which fits on all"]),
    ],
)
def test_groups_that_no_racks_hold_evenly(racks, gpus, ep, ranks, words):
    """They are refused with the sizes that can be, asked for by file or by option."""
    machine(racks, gpus)
    job(ep, ranks, even={"ep": "rack"})
    said = place("j.json", code=3).stderr
    assert [word for word in words if word not in said] == []


@pytest.mark.parametrize(
    ("before", "more"),
    [
        ("", "--moe-flex-dispatcher-backend hybridep"),
        ("export NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN=8", ""),
    ],
)
def test_scripts_of_hybridep(before, more):
    """A script that names HybridEP has the rule, and what is emitted its variables."""
    machine([13, 11, 8])
    for nodes, code in ((32, 3), (24, 0)):
        text = SCRIPT.format(before=before, more=more, nodes=nodes, batch=8 * nodes)
        Path("train.sh").write_text(text)
        place("megatron:train.sh", "-o", "plan.json", code=code)
    for name in ("torchrun", "torchrun-wrapper", "env", "sbatch", "gpu-wrapper"):
        assert (
            "export NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN=32 NVLINK_DOMAIN_SIZE=52 "
            "USE_MNNVL=1\n"
        ) in run("emit", "plan.json", name).output, name


def test_scripts_of_other_back_ends():
    """Without the rule the plan says which groups lie unevenly, and how to ask."""
    machine([13, 11, 8])
    text = SCRIPT.format(before="", more="", nodes=32, batch=256)
    Path("train.sh").write_text(text)
    said = place("megatron:train.sh", "-o", "plan.json").output
    assert "ep groups in unequal parts (20 + 12)" in said
    assert "--even ep=rack" in said.replace("\n  ", " ")
    assert "HYBRID" not in run("emit", "plan.json", "torchrun").output


def test_replace_keeps_parts_equal():
    """After a failure groups lie in equal parts again."""
    machine([9, 9, 9, 9])
    job(32, 96, even={"ep": "rack"})
    place("j.json", "-o", "plan.json")
    plan = placer.read_plan("plan.json")
    rack = plan.nodes[0][0]
    everyone = ",".join(f"{name}0[1-9]" for name in "abcd" if name != rack)
    lost = f"{rack}0[1-2]"
    found = placer.replace(plan, failed=lost, added=f"{rack}09,{everyone}")
    Path("new.json").write_text(json.dumps(found.plan.to_dict()))
    assert held("new.json", 32) == [[32], [32], [32]]
