"""A patch changes the launcher of a script and what would undo the plan, no more."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from placer.base.errors import EmitError, InputError
from placer.emit import emit
from tests.emit.readback import CONTIGUOUS, FREE, INTERLEAVED, plan_of

if TYPE_CHECKING:
    from pathlib import Path

    from placer.placement.plan import Plan
    from tests.emit.readback import Seat


def started(seats: list[Seat], name: str, source: str, line: int) -> Plan:
    """A plan whose job is started by a launcher on a line of a script."""
    launcher: dict[str, Any] = {"name": name, "source": source, "line": line}
    return replace(plan_of(seats), inputs={"job": {"launcher": launcher}})


def patched(
    folder: Path, text: str, name: str, line: int, seats: list[Seat] = CONTIGUOUS
) -> str:
    """The script after its patch, which is applied as the page says."""
    (folder / "train.sh").write_text(text)
    patch = emit(started(seats, name, "train.sh", line), "patch")
    subprocess.run(["patch", "-p1"], cwd=folder, input=patch, text=True, check=True)
    assert not list(folder.glob("*.orig")), "it applied with an offset"
    return (folder / "train.sh").read_text()


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts are named from the folder that the command runs in."""
    monkeypatch.chdir(tmp_path)


FIRST = "${PLACER_MASTER_ADDR:-n3}"


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        (
            "srun torchrun --rdzv_backend c10d --rdzv_endpoint $H:$PORT a.py",
            f"srun bash AGENT --rdzv_backend static --rdzv_endpoint {FIRST}:$PORT a.py",
            1,
        ),
        (
            "A=(\n  --rdzv-backend=c10d\n  --rdzv-endpoint=x:0 )\n"
            "torchrun ${A[@]} a.py",
            "A=(\n  --rdzv-backend=static\n  --rdzv-endpoint=FIRST:29500 )\n"
            "bash AGENT ${A[@]} a.py",
            4,
        ),
        (
            'L="python -u -m torch.distributed.run \\\n  --node_rank \\$R \\\n'
            '  --master_addr $M --master_port 6000"\nsrun bash -c "$L a.py"',
            'L="bash AGENT \\\n  \\\n'
            '  --master_addr FIRST --master_port 6000"\nsrun bash -c "$L a.py"',
            1,
        ),
        (
            'torchrun --rdzv-endpoint "$(head -1 hosts):29400" --node-rank=$R a.py',
            "bash AGENT --rdzv-endpoint FIRST:29400 a.py",
            1,
        ),
        (
            "# torchrun --rdzv-backend c10d was here\ntorchrun a.py --x",
            "# torchrun --rdzv-backend c10d was here\nbash AGENT a.py --x",
            2,
        ),
    ],
)
def test_torchrun_takes_its_node_rank_from_the_plan(
    tmp_path: Path, before: str, after: str, line: int
) -> None:
    """Wherever its options stand: in arrays, variables, quotes, after a backslash."""
    text = patched(tmp_path, before + "\n", "torchrun-c10d", line)
    agent = str(tmp_path / "placer-torchrun.sh")
    assert text == after.replace("AGENT", agent).replace("FIRST", FIRST) + "\n"
    assert "node_rank=0" in (tmp_path / "placer-torchrun.sh").read_text()


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        (
            "slurm",
            "srun -N4 -n 8 -m block --gpus-per-node=2 -l python a.py -n 5 -N2",
            "env -u SLURM_NTASKS_PER_NODE SLURM_HOSTFILE=HOSTS srun "
            "--distribution=arbitrary --ntasks=8 --gpus-per-node=2 -l "
            "python a.py -n 5 -N2",
        ),
        (
            "openmpi",
            "mpirun -np 8 -H n1,n2 --hostfile h --map-by ppr:2:node -x A python a.py",
            "mpirun --map-by seq --hostfile HOSTS --bind-to none -np 8 -x A "
            "python a.py",
        ),
        (
            "hydra",
            "mpiexec.hydra -f old -ppn 2 -n 8 -launcher ssh python a.py -f x",
            "mpiexec.hydra -f HOSTS -n 8 -launcher ssh python a.py -f x",
        ),
        (
            "deepspeed",
            "/opt/deepspeed --hostfile=old --num_gpus 2 a.py --deepspeed --hostfile x",
            "/opt/deepspeed --hostfile HOSTS --num_gpus 2 a.py --deepspeed "
            "--hostfile x",
        ),
    ],
)
def test_others_read_a_host_file(
    tmp_path: Path, name: str, before: str, after: str
) -> None:
    """Their own options for hosts go; those of the program stay."""
    text = patched(tmp_path, before, name, 1)  # without a newline at its end
    assert text == after.replace("HOSTS", str(tmp_path / "placer-hosts.txt"))
    assert (tmp_path / "placer-hosts.txt").read_text().startswith("n3")


