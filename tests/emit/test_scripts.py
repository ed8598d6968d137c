"""The emitted scripts, run under a stub ``torchrun`` or command."""

from pathlib import Path

import pytest

from placer.emit import emit
from tests.emit.readback import FREE, Seat, plan_of, run_script, write_script
from tests.emit.stubs import stub_srun

PERMUTED = [("n3", 1), ("n3", 0), ("n1", 0), ("n1", 1)]


def script_of(folder: Path, format: str, seats: list[Seat]) -> Path:
    return write_script(folder, emit(plan_of(seats), format))


@pytest.mark.parametrize(
    ("plan_host", "host", "found"),
    [
        ("n1", "n1", True),
        ("n1", "n1.cluster.example", True),
        ("n1.cluster", "n1", True),
        ("n1.cluster", "n1.cluster", True),
        ("n1.cluster", "n1.elsewhere", False),
        ("n1.cluster", "n1.cluster.example", False),
        ("n1", "n10", False),
        ("n1", "N1", False),
        ("n1", "n*", False),
        ("n1", ".", False),
        ("n1", "", False),
    ],
)
def test_host_names_match_exactly(
    tmp_path: Path, plan_host: str, host: str, found: bool
) -> None:
    """A host is found by its whole name or first label, never by resemblance."""
    script = script_of(tmp_path, "torchrun", [("first", 0), (plan_host, 0)])
    run = run_script(script, PLACER_HOST=host)
    assert (run.status == 0) == found
    if found:
        assert run.environment["PET_NODE_RANK"] == "1"
    else:
        assert "is not in the plan" in run.error
        assert run.environment == {}


def test_where_the_host_name_comes_from(tmp_path: Path) -> None:
    """PLACER_HOST, SLURMD_NODENAME, uname; an inherited HOSTNAME is ignored."""
    script = script_of(tmp_path, "torchrun", FREE[:4])
    uname = tmp_path / "uname"
    uname.write_text("#!/bin/sh\necho n2.cluster\n")
    uname.chmod(0o755)
    slurm = {"SLURMD_NODENAME": "n4", "HOSTNAME": "n3"}
    for environment, expected in (
        (slurm | {"PLACER_HOST": "n1"}, "1"),
        (slurm, "2"),
        ({"HOSTNAME": "n3"}, "3"),
    ):
        run = run_script(script, **environment)
        assert run.environment["PET_NODE_RANK"] == expected


