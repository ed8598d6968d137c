"""The table of `placer tune` in a terminal of 80 columns."""

import pytest

from placer.report.tune_words import tight

CHEAP = "layernorm+moe_act+mla_up_proj"


def row(**changes):
    """A row of a mixture of experts on many GPUs."""
    sizes = {"tp": 1, "cp": 1, "ep": 32, "etp": 1, "pp": 4, "vp": 4, "dp": 128}
    return {
        "parallelism": sizes | changes.pop("sizes", {}),
        "gpus": 512,
        "micro_batch": 1,
        "micro_batches": 64,
        "recompute": CHEAP,
        "sharding": "hsdp",
        "shard_size": 256,
        "step_time_s": 2.982,
        "memory_bytes": 191.7e9,
        "exposed_scale_out_s": 0.0,
    } | changes


@pytest.mark.parametrize(
    ("needs", "said"),
    [
        ([71e9, 60e9], ""),
        ([73e9, 60e9], "row 1 fills more than 90% of"),
        ([60e9, 79e9, 73e9], "rows 2, 3 fill more than 90% of"),
    ],
)
def test_rows_near_the_limit_of_memory_are_told(needs, said):
    """With the option that leaves a tenth free; where no limit is known, nothing."""
    rows = [row(memory_bytes=each) for each in needs]
    told = tight(rows, 80e9)
    assert said in told
    assert ("--memory 72GB" in told) == bool(said)
    assert not tight(rows, 0.0)