def test_ranks_of_hydra_get_their_gpus_from_a_script(tmp_path: Path) -> None:
    """Where the local rank does not say the GPU, a wrapper goes before the program."""
    text = patched(tmp_path, "mpiexec -n 8 \\\n  python a.py", "hydra", 1, FREE)
    hosts, wrapper = tmp_path / "placer-hosts.txt", tmp_path / "placer-gpu-wrapper.sh"
    assert text == f"mpiexec -f {hosts} -n 8 \\\n  bash {wrapper} python a.py"
    assert hosts.read_text().count("\n") == 8
    assert wrapper.read_text() == emit(plan_of(FREE), "gpu-wrapper")


AGENT = """\
#!/bin/sh
echo "$NODE_RANK of $NNODES, $NPROC_PER_NODE at $MASTER_ADDR:$MASTER_PORT: $0 $*"
"""


@pytest.mark.parametrize(
    ("name", "line", "told"),
    [
        (
            "swift",
            "NODE_RANK=$X NNODES=4 swift sft --model m",
            "{k} of 4, 2 at n3:29500: {bin}/swift sft --model m",
        ),
        (
            "swift",
            "cd swift && cd .. && MASTER_PORT=7 megatron pt --model m",
            "{k} of 4, 2 at n3:7: {bin}/megatron pt --model m",
        ),
        (
            "accelerate",
            "accelerate launch --config_file f.yaml --machine_rank $R \\\n"
            "  --main_process_ip=$M --rdzv_backend c10d a.py --x",
            " of ,  at :: {bin}/accelerate launch --num_machines 4 --machine_rank {k} "
            "--num_processes 8 --rdzv_backend static --main_process_ip n3 "
            "--main_process_port 29500 --config_file f.yaml a.py --x",
        ),
    ],
)
def test_agents_are_told_their_node_rank(
    tmp_path: Path, name: str, line: str, told: str
) -> None:
    """On every host the patched line starts the agent with the plan's rank of it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (tmp_path / "swift").mkdir()
    for program in ("swift", "megatron", "accelerate"):
        (folder / program).write_text(AGENT)
        (folder / program).chmod(0o755)
    patched(tmp_path, line + "\n", name, 1)
    for k, host in enumerate(["n3", "n1", "n4", "n2"]):
        around = {"PATH": f"{folder}:/usr/bin:/bin", "PLACER_HOST": host}
        done = subprocess.run(
            ["bash", "train.sh"], env=around, capture_output=True, text=True, check=True
        )
        assert done.stdout.split() == told.format(k=k, bin=folder).split()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("verl", "without sort_placement_group_by_node_ip"),
        ("ray", "ray start --labels"),
        ("kubernetes", "emit PLAN kubernetes-jobset"),
    ],
)
def test_what_no_patch_can_say_is_told(name: str, told: str) -> None:
    """What to change by hand, and where the launcher is."""
    with pytest.raises(EmitError) as caught:
        emit(started(CONTIGUOUS, name, "run.sh", 7), "patch")
    assert f"{name} at run.sh:7" in str(caught.value)
    assert "Change by hand: " in str(caught.value)
    assert told in str(caught.value)


def test_a_changed_script_is_refused(tmp_path: Path) -> None:
    """A patch that is applied is a change too."""
    patched(tmp_path, "torchrun a.py\n", "torchrun-static", 1)
    plan = started(CONTIGUOUS, "torchrun-static", "train.sh", 1)
    with pytest.raises(EmitError, match=r"train\.sh:1 does not start the job"):
        emit(plan, "patch")
    with pytest.raises(EmitError, match=r"train\.sh:9 does not start the job"):
        emit(started(CONTIGUOUS, "slurm", "train.sh", 9), "patch")


def test_what_cannot_be_told_is_refused(tmp_path: Path) -> None:
    """No script, a lost one, two of an option, maps that the launcher cannot say."""
    with pytest.raises(EmitError, match="knows no script"):
        emit(plan_of(CONTIGUOUS), "patch")
    with pytest.raises(InputError, match=r"lost\.sh"):
        emit(started(CONTIGUOUS, "slurm", "lost.sh", 1), "patch")
    script = tmp_path / "train.sh"
    script.write_text("A='--rdzv-backend c10d'\nA='--rdzv-backend x'\ntorchrun $A\n")
    with pytest.raises(EmitError, match="in lines 1, 2"):
        emit(started(CONTIGUOUS, "torchrun-c10d", "train.sh", 3), "patch")
    with pytest.raises(EmitError, match="formats that can"):
        emit(started(INTERLEAVED, "torchrun-c10d", "train.sh", 3), "patch")
    script.write_text("accelerate launch --deepspeed_hostfile h a.py\n")
    with pytest.raises(EmitError, match=r"train\.sh:1: .* emit PLAN deepspeed"):
        emit(started(CONTIGUOUS, "accelerate", "train.sh", 1), "patch")
    script.write_text("mpiexec -n 8 $PROGRAM\n")
    with pytest.raises(EmitError, match=r"train\.sh:1: which word is the program"):
        emit(started(FREE, "hydra", "train.sh", 1), "patch")
    with pytest.raises(InputError, match="name"):
        emit(started(FREE, "magic", "train.sh", 3), "patch")


def test_a_script_elsewhere_says_where_to_apply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`patch` goes to no folder above the one it runs in."""
    script, below = tmp_path / "train.sh", tmp_path / "below"
    script.write_text("srun python a.py\n")
    below.mkdir()
    monkeypatch.chdir(below)
    patch = emit(started(CONTIGUOUS, "slurm", str(script), 1), "patch")
    assert f"patch -p1 -d {tmp_path}" in patch.splitlines()[0]
    command = ["patch", "-p1", "-d", str(tmp_path)]
    subprocess.run(command, input=patch, text=True, check=True)
    assert f"SLURM_HOSTFILE={tmp_path}/placer-hosts.txt" in script.read_text()