def test_torchrun_environment(tmp_path: Path) -> None:
    """Static rendezvous is complete, arguments pass through, stale settings go."""
    script = script_of(tmp_path, "torchrun", [("n3", 0), ("n1", 0), ("n1", 1)])
    arguments = ["--log-dir", "a b", "train.py", "--x=$HOME", "*", ""]
    run = run_script(
        script,
        *arguments,
        PLACER_HOST="n1",
        PET_RDZV_ENDPOINT="old:1",
        PET_STANDALONE="1",
        MASTER_ADDR="old",
    )
    assert run.arguments == arguments
    options = {k: v for k, v in run.environment.items() if k.startswith("PET_")}
    assert options == {
        "PET_NNODES": "2",
        "PET_NODE_RANK": "1",
        "PET_NPROC_PER_NODE": "2",
        "PET_RDZV_BACKEND": "static",
        "PET_MASTER_ADDR": "n3",
        "PET_MASTER_PORT": "29500",
    }
    assert run.environment["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert "CUDA_VISIBLE_DEVICES" not in run.environment


def test_address_and_port_can_be_replaced(tmp_path: Path) -> None:
    """An address on another interface and another port can be given."""
    (tmp_path / "t").mkdir()
    script = script_of(tmp_path / "t", "torchrun", PERMUTED)
    given = {"PLACER_MASTER_ADDR": "10.0.0.3", "PLACER_HOST": "n3"}
    run = run_script(script, PET_MASTER_PORT="1234", **given)
    assert run.environment["PET_MASTER_ADDR"] == "10.0.0.3"
    assert run.environment["PET_MASTER_PORT"] == "1234"
    (tmp_path / "e").mkdir()
    script = script_of(tmp_path / "e", "env", PERMUTED)
    run = run_script(
        script, "probe", PLACER_LOCAL_INDEX="0", MASTER_PORT="1234", **given
    )
    assert run.environment["MASTER_ADDR"] == "10.0.0.3"
    assert run.environment["MASTER_PORT"] == "1234"


@pytest.mark.parametrize(
    ("host", "given", "expected"),
    [
        ("n3", None, "1,0"),
        ("n3", "", "1,0"),
        ("n3", "4,6", "6,4"),
        ("n3", "GPU-aa,GPU-bb,GPU-cc", "GPU-bb,GPU-aa"),
        ("n1", "4,6", "4,6"),
    ],
)
def test_torchrun_picks_among_given_gpus(
    tmp_path: Path, host: str, given: str | None, expected: str
) -> None:
    """The plan's GPU k is the k-th device of the node's own CUDA_VISIBLE_DEVICES."""
    script = script_of(tmp_path, "torchrun", PERMUTED)
    environment = {} if given is None else {"CUDA_VISIBLE_DEVICES": given}
    run = run_script(script, PLACER_HOST=host, **environment)
    assert run.environment["CUDA_VISIBLE_DEVICES"] == expected


def test_scripts_refuse_hidden_gpus(tmp_path: Path) -> None:
    """A process that does not see the plan's GPU stops instead of taking another."""
    for format in ("torchrun", "env"):
        folder = tmp_path / format
        folder.mkdir()
        run = run_script(
            script_of(folder, format, PERMUTED),
            "probe",
            PLACER_HOST="n3",
            PLACER_LOCAL_INDEX="1",
            CUDA_VISIBLE_DEVICES="0",
        )
        assert run.status == 1
        assert "GPU 1 is not in CUDA_VISIBLE_DEVICES=0" in run.error


def test_env_environment(tmp_path: Path) -> None:
    """A process gets every variable env:// reads, and its command's own arguments."""
    script = script_of(tmp_path, "env", FREE)
    run = run_script(
        script,
        "probe",
        "a b",
        "",
        PLACER_HOST="n1",
        PLACER_LOCAL_INDEX="1",
        MASTER_ADDR="stale",
        CUDA_VISIBLE_DEVICES="0,1",
    )
    assert run.arguments == ["a b", ""]
    expected = {
        "RANK": "1",
        "LOCAL_RANK": "1",
        "NODE_RANK": "1",
        "GROUP_RANK": "1",
        "LOCAL_WORLD_SIZE": "2",
        "WORLD_SIZE": "8",
        "MASTER_ADDR": "n3",
        "MASTER_PORT": "29500",
        "CUDA_VISIBLE_DEVICES": "0,1",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }
    assert expected.items() <= run.environment.items()


def test_where_the_local_index_comes_from(tmp_path: Path) -> None:
    """Ours, then mpirun's, then Slurm's, which mpirun's children inherit unchanged."""
    script = script_of(tmp_path, "env", [("n1", 0), ("n1", 1), ("n1", 2)])
    slurm = {"PLACER_HOST": "n1", "SLURM_LOCALID": "0"}
    mpi = slurm | {"OMPI_COMM_WORLD_LOCAL_RANK": "1"}
    ours = mpi | {"PLACER_LOCAL_INDEX": "2"}
    ranks = [
        run_script(script, "probe", **e).environment["RANK"] for e in (slurm, mpi, ours)
    ]
    assert ranks == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ("", "no local index"),
        ("2", "local index 2 on n1, where the plan has 2 ranks"),
        ("-1", "not a number"),
        ("01", "not a number"),
        ("1000", "local index 1000 on n1"),
        ("1000000", "not a number"),
        ("0 ", "not a number"),
        ("gpus[$(touch pwned)]", "not a number"),
    ],
)
def test_bad_local_index(tmp_path: Path, index: str, message: str) -> None:
    """A local index outside the plan is an error, and never shell text."""
    script = script_of(tmp_path, "env", [("n1", 0), ("n1", 1)])
    run = run_script(script, "probe", PLACER_HOST="n1", PLACER_LOCAL_INDEX=index)
    assert run.status == 1
    assert message in run.error
    assert not (tmp_path / "pwned").exists()


def test_env_needs_a_command(tmp_path: Path) -> None:
    """Without a command the script fails instead of doing nothing."""
    script = script_of(tmp_path, "env", [("n1", 0)])
    run = run_script(script, PLACER_HOST="n1", SLURM_LOCALID="0")
    assert run.status == 1
    assert "no command to run" in run.error


def test_deepspeed_runs_once_a_node(tmp_path: Path) -> None:
    """A second process of a host stops, and so does a host outside the plan."""
    script = script_of(tmp_path, "deepspeed-node", [("a", 0), ("b", 0), ("b", 1)])
    second = run_script(script, "train.py", SLURMD_NODENAME="b", SLURM_LOCALID="1")
    assert second.status == 1
    assert "DeepSpeed starts the others, run this once a node" in second.error
    assert run_script(script, "train.py", PLACER_HOST="c").status == 1


def test_host_without_address_is_named(tmp_path: Path) -> None:
    """A batch script of agents ends at once where the host of rank 0 has no address."""
    script = script_of(tmp_path, "sbatch-torchrun", PERMUTED)
    stub_srun(tmp_path, known="head")
    job = {"SLURM_JOB_ID": "7"}
    run = run_script(script, "train.py", raw=True, **job)
    assert run.status == 1
    assert "placer: n3 finds no address of n3, the host of rank 0: set PLACER_" in (
        run.error
    )
    run = run_script(script, "train.py", raw=True, PLACER_MASTER_ADDR="head", **job)
    assert run.status == 0, run.error
