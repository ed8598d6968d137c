"""Every launcher file of a plan, read back, gives the plan's own map."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given

from placer.base.errors import EmitError
from placer.emit import emit
from placer.emit.registry import FORMATS
from tests.emit.readback import (
    CONTIGUOUS,
    FREE,
    INTERLEAVED,
    deepspeed_node_seats,
    has_gpus_in_order,
    is_contiguous,
    plan_of,
    read_csv,
    read_deepspeed,
    read_hostfile,
    read_json,
    read_node_map,
    read_rankfile,
    seatings,
    texts,
    write_script,
)

READERS = {
    "json": read_json,
    "csv": read_csv,
    "slurm-hostfile": read_hostfile,
    "openmpi-seq": read_hostfile,
    "openmpi-rankfile": read_rankfile,
    "deepspeed": read_deepspeed,
    "deepspeed-node": deepspeed_node_seats,
    "torchrun-map": read_node_map,
}
MANIFESTS = (
    *("kubernetes-job", "kubernetes-jobset", "kubernetes-pinned", "kubeflow-trainer"),
)
# What their real launchers make of them is in tests/clients.
REAL = (
    *(
        "env",
        "torchrun",
        "torchrun-wrapper",
        "gpu-wrapper",
        "sbatch",
        "sbatch-torchrun",
    ),
    *("hydra", "jax", "ray", *MANIFESTS),
)
# Every format that places ranks.
PLACING = (*READERS, *REAL)

# What launchers cannot say: ranks of a node that are not consecutive, and GPUs of a
# node in another order than 0, 1, 2 ...
CONSECUTIVE = {
    *("torchrun", "torchrun-map", "sbatch-torchrun", "deepspeed", "deepspeed-node"),
}
GPUS_IN_ORDER = {
    *("slurm-hostfile", "openmpi-seq", "openmpi-rankfile"),
    *("torchrun-map", "deepspeed"),
}


def read_back(format, seats):
    """The map that the launcher makes of what is emitted for ``seats``."""
    text = emit(plan_of(seats), format)
    if format != "deepspeed-node":
        return READERS[format](text)
    with TemporaryDirectory() as name:
        return READERS[format](write_script(Path(name), text), seats)


def can_express(format, seats):
    """Whether a launcher can express a map, from the launchers' own rules."""
    if format in CONSECUTIVE and not is_contiguous(seats):
        return False
    if format == "deepspeed" and not is_aligned(seats):
        return False
    if format in MANIFESTS and format != "kubernetes-pinned" and len(reach(seats)) > 1:
        return False
    return format not in GPUS_IN_ORDER or has_gpus_in_order(seats)


def is_aligned(seats):
    """Whether the first rank of every host is a multiple of the number of its ranks."""
    hosts = [host for host, _ in seats]
    return all(hosts.index(host) % hosts.count(host) == 0 for host in hosts)


def reach(seats):
    """How many GPUs the nodes must have, counted from GPU 0."""
    hosts = {host for host, _ in seats}
    return {1 + max(gpu for h, gpu in seats if h == host) for host in hosts}


def labels_clash(seats):
    """Whether two hosts differ by their domain only."""
    hosts = {host for host, _ in seats}
    return len({host.split(".")[0] for host in hosts}) < len(hosts)


def turned(seats):
    """The plan with its nodes listed backwards, behind one that has no rank."""
    plan = plan_of(seats)
    last = len(plan.nodes)
    nodes = ("idle-node", *plan.nodes[::-1])
    return replace(plan, nodes=nodes, node_of_rank=last - plan.node_of_rank)


def check_format(format, seats, folder):
    if can_express(format, seats):
        if format.startswith("openmpi") and labels_clash(seats):
            with pytest.raises(EmitError, match="for one host"):
                emit(plan_of(seats), format, folder)
            return
        assert texts(turned(seats), format) == texts(plan_of(seats), format)
        if format in READERS:
            assert read_back(format, seats) == seats
        return
    with pytest.raises(EmitError) as refusal:
        emit(plan_of(seats), format, folder)
    offered = str(refusal.value).split("formats that can: ")[1].split(", ")
    able = [name for name in FORMATS if can_express(name, seats)]
    assert offered == [name for name in able if name not in HELPERS]


# Where nothing may be written.
NOWHERE = Path("/nonexistent/folder")

# What helps a launcher that has the map, or launches nothing.
SCHEDULERS = ("slurm", "kueue", "kai", "volcano", "grove")
REQUESTS = {f"{scheduler}-request" for scheduler in SCHEDULERS}
REPORTS = {"megatron", "torchtitan", "dlrover", "nccl", "role-map", "patch", *REQUESTS}
HELPERS = {"gpu-wrapper", *REPORTS}


def test_every_format_is_read_back():
    """A format is read back here or by its launcher, or it places no rank."""
    assert {*PLACING, *REPORTS} == {*FORMATS}


@pytest.mark.parametrize("format", PLACING)
@pytest.mark.parametrize(
    "seats",
    [
        *(CONTIGUOUS, FREE, INTERLEAVED, [("one", 0)]),
        *([("a", 2), ("a", 0), ("b", 0)], [("a.x", 0), ("a.y", 0)]),
        # DeepSpeed's local rank is the rank modulo the processes of its node.
        *([("a", 0), ("b", 0), ("b", 1)], [("a", 1), ("b", 2), ("b", 0), ("b", 1)]),
        [*(("a", k) for k in range(4)), ("b", 0), ("b", 1)],
        # Islands of even and of odd GPUs, one after the other.
        [(host, gpu) for host in "ab" for gpu in (0, 2, 1, 3)],
    ],
    ids=[
        *("contiguous", "free", "interleaved", "one", "unequal", "domains"),
        *("unaligned", "turned", "aligned", "islands"),
    ],
)
def test_worked_maps(format, seats):
    """A format gives back the worked maps it can express and refuses the others."""
    check_format(format, seats, NOWHERE)


@pytest.mark.parametrize("format", PLACING)
@given(seats=seatings())
def test_any_map_is_given_back_or_refused(format, seats):
    """A file is refused exactly when its launcher has no words for the map.

    Nodes without ranks, and the order nodes are listed in, change no byte of it.
    """
    check_format(format, seats, NOWHERE)
