"""Hydra starts every rank on its host, and the script beside it finds the GPU."""

import re
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
from tests.emit.readback import CONTIGUOUS, FREE, INTERLEAVED, plan_of
from tests.emit.test_patch import started

# A host with ranks in two places of the machine file has them counted from 0 twice.
SPLIT = [("a", 0), ("a", 1), ("b", 1), ("b", 0), ("a", 2), ("b", 2)]


def mpiexec(folder, machines, ranks, *command):
    """What Hydra's processes print, started over the stand-in for ssh."""
    launcher = ("-launcher", "ssh", "-launcher-exec", ssh_stand_in(folder))
    hydra = (program("mpiexec.hydra", "mpich"), *launcher, "-iface", "lo")
    return run([*hydra, "-f", machines, "-n", str(ranks), *command], environment())


def sorted_machines(seats, folder):
    """A machine file of the plan's hosts in the order of their names."""
    path = folder / "sorted.txt"
    path.write_text("".join(f"{host}:1\n" for host in sorted(h for h, _ in seats)))
    return path


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


def test_sorted_machine_file(tmp_path):
    """The hosts in order of their names: verify names every rank, and the order."""
    machines = sorted_machines(CONTIGUOUS, tmp_path)
    done = mpiexec(tmp_path, machines, 8, *REPORT)
    found = verdict(tmp_path, CONTIGUOUS, done.output)
    assert not found["ok"]
    assert [(row["planned_host"], row["host"]) for row in found["wrong"]] == [
        pair
        for pair in (("n3", "n1"), ("n1", "n2"), ("n4", "n3"), ("n2", "n4"))
        for _ in range(2)
    ]
    assert "text-order" in found["habits"]


def test_script_stops_elsewhere(tmp_path):
    """Under a machine file of another order the script starts nothing there."""
    folder = emit(plan_of(CONTIGUOUS), "hydra", tmp_path / "hydra")
    machines = sorted_machines(CONTIGUOUS, tmp_path)
    script = folder / "gpu-wrapper.sh"
    done = mpiexec(tmp_path, machines, 8, "bash", script, "echo", "ran")
    assert done.status != 0
    assert "ran\n" not in done.output
    assert re.search(r"rank \d runs on n\d, where the plan has ranks", done.error)
