"""``--even`` and ``even``: equal parts of groups, from a script to what is emitted."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from click.testing import CliRunner

import placer
from placer.cli.main import main
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.placement.check import violations
from placer.placement.placement import Placement
from placer.testing.strategies import machine as tiny_machine

if TYPE_CHECKING:
    from pathlib import Path

MACHINE = """\
format: placer/topology
version: 1
name: racks
tiers:
  - {{name: node, size: {gpus}, bandwidth: 900GB/s, scale_up: true}}
  - {{name: rack, bandwidth: 900GB/s, scale_up: true}}
  - {{name: cluster, bandwidth: 50GB/s}}
nodes:
"""
JOB = """\
format: placer/job
version: 1
name: experts
parallelism: {{ep: {ep}, dp: {ranks}}}
weights: {{ep: 64, edp: 4}}
"""
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


def machine(racks: list[int], gpus: int = 4) -> str:
    rows = [
        f'  - {{names: "{name}[01-{number:02d}]", rack: {name}}}\n'
        for name, number in zip("abcdefgh", racks, strict=False)
    ]
    return MACHINE.format(gpus=gpus) + "".join(rows)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def runner() -> CliRunner:
    return CliRunner()


def place(runner: CliRunner, *words: str) -> tuple[int, str]:
    done = runner.invoke(main, ["place", "-t", "m.yaml", "--time-limit", "2", *words])
    return done.exit_code, done.output + done.stderr


def held(plan: Path, size: int) -> list[list[int]]:
    """Ranks of each group of consecutive ranks in each rack, in their order."""
    content = json.loads(plan.read_text())
    racks = content["domains"]["rack"]
    at = [racks[node] for node in content["node_of_rank"]]
    groups = [at[first : first + size] for first in range(0, len(at), size)]
    return [[group.count(rack) for rack in dict.fromkeys(group)] for group in groups]


def test_groups_that_no_racks_hold_evenly(folder: Path, runner: CliRunner) -> None:
    """EP 32 on racks of 13, 11 and 8 trays is refused with the sizes that can be."""
    (folder / "m.yaml").write_text(machine([13, 11, 8]))
    (folder / "j.yaml").write_text(JOB.format(ep=32, ranks=128) + "even: {ep: rack}\n")
    code, said = place(runner, "-j", "j.yaml")
    assert code == 3
    assert "13, 11, 8 nodes" in said
    assert "with 32 or 16 a rack" in said
    assert "24 of the 32 nodes are usable" in said
    (folder / "j.yaml").write_text(JOB.format(ep=32, ranks=96))
    code, _ = place(runner, "-j", "j.yaml", "--even", "ep=rack", "-o", "plan.json")
    assert code == 0
    assert held(folder / "plan.json", 32) == [[32], [32], [32]]
    assert runner.invoke(main, ["check", "plan.json"]).exit_code == 0


def test_sixteen_of_eighteen_trays(folder: Path, runner: CliRunner) -> None:
    """EP 64 takes 16 trays of every rack of 18, and not 18, 18, 18 and 10."""
    (folder / "m.yaml").write_text(machine([18, 18, 18, 18]))
    (folder / "j.yaml").write_text(JOB.format(ep=64, ranks=256))
    code, _ = place(runner, "-j", "j.yaml", "--even", "ep=rack", "-o", "plan.json")
    assert code == 0
    assert held(folder / "plan.json", 64) == [[64]] * 4


def test_eight_and_sixteen_hosts(folder: Path, runner: CliRunner) -> None:
    """Pods of 8 hosts fit in racks of 8 and 16; one of all 24 has no equal parts."""
    (folder / "m.yaml").write_text(machine([8, 16], gpus=8))
    (folder / "j.yaml").write_text(JOB.format(ep=64, ranks=192))
    code, _ = place(runner, "-j", "j.yaml", "--even", "ep=rack", "-o", "plan.json")
    assert code == 0
    assert held(folder / "plan.json", 64) == [[64]] * 3
    (folder / "j.yaml").write_text(JOB.format(ep=192, ranks=192))
    code, said = place(runner, "-j", "j.yaml", "--even", "ep=rack")
    assert code == 3
    assert "ep 64, which fits on all" in said


def test_more_parts_than_two(folder: Path, runner: CliRunner) -> None:
    """Groups of four parts are dealt out so that none comes to a rack twice."""
    (folder / "m.yaml").write_text(machine([3, 3, 2, 2, 2]))
    (folder / "j.yaml").write_text(JOB.format(ep=16, ranks=48))
    code, said = place(runner, "-j", "j.yaml", "--even", "ep=rack", "-o", "plan.json")
    assert code == 0, said
    assert all(len(set(parts)) == 1 for parts in held(folder / "plan.json", 16))


@pytest.mark.parametrize(
    ("before", "more"),
    [
        ("", "--moe-flex-dispatcher-backend hybridep"),
        ("export NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN=8", ""),
    ],
)
def test_scripts_of_hybridep(
    folder: Path, runner: CliRunner, before: str, more: str
) -> None:
    """A script that names HybridEP has the rule, and what is emitted its variables."""
    (folder / "m.yaml").write_text(machine([13, 11, 8]))
    for nodes, expected in ((32, 3), (24, 0)):
        text = SCRIPT.format(before=before, more=more, nodes=nodes, batch=8 * nodes)
        (folder / "train.sh").write_text(text)
        code, said = place(runner, "-j", "megatron:train.sh", "-o", "plan.json")
        assert code == expected, said
    for name in ("torchrun", "torchrun-wrapper", "env", "sbatch", "gpu-wrapper"):
        done = runner.invoke(main, ["emit", "plan.json", name])
        assert (
            "export NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN=32 NVLINK_DOMAIN_SIZE=52 "
            "USE_MNNVL=1\n"
        ) in done.output, name


def test_scripts_of_other_back_ends(folder: Path, runner: CliRunner) -> None:
    """Without the rule the plan says which groups lie unevenly, and how to ask."""
    (folder / "m.yaml").write_text(machine([13, 11, 8]))
    text = SCRIPT.format(before="", more="", nodes=32, batch=256)
    (folder / "train.sh").write_text(text)
    code, said = place(runner, "-j", "megatron:train.sh", "-o", "plan.json")
    assert code == 0
    assert "ep groups in unequal parts (20 + 12)" in said
    assert "--even ep=rack" in said.replace("\n  ", " ")
    done = runner.invoke(main, ["emit", "plan.json", "torchrun"])
    assert "HYBRID" not in done.output


@pytest.mark.parametrize(
    ("racks", "is_even"),
    [
        ("aaaabbbb", True),
        ("aaaaaaaa", True),
        ("abcdabcd", False),
        ("aabbccdd", True),
        ("aaabbbbb", False),
        ("aabbaacc", False),
        ("abbbbbbb", False),
    ],
)
def test_checker_knows_equal_parts(racks: str, is_even: bool) -> None:
    """Parts are of one length, of consecutive ranks, and a rack holds one of them."""
    topology = tiny_machine([("b0", [8]) for _ in "abcd"])
    job = Job("even", Parallelism(ep=8, dp=8), require={"ep/even": "rack"})
    gpus = [8 * "abcd".index(rack) + rank for rank, rack in enumerate(racks)]
    broken = violations(
        Placement(np.array(gpus)), topology, replace(job, launcher="free")
    )
    assert any("in equal parts, one a rack" in one for one in broken) != is_even


def test_replace_keeps_parts_equal(folder: Path, runner: CliRunner) -> None:
    """After a failure groups lie in equal parts again."""
    (folder / "m.yaml").write_text(machine([9, 9, 9, 9]))
    (folder / "j.yaml").write_text(JOB.format(ep=32, ranks=96) + "even: {ep: rack}\n")
    assert place(runner, "-j", "j.yaml", "-o", "plan.json")[0] == 0
    plan = placer.read_plan("plan.json")
    rack = plan.nodes[0][0]
    everyone = ",".join(f"{name}[01-09]" for name in "abcd" if name != rack)
    lost = f"{rack}[01-02]"
    found = placer.replace(plan, failed=lost, added=f"{rack}09,{everyone}")
    (folder / "new.json").write_text(json.dumps(found.plan.to_dict()))
    assert held(folder / "new.json", 32) == [[32], [32], [32]]
