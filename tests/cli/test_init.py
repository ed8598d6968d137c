"""``placer init``: a folder that needs no options from then on."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import data, refusal, run

pytestmark = pytest.mark.usefixtures("trained")


def test_commands_need_no_options_afterwards():
    """Without a terminal nothing is asked; the files of the folder are found."""
    Path("notes.txt").write_text("hosts h01 and h02 are new\n")
    found = run("init")
    told = found.stdout
    assert found.stderr.endswith("wrote placer.yaml\n")
    for words in (
        "machine: topology, 40 nodes, 320 GPUs",
        "job: pretrain, 320 ranks",
        "assumed: H100 hosts",
    ):
        assert words in told
    assert Path("placer.yaml").read_text().splitlines()[1:] == [
        'topology: "topology.conf"',
        'job: "pretrain.sh"',
        "# No file says these, so placer assumes them. Say them here instead:",
        "# gpu: H100",
        "# oversubscription: {spine: 1}",
        "# tflops: 396.0",
    ]
    assert data("place", "-q", "-o", "plan.json")["world_size"] == 320
    run("score", "--baseline", "sorted-hosts", "-q")
    spare = ("--set", "SLURM_NNODES=20", "--hosts", "h[01-20]")
    text = Path("placer.yaml").read_text().replace("# ", "").splitlines()[1:]
    text = "\n".join(line for line in text if not line.startswith("No file"))
    Path("placer.yaml").write_text(text)
    said = data("place", "-q", *spare)
    assert [entry["key"] for entry in said["assumed"]] == ["model.vocab"]


def test_options_are_written():
    """What options say stands in the file, which takes no other in its place."""
    given = ("--gpu", "h200", "--oversubscription", "spine=2", "--tflops", "500")
    run("init", "-t", "slurm:topology.conf", "-j", "pretrain.sh", *given, "-q")
    assert Path("placer.yaml").read_text() == (
        "# Commands in this folder read these; -t and -j are not needed.\n"
        'topology: "slurm:topology.conf"\ngpu: "h200"\n'
        'oversubscription: {"spine": 2.0}\njob: "pretrain.sh"\ntflops: 500.0\n'
    )
    assert "placer.yaml: it is there already" in refusal("init")
    run("init", "--force", "-q")
    assert "h200" not in Path("placer.yaml").read_text()


def test_a_terminal_is_asked():
    """What no file says is asked for; a wrong answer again, an empty line leaves it."""
    own, side = pty.openpty()
    os.write(own, b"foo\nh200\n4:1\n\n")
    command = [sys.executable, "-m", "placer", "init"]
    done = subprocess.run(
        command, stdin=side, stderr=side, stdout=subprocess.PIPE, text=True, timeout=60
    )
    asked = os.read(own, 1 << 16).decode()
    os.close(own)
    os.close(side)
    assert done.returncode == 0
    assert asked.count("GPUs of the hosts [Enter: H100 is assumed]") == 2
    assert "links into the spine tier oversubscribed [Enter: 1 is assumed]" in asked
    assert "a GPU sustains [Enter: 396 is assumed]" in asked
    text = Path("placer.yaml").read_text()
    assert '\ngpu: "h200"\noversubscription: {"spine": 4.0}\n' in text
    assert text.endswith("# tflops: 396.0\n")


def test_a_folder_that_leaves_open_which_file():
    """Several files, and none, are told with the option that names one."""
    Path("other.conf").write_text(Path("topology.conf").read_text())
    found = refusal("init")
    assert "several files here describe a machine: other.conf, topology.conf" in found
    Path("pretrain.sh").unlink()
    found = refusal("init", "-t", "other.conf")
    assert "no file here describes a job" in found
    assert "-j names one" in found
    assert not Path("placer.yaml").exists()


def test_an_option_takes_the_place_of_its_pair():
    """``--hardware`` leaves out the file's gpu, ``-j`` what belongs to its job."""
    text = "topology: topology.conf\ngpu: h100\njob: pretrain.sh\ntflops: 400\n"
    Path("placer.yaml").write_text(text)
    plan = data("place", "-q", "--hardware", "dgx-a100-20x8")
    assert plan["inputs"]["topology"]["gpu"]["name"] == "A100"
    plan = data("place", "-q", "-j", "pretrain.sh")
    assert plan["inputs"]["job"]["compute"]["tflops_per_gpu"] == 396
