"""Every launcher file of a plan, read back, gives the plan's own map."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings

from placer.emit import emit
from placer.emit.registry import FORMATS
from placer.errors import EmitError
from tests.emit.readback import (
    CONTIGUOUS,
    FREE,
    INTERLEAVED,
    Seat,
    has_gpus_in_order,
    is_contiguous,
    plan_of,
    read_csv,
    read_hostfile,
    read_json,
    read_rankfile,
    run_env,
    run_torchrun,
    seatings,
    write_script,
)

FILES = {
    "json": read_json,
    "csv": read_csv,
    "slurm-hostfile": read_hostfile,
    "openmpi-rankfile": read_rankfile,
}


def read_back(format: str, text: str, hosts: list[str]) -> list[Seat]:
    if format in FILES:
        return FILES[format](text)
    with TemporaryDirectory() as folder:
        script = write_script(Path(folder), text)
        if format == "env":
            return run_env(script, hosts)
        return run_torchrun(script, list(dict.fromkeys(hosts)))


def can_express(format: str, seats: list[Seat]) -> bool:
    """Whether a launcher can express a map, from the launchers' own rules."""
    if format == "torchrun":
        return is_contiguous(seats)
    if format in ("slurm-hostfile", "openmpi-rankfile"):
        return has_gpus_in_order(seats)
    return True


def check_format(format: str, seats: list[Seat]) -> None:
    if can_express(format, seats):
        text = emit(plan_of(seats), format)
        assert read_back(format, text, [host for host, _ in seats]) == seats
        return
    with pytest.raises(EmitError) as refusal:
        emit(plan_of(seats), format)
    offered = str(refusal.value).split("formats that can: ")[1].split(", ")
    assert offered == [name for name in FORMATS if can_express(name, seats)]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "seats",
    [CONTIGUOUS, FREE, INTERLEAVED, [("one", 0)], [("a", 2), ("a", 0), ("b", 0)]],
    ids=["contiguous", "free", "interleaved", "one", "unequal"],
)
def test_worked_maps(format: str, seats: list[Seat]) -> None:
    """A format gives back the worked maps it can express and refuses the others."""
    check_format(format, seats)


@pytest.mark.parametrize("format", FILES)
@given(seats=seatings())
def test_files_give_back_any_map(format: str, seats: list[Seat]) -> None:
    """A file is refused exactly when its launcher has no words for the map."""
    check_format(format, seats)


@pytest.mark.parametrize("format", ["torchrun", "env"])
@settings(max_examples=12)
@given(seats=seatings())
def test_scripts_give_back_any_map(format: str, seats: list[Seat]) -> None:
    """A script, run on every host, gives the map; or the map is refused."""
    check_format(format, seats)


@pytest.mark.parametrize("format", FORMATS)
@given(seats=seatings())
@settings(max_examples=30)
def test_order_of_the_node_list_is_free(format: str, seats: list[Seat]) -> None:
    """Nodes without ranks, and the order nodes are listed in, change no byte."""
    plan = plan_of(seats)
    last = len(plan.nodes)
    turned = plan_of(seats)
    object.__setattr__(turned, "nodes", ("idle-node", *plan.nodes[::-1]))
    object.__setattr__(turned, "node_of_rank", last - plan.node_of_rank)
    if can_express(format, seats):
        assert emit(turned, format) == emit(plan, format)
