"""What `placer tune` says where it cannot answer: every problem, and what to do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import placer
from placer.base.errors import InputError
from tests.commands import refusal, run

if TYPE_CHECKING:
    from pathlib import Path

JOB = """\
format: placer/job
version: 1
name: small
parallelism: {tp: 2, dp: 4}
model: {layers: 4, hidden: 512, ffn: 1024, heads: 8, kv_heads: 8, vocab: 32000}
sequence: 1024
micro_batches: MICRO
compute: {tflops_per_gpu: 400}
"""


def said(folder: Path, *options: str, micro: str = "4", code: int = 2) -> str:
    """What stands on stderr, in one line."""
    file = folder / "job.yaml"
    file.write_text(JOB.replace("MICRO", micro))
    command = ("tune", "-q", "-t", "node:2 gpu:4", "-j", file, "--memory", "80GB")
    return " ".join(refusal(*command, *options, code=code).split())


@pytest.mark.parametrize("more", [(), ("--global-batch", "32")])
def test_wrong_micro_batches_of_a_file_are_told_at_their_place(
    tmp_path: Path, more: tuple[str, ...]
) -> None:
    """They are said, and wrong: the samples of a step are not asked for instead."""
    text = said(tmp_path, *more, micro="0")
    assert "job.yaml:7:16: micro_batches: 0 is not between" in text
    assert "global_batch" not in text


def test_more_gpus_than_there_are(tmp_path: Path) -> None:
    """How many can be used, and that the option can be left out."""
    text = said(tmp_path, "--gpus", "4,99")
    assert "99 GPUs are asked for" in text
    assert "has 8 that can be used" in text
    assert "leave --gpus out" in text


def test_lists_that_leave_nothing_legal_are_named(tmp_path: Path) -> None:
    """With the rule that refuses them: a micro-batch that divides nothing, heads."""
    text = said(tmp_path, "--micro-batch", "5", "--pp", "1", code=3)
    assert "the micro-batch does not divide" in text
    assert "hint: give --pp or --micro-batch other values" in text
    text = said(tmp_path, "--tp", "3", code=3)
    assert "heads that tp does not divide" in text
    assert "hint: give --tp other values, or leave it out" in text


def test_no_gpus_at_all() -> None:
    """A number below one is none, however many GPUs there are."""
    with pytest.raises(InputError, match="gpus: expected at least 1, got 0"):
        placer.tune("dgx-h100-4x8", "quickstart", gpus=0)


def test_one_mode_can_stand_alone() -> None:
    """As one size can; a text is no list of letters."""
    few: dict[str, Any] = {"gpus": 8, "tp": 8, "pp": 1, "cp": 1, "micro_batch": 1}
    found = placer.tune(
        "dgx-h100-4x8", "quickstart", recompute="none", sharding="zero1", **few
    )
    assert {(row["recompute"], row["sharding"]) for row in found.rows} == {
        ("none", "zero1")
    }


SCRIPT = (
    "torchrun pretrain_gpt.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 "
    "--seq-length 1024 --max-position-embeddings 1024 --vocab-size 32000 "
    "--micro-batch-size 1 --global-batch-size 4\n"
)


def test_a_batch_that_gpus_do_not_share_is_shared_by_fewer(tmp_path: Path) -> None:
    """Other degrees share it: eight GPUs train four samples with tp 2 or more."""
    file = tmp_path / "train.sh"
    file.write_text(SCRIPT)
    command = ("tune", "-t", "node:2 gpu:4", "-j", f"megatron:{file}", "--top", 1)
    limits = ("--gpus", 8, "--memory", "80GB", "--tflops", 300)
    done = run(*command, *limits, "--format", "json")
    found = json.loads(done.stdout)
    assert (found["global_batch"], found["rows"][0]["gpus"]) == (4, 8)
    assert "its own degrees are those on 4 GPUs" in done.stderr
