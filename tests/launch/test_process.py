"""What a process knows of itself, under every launcher."""

import os

import pytest

from placer.base.errors import InputError
from placer.launch.process import Process, this_process
from placer.launch.ranks import HostTable


@pytest.mark.parametrize(
    ("environ", "launcher", "numbers"),
    [
        ({"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1"}, "env", (5, 8, 1)),
        (
            {
                "TORCHELASTIC_RUN_ID": "x",
                "RANK": "5",
                "WORLD_SIZE": "8",
                "LOCAL_RANK": "1",
                "SLURM_PROCID": "2",
            },
            "torchrun",
            (5, 8, 1),
        ),
        (
            {
                "OMPI_COMM_WORLD_RANK": "3",
                "OMPI_COMM_WORLD_SIZE": "4",
                "OMPI_COMM_WORLD_LOCAL_RANK": "0",
                "SLURM_PROCID": "0",
                "SLURM_LOCALID": "0",
            },
            "openmpi",
            (3, 4, 0),
        ),
        (
            {"PMI_RANK": "3", "PMI_SIZE": "4", "MPI_LOCALRANKID": "1"},
            "hydra",
            (3, 4, 1),
        ),
        (
            {"PMI_RANK": "3", "SLURM_PROCID": "3", "SLURM_LOCALID": "1"},
            "slurm",
            (3, None, 1),
        ),
        (
            {"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "4", "SLURM_NTASKS": "9"},
            "slurm",
            (3, 4, None),
        ),
        ({"JAX_PROCESS_ID": "1", "JAX_NUM_PROCESSES": "2"}, "jax", (1, 2, None)),
        ({"JOB_COMPLETION_INDEX": "7"}, "kubernetes", (7, None, None)),
        ({}, "", (None, None, None)),
    ],
)
def test_launchers(
    environ: dict[str, str], launcher: str, numbers: tuple[int | None, ...]
) -> None:
    """Each launcher's own variables are read, not those it inherited."""
    process = this_process(environ)
    assert process.launcher == launcher
    assert (process.rank, process.world_size, process.local_rank) == numbers


def test_host() -> None:
    """The host is PLACER_HOST, else SLURMD_NODENAME, else the machine's, as scripts."""
    environ = {"HOSTNAME": "login", "SLURMD_NODENAME": "n1", "PLACER_HOST": "n2"}
    assert this_process(environ).host == "n2"
    del environ["PLACER_HOST"]
    assert this_process(environ).host == "n1"
    assert this_process({"HOSTNAME": "login"}).host == os.uname().nodename


@pytest.mark.parametrize(
    ("visible", "local_rank", "gpu"),
    [
        (None, 1, "1"),
        (None, None, None),
        (("3", "1"), 1, "1"),
        (("3", "1"), 2, None),
        (("3",), 7, "3"),
        (("GPU-ab", "GPU-cd"), 0, "GPU-ab"),
    ],
)
def test_gpu(
    visible: tuple[str, ...] | None, local_rank: int | None, gpu: str | None
) -> None:
    """The GPU is the only one seen, or the one at the local rank."""
    assert Process("n", local_rank=local_rank, visible=visible).gpu == gpu


def test_empty_list_of_devices_is_none() -> None:
    """An empty variable hides nothing, as in the emitted scripts."""
    assert this_process({"CUDA_VISIBLE_DEVICES": ""}).visible is None
    assert this_process({"CUDA_VISIBLE_DEVICES": "1, 0"}).visible == ("1", "0")


@pytest.mark.parametrize("text", ["x", "-1", "1.0", "\u0663", "9" * 20])
def test_numbers_are_checked(text: str) -> None:
    """A rank that is no number is an error that names the variable."""
    with pytest.raises(InputError, match="RANK"):
        this_process({"RANK": text})


def test_host_table() -> None:
    """Whole names, a reported domain, a missing domain of one node only."""
    table = HostTable(["a", "b.x", "c.x", "c.y"])
    assert [table.find(h) for h in ("a", "a.z", "b", "b.x")] == [0, 0, 1, 1]
    assert [table.find(h) for h in ("c", "c.y", "d", "b.y")] == [None, 3, None, None]