def test_sbatch_keeps_the_lines_of_the_script(tmp_path: Path) -> None:
    """All but those that the plan says itself; a script that is gone is told."""
    own = [
        "#SBATCH --partition=gpu",
        "#SBATCH -A proj",
        "#SBATCH --time=04:00:00",
        "#SBATCH --output=%x-%j.log",
        "#SBATCH --gres=nvme:1",
        "#SBATCH --container-image=img.sqsh",
        "#SBATCH --qos high --comment='a b' -J gpt",
    ]
    lost = ["-N4", "--ntasks-per-node 8", "--gres=gpu:8", "-w n1", "--gpus-per-node=8"]
    dropped = [f"#SBATCH {option}" for option in [*lost, "--exclusive", "-n 32"]]
    script = tmp_path / "train.sh"
    mixed = own[-1].replace("--comment", "-N 4 --comment") + " --gres gpu:8"
    lines = ["#!/bin/bash", *own[:-1], mixed, *dropped, "srun python a.py"]
    script.write_text("\n".join(lines))
    for format in ("sbatch", "sbatch-torchrun"):
        plan = started(CONTIGUOUS, "slurm", "train.sh", len(lines))
        written = emit(plan, format).splitlines()
        assert [line for line in written if line in own] == own
        assert not {*written} & {*dropped} - {"#SBATCH --exclusive"}
        assert "#SBATCH --nodes=4" in written
    gone = emit(started(CONTIGUOUS, "slurm", "gone.sh", 1), "sbatch")
    assert "# gone.sh is not here: its #SBATCH lines are not kept.\n" in gone
