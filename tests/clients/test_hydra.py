"""Hydra starts every rank on its host, and the script beside it finds the GPU."""

import shlex
import subprocess

import pytest

from placer.emit import emit
from tests.clients.fake_hosts import ssh_stand_in
from tests.clients.needs import program
from tests.clients.processes import (
    REPORT,
    environment,
    reported_seats,
    reports,
    run,
    verdict,
)
from tests.emit.readback import CONTIGUOUS, FREE, INTERLEAVED, plan_of, started

# A host with ranks in two places of the machine file has them counted from 0 twice.
SPLIT = [("a", 0), ("a", 1), ("b", 1), ("b", 0), ("a", 2), ("b", 2)]


def mpiexec(folder, machines, ranks, *command):
    """What Hydra's processes print, started over the stand-in for ssh."""
    launcher = ("-launcher", "ssh", "-launcher-exec", ssh_stand_in(folder))
    hydra = (program("mpiexec.hydra", "mpich"), *launcher, "-iface", "lo")
    return run([*hydra, "-f", machines, "-n", str(ranks), *command], environment())


@pytest.mark.slow
@pytest.mark.parametrize(
    "seats",
    [CONTIGUOUS, INTERLEAVED, FREE, SPLIT],
    ids=["nodes", "in-order", "free", "split"],
)
def test_ranks_and_gpus(tmp_path, seats):
    """Every process reports the host and the GPU of its rank; verify agrees."""
    folder = emit(plan_of(seats), "hydra", tmp_path / "hydra")
    command = ("bash", folder / "gpu-wrapper.sh", *REPORT)
    done = mpiexec(tmp_path, folder / "machines.txt", len(seats), *command)
    assert reported_seats(done.output) == seats, done.error
    assert verdict(tmp_path, seats, done.output)["ok"]


@pytest.mark.slow
@pytest.mark.parametrize("seats", [CONTIGUOUS, FREE], ids=["nodes", "free"])
def test_a_patched_script(tmp_path, seats):
    """Its own options for hosts are gone; every process has the host of its rank."""
    (tmp_path / "old").write_text("n9\n")
    hydra = program("mpiexec.hydra", "mpich")
    command = f"-launcher ssh -launcher-exec {ssh_stand_in(tmp_path)} -iface lo"
    script = tmp_path / "train.sh"
    report = f"LOCAL_RANK=${{LOCAL_RANK:-$MPI_LOCALRANKID}} {shlex.join(REPORT)}"
    script.write_text(
        f"{hydra} -f old -ppn 1 {command} -n {len(seats)} \\\n  bash -c '{report}'\n"
    )
    patch = emit(started(seats, "hydra", str(script), 1), "patch")
    patched = ["patch", "-p1", "-d", str(tmp_path)]
    subprocess.run(patched, input=patch, text=True, check=True)
    done = run(["bash", str(script)], environment())
    assert reported_seats(done.output) == seats, done.error
    assert verdict(tmp_path, seats, done.output)["ok"]


def test_local_ranks_do_not_say_the_gpu(tmp_path):
    """Hydra's local rank is 0 where lines are apart; verify says all share a GPU."""
    folder = emit(plan_of(FREE), "hydra", tmp_path / "hydra")
    done = mpiexec(tmp_path, folder / "machines.txt", 8, *REPORT)
    assert {row["local_rank"] for row in reports(done.output)} == {0}
    found = verdict(tmp_path, FREE, done.output)
    assert found["habits"] == ["one-gpu"]
    # Rank 1 has GPU 1 of its host in the plan, and so on.
    assert [row["rank"] for row in found["wrong"]] == [
        rank for rank, (_, gpu) in enumerate(FREE) if gpu == 1
    ]
