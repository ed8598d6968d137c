"""A patch changes the launcher of a script and what would undo the plan, no more."""

import subprocess

import pytest

from placer.base.errors import EmitError, InputError
from placer.emit import emit
from tests.emit.readback import CONTIGUOUS, FREE, INTERLEAVED, plan_of, started
from tests.injob.stand_ins import program
from tests.texts import table


def patched(folder, text, name, line, seats=CONTIGUOUS):
    """The script after its patch, which is applied as the page says."""
    (folder / "train.sh").write_text(text)
    patch = emit(started(seats, name, "train.sh", line), "patch")
    subprocess.run(["patch", "-p1"], cwd=folder, input=patch, text=True, check=True)
    assert not list(folder.glob("*.orig")), "it applied with an offset"
    return (folder / "train.sh").read_text()


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Scripts are named from the folder that the command runs in."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(*table("emit/patch.yaml", "torchrun"))
def test_torchrun_takes_its_node_rank_from_the_plan(tmp_path, before, after, line):
    """Wherever its options stand: in arrays, variables, quotes, after a backslash."""
    text = patched(tmp_path, before + "\n", "torchrun-c10d", line)
    agent = str(tmp_path / "placer-torchrun.sh")
    first = "${PLACER_MASTER_ADDR:-n3}"
    assert text == after.replace("AGENT", agent).replace("FIRST", first) + "\n"
    assert "node_rank=0" in (tmp_path / "placer-torchrun.sh").read_text()


@pytest.mark.parametrize(*table("emit/patch.yaml", "host_files"))
def test_others_read_a_host_file(tmp_path, name, before, after):
    """Their own options for hosts go; those of the program stay."""
    text = patched(tmp_path, before, name, 1)  # without a newline at its end
    assert text == after.replace("HOSTS", str(tmp_path / "placer-hosts.txt"))
    assert (tmp_path / "placer-hosts.txt").read_text().startswith("n3")


def test_hydra_has_a_script_for_gpus_that_are_not_in_order(tmp_path):
    """On one node of four, whose two ranks have each other's GPU."""
    mixed = [*CONTIGUOUS[:6], *CONTIGUOUS[:5:-1]]
    text = patched(tmp_path, "mpiexec.hydra -n 8 python a.py\n", "hydra", 1, mixed)
    assert f"-n 8 bash {tmp_path}/placer-gpu-wrapper.sh python a.py" in text


AGENT = 'echo "$NODE_RANK of $NNODES, $NPROC_PER_NODE at $MASTER_ADDR:$MASTER_PORT:'


@pytest.mark.parametrize(*table("emit/patch.yaml", "agents"))
def test_agents_are_told_their_node_rank(tmp_path, name, line, told):
    """On every host the patched line starts the agent with the plan's rank of it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (tmp_path / "swift").mkdir()
    for agent in ("swift", "megatron", "accelerate"):
        program(folder, agent, f'{AGENT} $0 $*"')
    patched(tmp_path, line + "\n", name, 1)
    for k, host in enumerate(["n3", "n1", "n4", "n2"]):
        around = {"PATH": f"{folder}:/usr/bin:/bin", "PLACER_HOST": host}
        done = subprocess.run(
            ["bash", "train.sh"], env=around, capture_output=True, text=True, check=True
        )
        assert done.stdout.split() == told.format(k=k, bin=folder).split()


@pytest.mark.parametrize(*table("emit/patch.yaml", "refused"))
def test_what_cannot_be_patched_is_told(tmp_path, name, text, seats, line, words):
    """What no patch can say, two of an option, a script that does not start the job."""
    (tmp_path / "run.sh").write_text(text + "\n")
    maps = {"nodes": CONTIGUOUS, "in order": INTERLEAVED, "free": FREE}
    with pytest.raises((EmitError, InputError)) as caught:
        emit(started(maps[seats], name, "run.sh", line), "patch")
    for word in words:
        assert word in str(caught.value)


def test_a_changed_or_lost_script_is_refused(tmp_path):
    """A patch that is applied is a change too."""
    patched(tmp_path, "torchrun a.py\n", "torchrun-static", 1)
    plan = started(CONTIGUOUS, "torchrun-static", "train.sh", 1)
    with pytest.raises(EmitError, match=r"train\.sh:1 does not start the job"):
        emit(plan, "patch")
    with pytest.raises(InputError, match=r"lost\.sh"):
        emit(started(CONTIGUOUS, "slurm", "lost.sh", 1), "patch")
    with pytest.raises(EmitError, match="knows no script"):
        emit(plan_of(CONTIGUOUS), "patch")


def test_a_script_elsewhere_says_where_to_apply(tmp_path, monkeypatch):
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


def test_sbatch_keeps_the_lines_of_the_script(tmp_path):
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
