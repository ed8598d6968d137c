"""DeepSpeed's own numbering of local ranks, on nodes of unequal size.

Its ``launcher/launch.py`` sets ``LOCAL_RANK = rank % processes of the node``.
"""

from pathlib import Path

import pytest

from placer.base.errors import EmitError
from placer.emit import emit
from tests.emit.readback import Seat, plan_of, run_script, write_script
from tests.emit.stubs import deepspeed_node_seats, read_deepspeed

# Rank 1 is the first of two on b: DeepSpeed makes it local rank 1, rank 2 local rank 0.
UNEQUAL: list[Seat] = [("a", 0), ("b", 0), ("b", 1)]


def test_an_unaligned_node_is_refused() -> None:
    """The host file would put ranks 1 and 2 on each other's GPU, and is refused."""
    assert read_deepspeed("a slots=1\nb slots=2\n") == [("a", 0), ("b", 1), ("b", 0)]
    with pytest.raises(EmitError) as refusal:
        emit(plan_of(UNEQUAL), "deepspeed")
    assert str(refusal.value).startswith(
        "deepspeed makes the local rank of rank modulo ranks of the node, but b holds "
        "1, 2; formats that can: torchrun, "
    )
    assert "deepspeed-node" in str(refusal.value)
    assert " deepspeed," not in str(refusal.value)


def test_unequal_nodes_that_are_aligned() -> None:
    """A smaller last node starts at a multiple of its size: the host file is right."""
    seats = [("a", k) for k in range(4)] + [("b", k) for k in range(2)]
    assert read_deepspeed(emit(plan_of(seats), "deepspeed")) == seats


@pytest.mark.parametrize("seats", [UNEQUAL, [("a", 1), ("b", 2), ("b", 0), ("b", 1)]])
def test_the_script_lists_gpus_by_local_rank(tmp_path: Path, seats: list[Seat]) -> None:
    """``--world_info`` turns the GPUs of a node so that every rank gets its own."""
    script = write_script(tmp_path, emit(plan_of(seats), "deepspeed-node"))
    assert deepspeed_node_seats(script, seats) == seats


def test_the_script_runs_once_a_node(tmp_path: Path) -> None:
    """A second process of a host stops, and so does a host outside the plan."""
    script = write_script(tmp_path, emit(plan_of(UNEQUAL), "deepspeed-node"))
    second = run_script(script, "train.py", SLURMD_NODENAME="b", SLURM_LOCALID="1")
    assert second.status == 1
    assert "DeepSpeed starts the others, run this once a node" in second.error
    assert run_script(script, "train.py", PLACER_HOST="c").status == 1


def test_a_map_too_long_for_an_argument() -> None:
    """4,000 nodes do not fit into one argument of Linux; torchrun is named."""
    seats = [(f"rack-{k:05}.example", gpu) for k in range(4000) for gpu in range(4)]
    with pytest.raises(EmitError, match="use torchrun"):
        emit(plan_of(seats), "deepspeed-node")
    assert len(emit(plan_of(seats[:8000]), "deepspeed-node")) > 100_000
